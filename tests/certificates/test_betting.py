"""Bets on deals: never wrong more often than alpha, whatever the copies of a deal have to do with each other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import stockade as st
from stockade.certificates.betting import BettingPlan, BettingTest, Rounds
from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.betting_sampler import draw_randomizer, sample_by_betting
from stockade.certificates.bounds import Rule, insertion_leads, largest_radius, masking_losses, threshold
from stockade.certificates.confidence import clopper_pearson_low
from stockade.certificates.distributions import MaskingDistribution
from stockade.certificates.evidence import SampledEvidence, read_evidence
from stockade.certificates.masked_copies import MaskedCopies
from stockade.certificates.methods import ranmask
from stockade.certificates.methods.ranmask import RanMaskGap
from stockade.certificates.registry import CertificationInput, MethodResult
from stockade.certificates.sampling import Rows, SampledMethod, Stream
from stockade.certificates.verify import recompute
from stockade.core.errors import OptionError
from stockade.core.masks import Keep, antithetic_group_size, draw_antithetic_masks, draw_masks
from stockade.core.text import Text
from tests.certificates.kit import tampered
from tests.toys import WeightVictim

ALPHA, TEXTS, DEALS = 0.05, 4000, 60
LONG = "good fun and some bad jokes for all of us and many more good things to come " * 2
VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
Draw = Callable[[np.random.Generator, int, tuple[float, ...], int], Rounds]


def alone(rng: np.random.Generator, deals: int, shares: tuple[float, ...], copies: int) -> Rounds:
    """Copies that vote each for themselves."""
    return rng.multinomial(copies, shares, deals).astype(np.float64)


def alike(rng: np.random.Generator, deals: int, shares: tuple[float, ...], copies: int) -> Rounds:
    """All copies of a deal vote for the same class."""
    return copies * rng.multinomial(1, shares, deals).astype(np.float64)


def balanced(rng: np.random.Generator, deals: int, shares: tuple[float, ...], copies: int) -> Rounds:
    """As even as whole votes can be: every class has its share of the copies in every deal, up to one vote."""
    ends = np.cumsum(np.array(shares) * copies)[None, :] + rng.random((deals, 1))
    return np.diff(np.floor(ends), axis=1, prepend=0)


def claims(draw: Draw, rule: Rule, shares: tuple[float, ...], loss: Fraction) -> int:
    """How many of 4,000 texts are said to stand one change."""
    rng, plan = np.random.default_rng(7), BettingPlan(ALPHA, 4 * DEALS, 4)
    said = 0
    for randomizer in 1 - rng.random(TEXTS):
        bets = BettingTest(plan, rule, 0, [threshold(each, rule) for each in (0, loss)], draw(rng, 5, shares, 4))
        bets.bet_on(draw(rng, DEALS, shares, 4))
        said += bets.rejected_levels(randomizer) == 2
    return said


@pytest.mark.parametrize(
    ("draw", "rule", "shares", "loss"),
    [
        (alone, "gap", (0.8, 0.2), Fraction(3, 10)),
        (alone, "gap", (0.6, 0.2, 0.2), Fraction(1, 5)),
        (alone, "gap", (0.5, 0.1, 0.1, 0.1, 0.1, 0.1), Fraction(1, 5)),
        (alike, "gap", (0.7, 0.2, 0.1), Fraction(1, 4)),
        (alike, "majority", (0.9, 0.1), Fraction(4, 10)),
        (balanced, "gap", (0.7, 0.3), Fraction(1, 5)),
        (balanced, "majority", (0.6, 0.3, 0.1), Fraction(1, 10)),
    ],
)
def test_false_certificates_are_as_rare_as_promised(
    draw: Draw, rule: Rule, shares: tuple[float, ...], loss: Fraction
) -> None:
    """The probabilities sit exactly on the threshold, so that every claim of one safe change is false."""
    wrong = claims(draw, rule, shares, loss)
    assert clopper_pearson_low(wrong, TEXTS, 0.001) <= ALPHA
    if draw is alone and len(shares) == 2:
        assert wrong > TEXTS * ALPHA / 3, "bets that are never won by chance cost more deals than they should"


def test_a_stake_does_not_know_the_deal_it_is_for() -> None:
    """Then what a bet holds after a deal grows with its lead in a straight line, and has no edge if none is due."""
    before, plan = alone(np.random.default_rng(1), 6, (0.7, 0.3), 4), BettingPlan(ALPHA, 400, 4)

    def held(votes: int) -> float:
        bets = BettingTest(plan, "gap", 0, [Fraction(0)], before[:2])
        bets.bet_on(np.concatenate([before[2:], [[votes, 4 - votes]]]))
        return bets.wealth(0)[1]

    assert held(2) == pytest.approx((held(0) + held(4)) / 2)
    assert held(0) < held(2) < held(4)


def test_a_lead_that_is_large_enough_is_proved() -> None:
    """Three quarters of the votes where six tenths are needed: here every claim is true, and nearly all are made."""
    assert claims(alone, "majority", (0.75, 0.25), Fraction(1, 10)) > 0.9 * TEXTS


@dataclass
class Table:
    """The copies of a text of eight words, two of them shown, that vote as written; every deal that was asked for."""

    votes: NDArray[np.int64]
    seed: int
    asked: list[tuple[str, int, int]] = field(default_factory=list)
    distribution = MaskingDistribution(8, 2)

    async def score_groups(self, stream: Stream, start: int, stop: int) -> Rows:
        self.asked.append((stream, start, stop))
        keep = draw_antithetic_masks(
            np.random.default_rng([self.seed, stream == "selection", start]), 8, 2, stop - start
        )
        return self._rows(keep)

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        self.asked.append((stream, start, stop))
        return self._rows(draw_masks(np.random.default_rng([self.seed, start]), 8, 2, stop - start))

    def _rows(self, keep: Keep) -> Rows:
        first, second = np.array([np.flatnonzero(row) for row in keep]).T
        return np.eye(3)[self.votes[first, second]]


def finding(copies: Table, **options: Any) -> MethodResult:
    inputs = CertificationInput(Text.parse("a b c d e f g h"), None, copies.seed)
    return asyncio.run(sample_by_betting(RanMaskGap(**options), copies, inputs, 3))


def skewed_table(rng: np.random.Generator) -> NDArray[np.int64]:
    """Votes that depend on the two words shown, most of them for class 0."""
    return np.triu(rng.choice(3, size=(8, 8), p=[0.86, 0.08, 0.06]), 1).astype(np.int64)


def true_radius(votes: NDArray[np.int64]) -> int | None:
    pairs = votes[np.triu_indices(8, 1)]
    counts = np.bincount(pairs, minlength=3)
    lead = Fraction(int(counts[0] - counts[1:].max()), comb(8, 2))
    return largest_radius(lead, masking_losses(8, 2), "gap")


def test_radii_of_whole_classifiers_are_rarely_too_large_and_mostly_right() -> None:
    """Everything together on 400 random classifiers: choosing the class, real deals, stopping, the randomizer."""
    rng, wrong, same = np.random.default_rng(3), 0, 0
    for seed in range(400):
        votes = skewed_table(rng)
        found, truth = finding(Table(votes, seed), most=2000).evidence, true_radius(votes)
        assert isinstance(found, BettingEvidence)
        radius = found.radius()
        same += radius == truth
        wrong += (-1 if radius is None else radius) > (-1 if truth is None or found.chosen else truth)
    assert clopper_pearson_low(wrong, 400, 0.001) <= ALPHA
    assert same > 300


def test_copies_of_a_deal_vary_less_than_independent_ones() -> None:
    """What single words do evens out in a deal."""
    rng, weights = np.random.default_rng(5), np.linspace(-1, 1, 20)
    deals = (draw_antithetic_masks(rng, 20, 4, 3000) @ weights > -0.2).reshape(3000, 5).mean(1)
    independent = (draw_masks(rng, 20, 4, 15_000) @ weights > -0.2).reshape(3000, 5).mean(1)
    assert abs(deals.mean() - independent.mean()) < 0.02
    assert deals.var() < independent.var() / 2


def test_the_deals_that_are_bet_on_are_fresh_ones_and_end_when_nothing_is_left_to_hope_for() -> None:
    copies = Table(skewed_table(np.random.default_rng(8)), 1)
    found = finding(copies)
    assert copies.asked[:2] == [("selection", 0, 12), ("estimation", 0, 13)]
    assert {stream for stream, _, _ in copies.asked[1:]} == {"estimation"}
    assert [start for _, start, _ in copies.asked[1:]] == [0, *[stop for _, _, stop in copies.asked[1:-1]]]
    assert found.evidence is not None
    assert (found.drawn, sum(found.selection or ())) == (48, 48)
    assert found.evidence.copies < 2000
    even = Table(np.triu(np.indices((8, 8)).sum(0) % 2, 1), 2)
    assert finding(even, most=400).evidence.copies <= 400  # type: ignore[union-attr]


def test_where_all_copies_agree_they_are_bet_on_one_by_one() -> None:
    """A deal of four that agree proves no more than one copy: 83 bets are won either way."""
    copies = Table(np.zeros((8, 8), dtype=np.int64), 1)
    found = finding(copies)
    assert isinstance(found.evidence, BettingEvidence)
    assert found.evidence.radius() == true_radius(copies.votes) == 2
    assert found.evidence.plan.copies_per_round == 1
    assert found.drawn == 252
    assert found.evidence.copies < 100


def test_a_target_ends_the_deals() -> None:
    votes = skewed_table(np.random.default_rng(8))
    most = finding(Table(votes, 1)).evidence
    few = finding(Table(votes, 1), target=0).evidence
    assert most is not None
    assert few is not None
    assert few.copies < most.copies
    assert few.radius() is not None


def test_the_true_class_can_be_given_instead_of_chosen() -> None:
    copies = Table(skewed_table(np.random.default_rng(8)), 1)
    found = finding(copies, choose="label")
    assert (found.evidence, found.reason) == (None, "choose=label needs data with labels")
    inputs = CertificationInput(Text.parse("a b c d e f g h"), 0, 1)
    found = asyncio.run(sample_by_betting(RanMaskGap(choose="label"), copies, inputs, 3))
    assert (found.drawn, found.selection) == (0, None)
    assert found.evidence is not None
    assert found.evidence.radius() == true_radius(copies.votes)


@pytest.mark.parametrize("ensemble", ["vote", "probability"])
def test_evidence_is_the_same_after_a_file(ensemble: str) -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.7)
    (one,) = st.certify(robust, [(LONG, "positive")], f"ranmask-gap:ensemble={ensemble},most=800").certificates
    evidence = read_evidence(json.loads(json.dumps(one.evidence)))
    assert isinstance(evidence, BettingEvidence)
    assert evidence.radius() == one.radius is not None
    assert evidence.randomizer == draw_randomizer(one.seed, evidence.rounds)
    assert evidence.copies + len(evidence.pilot) * evidence.plan.copies_per_round == one.copies
    assert evidence.plan.copies_per_round == antithetic_group_size(one.words, evidence.distribution.kept)


def test_nobody_knows_the_coin_before_the_last_deal() -> None:
    """It is even, whatever the seed; and another deal, or another vote in one, gives another randomizer."""
    deals = alone(np.random.default_rng(1), 20, (0.7, 0.3), 4)
    randomizers = np.array([draw_randomizer(seed, deals) for seed in range(4000)])
    assert randomizers.min() > 0
    assert np.abs(np.sort(randomizers) - np.linspace(0, 1, 4000)).max() < 0.04
    assert len({draw_randomizer(1, deals[:length]) for length in range(21)}) == 21
    assert draw_randomizer(1, deals) != draw_randomizer(1, deals[::-1])


def test_bets_are_on_copies_that_do_not_depend_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """C(14, 4) = 1,001 copies: other schemes draw none of so few twice. Single copies are bet on, as all agree."""
    seen: list[MaskedCopies] = []

    async def watched(
        method: SampledMethod, copies: MaskedCopies, inputs: CertificationInput, classes: int
    ) -> MethodResult:
        seen.append(copies)
        return await sample_by_betting(method, copies, inputs, classes)

    monkeypatch.setattr(ranmask, "betting", watched)
    (one,) = st.certify(st.defend(VICTIM, "ranmask", rate=0.7), [("good " * 14, "positive")]).certificates
    evidence = read_evidence(one.evidence or {})
    assert isinstance(evidence, BettingEvidence)
    assert evidence.plan.copies_per_round == 1
    assert [copies.population for copies in seen] == [None]
    masks = seen[0].masks("estimation", 0, 1001)
    assert len(np.unique(masks, axis=0)) < 1001, "drawn without regard to what was drawn before"


TAMPERINGS: list[tuple[Any, str]] = [
    (lambda told: told.update(radius=told["radius"] + 1), "the evidence gives"),
    (lambda told: told.update(insertions=3), "recorded 3 insertions, the evidence gives none"),
    (
        lambda told: told["evidence"].update(randomizer=1e-9),
        "the randomizer 1e-09 is not the one that the seed and the rounds give",
    ),
    (lambda told: told["evidence"].update(randomizer=0), "The randomizer lies between 0 and 1"),
    (lambda told: told["evidence"]["plan"].update(alpha=0.5), "read with alpha 0.5, the run allows 0.05"),
    (lambda told: told["evidence"]["plan"].update(most=9), "looked at by another plan than the run's"),
    (lambda told: told["evidence"]["plan"].update(copies_per_round=2), "the evidence makes no sense"),
    (lambda told: told["evidence"]["distribution"].update(kept=1), "the evidence makes no sense"),
    (lambda told: told["evidence"].update(rounds="xx"), "the evidence makes no sense"),
    (lambda told: told["evidence"].update(counted="probabilities"), "the evidence makes no sense"),
    (lambda told: told["evidence"].update(chosen=2), "the evidence makes no sense"),
    (lambda told: told["evidence"].update(rule="majority"), "read by the rule majority, the method has gap"),
]


@pytest.mark.parametrize(("change", "problem"), TAMPERINGS)
def test_a_changed_certificate_is_found_out(change: Any, problem: str, tmp_path: Path) -> None:
    run = st.certify(st.defend(VICTIM, "ranmask", rate=0.7), [(LONG, "positive")], out=tmp_path / "run")
    assert recompute(run).holds
    found = recompute(tampered(tmp_path / "run", change)).problems
    assert any(problem in one for one in found), found


@pytest.mark.parametrize(
    ("words", "most", "kind"),
    [
        (LONG, 5000, BettingEvidence),
        (LONG, 700, SampledEvidence),  # 233 deals of three
        ("good fun and some bad jokes for us", 5000, SampledEvidence),  # 56 different copies
        ("good and bad " * 100, 5000, BettingEvidence),
    ],
)
def test_deals_are_made_where_they_pay(words: str, most: int, kind: type) -> None:
    (one,) = st.certify(
        st.defend(VICTIM, "ranmask", rate=0.7), [(words, "positive")], f"ranmask-gap:most={most}"
    ).certificates
    assert type(read_evidence(one.evidence or {})) is kind


def test_synonyms_cannot_be_dealt() -> None:
    with pytest.raises(OptionError, match="hands out the words of a text"):
        st.certify(st.defend(VICTIM, "safer"), [(LONG, "positive")], "safer:scheme=betting")


def test_shortened_copies_are_dealt_too() -> None:
    """Radius and insertions rest on the same bets, in one order: alpha is paid once for both."""
    robust = st.defend(WeightVictim({"good": 4.0}, bias=-0.1), "deletion", kept_chance=0.1)
    (one,) = st.certify(robust, [("good " * 30 + "so and so " * 5, "positive")]).certificates
    evidence = read_evidence(json.loads(json.dumps(one.evidence)))
    assert isinstance(evidence, BettingEvidence)
    assert evidence.plan.copies_per_round == 10
    assert (evidence.radius(), evidence.insertions()) == (one.radius, one.insertions)
    assert one.radius is not None
    assert one.insertions is not None
    assert one.insertions >= one.radius >= 1
    proved = evidence.levels[evidence.bets.rejected_levels(evidence.randomizer) - 1]
    assert insertion_leads(0.1, 50)[one.insertions] <= proved
    assert 2 * evidence.distribution.losses()[one.radius] <= proved
    silent = evidence.copies - sum(evidence.totals)
    assert 0 < silent < evidence.copies / 50, "a copy without words votes for nothing"


def test_a_plan_of_nothing_is_refused() -> None:
    with pytest.raises(OptionError, match="at least one copy"):
        BettingPlan(0.05, 0, 4)
    with pytest.raises(OptionError, match="alpha"):
        BettingPlan(1.0, 10, 4)
