"""Forged certificates whose radius does follow from their evidence, and whose evidence is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.betting_sampler import draw_randomizer
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import Evidence, SampledEvidence, read_evidence
from stockade.certificates.exact import VoteTable
from stockade.certificates.methods.deletion import DeletionDistribution
from stockade.certificates.methods.partition import PartitionEvidence
from stockade.certificates.methods.ranmask import MaskingDistribution
from stockade.certificates.methods.ranmask_exact import EnumeratedEvidence
from stockade.certificates.methods.ranmask_legacy import LegacyEvidence
from stockade.certificates.registry import make_method
from stockade.certificates.sequential import Plan, Tally
from stockade.defenses.registry import make_defense
from stockade.workflows.certify.result import Context
from stockade.workflows.certify.verify import certificate_problems
from tests.toys import RandomVictim, WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
LONG = "good fun and some bad jokes for all of us and many more good things to come " * 2
WORDS = len(LONG.split())
Forge = Callable[[Certificate], Certificate]
RANMASK, GAP = "ranmask:rate=0.7", "ranmask-gap"


@cache
def certified(defense: str, method: str) -> tuple[Certificate, Context]:
    """A certificate in which nothing is wrong, and what its run says of it; made once."""
    return certify(VICTIM, defense, method, "positive")


def certify(model: object, defense: str, method: str, label: str) -> tuple[Certificate, Context]:
    run = st.certify(st.defend(model, defense), [(LONG, label)] * 2, method, limit=1)
    (certificate,) = run.certificates
    assert [*certificate_problems(certificate, run.contexts[certificate.method])] == []
    return certificate, run.contexts[certificate.method]


def with_evidence(certificate: Certificate, evidence: Evidence, **others: Any) -> Certificate:
    """The certificate with other evidence, and all else as it follows from that."""
    if isinstance(evidence, BettingEvidence):
        seed = others.get("seed", certificate.seed)
        evidence = dataclasses.replace(evidence, randomizer=draw_randomizer(seed, evidence.rounds))
    radius = evidence.radius()
    follows = {
        "evidence": evidence.described(),
        "radius": radius,
        "insertions": evidence.insertions(),
        "copies": evidence.copies + sum(certificate.selection or ()),
        "status": "abstained" if radius is None else "certified",
    }
    return dataclasses.replace(certificate, **{**follows, **others})


def betting(certificate: Certificate) -> BettingEvidence:
    evidence = read_evidence(certificate.evidence or {})
    assert isinstance(evidence, BettingEvidence)
    return evidence


def sampled(certificate: Certificate) -> SampledEvidence:
    evidence = read_evidence(certificate.evidence or {})
    assert isinstance(evidence, SampledEvidence)
    return evidence


def unanimous(distribution: Any, plan: Plan, copies: int) -> SampledEvidence:
    """As if all copies had voted for class 1."""
    return SampledEvidence(distribution=distribution, rule="gap", plan=plan, chosen=1, tally=Tally((0, copies), copies))


def with_another_seed(certificate: Certificate) -> Certificate:
    return with_evidence(certificate, betting(certificate), seed=certificate.seed + 1)


def with_fewer_rounds(certificate: Certificate) -> Certificate:
    evidence = betting(certificate)
    return with_evidence(certificate, dataclasses.replace(evidence, rounds=evidence.rounds[:-3]))


def with_more_rounds(certificate: Certificate) -> Certificate:
    evidence = betting(certificate)
    rounds = np.concatenate([evidence.rounds, evidence.rounds])
    return with_evidence(certificate, dataclasses.replace(evidence, rounds=rounds))


def with_other_stakes(certificate: Certificate) -> Certificate:
    evidence = betting(certificate)
    return with_evidence(certificate, dataclasses.replace(evidence, pilot=np.roll(evidence.pilot, 1, axis=1)))


def with_stakes_of_nothing(certificate: Certificate) -> Certificate:
    evidence = betting(certificate)
    return with_evidence(certificate, dataclasses.replace(evidence, pilot=evidence.pilot[:0]))


def with_a_longer_pilot(certificate: Certificate) -> Certificate:
    """Twice the copies, with twice the votes: they chose the class as well, but should have ended before."""
    evidence = betting(certificate)
    votes = tuple(2 * count for count in certificate.selection or ())
    longer = dataclasses.replace(evidence, pilot=np.tile(evidence.pilot, (2, 1)))
    return with_evidence(certificate, longer, selection=votes, copies=evidence.copies + len(longer.pilot))


def bet_on_otherwise(certificate: Certificate) -> Certificate:
    """On single copies where groups were chosen, and the other way round."""
    evidence = betting(certificate)
    size = evidence.distribution.group_size
    single, groups = (dataclasses.replace(evidence.plan, copies_per_round=copies) for copies in (1, size))
    if evidence.plan == groups:
        rounds = np.repeat(np.eye(2), evidence.rounds.sum(0).astype(int), axis=0)
        return with_evidence(certificate, dataclasses.replace(evidence, plan=single, rounds=rounds))
    rounds = evidence.rounds[: len(evidence.rounds) // size * size].reshape(-1, size, 2).sum(1)
    return with_evidence(certificate, dataclasses.replace(evidence, plan=groups, rounds=rounds))


def looked_at_once_instead_of_bet_on(certificate: Certificate) -> Certificate:
    evidence = unanimous(betting(certificate).distribution, Plan("fixed", 0.05, (5000,)), 5000)
    return with_evidence(certificate, evidence)


def curtailed_instead_of_bet_on(certificate: Certificate) -> Certificate:
    plan = make_method(GAP).method.plan(None)
    return with_evidence(certificate, unanimous(betting(certificate).distribution, plan, plan.looks[-1]))


def chosen_against_the_votes(certificate: Certificate) -> Certificate:
    return dataclasses.replace(certificate, selection=(certificate.selection or ())[::-1])


def with_a_more_generous_alpha(certificate: Certificate) -> Certificate:
    evidence = betting(certificate)
    plan = dataclasses.replace(evidence.plan, alpha=0.5)
    return with_evidence(certificate, dataclasses.replace(evidence, plan=plan))


def read_by_the_other_rule(certificate: Certificate) -> Certificate:
    return with_evidence(certificate, dataclasses.replace(betting(certificate), rule="majority"))


def with_another_randomizer(certificate: Certificate) -> Certificate:
    evidence = {**(certificate.evidence or {}), "randomizer": 1e-9}
    return dataclasses.replace(certificate, evidence=evidence, radius=read_evidence(evidence).radius())


def of_probabilities(certificate: Certificate) -> Certificate:
    return with_evidence(certificate, dataclasses.replace(betting(certificate), counted="probabilities"))


def all_that_there_are(certificate: Certificate) -> Certificate:
    evidence = unanimous(DeletionDistribution(WORDS, 0.3), Plan("fixed", 0.05, (150,), 150), 150)
    return with_evidence(certificate, evidence, selection=None, copies=150)


def of_a_text_of_fewer_words(certificate: Certificate) -> Certificate:
    evidence = unanimous(MaskingDistribution(WORDS - 1, 10), Plan("fixed", 0.05, (5000,)), 5000)
    return with_evidence(certificate, evidence)


def of_copies_that_show_less(certificate: Certificate) -> Certificate:
    return with_evidence(certificate, unanimous(MaskingDistribution(WORDS, 1), Plan("fixed", 0.05, (5000,)), 5000))


def of_another_chance(certificate: Certificate) -> Certificate:
    return with_evidence(certificate, unanimous(DeletionDistribution(WORDS, 0.1), Plan("fixed", 0.05, (5000,)), 5000))


def without_overlaps_to_lose(certificate: Certificate) -> Certificate:
    evidence = sampled(certificate)
    distribution = dataclasses.replace(evidence.distribution, overlaps=(1.0,) * 3)  # type: ignore[type-var]
    return with_evidence(
        certificate, dataclasses.replace(evidence, distribution=distribution), copies=certificate.copies
    )


def with_more_groups(certificate: Certificate) -> Certificate:
    return with_evidence(certificate, PartitionEvidence((0, 51), 1), copies=51)


def of_no_class(certificate: Certificate) -> Certificate:
    return with_evidence(certificate, PartitionEvidence((0, 0, 9), 2), copies=9)


FORGERIES: list[tuple[str, str, Forge, str]] = [
    (RANMASK, GAP, with_another_seed, "the seed is not the one that the run gives this text"),
    (RANMASK, GAP, with_fewer_rounds, "the rounds do not end where the plan ends them"),
    (RANMASK, GAP, with_more_rounds, "the rounds do not end where the plan ends them"),
    (RANMASK, GAP, with_other_stakes, "other copies than those that chose the class"),
    (RANMASK, GAP, with_stakes_of_nothing, "other copies than those that chose the class"),
    (RANMASK, GAP, with_a_longer_pilot, "other copies than those that chose the class"),
    (RANMASK, GAP, bet_on_otherwise, "looked at by another plan than the run's"),
    (RANMASK, GAP, looked_at_once_instead_of_bet_on, "looked at by another plan than the run's"),
    (RANMASK, GAP, curtailed_instead_of_bet_on, "looked at by another plan than the run's"),
    (RANMASK, GAP, chosen_against_the_votes, "another class was chosen"),
    (RANMASK, GAP, with_a_more_generous_alpha, "read with alpha 0.5, the run allows 0.05"),
    (RANMASK, GAP, read_by_the_other_rule, "read by the rule majority, the method has gap"),
    (RANMASK, GAP, with_another_randomizer, "the randomizer 1e-09 is not the one that the seed and the rounds give"),
    (RANMASK, GAP, of_probabilities, "of probabilities, which the method does not count"),
    (RANMASK, GAP, with_more_groups, "the evidence is not of the kind that this method makes"),
    (RANMASK, GAP, of_a_text_of_fewer_words, f"of a text of {WORDS - 1} words, this one has {WORDS}"),
    (RANMASK, GAP, of_copies_that_show_less, "of copies with 1 words, the defense shows 10"),
    ("deletion:kept_chance=0.3", "deletion", all_that_there_are, "of 150 different copies, the text has None"),
    ("deletion:kept_chance=0.3", "deletion", of_copies_that_show_less, "other copies than the defense makes of this"),
    ("deletion:kept_chance=0.3", "deletion", of_another_chance, "of another chance to stay (0.1), not 0.3"),
    ("safer", "safer:most=300", without_overlaps_to_lose, "other copies than the defense makes of this text"),
    ("partition", "position-partition", with_more_groups, "the evidence is of 51 groups, the text has 10"),
    ("partition", "position-partition", of_no_class, "of class 2 of 3, the model has 2"),
    ("partition", "position-partition", of_copies_that_show_less, "not of the kind that this method makes"),
    ("partition:by=hash", "hash-partition", with_more_groups, "the evidence is of 51 groups, the text has 7"),
]


@pytest.mark.parametrize(("defense", "method", "forge", "problem"), FORGERIES)
def test_a_forged_certificate_is_found_out(defense: str, method: str, forge: Forge, problem: str) -> None:
    certificate, context = certified(defense, method)
    problems = [*certificate_problems(forge(certificate), context)]
    assert any(problem in sentence for sentence in problems), problems


def test_a_rival_cannot_be_left_out() -> None:
    certificate, context = certify(RandomVictim(1), RANMASK, "ranmask-gap:most=800", "0")
    evidence = betting(certificate)
    two = np.array([evidence.chosen, (evidence.chosen + 1) % 3])
    fewer = dataclasses.replace(evidence, rounds=evidence.rounds[:, two], pilot=evidence.pilot[:, two], chosen=0)
    problems = [*certificate_problems(with_evidence(certificate, fewer, copies=certificate.copies), context)]
    assert any("of 2, the model has 3" in sentence for sentence in problems), problems


def test_a_claim_with_another_alpha_or_other_copies_is_found_out() -> None:
    certificate, context = certified(RANMASK, "ranmask-legacy:most=200,selection=50")
    evidence = read_evidence(certificate.evidence or {})
    assert isinstance(evidence, LegacyEvidence)
    for other, problem in (
        (dataclasses.replace(evidence, alpha=0.9), "200 copies read with alpha 0.9, not the run's"),
        (dataclasses.replace(evidence, counts=(0, 300)), "300 copies read with alpha 0.05, not the run's"),
        (
            dataclasses.replace(evidence, distribution=MaskingDistribution(WORDS, 3)),
            "with 3 words, the defense shows 10",
        ),
    ):
        problems = [*context.named.method.deviations(certificate, other, context.defense)]
        assert len(problems) == 1
        assert problem in problems[0]


def test_a_table_of_other_copies_is_found_out() -> None:
    text = "good fun for all of us"
    run = st.certify(st.defend(VICTIM, RANMASK), [(text, "positive")], "ranmask-exact")
    (certificate,), (context,) = run.certificates, run.contexts.values()
    forged = EnumeratedEvidence(VoteTable(6, 1, (1,) * 6, 2), 1)
    assert [
        *context.named.method.deviations(certificate, read_evidence(certificate.evidence or {}), context.defense)
    ] == []
    (problem,) = context.named.method.deviations(certificate, forged, context.defense)
    assert problem == "the evidence is of copies with 1 words, the defense shows 2"
    (problem,) = context.named.method.deviations(certificate, PartitionEvidence((0, 9), 1), context.defense)
    assert problem == "the evidence is not of the kind that this method makes"


def test_a_run_that_records_another_defense_is_found_out() -> None:
    certificate, context = certified(RANMASK, GAP)
    other = dataclasses.replace(context, defense=make_defense("deletion").defense)
    assert [*certificate_problems(certificate, other)] == [
        "ranmask-gap does not certify the defense that the run records"
    ]


NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({"randomizer": 0}, "The randomizer lies between 0 and 1"),
    ({"plan": {"alpha": 0.05, "most": 5000, "copies_per_round": 2}}, "no antithetic group of"),
    ({"distribution": {"kind": "masking", "words": WORDS, "kept": 1}}, "is not one of groups of"),
    ({"distribution": {"kind": "magic"}}, 'There is no smoothing distribution "magic" (found: deletion, masking, syn'),
    ({"distribution": {"kind": "synonyms", "overlaps": [0.5]}}, "do not come in antithetic groups"),
    ({"rounds": "xx"}, "cannot be read"),
    ({"counted": "words"}, "cannot be read"),
    ({"chosen": 2}, "class 2 is none of them"),
    ({"kind": "betting"}, 'There is no evidence "betting"'),
]


@pytest.mark.parametrize(("changes", "problem"), NONSENSE)
def test_evidence_that_makes_no_sense_is_said_to(changes: dict[str, Any], problem: str) -> None:
    certificate, context = certified(RANMASK, GAP)
    forged = dataclasses.replace(certificate, evidence={**(certificate.evidence or {}), **changes})
    (sentence,) = certificate_problems(forged, context)
    assert sentence.startswith("the evidence makes no sense: ")
    assert problem in sentence
