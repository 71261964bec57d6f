"""The betting sampler: real rounds on classifiers that are known, where betting pays, and evidence in a file."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import stockade as st
from stockade.certificates import sampled_method
from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.betting_sampler import AntitheticCopies, draw_randomizer, sample_by_betting
from stockade.certificates.bounds import insertion_leads, largest_radius, masking_losses
from stockade.certificates.confidence import clopper_pearson_low
from stockade.certificates.evidence import SampledEvidence, read_evidence
from stockade.certificates.method import CertificationInput, MethodResult
from stockade.certificates.methods.deletion import DeletionDistribution
from stockade.certificates.methods.ranmask import MaskedCopies, MaskingDistribution, RanMaskGap
from stockade.certificates.sampled_method import SampledMethod
from stockade.certificates.sampling import Rows, Stream
from stockade.core.errors import OptionError
from stockade.core.masks import Keep, draw_antithetic_masks, draw_masks
from stockade.core.text import Text
from tests.toys import WeightVictim

ALPHA = 0.05
LONG = "good fun and some bad jokes for all of us and many more good things to come " * 2
VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)


@dataclass
class Table:
    """The copies of a text of eight words, two of them shown, that vote as written; records every request."""

    votes: NDArray[np.int64]
    seed: int
    requests: list[tuple[str, int, int]] = field(default_factory=list)
    distribution = MaskingDistribution(8, 2)

    async def score_groups(self, stream: Stream, start: int, stop: int) -> Rows:
        self.requests.append((stream, start, stop))
        rng = np.random.default_rng([self.seed, stream == "selection", start])
        return self._rows(draw_antithetic_masks(rng, 8, 2, stop - start))

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        self.requests.append((stream, start, stop))
        return self._rows(draw_masks(np.random.default_rng([self.seed, start]), 8, 2, stop - start))

    def _rows(self, keep: Keep) -> Rows:
        first, second = np.array([np.flatnonzero(row) for row in keep]).T
        rows: Rows = np.eye(3)[self.votes[first, second]]
        return rows


def certify(copies: Table, label: int | None = None, **options: Any) -> MethodResult:
    inputs = CertificationInput(Text.parse("a b c d e f g h"), label, copies.seed)
    return asyncio.run(sample_by_betting(RanMaskGap(**options), copies, inputs, 3))


def evidence_of(result: MethodResult) -> BettingEvidence:
    assert isinstance(result.evidence, BettingEvidence)
    return result.evidence


def skewed_table(rng: np.random.Generator) -> NDArray[np.int64]:
    """Votes that depend on the two words shown, most of them for class 0."""
    return np.triu(rng.choice(3, size=(8, 8), p=[0.86, 0.08, 0.06]), 1).astype(np.int64)


def even_table() -> NDArray[np.int64]:
    """Class 1 where the first word or the second is shown: that evens out in a group, whose lead is 0 or a half."""
    votes = np.zeros((8, 8), dtype=np.int64)
    votes[:2] = 1
    return np.triu(votes, 1)


def true_radius(votes: NDArray[np.int64]) -> int | None:
    pairs = votes[np.triu_indices(8, 1)]
    counts = np.bincount(pairs, minlength=3)
    lead = Fraction(int(counts[0] - counts[1:].max()), comb(8, 2))
    return largest_radius(lead, masking_losses(8, 2), "gap")


@pytest.mark.parametrize("classifiers", [120, pytest.param(600, marks=pytest.mark.slow)])
def test_radii_of_whole_classifiers_are_rarely_too_large_and_mostly_right(classifiers: int) -> None:
    """Everything together on random classifiers: choosing the class, real groups, stopping, the randomizer."""
    rng, wrong, same = np.random.default_rng(3), 0, 0
    for seed in range(classifiers):
        votes = skewed_table(rng)
        evidence, truth = evidence_of(certify(Table(votes, seed), most=2000)), true_radius(votes)
        radius = evidence.radius()
        same += radius == truth
        wrong += (-1 if radius is None else radius) > (-1 if truth is None or evidence.chosen else truth)
    assert clopper_pearson_low(wrong, classifiers, 0.001) <= ALPHA
    assert same > 0.75 * classifiers


def test_copies_of_an_antithetic_group_vary_less_than_independent_ones() -> None:
    """What single words do evens out in a group."""
    rng, weights = np.random.default_rng(5), np.linspace(-1, 1, 20)
    groups = (draw_antithetic_masks(rng, 20, 4, 3000) @ weights > -0.2).reshape(3000, 5).mean(1)
    independent = (draw_masks(rng, 20, 4, 15_000) @ weights > -0.2).reshape(3000, 5).mean(1)
    assert abs(groups.mean() - independent.mean()) < 0.02
    assert groups.var() < independent.var() / 2


def test_the_rounds_that_are_bet_on_are_fresh_and_end_when_more_could_not_help() -> None:
    copies = Table(skewed_table(np.random.default_rng(8)), 1)
    result = certify(copies)
    assert copies.requests[:2] == [("selection", 0, 12), ("estimation", 0, 50)]
    assert {stream for stream, _, _ in copies.requests[1:]} == {"estimation"}
    assert [start for _, start, _ in copies.requests[1:]] == [0, *[stop for _, _, stop in copies.requests[1:-1]]]
    assert (result.drawn, sum(result.selection or ())) == (48, 48)
    assert evidence_of(result).copies < 3000
    even = Table(np.triu(np.indices((8, 8)).sum(0) % 2, 1), 2)
    assert evidence_of(certify(even, most=400)).copies <= 400


def test_where_all_copies_agree_they_are_bet_on_one_by_one() -> None:
    """A group of four that agree proves no more than one copy: as many bets are won either way."""
    copies = Table(np.zeros((8, 8), dtype=np.int64), 1)
    result = certify(copies)
    evidence = evidence_of(result)
    assert evidence.radius() == true_radius(copies.votes) == 2
    assert evidence.plan.copies_per_round == 1
    assert result.drawn == 48
    assert evidence.copies < 200


def test_where_groups_vary_less_they_are_bet_on() -> None:
    evidence = evidence_of(certify(Table(even_table(), 1), label=0, choose="label"))
    assert evidence.plan.copies_per_round == 4
    assert evidence.radius() == true_radius(even_table()) == 0
    assert evidence.copies < 1000, "the lead of single copies is 1 / 14: a few thousand would be needed"


def test_a_target_ends_the_rounds() -> None:
    votes = skewed_table(np.random.default_rng(8))
    most, few = evidence_of(certify(Table(votes, 1))), evidence_of(certify(Table(votes, 1), target=0))
    assert few.copies < most.copies
    assert few.radius() is not None


def test_the_true_class_can_be_given_instead_of_chosen() -> None:
    copies = Table(skewed_table(np.random.default_rng(8)), 1)
    result = certify(copies, choose="label")
    assert (result.evidence, result.reason) == (None, "choose=label needs data with labels")
    result = certify(copies, label=0, choose="label")
    assert (result.drawn, result.selection) == (48, None)
    assert evidence_of(result).radius() == true_radius(copies.votes)


@pytest.mark.parametrize("ensemble", ["vote", "probability"])
def test_evidence_is_the_same_after_a_file(ensemble: str) -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.7)
    method = f"ranmask-gap:ensemble={ensemble},most=800"
    (certificate,) = st.certify(robust, [(LONG, "positive")], method).certificates
    evidence = read_evidence(json.loads(json.dumps(certificate.evidence)))
    assert isinstance(evidence, BettingEvidence)
    assert evidence.described() == certificate.evidence
    assert evidence.radius() == certificate.radius is not None
    assert evidence.randomizer == draw_randomizer(certificate.seed, evidence.rounds)
    assert evidence.copies + len(evidence.pilot) == certificate.copies
    assert evidence.plan.copies_per_round in (1, evidence.distribution.group_size)


def test_nobody_knows_the_randomizer_before_the_last_round() -> None:
    """It is uniform, whatever the seed; and another round, or another vote in one, gives another randomizer."""
    rounds = np.random.default_rng(1).multinomial(4, (0.7, 0.3), 20).astype(np.float64)
    randomizers = np.array([draw_randomizer(seed, rounds) for seed in range(4000)])
    assert randomizers.min() > 0
    assert np.abs(np.sort(randomizers) - np.linspace(0, 1, 4000)).max() < 0.04
    assert len({draw_randomizer(1, rounds[:length]) for length in range(21)}) == 21
    assert draw_randomizer(1, rounds) != draw_randomizer(1, rounds[::-1])


def test_bets_are_on_copies_that_do_not_depend_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """C(14, 4) = 1,001 copies: other schemes draw none of so few twice. Single copies are bet on, as all agree."""
    watched: list[MaskedCopies] = []

    async def watch(
        method: SampledMethod, copies: AntitheticCopies, inputs: CertificationInput, classes: int
    ) -> MethodResult:
        assert isinstance(copies, MaskedCopies)
        watched.append(copies)
        return await sample_by_betting(method, copies, inputs, classes)

    monkeypatch.setattr(sampled_method, "sample_by_betting", watch)
    (certificate,) = st.certify(st.defend(VICTIM, "ranmask", rate=0.7), [("good " * 14, "positive")]).certificates
    evidence = read_evidence(certificate.evidence or {})
    assert isinstance(evidence, BettingEvidence)
    assert evidence.plan.copies_per_round == 1
    assert [copies.population for copies in watched] == [None]
    masks = watched[0].masks("estimation", 0, 1001)
    assert len(np.unique(masks, axis=0)) < 1001, "drawn without regard to what was drawn before"


@pytest.mark.parametrize(
    ("words", "most", "kind"),
    [
        (LONG, 5000, BettingEvidence),
        (LONG, 700, SampledEvidence),  # 233 rounds of three
        ("good fun and some bad jokes for us", 5000, SampledEvidence),  # 56 different copies
        ("good and bad " * 100, 5000, BettingEvidence),
    ],
)
def test_bets_are_made_where_they_pay(words: str, most: int, kind: type) -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.7)
    (certificate,) = st.certify(robust, [(words, "positive")], f"ranmask-gap:most={most}").certificates
    assert type(read_evidence(certificate.evidence or {})) is kind


def test_copies_with_synonyms_cannot_be_bet_on() -> None:
    with pytest.raises(OptionError, match="scheme=betting needs copies that show a part of the words"):
        st.certify(st.defend(VICTIM, "safer"), [(LONG, "positive")], "safer:scheme=betting")


def test_shortened_copies_are_bet_on_too() -> None:
    """Radius and insertions rest on the same bets, in one order: alpha is paid once for both."""
    robust = st.defend(WeightVictim({"good": 4.0}, bias=-0.1), "deletion", kept_chance=0.1)
    (certificate,) = st.certify(robust, [("good " * 30 + "so and so " * 5, "positive")]).certificates
    evidence = read_evidence(json.loads(json.dumps(certificate.evidence)))
    assert isinstance(evidence, BettingEvidence)
    assert evidence.plan.copies_per_round in (1, 10)
    assert (evidence.radius(), evidence.insertions()) == (certificate.radius, certificate.insertions)
    assert certificate.radius is not None
    assert certificate.insertions is not None
    assert certificate.insertions >= certificate.radius >= 1
    proved = evidence.levels[evidence.test.rejected_levels(evidence.randomizer) - 1]
    assert insertion_leads(0.1, 50)[certificate.insertions] <= proved
    assert 2 * evidence.distribution.losses()[certificate.radius] <= proved
    silent = evidence.copies - evidence.rounds.sum()
    assert 0 < silent < evidence.copies / 50, "a copy without words votes for nothing"


def with_others(evidence: BettingEvidence, **others: Any) -> BettingEvidence:
    names = ("distribution", "rule", "plan", "chosen", "randomizer", "counted", "pilot", "rounds")
    return BettingEvidence(**{**{name: getattr(evidence, name) for name in names}, **others})


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ({"randomizer": 0.0}, "The randomizer lies between 0 and 1"),
        ({"randomizer": 1.1}, "The randomizer lies between 0 and 1"),
        ({"chosen": 3}, "class 3 is none of them"),
        ({"pilot": np.zeros((1, 2))}, "not of the same classes"),
        ({"pilot": np.zeros((3, 3))}, "The pilot of 3 copies is not one of groups"),
        ({"pilot": np.full((4, 3), 0.5)}, "A round of 1 copies cannot cast the votes"),
        ({"rounds": np.array([[5.0, 0.0, 0.0]])}, "A round of 4 copies cannot cast the votes"),
        ({"rounds": np.array([[-1.0, 0.0, 0.0]])}, "A round of 4 copies cannot cast the votes"),
        ({"distribution": MaskingDistribution(8, 3)}, "A round of 4 copies is no antithetic group of"),
        ({"distribution": DeletionDistribution(8, 0.3)}, "A round of 4 copies is no antithetic group of"),
    ],
)
def test_evidence_that_no_copies_could_give_is_refused(others: dict[str, Any], problem: str) -> None:
    evidence = evidence_of(certify(Table(even_table(), 1), label=0, choose="label"))
    with pytest.raises(OptionError, match=problem):
        with_others(evidence, **others)
