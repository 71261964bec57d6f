"""Draw rounds of copies of a text until bets on them prove its radius: first a pilot that chooses the class, then fresh
rounds.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from stockade.certificates.betting import BettingPlan, BettingTest, Rounds, leads_of
from stockade.certificates.betting_evidence import (
    AntitheticDistribution,
    BettingEvidence,
    Counted,
    by_round,
    radius_levels,
)
from stockade.certificates.certificate import Certificate
from stockade.certificates.method import CertificationInput, MethodResult
from stockade.certificates.sampling import Rows, RunningTotals, Stream, votes_of
from stockade.core.seeds import derive_seed

if TYPE_CHECKING:
    from stockade.certificates.sampled_method import SampledMethod

_STEP = 0.02
"""More rounds are asked for at once the more there were: so many for each of them. One at a time would be slow."""
_STAKES = np.linspace(0.0, 0.99, 34)
"""The stakes that are tried on a pilot, as shares of the largest that may be made."""
_FEWEST_COPIES, _FEWEST_ROUNDS = 1000, 250
"""Of fewer copies none should be drawn twice, and groups do not know of that; fewer rounds are too few bets to win."""
ANOTHER_PLAN = "the evidence was looked at by another plan than the run's"


@runtime_checkable
class AntitheticCopies(Protocol):
    """The copies of one text, in antithetic groups or each for itself; chunks as those of `sampling.Copies`."""

    @property
    def distribution(self) -> AntitheticDistribution:
        """How they are drawn."""
        ...

    def score(self, stream: Stream, start: int, stop: int) -> Coroutine[Any, Any, Rows]:
        """Class probabilities of single copies in a chunk of a stream. They must be drawn independently: if none is
        drawn twice those to come depend on those before, and bets on them would prove nothing.
        """
        ...

    def score_groups(self, stream: Stream, start: int, stop: int) -> Coroutine[Any, Any, Rows]:
        """Class probabilities of the copies of the groups in a chunk of a stream, group after group."""
        ...


def betting_plans(method: SampledMethod, distribution: AntitheticDistribution) -> tuple[BettingPlan, BettingPlan]:
    """What can be bet on: groups, or single copies. The pilot chooses between them."""
    groups, single = (BettingPlan(method.alpha, method.most, copies) for copies in (distribution.group_size, 1))
    return groups, single


def worth_betting(method: SampledMethod, distribution: AntitheticDistribution) -> bool:
    """Whether the betting bound is the better one for a text, instead of the scheme "curtailed"."""
    copies = distribution.distinct_copies
    many = copies is None or copies > _FEWEST_COPIES
    return method.scheme == "betting" and many and betting_plans(method, distribution)[0].rounds >= _FEWEST_ROUNDS


def draw_randomizer(seed: int, rounds: Rounds) -> float:
    """The randomizer of a text: uniform, whatever the rounds are, and known to nobody before the last one.

    From the seed alone it would be known beforehand: whoever chooses seeds would find one with a randomizer near 0,
    which proves anything, without asking the model once.
    """
    digest = blake2b(rounds.astype("<f8").tobytes()).hexdigest()
    return 1.0 - float(np.random.default_rng(derive_seed(seed, "coin", digest)).random())


async def sample_by_betting(
    method: SampledMethod, copies: AntitheticCopies, inputs: CertificationInput, classes: int
) -> MethodResult:
    """What bets on random copies of a text prove.

    Parameters
    ----------
    method : SampledMethod
        The options.
    copies : AntitheticCopies
        The copies of the text.
    inputs : CertificationInput
        The text.
    classes : int
        How many classes the model has.
    """
    counted: Counted = "votes" if method.ensemble == "vote" else "probabilities"
    by_votes = method.choose == "votes"
    if not by_votes and inputs.label is None:
        return MethodResult(None, reason="choose=label needs data with labels")
    pilot_rows = await _run_pilot(method, copies, classes)
    totals = RunningTotals(classes).with_rows(pilot_rows)
    chosen = method.best(totals) if by_votes or inputs.label is None else inputs.label
    pilot = _counted(pilot_rows, counted)
    plan = choose_plan(method, copies.distribution, pilot, chosen)
    levels = radius_levels(copies.distribution, method.rule)
    test = BettingTest(plan, method.rule, chosen, levels, by_round(pilot, plan.copies_per_round))
    drawn = [np.zeros((0, classes))]
    score = copies.score if plan.copies_per_round == 1 else copies.score_groups
    for start, stop in chunks(plan, method):
        rows = _counted(await score("estimation", start, stop), counted)
        drawn.append(by_round(rows, plan.copies_per_round))
        test.bet_on(drawn[-1])
        if test.finished(method.target, method.least_power):
            break
    rounds = np.concatenate(drawn)
    evidence = BettingEvidence(
        distribution=copies.distribution,
        rule=method.rule,
        plan=plan,
        chosen=chosen,
        randomizer=draw_randomizer(inputs.seed, rounds),
        counted=counted,
        pilot=pilot,
        rounds=rounds,
    )
    return MethodResult(evidence, totals.tally.counts if by_votes else None, len(pilot))


def betting_deviations(certificate: Certificate, evidence: BettingEvidence, method: SampledMethod) -> Iterator[str]:
    """Where rounds are not what `sample_by_betting` makes with these options: whoever may end them where he likes can
    wait for a randomizer.
    """
    pilot, drawn = evidence.pilot, certificate.copies - evidence.copies
    if not worth_betting(method, evidence.distribution):
        yield ANOTHER_PLAN
    elif (evidence.counted == "votes") != (method.ensemble == "vote"):
        yield f"the evidence is of {evidence.counted}, which the method does not count"
    elif len(pilot) != drawn or not _pilot_as_planned(evidence, certificate.selection, method):
        yield "the stakes rest on other copies than those that chose the class"
    elif evidence.plan != choose_plan(method, evidence.distribution, pilot, evidence.chosen):
        yield ANOTHER_PLAN
    elif not _stopped_as_planned(evidence, method):
        yield "the rounds do not end where the plan ends them"
    if evidence.randomizer != draw_randomizer(certificate.seed, evidence.rounds):
        yield f"the randomizer {evidence.randomizer} is not the one that the seed and the rounds give"


def choose_plan(method: SampledMethod, distribution: AntitheticDistribution, pilot: Rounds, chosen: int) -> BettingPlan:
    """Whether to bet on groups or on single copies: on what would have made more of the pilot.

    The votes of a group vary less, but a group is one bet, however many copies agree in it, and stakes have an upper
    limit. So bets on single copies grow faster where nearly all copies agree, and where copies of a group err together.
    What counts is the growth for each copy with the best stake, of the slower of two bets: that the lead is above the
    highest level that it exceeds in the pilot, and that it is below the next one, since the rounds end when neither is
    in doubt. The pilot is not bet on, so that it may decide this.

    Parameters
    ----------
    method : SampledMethod
        The options.
    distribution : AntitheticDistribution
        How the copies are drawn.
    pilot : Rounds
        The copies of the pilot, one by one, group after group.
    chosen : int
        The class.
    """
    groups, single = betting_plans(method, distribution)
    leads = leads_of(pilot, method.rule, chosen)
    leads = leads[:, [leads.sum(axis=0).argmin()]]
    levels = np.array([float(level) for level in radius_levels(distribution, method.rule)])
    below, above = levels[levels < leads.mean()][-1:], levels[levels >= leads.mean()][:1]
    worst = -1.0 if method.rule == "gap" else 0.0

    def growth(plan: BettingPlan) -> float:
        rounds = by_round(leads, plan.copies_per_round) / plan.copies_per_round
        stakes = [*(_STAKES / (level - worst) for level in below), *(-_STAKES / (1 - level) for level in above)]
        gains = [np.log1p(stake * (rounds - level)) for stake, level in zip(stakes, (*below, *above), strict=True)]
        return float(min(gain.mean(axis=0).max() for gain in gains)) / plan.copies_per_round

    return single if growth(single) > growth(groups) else groups


async def _run_pilot(method: SampledMethod, copies: AntitheticCopies, classes: int) -> Rows:
    """Groups until one class is clearly ahead; if the class is known, no more than at the first look."""
    rows, size = np.zeros((0, classes)), copies.distribution.group_size
    for look in _pilot_looks(method, size):
        rows = np.concatenate([rows, await copies.score_groups("selection", len(rows) // size, look)])
        if RunningTotals(classes).with_rows(rows).clear():
            break
    return rows


def _pilot_looks(method: SampledMethod, size: int) -> Iterator[int]:
    """After how many groups of the pilot to look whether the class is clear."""
    groups = 0
    for look in method.selection_looks()[: None if method.choose == "votes" else 1]:
        groups = max(groups + 1, look // size)
        yield groups


def _pilot_as_planned(evidence: BettingEvidence, selection: Sequence[int] | None, method: SampledMethod) -> bool:
    """Whether the pilot ends where it should, with the votes that are recorded to have chosen the class."""
    size, ends = evidence.distribution.group_size, 0
    for look in _pilot_looks(method, size):
        ends = look * size
        if RunningTotals(evidence.classes).with_rows(evidence.pilot[:ends]).clear():
            break
    votes = RunningTotals(evidence.classes).with_rows(evidence.pilot).tally.counts
    return len(evidence.pilot) == ends and selection == (votes if method.choose == "votes" else None)


def _stopped_as_planned(evidence: BettingEvidence, method: SampledMethod) -> bool:
    levels = radius_levels(evidence.distribution, evidence.rule)
    pilot = by_round(evidence.pilot, evidence.plan.copies_per_round)
    test = BettingTest(evidence.plan, evidence.rule, evidence.chosen, levels, pilot)
    for start, stop in chunks(evidence.plan, method):
        if stop > len(evidence.rounds):
            return False
        test.bet_on(evidence.rounds[start:stop])
        if test.finished(method.target, method.least_power):
            return stop == len(evidence.rounds)
    return False


def chunks(plan: BettingPlan, method: SampledMethod) -> Iterator[tuple[int, int]]:
    """The rounds that are drawn at once: the first and the last of each chunk."""
    start, stop = 0, min(-(-method.first // plan.copies_per_round), plan.rounds)
    while start < stop:
        yield start, stop
        start, stop = stop, min(plan.rounds, stop + max(1, int(_STEP * stop)))


def _counted(rows: Rows, counted: Counted) -> Rounds:
    """What each copy adds to its round: a vote, or its probabilities."""
    if counted == "probabilities":
        return rows
    votes: Rounds = (votes_of(rows)[:, None] == np.arange(rows.shape[1])).astype(np.float64)
    return votes
