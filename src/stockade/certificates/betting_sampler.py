"""Deal copies of a text until its radius is known: first some deals that choose the class, then fresh ones."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from hashlib import blake2b
from math import comb
from typing import Any, Protocol

import numpy as np

from stockade.certificates.betting import BettingPlan, BettingTest, Rounds
from stockade.certificates.betting_evidence import BettingEvidence, Counted, radius_levels
from stockade.certificates.distributions import AntitheticDistribution, DeletionDistribution
from stockade.certificates.registry import CertificationInput, MethodResult
from stockade.certificates.sampling import Rows, RunningTotals, SampledMethod, Stream, votes_of
from stockade.core.seeds import derive_seed

_STEP = 0.02
"""More deals are asked for at once the more there were: so many for each of them. One at a time would be slow."""
_ENOUGH = 200
"""If so many copies agree without exception, nothing is left for deals to even out. However many copies agree in a deal
it is one bet only, and stakes have an upper limit: then single copies prove more.
"""
_FEWEST_COPIES, _FEWEST_DEALS = 1000, 250
"""Of fewer copies none should be drawn twice, which deals do not know of; fewer deals are too few bets to win."""


class AntitheticCopies(Protocol):
    """The copies of one text, dealt or each for itself."""

    @property
    def distribution(self) -> AntitheticDistribution: ...

    def score_groups(self, stream: Stream, start: int, stop: int) -> Coroutine[Any, Any, Rows]:
        """Class probabilities of the copies of the deals with these numbers in a stream, deal after deal."""
        ...

    def score(self, stream: Stream, start: int, stop: int) -> Coroutine[Any, Any, Rows]:
        """Class probabilities of copies with these numbers in a stream, each drawn whatever the others are: of copies
        of which none is drawn twice those to come depend on those before, and bets on them would prove nothing.
        """
        ...


def betting_plans(method: SampledMethod, distribution: AntitheticDistribution) -> tuple[BettingPlan, ...]:
    """What can be bet on: deals, or copies each for itself. Those that choose the class also choose between these."""
    return tuple(BettingPlan(method.alpha, method.most, copies) for copies in (distribution.copies_per_round, 1))


def worth_betting(method: SampledMethod, distribution: AntitheticDistribution) -> bool:
    """Whether a text of so many words is better off with deals than with the scheme "curtailed"."""
    many = (
        isinstance(distribution, DeletionDistribution) or comb(distribution.words, distribution.kept) > _FEWEST_COPIES
    )
    return method.scheme == "betting" and many and betting_plans(method, distribution)[0].rounds >= _FEWEST_DEALS


def draw_randomizer(seed: int, deals: Rounds) -> float:
    """The coin of a text, as random as any number whatever the deals are, and known to nobody before the last one.

    From the seed alone it would be known beforehand: whoever chooses seeds would find one with a coin near 0, which
    proves anything, without asking the model once.
    """
    said = blake2b(deals.astype("<f8").tobytes()).hexdigest()
    return 1.0 - float(np.random.default_rng(derive_seed(seed, "coin", said)).random())


async def sample_by_betting(
    method: SampledMethod, copies: AntitheticCopies, inputs: CertificationInput, classes: int
) -> MethodResult:
    """What the deals of a text prove."""
    counted: Counted = "votes" if method.ensemble == "vote" else "probabilities"
    plan, selection, pilot, chosen = (
        betting_plans(method, copies.distribution)[0],
        None,
        np.zeros((0, classes)),
        inputs.label,
    )
    if method.choose == "votes":
        pilot, plan = await _piloted(method, copies, classes)
        seen = RunningTotals(classes).with_rows(pilot)
        chosen, selection = method.best(seen), seen.tally.counts
    if chosen is None:
        return MethodResult(None, reason="choose=label needs data with labels")
    pilot_rounds = _together(pilot, plan.copies_per_round, counted)
    bets = BettingTest(plan, method.rule, chosen, radius_levels(copies.distribution, method.rule), pilot_rounds)
    deals = [np.zeros((0, classes))]
    ask = copies.score if plan.copies_per_round == 1 else copies.score_groups
    for start, stop in _batches(plan, method):
        deals.append(_together(await ask("estimation", start, stop), plan.copies_per_round, counted))
        bets.bet_on(deals[-1])
        if bets.finished(method.target):
            break
    bet_on = np.concatenate(deals)
    randomizer = draw_randomizer(inputs.seed, bet_on)
    evidence = BettingEvidence(
        copies.distribution, method.rule, plan, chosen, randomizer, counted, pilot_rounds, bet_on
    )
    return MethodResult(evidence, selection, len(pilot))


async def _piloted(method: SampledMethod, copies: AntitheticCopies, classes: int) -> tuple[Rows, BettingPlan]:
    """Deals until one class is clearly ahead, and what to bet on after them."""
    dealing, single = betting_plans(method, copies.distribution)
    pilot, agreed = np.zeros((0, classes)), False
    for look in method.selection_looks():
        start = len(pilot) // dealing.copies_per_round
        stop = max(start + 1, look // dealing.copies_per_round)
        pilot = np.concatenate([pilot, await copies.score_groups("selection", start, stop)])
        seen = RunningTotals(classes).with_rows(pilot)
        agreed = all_agree(seen.tally.counts, len(pilot))
        if seen.clear() and (not agreed or len(pilot) >= _ENOUGH):
            break
    return pilot, single if agreed else dealing


def all_agree(votes: Sequence[int], copies: int) -> bool:
    """Whether the copies that chose the class are without exception for it: then single copies are bet on."""
    return max(votes) == copies


def stopped_as_planned(evidence: BettingEvidence, method: SampledMethod) -> bool:
    """Whether the deals end where `dealt` ends them. Whoever may end them where he likes can wait for a randomizer."""
    levels = radius_levels(evidence.distribution, evidence.rule)
    bets = BettingTest(evidence.plan, evidence.rule, evidence.chosen, levels, evidence.pilot)
    for start, stop in _batches(evidence.plan, method):
        if stop > len(evidence.rounds):
            return False
        bets.bet_on(evidence.rounds[start:stop])
        if bets.finished(method.target):
            return stop == len(evidence.rounds)
    return False


def _batches(plan: BettingPlan, method: SampledMethod) -> Iterator[tuple[int, int]]:
    start, stop = 0, min(-(-method.first // plan.copies_per_round), plan.rounds)
    while start < stop:
        yield start, stop
        start, stop = stop, min(plan.rounds, stop + max(1, int(_STEP * stop)))


def _together(rows: Rows, copies_per_round: int, counted: Counted) -> Rounds:
    """What the copies of each deal say together."""
    said = rows if counted == "probabilities" else votes_of(rows)[:, None] == np.arange(rows.shape[1])
    together: Rounds = said.reshape(-1, copies_per_round, rows.shape[1]).sum(1)
    return together
