"""Deal copies of a text until its radius is known: first some deals that choose the class, then fresh ones."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from hashlib import blake2b
from math import comb
from typing import Any, Protocol

import numpy as np

from stockade.certificates.deals import Bets, DealPlan, Deals
from stockade.certificates.dealt import Counted, Dealt, radius_levels
from stockade.certificates.laws import DealtLaw, DeletionLaw
from stockade.certificates.registry import Finding, Question
from stockade.certificates.sampling import Rows, SampledMethod, Seen, Stream, votes_of
from stockade.core.seeds import derive_seed

_STEP = 0.02
"""More deals are asked for at once the more there were: so many for each of them. One at a time would be slow."""
_ENOUGH = 200
"""If so many copies agree without exception, nothing is left for deals to even out. However many copies agree in a deal
it is one bet only, and stakes have an upper limit: then single copies prove more.
"""
_FEWEST_COPIES, _FEWEST_DEALS = 1000, 250
"""Of fewer copies none should be drawn twice, which deals do not know of; fewer deals are too few bets to win."""


class DealtCopies(Protocol):
    """The copies of one text, dealt or each for itself."""

    @property
    def law(self) -> DealtLaw: ...

    def deal(self, stream: Stream, start: int, stop: int) -> Coroutine[Any, Any, Rows]:
        """Class probabilities of the copies of the deals with these numbers in a stream, deal after deal."""
        ...

    def ask(self, stream: Stream, start: int, stop: int) -> Coroutine[Any, Any, Rows]:
        """Class probabilities of copies with these numbers in a stream, each drawn whatever the others are: of copies
        of which none is drawn twice those to come depend on those before, and bets on them would prove nothing.
        """
        ...


def deal_plans(method: SampledMethod, law: DealtLaw) -> tuple[DealPlan, ...]:
    """What can be bet on: deals, or copies each for itself. Those that choose the class also choose between these."""
    return tuple(DealPlan(method.alpha, method.most, copies) for copies in (law.per_deal, 1))


def worth_dealing(method: SampledMethod, law: DealtLaw) -> bool:
    """Whether a text of so many words is better off with deals than with the scheme "curtailed"."""
    many = isinstance(law, DeletionLaw) or comb(law.words, law.kept) > _FEWEST_COPIES
    return method.scheme == "dealt" and many and deal_plans(method, law)[0].deals >= _FEWEST_DEALS


def toss(seed: int, deals: Deals) -> float:
    """The coin of a text, as random as any number whatever the deals are, and known to nobody before the last one.

    From the seed alone it would be known beforehand: whoever chooses seeds would find one with a coin near 0, which
    proves anything, without asking the model once.
    """
    said = blake2b(deals.astype("<f8").tobytes()).hexdigest()
    return 1.0 - float(np.random.default_rng(derive_seed(seed, "coin", said)).random())


async def dealt(method: SampledMethod, copies: DealtCopies, question: Question, classes: int) -> Finding:
    """What the deals of a text prove."""
    counted: Counted = "votes" if method.ensemble == "vote" else "probabilities"
    plan, selection, pilot, chosen = deal_plans(method, copies.law)[0], None, np.zeros((0, classes)), question.label
    if method.choose == "votes":
        pilot, plan = await _piloted(method, copies, classes)
        seen = Seen(classes).with_rows(pilot)
        chosen, selection = method.best(seen), seen.tally.counts
    if chosen is None:
        return Finding(None, reason="choose=label needs data with labels")
    earlier = _together(pilot, plan.per_deal, counted)
    bets = Bets(plan, method.rule, chosen, radius_levels(copies.law, method.rule), earlier)
    deals = [np.zeros((0, classes))]
    ask = copies.ask if plan.per_deal == 1 else copies.deal
    for start, stop in _batches(plan, method):
        deals.append(_together(await ask("estimation", start, stop), plan.per_deal, counted))
        bets.play(deals[-1])
        if bets.over(method.target):
            break
    bet_on = np.concatenate(deals)
    coin = toss(question.seed, bet_on)
    evidence = Dealt(copies.law, method.rule, plan, chosen, coin, counted, earlier, bet_on)
    return Finding(evidence, selection, len(pilot))


async def _piloted(method: SampledMethod, copies: DealtCopies, classes: int) -> tuple[Rows, DealPlan]:
    """Deals until one class is clearly ahead, and what to bet on after them."""
    dealing, single = deal_plans(method, copies.law)
    pilot, agreed = np.zeros((0, classes)), False
    for look in method.selection_looks():
        start = len(pilot) // dealing.per_deal
        stop = max(start + 1, look // dealing.per_deal)
        pilot = np.concatenate([pilot, await copies.deal("selection", start, stop)])
        seen = Seen(classes).with_rows(pilot)
        agreed = all_agree(seen.tally.counts, len(pilot))
        if seen.clear() and (not agreed or len(pilot) >= _ENOUGH):
            break
    return pilot, single if agreed else dealing


def all_agree(votes: Sequence[int], copies: int) -> bool:
    """Whether the copies that chose the class are without exception for it: then single copies are bet on."""
    return max(votes) == copies


def ended_as_planned(evidence: Dealt, method: SampledMethod) -> bool:
    """Whether the deals end where `dealt` ends them. Whoever may end them where he likes can wait for a coin."""
    levels = radius_levels(evidence.law, evidence.rule)
    bets = Bets(evidence.plan, evidence.rule, evidence.chosen, levels, evidence.earlier)
    for start, stop in _batches(evidence.plan, method):
        if stop > len(evidence.deals):
            return False
        bets.play(evidence.deals[start:stop])
        if bets.over(method.target):
            return stop == len(evidence.deals)
    return False


def _batches(plan: DealPlan, method: SampledMethod) -> Iterator[tuple[int, int]]:
    start, stop = 0, min(-(-method.first // plan.per_deal), plan.deals)
    while start < stop:
        yield start, stop
        start, stop = stop, min(plan.deals, stop + max(1, int(_STEP * stop)))


def _together(rows: Rows, per_deal: int, counted: Counted) -> Deals:
    """What the copies of each deal say together."""
    said = rows if counted == "probabilities" else votes_of(rows)[:, None] == np.arange(rows.shape[1])
    together: Deals = said.reshape(-1, per_deal, rows.shape[1]).sum(1)
    return together
