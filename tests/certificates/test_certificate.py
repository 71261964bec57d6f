"""What is said of a certificate in a sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockade.certificates.certificate import Certificate, statement

METHOD = {"sound": True, "threat": "up to d words changed", "options": {}}
CERTIFICATE = Certificate(
    method="position-partition",
    id="0",
    status="certified",
    reason=None,
    label="positive",
    predicted="positive",
    radius=2,
    insertions=None,
    words=5,
    truncated=False,
    selection=None,
    evidence=None,
    copies=8,
    seed=0,
    text="a warm and funny film",
    premise=None,
    fingerprint="",
)
NOTHING = replace(CERTIFICATE, radius=None, predicted=None)


@pytest.mark.parametrize(
    ("certificate", "sentence"),
    [
        (CERTIFICATE, "The class stays positive under up to 2 words changed"),
        (replace(CERTIFICATE, radius=1), "The class stays positive under 1 word changed"),
        (replace(CERTIFICATE, radius=0), "The class is positive; nothing is said of changed texts"),
        (replace(NOTHING, status="abstained", reason="a tie"), "No certificate: a tie"),
        (replace(NOTHING, status="error", reason="the model raised"), "No answer of the model: the model raised"),
        (replace(NOTHING, status="abstained"), "No certificate"),
    ],
)
def test_a_statement_says_what_was_proved_or_why_nothing_was(certificate: Certificate, sentence: str) -> None:
    assert statement(certificate, METHOD) == sentence


def test_a_pair_is_certified_for_changes_of_its_hypothesis_alone() -> None:
    pair = replace(CERTIFICATE, premise="a film")
    assert statement(pair, METHOD).endswith("2 words changed, in the hypothesis alone, the premise as it is")


def test_an_unsound_method_says_so_first() -> None:
    assert statement(CERTIFICATE, {**METHOD, "sound": False}).startswith("NOT A CERTIFICATE. Claimed: positive")
