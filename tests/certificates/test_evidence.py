"""Evidence in a file and in words: what comes back, what is said of it, and what fresh evidence says against it."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest

import stockade as st
from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import Evidence, SampledEvidence, SmoothingDistribution, read_evidence
from stockade.certificates.method import CertificationInput
from stockade.certificates.methods.deletion import DeletionCertificate, DeletionDistribution
from stockade.certificates.methods.partition import PartitionEvidence
from stockade.certificates.methods.ranmask import MaskingDistribution
from stockade.certificates.sequential import Means, Plan, Tally
from stockade.core.errors import RunError
from stockade.core.text import Text
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.engine.services import innermost
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0}, bias=0.1)
LABELS = ("negative", "positive")
LONG = "good fun and some bad jokes for all of us and many more good things to come " * 2
EVERY_KIND = [
    ("ranmask:rate=0.7", "ranmask-gap", LONG, "betting-2"),
    ("ranmask:rate=0.7", "ranmask-gap:ensemble=probability", LONG, "betting-2"),
    ("ranmask:rate=0.7", "ranmask-lf:scheme=curtailed", LONG, "sampled"),
    ("ranmask:rate=0.7", "ranmask-gap:ensemble=probability,scheme=spending", LONG, "sampled"),
    ("ranmask:rate=0.7", "ranmask-exact", "good fun for all of us", "enumerated"),
    ("ranmask:rate=0.7", "ranmask-legacy:most=200,selection=50", LONG, "legacy"),
    ("deletion:kept_chance=0.3", "deletion", LONG, "betting-2"),
    ("deletion:kept_chance=0.3", "deletion:most=300", LONG, "sampled"),
    ("partition", "position-partition", LONG, "partition"),
    ("partition:by=hash", "hash-partition", LONG, "partition"),
    ("safer", "safer:most=200", LONG, "sampled"),
]


def certify(defense: str, method: str, text: str) -> Certificate:
    (certificate,) = st.certify(st.defend(VICTIM, defense), [(text, "positive")], method).certificates
    return certificate


@pytest.mark.parametrize(("defense", "method", "text", "kind"), EVERY_KIND)
def test_every_kind_of_evidence_is_the_same_after_a_file(defense: str, method: str, text: str, kind: str) -> None:
    certificate = certify(defense, method, text)
    evidence = read_evidence(json.loads(json.dumps(certificate.evidence)))
    assert json.dumps(evidence.described()) == json.dumps(certificate.evidence)
    assert evidence.described()["kind"] == kind
    assert (evidence.radius(), evidence.insertions()) == (certificate.radius, certificate.insertions)
    assert certificate.recomputed() == certificate.radius
    assert LABELS[evidence.chosen] == certificate.predicted
    assert evidence.classes == 2
    assert (evidence.alpha is None) == (kind in ("enumerated", "partition"))
    assert len(evidence.explain(LABELS)) >= 1


def test_what_is_left_to_chance_depends_on_whether_all_copies_were_asked() -> None:
    certificate = certify("ranmask:rate=0.7", "ranmask-gap", "good fun for all of us")
    evidence = read_evidence(certificate.evidence or {})
    assert (evidence.described()["kind"], evidence.alpha) == ("sampled", None)
    assert evidence.explain(LABELS)[0].startswith("votes of all 15 copies there are: ")


def test_evidence_is_read_without_any_model() -> None:
    """In a process of its own: neither torch nor an adapter of models is imported, only the files of the methods."""
    evidence = PartitionEvidence((1, 9), 1).described()
    code = (
        "import sys; from stockade.certificates.evidence import read_evidence; "
        f"assert read_evidence({evidence!r}).radius() == 3; "
        "assert not {'torch', 'transformers', 'stockade.models.huggingface'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    ("description", "problem"),
    [
        (
            {"kind": "dealt"},
            'There is no evidence "dealt" (found: betting-2, enumerated, legacy, overlapping-partition, partition, '
            "sampled): the",
        ),
        ({}, "The evidence of a certificate cannot be read (KeyError('kind'))"),
        ({"kind": "partition", "counts": [1, 2]}, "The evidence of a certificate cannot be read (KeyError('chosen'))"),
        ({"kind": "partition", "counts": 3, "chosen": 0}, "The evidence of a certificate cannot be read (TypeError("),
    ],
)
def test_evidence_that_cannot_be_read_is_refused_in_a_sentence(description: dict[str, Any], problem: str) -> None:
    with pytest.raises(RunError, match=re.escape(problem)):
        read_evidence(description)


def sampled(distribution: SmoothingDistribution, plan: Plan, tally: Tally | Means) -> SampledEvidence:
    """About class 1, by the gap rule."""
    return SampledEvidence(distribution=distribution, rule="gap", plan=plan, chosen=1, tally=tally)


def test_votes_in_words() -> None:
    plan = Plan("fixed", 0.05, (100,))
    evidence = sampled(MaskingDistribution(16, 5), plan, Tally((7, 90), 100))
    assert evidence.explain(LABELS)[0] == "votes of 100 copies: negative 7, positive 90, none 3"
    means = sampled(MaskingDistribution(16, 5), plan, Means((7.5, 92.5), (6.0, 90.0), 100))
    assert means.explain(LABELS)[0] == "mean probabilities of 100 copies: negative 0.075, positive 0.925"
    assert PartitionEvidence((2, 1_008), 1).explain(LABELS) == ["votes of 1,010 groups: negative 2, positive 1,008"]


def test_limits_are_never_rounded_in_favour_of_the_certificate() -> None:
    distribution, plan = MaskingDistribution(16, 5), Plan("fixed", 0.05, (112,))
    for votes in range(1, 113):
        evidence = sampled(distribution, plan, Tally((112 - votes, votes), 112))
        _, limits, needed = evidence.explain(LABELS)
        low, high = (float(number) for number in re.findall(r"-?\d+\.\d+", limits))
        assert low <= evidence.limits.low
        assert high >= evidence.limits.high
        threshold = re.search(r"more than (\d+\.?\d*)", needed)
        if threshold:
            radius = evidence.radius()
            following = 0 if radius is None else radius + 1
            assert Fraction(threshold[1]) >= 2 * distribution.losses()[following]
        else:
            assert "out of reach" in needed


def test_bets_are_told_with_what_they_would_need() -> None:
    certificate = certify("ranmask:rate=0.7", "ranmask-gap", LONG)
    counted, reached, beyond = read_evidence(certificate.evidence or {}).explain(LABELS)
    assert re.fullmatch(
        r"votes of [\d,]+ copies in [\d,]+ antithetic groups: negative [\d,]+, positive [\d,]+", counted
    )
    assert reached.startswith(f"the bet against radius {certificate.radius} holds ")
    last, peak, proof, at_the_end = (float(number.replace(",", "")) for number in re.findall(r"[\d,]+\.\d+", reached))
    assert proof == 20
    assert peak >= proof or last >= at_the_end
    assert beyond == f"radius {(certificate.radius or 0) + 1} is out of reach, whatever the votes"


def test_a_bet_that_was_not_won_is_told_too() -> None:
    certificate = certify("ranmask:rate=0.9", "ranmask-gap", LONG)
    *_, beyond = read_evidence(certificate.evidence or {}).explain(LABELS)
    wealth = re.fullmatch(
        r"the bet against radius \d+ holds ([\d.,]+) times what it began with, ([\d.,]+) at its peak", beyond
    )
    assert wealth is not None
    assert float(wealth[2].replace(",", "")) < 20


def fresh_evidence(method: DeletionCertificate, kept_chance: float, text: str, chosen: int) -> Evidence:
    robust = st.defend(VICTIM, "deletion", kept_chance=kept_chance)

    async def certify_again() -> Evidence | None:
        inputs = CertificationInput(Text.parse(text), chosen, 99)
        return (await method.for_resampling(1e-6).certify(inputs, robust)).evidence

    scheduler = Scheduler.for_classifier(ScoringService(innermost(robust)), 1)
    (ended,) = scheduler.run([Search(certify_again)])
    assert isinstance(ended.result, SampledEvidence)
    return ended.result


def test_fresh_copies_speak_against_a_class_a_radius_or_insertions_that_are_too_many() -> None:
    text = "good " * 20 + "bad " * 10
    method = DeletionCertificate(most=500, scheme="betting", target=0)
    evidence = fresh_evidence(method, 0.1, text, 1)
    assert isinstance(evidence, SampledEvidence)
    assert (evidence.plan.scheme, evidence.plan.alpha, evidence.copies) == ("fixed", 1e-6, 500)
    radius, insertions = evidence.radius(), evidence.insertions()
    assert radius is not None
    assert insertions is not None
    assert insertions < 6
    assert evidence.refutation(chosen=1, radius=radius, insertions=insertions) is None
    assert evidence.refutation(chosen=0, radius=radius, insertions=None) == "another class wins over all copies"
    too_far = evidence.refutation(chosen=1, radius=20, insertions=None)
    assert too_far is not None
    assert too_far.startswith("radius 20 needs more than 1.757, fresh copies show at most ")
    inserted = evidence.refutation(chosen=1, radius=radius, insertions=6)
    assert inserted is not None
    assert inserted.startswith("a number of 6 insertions needs more than 0.882, fresh copies show at most ")
    assert evidence.refutation(chosen=1, radius=radius, insertions=500) is not None  # no votes prove that


def test_evidence_that_leaves_nothing_to_chance_is_refuted_by_any_difference() -> None:
    evidence = PartitionEvidence((1, 9), 1)
    assert evidence.refutation(chosen=1, radius=3, insertions=None) is None  # ties go to the first class
    assert evidence.refutation(chosen=1, radius=4, insertions=None) == "certified radius 4, now 3"
    assert evidence.refutation(chosen=0, radius=3, insertions=None) is not None


def test_insertions_are_known_where_copies_lose_words() -> None:
    """With a chance of 0.2 to stay, d insertions need a share p with 0.8^d p > 1/2: one, two and three do for 0.99."""
    plan, tally = Plan("fixed", 0.05, (400,), 400), Tally((4, 396), 400)
    lost = sampled(DeletionDistribution(10, 0.2), plan, tally)
    assert lost.insertions() == 3
    assert dataclasses.replace(lost, rule="majority").insertions() == 3
    assert sampled(MaskingDistribution(10, 2), plan, tally).insertions() is None


def test_betting_evidence_knows_insertions_by_the_gap_rule_only() -> None:
    certificate = certify("deletion:kept_chance=0.1", "deletion", "good " * 30)
    evidence = read_evidence(certificate.evidence or {})
    assert isinstance(evidence, BettingEvidence)
    assert evidence.insertions() is not None
    assert dataclasses.replace(evidence, rule="majority").insertions() is None
