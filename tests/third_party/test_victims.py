"""Classifiers from PyPI as victims, each fooled by misspelling the words that it reads."""

from __future__ import annotations

import pytest

import stockade as st

SENTIMENT = [
    ("what a great and wonderful film", "positive"),
    ("an excellent story with a happy end", "positive"),
    ("a terrible and boring mess", "negative"),
]
PROFANITY = [("you are a stupid idiot and I hate you", "profane"), ("the weather is fine today", "clean")]


@pytest.mark.parametrize(
    ("package", "reference", "labels", "rows"),
    [
        ("vaderSentiment", "python:tests.third_party.victims:vader", ["negative", "positive"], SENTIMENT),
        ("textblob", "python:tests.third_party.victims:textblob", ["negative", "positive"], SENTIMENT),
        ("profanity_check", "python:profanity_check:predict_prob", ["clean", "profane"], PROFANITY),
    ],
)
def test_a_victim_from_pypi_is_attacked(
    package: str, reference: str, labels: list[str], rows: list[tuple[str, str]]
) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    options = st.ModelOptions(labels=labels)
    run = st.attack(reference, rows, "deepwordbug", preset="textattack", similarity=False, model_options=options)
    numbers = run.summary["attacks"]["deepwordbug"]
    assert (numbers["n"], numbers["errors"]) == (len(rows), 0)
    assert numbers["succeeded"] >= 1
    assert run.verify(trust=True).holds


def test_profanity_check_is_attacked_by_its_labels() -> None:
    """Its `predict` answers with 0 and 1, the indices of the classes."""
    pytest.importorskip("profanity_check", reason="alt-profanity-check is not installed")
    options = st.ModelOptions(labels=["clean", "profane"], outputs="labels")
    run = st.attack("python:profanity_check:predict", PROFANITY, "deepwordbug", similarity=False, model_options=options)
    assert run.summary["attacks"]["deepwordbug"]["decision_based"]
    assert run.summary["attacks"]["deepwordbug"]["succeeded"] >= 1
