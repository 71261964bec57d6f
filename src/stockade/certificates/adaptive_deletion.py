"""What d edits can do to random deletion whose rate depends on the length of the text.

Each word of a text of n words stays with chance q(n), so that long texts lose a larger share of their words (AdaptDel,
Huang et al. 2025, arXiv 2511.09316; the bound here is derived anew). An edited text may have another length, hence
another chance, and then even copies that show no edited word are drawn with another probability.

Theorem. Let x have n words and x' have m; let both contain the same l = n - a = m - b words in the same order, the rest
of each being edited. Write q = q(n), r = q(m). A copy of x shows common words only with probability (1 - q)^a, and k
given common words and no others with probability q^k (1 - q)^(n - k); for x' the same with r, b and m. Let B(k; q) be
the binomial distribution of l draws, and

    M = 1 / (2 (1 - r)^b).

If M > 1 nothing is certified. Otherwise order the numbers k of shown words from l down if r <= q, from 0 up if r > q,
and take them until their probability under B(·; r) is M, the last of them as a part; let Q be the probability under
B(·; q) of what was taken. If the share of class c exceeds

    1/2 + loss,    loss = 1/2 - (1 - q)^a (1 - Q),

in copies of x, it exceeds 1/2 in copies of x'; and if its lead over every class j exceeds 2 loss, c leads in x'.

Proof. Let f(S) in [0, 1] be the vote for c of the copy that shows the set S of common words: the same for x and x'.
With p the share in copies of x, at most 1 - (1 - q)^a of which shows other words too, f has a mean of at least A =
(p - 1 + (1 - q)^a) / (1 - q)^a over S whose words stay with chance q each. Of all f with such a mean over chances q,
those with the smallest mean over chances r are 1 where the ratio of the probabilities of S under r and under q is
smallest, up to a mean of A, and 0 elsewhere (Neyman and Pearson). That ratio depends on k = |S| only, as the k-th
power of r (1 - q) / (q (1 - r)): it falls with k if r <= q and grows otherwise. So if A = Q the mean over r is M, the
share of c in copies of x' is at least (1 - r)^b M = 1/2, and for A > Q it is more. A > Q is p > 1 - (1 - q)^a (1 - Q).
For leads put (1 + f_c - f_j) / 2, which is in [0, 1], in place of f: its mean is (1 + lead) / 2, and above 1/2 if c
leads. The other copies of x' count 0 in both cases, the least there is. QED

If q(n) = q(m) then Q = M, and a = b = d gives 1 - (1 - q)^d, the loss of `bounds.deletion_losses`. s substitutions, i
insertions and e deletions leave a = s + e and b = s + i, so that up to d edits have a <= d and b <= d, and every such a
and b comes from max(a, b) edits: the loss of d edits is the largest over these, with m = n + b - a. Numbers are floats;
losses are moved up by more than their arithmetic can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from stockade.core.partitions import deletion_chance

Array = NDArray[np.float64]
_SLACK = 1e-9
_NOTHING_PROVED = 0.5
"""A loss with which not even all votes prove anything."""


@lru_cache(maxsize=4096)
def adaptive_losses(words: int, kept_chance: float, mean_kept: float) -> tuple[float, ...]:
    """The losses of d = 0, 1, … edits of a text of so many words, as long as anything can be proved.

    Parameters
    ----------
    words : int
        How many words the text has.
    kept_chance, mean_kept : float
        The rate: see `core.partitions.deletion_chance`.
    """

    def chance(length: int) -> float:
        return deletion_chance(length, kept_chance, mean_kept)

    losses = [0.0]
    for edits in range(1, words + 1):
        pairs = [(edits, gained) for gained in range(edits + 1)] + [(lost, edits) for lost in range(edits)]
        worst = max(edit_loss(words, lost, gained, chance) for lost, gained in pairs)
        if worst >= _NOTHING_PROVED:
            break
        losses.append(max(losses[-1], worst))
    return tuple(losses)


@lru_cache(maxsize=4096)
def adaptive_insertion_leads(words: int, kept_chance: float, mean_kept: float, limit: int) -> tuple[float, ...]:
    """The lead to exceed for d = 0, 1, … insertions and no other edit, as long as one can: twice their loss."""

    def chance(length: int) -> float:
        return deletion_chance(length, kept_chance, mean_kept)

    leads = [0.0]
    while len(leads) <= limit:
        loss = edit_loss(words, 0, len(leads), chance)
        if loss >= _NOTHING_PROVED:
            break
        leads.append(max(leads[-1], 2 * loss))
    return tuple(leads)


def edit_loss(words: int, lost: int, gained: int, chance: Callable[[int], float]) -> float:
    """The loss of the theorem, for an edited text that lacks `lost` of the words and has `gained` others.

    Parameters
    ----------
    words : int
        n, how many words the text has.
    lost, gained : int
        a and b.
    chance : Callable
        q, the chance to stay by the number of words.
    """
    before, after, common = chance(words), chance(words + gained - lost), words - lost
    needed = 1 / (2 * (1 - after) ** gained)
    if needed > 1:
        return _NOTHING_PROVED
    under_before, under_after = (_binomial(common, stays) for stays in (before, after))
    if after <= before:
        under_before, under_after = under_before[::-1], under_after[::-1]
    taken = np.concatenate([[0.0], np.cumsum(under_after)])
    whole = min(int(np.searchsorted(taken, needed, side="right")) - 1, common)
    part = min(1.0, (needed - taken[whole]) / max(under_after[whole], 1e-300))
    mass = float(under_before[:whole].sum() + part * under_before[whole])
    return min(_NOTHING_PROVED, 0.5 - (1 - before) ** lost * (1 - min(1.0, mass)) + _SLACK)


def _binomial(trials: int, chance: float) -> Array:
    """The probability of 0, 1, …, `trials` successes."""
    counts = np.arange(trials + 1)
    ways = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    chances: Array = np.exp(ways + xlogy(counts, chance) + xlog1py(trials - counts, -chance))
    return chances
