"""Sampling by looks: copies that choose the class are never those that are counted, and few copies are all asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.certificates.evidence import SampledEvidence, read_evidence
from stockade.certificates.method import CertificationInput, MethodResult
from stockade.certificates.methods.ranmask import MaskingDistribution
from stockade.certificates.sampled_method import SampledMethod
from stockade.certificates.sampling import Rows, Stream, sample, votes_of
from stockade.certificates.sequential import Tally
from stockade.core.text import Text
from tests.toys import WeightVictim


@dataclass
class Scripted:
    """Copies that vote as written: `shares` of class 1 in each stream, evenly spread; records every request."""

    shares: dict[str, float]
    population: int | None = None
    requests: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def distribution(self) -> MaskingDistribution:
        return MaskingDistribution(40, 4)

    def independent(self) -> Scripted:
        return self

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        self.requests.append((stream, start, stop))
        share = self.shares[stream]
        votes = [int((number + 1) * share) - int(number * share) for number in range(start, stop)]
        rows: Rows = np.eye(2)[votes]
        return rows


def certify(copies: Scripted, **options: Any) -> MethodResult:
    inputs = CertificationInput(Text.parse("a b"), None, 0)
    return asyncio.run(sample(SampledMethod(**options), copies, inputs, 2))


def test_the_copies_that_are_counted_are_fresh_ones() -> None:
    copies = Scripted({"selection": 1.0, "estimation": 0.9})
    result = certify(copies, scheme="spending", most=500)
    assert isinstance(result.evidence, SampledEvidence)
    assert copies.requests[0] == ("selection", 0, 50)
    assert {stream for stream, _, _ in copies.requests[1:]} == {"estimation"}
    assert [start for _, start, _ in copies.requests[1:]] == [0, *[stop for _, _, stop in copies.requests[1:-1]]]
    assert isinstance(result.evidence.tally, Tally)
    assert result.evidence.tally.counts[0] > 0  # no copy of the selection votes for 0
    assert result.selection == (0, 50)


@pytest.mark.parametrize(("share", "drawn"), [(1.0, 50), (0.9, 50), (0.5, 1000), (0.53, 1000), (0.6, 112)])
def test_the_class_is_chosen_when_one_is_clearly_ahead(share: float, drawn: int) -> None:
    copies = Scripted({"selection": share, "estimation": share})
    assert certify(copies).drawn == drawn
    assert certify(Scripted(copies.shares), scheme="fixed").drawn == 1000


def test_few_copies_are_all_asked_once_and_more_are_drawn() -> None:
    few = Scripted({"estimation": 0.9}, population=150)
    result = certify(few)
    assert few.requests == [("estimation", 0, 150)]
    assert (result.drawn, result.selection) == (0, None)
    assert result.evidence is not None
    assert result.evidence.alpha is None
    assert certify(Scripted({"selection": 0.9, "estimation": 0.9}, population=151)).drawn == 50


def test_a_fixed_plan_that_happens_to_ask_all_copies_still_chooses_the_class_first() -> None:
    """500 copies are more than three first looks: other copies choose, though all 500 are counted."""
    copies = Scripted({"selection": 0.9, "estimation": 0.9}, population=500)
    result = certify(copies, scheme="fixed", most=1000, selection=80)
    assert copies.requests == [("selection", 0, 80), ("estimation", 0, 500)]
    assert result.evidence is not None
    assert result.evidence.alpha is None


def test_a_copy_that_says_nothing_votes_for_nothing() -> None:
    assert votes_of(np.array([[0.2, 0.8], [0.0, 0.0], [0.6, 0.4]])).tolist() == [1, -1, 0]
    robust = st.defend(WeightVictim({"good": 4.0}, bias=0.1), "deletion", kept_chance=0.05)
    rows = [("good good good", "positive")]
    (certificate,) = st.certify(robust, rows, "deletion:most=300,scheme=fixed").certificates
    evidence = read_evidence(certificate.evidence or {})
    assert isinstance(evidence, SampledEvidence)
    assert isinstance(evidence.tally, Tally)
    assert evidence.tally.copies == 300
    assert 0 < sum(evidence.tally.counts) < 100  # one of three words stays with a probability of 14 %
    assert certificate.copies == 1000 + 300
