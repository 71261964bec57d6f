"""Of a pair only the hypothesis is hidden, counted and certified, and every row and page says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import stockade as st
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from stockade.workflows.certify.verify import resample
from tests.toys import WeightVictim

PREMISE = "two people walk their dogs along a bad and rather dull shore"
HYPOTHESIS = "good good people take good good dogs"
PAIRS = [{"premise": PREMISE, "hypothesis": HYPOTHESIS, "label": "positive"}]
HELD = "in the hypothesis alone, the premise as it is"
METHODS = {
    "ranmask-gap": "ranmask:rate=0.7",
    "ranmask-exact": "ranmask:rate=0.7",
    "position-partition": "partition:groups=4",
    "hash-partition": "partition:by=hash,groups=4",
    "deletion": "deletion:kept_chance=0.6",
    "safer": "safer",
}


@pytest.mark.parametrize(("method", "defense"), METHODS.items())
def test_the_premise_is_shown_whole_and_not_counted(method: str, defense: str, tmp_path: Path) -> None:
    victim = WeightVictim({"good": 4.0, "fine": 4.0, "bad": -1.0}, bias=0.1)
    defended = st.defend(victim, defense)
    result = st.certify(defended, PAIRS, method, out=tmp_path / "run")
    assert {item[0] if isinstance(item, tuple) else None for item in victim.asked} == {PREMISE}
    (certificate,) = result.certificates
    assert (certificate.premise, certificate.text, certificate.words) == (PREMISE, HYPOTHESIS, 7)
    assert result.verify().holds
    assert resample(result, defended).refuted == ()
    (row,) = result.rows()
    assert row["threat"].endswith(HELD)
    assert certificate.radius == (0 if method in ("deletion", "safer") else 1)
    assert (HELD in row["statement"]) == (certificate.radius == 1)
    page = result.document().to_markdown()
    assert HELD in page.partition("## Texts")[0]
    assert PREMISE in page


def test_single_texts_have_no_hypothesis() -> None:
    result = st.certify(st.defend(WeightVictim({"good": 4.0}), "partition:groups=4"), [(HYPOTHESIS, "positive")])
    assert "hypothesis" not in result.document().to_markdown()


class BothParts(WeightVictim):
    """Adds up the words of the premise as well."""

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        return super().predict_proba([item if isinstance(item, str) else " ".join(item) for item in inputs])


def test_another_premise_is_another_certificate() -> None:
    """Every group has two good words at most, fewer than a bad word of the premise takes back."""
    defended = st.defend(BothParts({"good": 1.0, "bad": -2.5}, bias=0.1), "partition:groups=4")
    neutral = [{**PAIRS[0], "premise": "two people walk their dogs"}]
    (against,), (beside,) = (st.certify(defended, rows).certificates for rows in (PAIRS, neutral))
    assert (against.predicted, beside.predicted) == ("negative", "positive")
    assert against.fingerprint != beside.fingerprint
