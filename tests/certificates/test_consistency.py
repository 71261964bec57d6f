"""Forged certificates whose radius does follow from their evidence, and whose evidence is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.betting_sampler import draw_randomizer
from stockade.certificates.distributions import DeletionDistribution, MaskingDistribution
from stockade.certificates.evidence import SampledEvidence, read_evidence
from stockade.certificates.registry import make_method
from stockade.certificates.sequential import Plan, Tally
from stockade.certificates.verify import recompute
from stockade.core.files import write_json
from stockade.runs.manifest import FILE_NAME
from tests.certificates.kit import tampered
from tests.toys import RandomVictim, WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
LONG = "good fun and some bad jokes for all of us and many more good things to come " * 2
WORDS = len(LONG.split())
Told = dict[str, Any]


def certified(folder: Path, defense: str, *methods: str, model: Any = VICTIM, label: str = "positive") -> None:
    name, _, options = defense.partition(":")
    given = dict(one.split("=") for one in options.split(",") if one)
    robust = st.defend(model, f"{name}:{options}" if given else name)
    run = st.certify(robust, [(LONG, label)] * 2, *methods, limit=1, out=folder)
    assert recompute(run).holds


def forged(told: Told, evidence: Any, **others: Any) -> None:
    """The certificate with other evidence, and all else as it follows from that."""
    radius = evidence.radius()
    described = evidence.described()
    if described["kind"] == "betting":
        described["randomizer"] = draw_randomizer(others.get("seed", told["seed"]), evidence.rounds)
        radius = (evidence := read_evidence(described)).radius()
    copies = others.get("copies", evidence.copies + sum(told["selection"] or ()))
    inserted = evidence.insertions() if hasattr(evidence, "insertions") else None
    status = "abstained" if radius is None else "certified"
    told.update({"evidence": described, "radius": radius, "copies": copies, "insertions": inserted, "status": status})
    told.update(others)


def dealt(told: Told) -> BettingEvidence:
    evidence = read_evidence(told["evidence"])
    assert isinstance(evidence, BettingEvidence)
    return evidence


def with_another_seed(told: Told) -> None:
    forged(told, dealt(told), seed=told["seed"] + 1)


def with_fewer_rounds(told: Told) -> None:
    forged(told, replace(dealt(told), rounds=dealt(told).rounds[:-3]))


def with_more_rounds(told: Told) -> None:
    evidence = dealt(told)
    forged(told, replace(evidence, rounds=np.concatenate([evidence.rounds, evidence.rounds])))


def with_other_stakes(told: Told) -> None:
    evidence = dealt(told)
    forged(told, replace(evidence, pilot=np.roll(evidence.pilot, 1, axis=1)))


def with_stakes_of_nothing(told: Told) -> None:
    forged(told, replace(dealt(told), pilot=dealt(told).pilot[:0]))


def bet_on_one_by_one(told: Told) -> None:
    evidence = dealt(told)
    single = np.repeat(np.eye(2), np.maximum(1, evidence.rounds.sum(0).astype(int)), axis=0)
    pilot = np.repeat(np.eye(2), told["selection"], axis=0)
    forged(told, replace(evidence, plan=replace(evidence.plan, copies_per_round=1), pilot=pilot, rounds=single))


def looked_at_instead_of_dealt(told: Told) -> None:
    evidence = dealt(told)
    plan = Plan("fixed", 0.05, (5000,))
    forged(told, SampledEvidence(evidence.distribution, "gap", plan, 1, Tally((0, 5000), 5000)))


def curtailed_instead_of_dealt(told: Told) -> None:
    plan = make_method("ranmask-gap").method.plan(None)
    copies = plan.looks[-1]
    forged(told, SampledEvidence(dealt(told).distribution, "gap", plan, 1, Tally((0, copies), copies)))


def chosen_against_the_votes(told: Told) -> None:
    told["selection"] = told["selection"][::-1]


def all_that_there_are(told: Told) -> None:
    evidence = SampledEvidence(
        DeletionDistribution(WORDS, 0.3), "gap", Plan("fixed", 0.05, (150,), 150), 1, Tally((0, 150), 150)
    )
    forged(told, evidence, selection=None, copies=150)


def of_another_law(told: Told) -> None:
    evidence = SampledEvidence(
        MaskingDistribution(WORDS, 1), "gap", Plan("fixed", 0.05, (5000,)), 1, Tally((0, 5000), 5000)
    )
    forged(told, evidence)


def without_overlaps_to_lose(told: Told) -> None:
    evidence = read_evidence(told["evidence"])
    assert isinstance(evidence, SampledEvidence)
    forged(
        told, replace(evidence, distribution=replace(evidence.distribution, overlaps=(1.0,) * 3)), copies=told["copies"]
    )


def with_more_groups(told: Told) -> None:
    told["evidence"]["counts"] = [0, 51]
    told.update(radius=25, copies=51)


def without_a_rival(told: Told) -> None:
    evidence = read_evidence(told["evidence"])
    assert isinstance(evidence, BettingEvidence)
    two = np.array([evidence.chosen, (evidence.chosen + 1) % 3])
    fewer = replace(evidence, rounds=evidence.rounds[:, two], pilot=evidence.pilot[:, two], chosen=0)
    forged(told, fewer, copies=told["copies"])


def of_no_class(told: Told) -> None:
    told["evidence"].update(counts=[0, 0, 9], chosen=2)


def of_another_text(told: Told) -> None:
    told["id"] = "77"


FORGERIES: list[tuple[str, str, Callable[[Told], None], str]] = [
    ("ranmask:rate=0.7", "ranmask-gap", with_another_seed, "the seed is not the one that the run gives this text"),
    ("ranmask:rate=0.7", "ranmask-gap", with_fewer_rounds, "the rounds do not end where the plan ends them"),
    ("ranmask:rate=0.7", "ranmask-gap", with_more_rounds, "the rounds do not end where the plan ends them"),
    ("ranmask:rate=0.7", "ranmask-gap", with_other_stakes, "other copies than those that chose the class"),
    ("ranmask:rate=0.7", "ranmask-gap", with_stakes_of_nothing, "other copies than those that chose the class"),
    ("ranmask:rate=0.7", "ranmask-gap", bet_on_one_by_one, "looked at by another plan than the run's"),
    ("ranmask:rate=0.7", "ranmask-gap", looked_at_instead_of_dealt, "looked at by another plan than the run's"),
    ("ranmask:rate=0.7", "ranmask-gap", curtailed_instead_of_dealt, "looked at by another plan than the run's"),
    ("ranmask:rate=0.7", "ranmask-gap", chosen_against_the_votes, "another class was chosen"),
    ("ranmask:rate=0.7", "ranmask-gap", of_another_text, "the run has no text of this number"),
    ("deletion:kept_chance=0.3", "deletion", all_that_there_are, "of 150 different copies, the text has None"),
    ("deletion:kept_chance=0.3", "deletion", of_another_law, "other copies than the defense makes of this text"),
    ("safer", "safer:most=300", without_overlaps_to_lose, "other copies than the defense makes of this text"),
    ("partition", "position-partition", with_more_groups, "the evidence is of 51 groups, the text has 10"),
    ("partition", "position-partition", of_no_class, "of class 2 of 3, the model has 2"),
    ("partition", "position-partition", of_another_law, "not of the kind that position-partition makes"),
    ("partition:by=hash", "hash-partition", with_more_groups, "the evidence is of 51 groups, the text has 7"),
]


@pytest.mark.parametrize(("defense", "method", "forge", "problem"), FORGERIES)
def test_a_forged_certificate_is_found_out(
    defense: str, method: str, forge: Callable[[Told], None], problem: str, tmp_path: Path
) -> None:
    certified(tmp_path / "run", defense, method)
    found = recompute(tampered(tmp_path / "run", forge)).problems
    assert any(problem in one for one in found), found


def test_a_rival_cannot_be_left_out(tmp_path: Path) -> None:
    certified(tmp_path / "run", "ranmask:rate=0.7", "ranmask-gap:most=800", model=RandomVictim(1), label="0")
    found = recompute(tampered(tmp_path / "run", without_a_rival)).problems
    assert any("of 2, the model has 3" in one for one in found), found


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"sound": True}, "ranmask-legacy: told to be sound, and it is not sound"),
        ({"threat": "any change of up to d words"}, 'told to be against "any change of up to d words"'),
    ],
)
def test_what_a_radius_means_cannot_be_told_otherwise(change: Told, problem: str, tmp_path: Path) -> None:
    certified(tmp_path / "run", "ranmask:rate=0.7", "ranmask-legacy:most=200,selection=50")
    path = tmp_path / "run" / FILE_NAME
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["config"]["methods"][0].update(change)
    write_json(path, manifest)
    run = st.CertificateRun(tmp_path / "run")
    run.write_summary()
    assert any(problem in one for one in recompute(run).problems)


def test_a_claim_with_another_alpha_is_found_out(tmp_path: Path) -> None:
    certified(tmp_path / "run", "ranmask:rate=0.7", "ranmask-legacy:most=200,selection=50")
    found = recompute(tampered(tmp_path / "run", lambda told: told["evidence"].update(alpha=0.9))).problems
    assert any("200 copies read with alpha 0.9, not the run's" in one for one in found), found
