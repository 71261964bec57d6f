"""What a share of votes proves: from probabilities (or lower limits of them) to the number of changes that are safe.

One idea carries every sampled method. A smoothed classifier g lets the random copies of a text vote. An attacker who
makes d changes leaves some copies exactly as they were; at most a share loss(d) is altered, and those may vote for
anything. So p_c falls by at most loss(d), any other p_j rises by at most loss(d), and g stays with class c if

    majority    p_c > 1/2 + loss(d)                              (nobody else can hold half)
    gap         p_c - p_j > 2 loss(d) for every other class j    (nobody else can catch up)

Majority implies gap, as p_j <= 1 - p_c; with two classes they are the same. The methods differ in loss(d) only.
Thresholds are Fractions, and Python compares a Fraction with a float exactly, so no rounding decides a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from stockade.certificates.confidence import check_alpha, check_counts, clopper_pearson_high, clopper_pearson_low
from stockade.core.errors import OptionError

Number = float | Fraction
Rule = Literal["majority", "gap"]


def masking_losses(words: int, kept: int) -> tuple[Fraction, ...]:
    """Δ_d for d = 0 … words: the share of all choices of `kept` words that contain one of d given words.

    Levine & Feizi (2020, Robustness certificates for sparse adversarial attacks by randomized ablation), used for words
    by Zeng et al. (2021, RanMASK, Theorem 1 with beta = 1). Against substitutions: a copy that hides all the changed
    words is the same text before and after. There are C(words - d, kept) of C(words, kept) such copies, hence
    Δ_d = 1 - C(words - d, kept) / C(words, kept), and 1 as soon as d > words - kept.
    """
    _check_kept(words, kept)
    untouched, total = math.comb(words, kept), math.comb(words, kept)
    losses = []
    for changed in range(words + 1):
        losses.append(1 - Fraction(untouched, total))
        left = words - changed
        untouched = untouched * (left - kept) // left if left else 0
    return tuple(losses)


def deletion_losses(kept_chance: float, limit: int) -> tuple[float, ...]:
    """1 - (1 - q)^d for d = 0 … limit: deletion smoothing, where each word stays with chance q and is else removed.

    Against d edits of any kind (insertions, deletions, substitutions of one word each). Let z be what both texts share,
    all but a words of x and b words of x', with a, b <= d. With chance (1 - q)^a all of x's own words go and leave the
    law of z, so p_c(x) <= (1 - q)^a p_c(z) + 1 - (1 - q)^a; likewise p_c(x') >= (1 - q)^b p_c(z). What follows is
    `edit_bound`; it falls with a and with b, so that a = b = d is the worst. The same two steps for p_c - p_j give the
    gap rule. Rounded up, never down.
    """
    survive = 1 - _chance(kept_chance)
    _check_limit(limit)
    losses, above, below = [], 1, 1
    for _ in range(limit + 1):
        losses.append(_quotient_above(below - above, below))
        above, below = above * survive.numerator, below * survive.denominator
    return tuple(losses)


def synonym_losses(overlaps: Sequence[Number]) -> tuple[Fraction, ...]:
    """1 - the product of the R smallest overlaps, R = 0 … the number of words: synonym smoothing.

    Ye et al. (2020, SAFER, Theorem 1): every word is replaced by a uniform draw from its set. Replacing word w by one
    of its synonyms changes the law of that one draw by a total variation of 1 - q_w, with q_w the worst overlap of the
    two sets over the size of the larger. Draws are independent: couple them one by one, and all R changed words
    agree with at least the product of their q_w. R words at most: the R smallest q_w are the worst. An overlap that is
    a float may be a quotient rounded up: it counts as the next float below, but 1 as 1.
    """
    product, losses = Fraction(1), [Fraction(0)]
    for overlap in sorted(_share_below(overlap, "An overlap") for overlap in overlaps):
        product *= overlap
        losses.append(1 - product)
    return tuple(losses)


def threshold(loss: Number, rule: Rule) -> Fraction:
    """What p_c (majority) or p_c - max p_j (gap) must exceed."""
    if rule == "majority":
        return Fraction(1, 2) + Fraction(loss)
    if rule == "gap":
        return 2 * Fraction(loss)
    raise OptionError(f'There is no rule "{rule}" (found: majority, gap).')


def largest_radius(low: Number, losses: Sequence[Number], rule: Rule) -> int | None:
    """The last d up to which every threshold is exceeded; None, abstain, if not even that of d = 0 is."""
    radius = None
    for changes, loss in enumerate(losses):
        if not low > threshold(loss, rule):
            break
        radius = changes
    return radius


def insertion_leads(kept_chance: float, limit: int) -> tuple[Fraction, ...]:
    """Deletion smoothing against d insertions alone, d = 0 … limit: the lead to exceed, as long as one can.

    x' contains x, and with chance t = (1 - q)^d all the new words go, which leaves the law of x: a lead of g becomes at
    least t g - (1 - t), which is above 0 if g > 1 / t - 1.
    """
    survive, share = 1 - _chance(kept_chance), Fraction(1)
    _check_limit(limit)
    leads: list[Fraction] = []
    while share > Fraction(1, 2) and len(leads) <= limit:
        leads.append(1 / share - 1)
        share *= survive
    return tuple(leads)


def insertions_radius(lead: Number, leads: Sequence[Number]) -> int | None:
    """The last d of `insertion_leads` that a lead exceeds; None: not even that of d = 0.

    A share p_c leads by 2 p_c - 1 at least, and then this is (1 - q)^d p_c > 1/2.
    """
    exceeded = sum(lead > needed for needed in leads)
    return exceeded - 1 if exceeded else None


def edit_bound(p: Number, kept_chance: float, removed: int, added: int) -> Fraction:
    """The least p_c(x') under deletion smoothing if x' lacks `removed` words of x and has `added` words of its own.

    (1 - q)^(b - a) (p - 1 + (1 - q)^a), see `deletion_losses`; 0 if that is negative.
    """
    survive, share = 1 - _chance(kept_chance), _share(p, "The share of votes")
    if removed < 0 or added < 0:
        raise OptionError(f"Words removed and added must not be negative (found: {removed}, {added}).")
    common = survive**removed
    if share - 1 + common <= 0:
        return Fraction(0)
    return survive**added * (share - 1 + common) / common


def partition_radius(counts: Sequence[int], chosen: int) -> int | None:
    """How many groups' votes may change before the winner does: min over j of floor((n_c - n_j - 1[j < c]) / 2).

    Levine & Feizi (2021, Deep partition aggregation) for training sets; here the words of one text are split into
    groups that vote once each. A changed vote costs c one and gives j one at most; ties go to the smaller index. By
    position a substitution alters one group. By a hash of the word, the others removed, an insertion or a deletion
    alters one group and a substitution two: the radius then bounds insertions + deletions + 2 substitutions. No
    chance of failure. None: `chosen` does not win.
    """
    _check_chosen(len(counts), chosen)
    leads = [counts[chosen] - votes - (other < chosen) for other, votes in enumerate(counts) if other != chosen]
    return min(leads) // 2 if min(leads) >= 0 else None


def overlapping_radius(votes: Sequence[int], offsets: Sequence[int], chosen: int, classes: int) -> int | None:
    """The same for groups that overlap: how many cells may change before the winner does.

    Wang et al. (2022, Finite aggregation) for training sets. There are as many groups as cells, and group i is made of
    the cells i + o for each of the offsets o, counted in a circle. So a change in cell k alters the votes of the
    groups k - o only. An altered group that voted for c may take 2 from the lead of c over j, one that voted for j
    nothing, any other, and one without words (-1), at most 1. The changes in a set of cells take no more than the sum
    over these cells of what each can take (groups that several of them alter are counted more than once), and d cells
    no more than the d that can take most: c still wins if its lead, less 1 if j comes first, is at least that, for
    every j. By position a substitution is in one cell, by hash an insertion or a deletion in one and a substitution in
    two. No chance of failure. None: `chosen` does not win.
    """
    _check_chosen(classes, chosen)
    cast = np.array(votes)
    radius = len(cast)
    for other in range(classes):
        if other == chosen:
            continue
        lead = int((cast == chosen).sum() - (cast == other).sum()) - (other < chosen)
        if lead < 0:
            return None
        each = np.where(cast == chosen, 2, np.where(cast == other, 0, 1))
        of_cells = np.sort(np.sum([np.roll(each, offset) for offset in offsets], axis=0))[::-1]
        radius = min(radius, int((np.cumsum(of_cells) <= lead).sum()))
    return radius


def sampled_coverage_radius(
    errors: int, hidden_errors: Sequence[int], copies: int, losses: Sequence[Number], alpha: float
) -> int | None:
    """A majority rule that sees which words were hidden when the classifier erred: 1 - Δ_d - max e(D) > 1/2.

    e(D) is the share of copies that hide all of D and do not vote for c: only those are sure to stay errors, the
    altered ones are in Δ_d already. `errors` counts the copies that do not vote for c, `hidden_errors[i]` those of them
    that hide word i. e(D) is at most the share of errors that hide i, for each i in D, so it is at most the d-th
    largest of these shares, and at most 1 - p_c. All limits hold together at alpha / (words + 1) each.
    """
    check_alpha(alpha)
    if any(count > errors for count in hidden_errors):
        raise OptionError(f"No word can be hidden in more than the {errors} copies that err (found: {hidden_errors}).")
    each = alpha / (len(hidden_errors) + 1)
    ceiling = clopper_pearson_high(errors, copies, each)
    ordered = sorted((clopper_pearson_high(count, copies, each) for count in hidden_errors), reverse=True)
    radius = None
    for changes, (loss, staying) in enumerate(zip(losses, [ceiling, *ordered], strict=False)):
        if not Fraction(1, 2) - Fraction(loss) > min(ceiling, staying):
            break
        radius = changes
    return radius


@dataclass(frozen=True, slots=True)
class LegacyClaim:
    """What the published algorithm prints for a text. Not a certificate: see `legacy_claim`."""

    p_low: float
    beta: float
    bounds: tuple[float, ...]
    """p_low - beta Δ_d for d = 0 … words."""
    radius: int | None
    """The first d that fails, as published; None if d = 0 does."""
    last_passing: int | None


def legacy_claim(votes: int, copies: int, words: int, kept: int, alpha: float | None) -> LegacyClaim:
    """The radius as RanMASK publishes it (Zeng et al. 2021, Theorem 1 and Algorithm 2), to compare with its tables.

    NOT a certificate, for two reasons. Theorem 1 is true for one pair of texts, with beta the chance that a copy votes
    for c given that it shows a changed word; the attacker chooses those words, and beta = votes / copies is no bound
    over his choices: he takes the words whose hiding causes the errors, and all of these errors stay. And the
    algorithm returns the first d that fails its test instead of the last that passes. alpha = None takes votes /
    copies for the exact share (all copies counted).
    """
    check_counts(votes, copies)
    if not copies or not kept:
        raise OptionError(f"A claim needs copies, and words that are kept in them (found: {copies} and {kept}).")
    beta = votes / copies
    p_low = beta if alpha is None else clopper_pearson_low(votes, copies, alpha)
    bounds = tuple(p_low - beta * float(loss) for loss in masking_losses(words, kept))
    failing = next(changes for changes, bound in enumerate(bounds) if bound <= 0.5)
    return LegacyClaim(p_low, beta, bounds, failing or None, failing - 1 if failing else None)


def divergence_check(betas: Sequence[float], shares: Sequence[float]) -> float:
    """The Jensen–Shannon divergence (nats) by which RanMASK argues that beta may be replaced by p_c.

    It proves nothing. Both lists, one number per text, are first scaled to sum to 1: beta = 1.25 p has divergence 0,
    though every bound is then wrong. Adding 0.05 to each beta, enough to void the claims, gives some 1e-5, which passes
    for "very small". And beta is measured there on random sets of words, where the attacker's set is the worst one.
    """
    first, second = (np.asarray(values, dtype=np.float64) for values in (betas, shares))
    if first.shape != second.shape or not len(first) or min(first.min(), second.min()) <= 0:
        raise OptionError("The two lists to compare need one positive number for each text, and at least one text.")
    first, second = first / first.sum(), second / second.sum()
    middle = (first + second) / 2
    return float(np.sum(first * np.log(first / middle) + second * np.log(second / middle)) / 2)


def _check_kept(words: int, kept: int) -> None:
    if not 0 <= kept <= words:
        raise OptionError(f"A text of {words} words keeps between 0 and {words} of them (found: {kept}).")


def _check_chosen(classes: int, chosen: int) -> None:
    if classes < 2 or not 0 <= chosen < classes:
        raise OptionError(f"The chosen class must be one of at least two (found: class {chosen} of {classes}).")


def _share(value: Number, what: str) -> Fraction:
    if not 0 <= value <= 1:
        raise OptionError(f"{what} must lie between 0 and 1 (found: {value}).")
    return Fraction(value)


def _share_below(value: Number, what: str) -> Fraction:
    """Not above the share that a float was rounded from. What is rounded to 1 is 1: no set has 10^15 words."""
    exact = _share(value, what)
    rounded = isinstance(value, float) and 0 < value < 1
    return Fraction(math.nextafter(value, 0.0)) if rounded else exact


def _chance(kept_chance: float) -> Fraction:
    return _share(kept_chance, "The chance that a word stays")


def _check_limit(limit: int) -> None:
    if limit < 0:
        raise OptionError(f"The largest number of edits to look at must not be negative (found: {limit}).")


def _quotient_above(numerator: int, denominator: int) -> float:
    """The smallest float that is not below the quotient."""
    near = numerator / denominator
    above, below = near.as_integer_ratio()
    return near if above * denominator >= numerator * below else math.nextafter(near, math.inf)
