"""Certificates of models that only name classes: copies vote, and a vote is a label, so nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

import stockade as st
from stockade.models.adapters import load_model
from tests.toys import LabelVictim, WeightVictim

WEIGHTS = {"good": 4.0, "bad": -4.0, "fine": 1.0}
ROWS = [
    ("a good film with good people and a good end", "positive"),
    ("a bad one with a bad end", "negative"),
    ("fine people in a bad film", "negative"),
]


@pytest.mark.parametrize(
    ("defense", "options"),
    [
        ("ranmask", {"rate": 0.7, "copies": 60}),
        ("deletion", {}),
        ("partition", {}),
        ("safer", {}),
    ],
)
def test_radii_are_those_of_the_model_with_scores(defense: str, options: dict[str, Any]) -> None:
    """Both victims name the same classes; that one of them also shows how sure it is changes no certificate."""
    radii = []
    for victim in (LabelVictim(WEIGHTS, bias=0.1), WeightVictim(WEIGHTS, bias=0.1)):
        run = st.certify(st.defend(victim, defense, **options), ROWS, seed=2)
        assert run.summary["complete"]
        radii.append([(record.id, record.status, record.radius, record.predicted) for record in run.records()])
    assert radii[0] == radii[1]
    assert any(radius is not None for _, _, radius, _ in radii[0])


def test_a_function_that_names_classes_is_certified() -> None:
    def name(texts: list[str]) -> list[str]:
        return ["positive" if text.count("good") > text.count("bad") else "negative" for text in texts]

    model = load_model(name, labels=["negative", "positive"], outputs="labels")
    run = st.certify(st.defend(model, "ranmask", rate=0.5), ROWS[:1], seed=2)
    assert run.manifest.inputs["model"]["reference"].startswith("a Python object")
    assert run.summary["complete"]
