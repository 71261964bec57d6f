"""Texts that fool one model, tried on all others: for models that were hardened in training and have no bare twin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import OptionError, RunError
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from tests.evaluation.kit import ATTACK, TWO_WORDS, victim
from tests.toys import WeightVictim


class Hardened(WeightVictim):
    """Right and wrong where the other is, but its answers tell a search nothing."""

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        return np.eye(2)[super().predict_proba(inputs).argmax(1)]


def test_what_fools_the_source_is_tried_on_every_other_model(tmp_path: Path) -> None:
    soft, hard = victim(), Hardened(victim().weights, bias=victim().bias)
    given = {"models": {"soft": soft, "hard": hard}, "attacks": [ATTACK], "max_changed": 0.2, "transfer_from": soft}
    found = st.evaluate(data=TWO_WORDS, out=tmp_path / "e", **given)  # type: ignore[arg-type]
    assert found.row(model="soft")["ways"] == ["direct"]
    row = found.row(model="hard")
    assert row["ways"] == ["direct", "source"]
    robust = {way: cell["robust_accuracy"]["value"] for way, cell in row["attacks"][ATTACK]["ways"].items()}
    assert robust == {"direct": 1.0, "source": 0.0}
    assert row["worst"]["robust_accuracy"]["value"] == 0
    assert any("but 0% by way of source" in warning for warning in found.warnings)
    assert "they see the model that texts are transferred from" in (tmp_path / "e/evaluation.html").read_text()
    given["transfer_from"] = hard
    with pytest.raises(RunError, match="other options"):
        st.evaluate(data=TWO_WORDS, out=tmp_path / "e", resume=True, **given)  # type: ignore[arg-type]


def test_classes_must_be_the_same(tmp_path: Path) -> None:
    other = WeightVictim({"good": 1.0}, labels=("positive", "negative"))
    with pytest.raises(
        OptionError, match="--transfer-from has the classes positive, negative, and toy negative, positive"
    ):
        st.evaluate({"toy": victim()}, TWO_WORDS, attacks=[ATTACK], transfer_from=other, out=tmp_path / "e")
    assert not (tmp_path / "e").exists()
