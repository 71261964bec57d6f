"""Draw rounds of copies of a text until bets on them prove its radius: first a pilot that chooses the class, then fresh
rounds.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from stockade.certificates.betting import BettingPlan, BettingTest, Rounds
from stockade.certificates.betting_evidence import AntitheticDistribution, BettingEvidence, Counted, radius_levels
from stockade.certificates.certificate import Certificate
from stockade.certificates.method import CertificationInput, MethodResult
from stockade.certificates.sampling import Rows, RunningTotals, Stream, votes_of
from stockade.core.seeds import derive_seed

if TYPE_CHECKING:
    from stockade.certificates.sampled_method import SampledMethod

_STEP = 0.02
"""More rounds are asked for at once the more there were: so many for each of them. One at a time would be slow."""
_ENOUGH = 200
"""If so many copies agree without exception, nothing is left for groups to even out. However many copies agree in a
group it is one bet only, and stakes have an upper limit: then single copies prove more.
"""
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
    plan, selection, chosen = betting_plans(method, copies.distribution)[0], None, inputs.label
    pilot_rows = np.zeros((0, classes))
    if method.choose == "votes":
        pilot_rows, plan = await _run_pilot(method, copies, classes)
        totals = RunningTotals(classes).with_rows(pilot_rows)
        chosen, selection = method.best(totals), totals.tally.counts
    if chosen is None:
        return MethodResult(None, reason="choose=label needs data with labels")
    pilot = _by_round(pilot_rows, plan.copies_per_round, counted)
    test = BettingTest(plan, method.rule, chosen, radius_levels(copies.distribution, method.rule), pilot)
    drawn = [np.zeros((0, classes))]
    score = copies.score if plan.copies_per_round == 1 else copies.score_groups
    for start, stop in _chunks(plan, method):
        drawn.append(_by_round(await score("estimation", start, stop), plan.copies_per_round, counted))
        test.bet_on(drawn[-1])
        if test.finished(method.target):
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
    return MethodResult(evidence, selection, len(pilot_rows))


def betting_deviations(certificate: Certificate, evidence: BettingEvidence, method: SampledMethod) -> Iterator[str]:
    """Where rounds are not what `sample_by_betting` makes with these options: whoever may end them where he likes can
    wait for a randomizer.
    """
    groups, single = betting_plans(method, evidence.distribution)
    selection, drawn = certificate.selection, certificate.copies - evidence.copies
    plan = single if selection is not None and _all_agree(selection, drawn) else groups
    if evidence.plan != plan or not worth_betting(method, evidence.distribution):
        yield ANOTHER_PLAN
    elif (evidence.counted == "votes") != (method.ensemble == "vote"):
        yield f"the evidence is of {evidence.counted}, which the method does not count"
    elif len(evidence.pilot) * plan.copies_per_round != drawn or (
        evidence.counted == "votes" and tuple(evidence.pilot.sum(0)) != (selection or (0,) * evidence.classes)
    ):
        yield "the stakes rest on other copies than those that chose the class"
    elif not _stopped_as_planned(evidence, method):
        yield "the rounds do not end where the plan ends them"
    if evidence.randomizer != draw_randomizer(certificate.seed, evidence.rounds):
        yield f"the randomizer {evidence.randomizer} is not the one that the seed and the rounds give"


async def _run_pilot(method: SampledMethod, copies: AntitheticCopies, classes: int) -> tuple[Rows, BettingPlan]:
    """Groups until one class is clearly ahead, and what to bet on after them."""
    groups, single = betting_plans(method, copies.distribution)
    rows, agreed = np.zeros((0, classes)), False
    for look in method.selection_looks():
        start = len(rows) // groups.copies_per_round
        stop = max(start + 1, look // groups.copies_per_round)
        rows = np.concatenate([rows, await copies.score_groups("selection", start, stop)])
        totals = RunningTotals(classes).with_rows(rows)
        agreed = _all_agree(totals.tally.counts, len(rows))
        if totals.clear() and (not agreed or len(rows) >= _ENOUGH):
            break
    return rows, single if agreed else groups


def _all_agree(votes: Sequence[int], copies: int) -> bool:
    """Whether the copies that chose the class are without exception for it: then single copies are bet on."""
    return max(votes) == copies


def _stopped_as_planned(evidence: BettingEvidence, method: SampledMethod) -> bool:
    levels = radius_levels(evidence.distribution, evidence.rule)
    test = BettingTest(evidence.plan, evidence.rule, evidence.chosen, levels, evidence.pilot)
    for start, stop in _chunks(evidence.plan, method):
        if stop > len(evidence.rounds):
            return False
        test.bet_on(evidence.rounds[start:stop])
        if test.finished(method.target):
            return stop == len(evidence.rounds)
    return False


def _chunks(plan: BettingPlan, method: SampledMethod) -> Iterator[tuple[int, int]]:
    start, stop = 0, min(-(-method.first // plan.copies_per_round), plan.rounds)
    while start < stop:
        yield start, stop
        start, stop = stop, min(plan.rounds, stop + max(1, int(_STEP * stop)))


def _by_round(rows: Rows, copies_per_round: int, counted: Counted) -> Rounds:
    """What the copies of each round say together."""
    votes = rows if counted == "probabilities" else votes_of(rows)[:, None] == np.arange(rows.shape[1])
    rounds: Rounds = votes.reshape(-1, copies_per_round, rows.shape[1]).sum(1)
    return rounds
