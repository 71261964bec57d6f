"""Texts that fool one model, tried on all others: for models that were hardened in training and have no bare form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import OptionError, RunError
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from tests.toys import WeightVictim
from tests.workflows.evaluate.kit import ATTACK, TWO_WORDS, victim


class Hardened(WeightVictim):
    """Right and wrong where the other is, but its answers tell a search nothing."""

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        rows: Probabilities = np.eye(2)[super().predict_proba(inputs).argmax(1)]
        return rows


def test_what_fools_the_source_is_tried_on_every_other_model(tmp_path: Path) -> None:
    soft, hard = victim(), Hardened(victim().weights, bias=victim().bias)
    models = {"soft": soft, "hard": hard}
    result = st.evaluate(models, TWO_WORDS, ATTACK, max_changed=0.2, transfer_from=soft, out=tmp_path / "e")
    assert result.row(model="soft").views == ("direct",)
    row = result.row(model="hard")
    assert row.views == ("direct", "source")
    robust = {view: shares.robust_accuracy.value for view, shares in row.attacks[ATTACK].views.items()}
    assert robust == {"direct": 1.0, "source": 0.0}
    assert row.worst.robust_accuracy.value == 0
    assert any("but 0% in the source view" in warning for warning in result.warnings)
    assert "they see the model that texts are transferred from" in result.document().to_markdown()
    with pytest.raises(RunError, match=r"transfer_from was .*WeightVictim.*, now .*Hardened"):
        st.evaluate(models, TWO_WORDS, ATTACK, max_changed=0.2, transfer_from=hard, out=tmp_path / "e", resume=True)


def test_classes_must_be_the_same(tmp_path: Path) -> None:
    other = WeightVictim({"good": 1.0}, labels=("positive", "negative"))
    with pytest.raises(
        OptionError, match="--transfer-from has the classes positive, negative, and toy negative, positive"
    ):
        st.evaluate({"toy": victim()}, TWO_WORDS, ATTACK, transfer_from=other, out=tmp_path / "e")
    assert not (tmp_path / "e").exists()
