"""`import stockade as st`."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import stockade as st
from stockade.attacks.deepwordbug import DeepWordBug
from stockade.core.errors import OptionError, RunError
from stockade.core.protocols import Probabilities
from stockade.models.sentence_encoder import SentenceEncoder
from stockade.workflows.attack.result import AttackResult

DATA = [("a great and fun film", 1), ("a dull film", 0), ("good fun", 1), ("bad , bad film", 0), ("great work", 1)]
GOOD, BAD = {"great", "good", "fun"}, {"dull", "bad"}


def predict(texts: Sequence[str]) -> list[list[float]]:
    rows = []
    for text in texts:
        words = text.lower().split()
        odds = sum(word in GOOD for word in words) - sum(word in BAD for word in words) - 0.5
        positive = 1 / (1 + math.exp(-odds))
        rows.append([1 - positive, positive])
    return rows


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert st.__all__ == sorted(st.__all__)
    for name in st.__all__:
        assert getattr(st, name) is not None
    with pytest.raises(AttributeError, match="atack"):
        _ = st.atack


def test_dir_shows_the_public_names_and_no_modules() -> None:
    assert set(dir(st)) == {*st.__all__, "__version__"}
    importlib.import_module("stockade.workflows.certify.run")  # must not take the place of the public function
    assert callable(st.certify)
    assert not isinstance(st.certify, type(st))


def test_one_sentence_attacks_a_function_on_a_list() -> None:
    run = st.attack(predict, DATA, ["pwws", DeepWordBug()], similarity=False)
    assert set(run.summary["attacks"]) == {"pwws", "deepwordbug"}
    assert len(run.examples) == 2 * len(DATA)
    assert {"id", "attack", "status", "original", "adversarial", "edits"} <= set(run.to_pandas().columns)
    assert "success_rate" in repr(run)


def test_a_run_without_a_folder_can_be_saved_and_opened_again(tmp_path: Path) -> None:
    run = st.attack(predict, DATA, "deepwordbug", similarity=False)
    saved = run.save(tmp_path / "kept")
    folder = run.folder
    opened = st.load(tmp_path / "kept")
    assert isinstance(opened, AttackResult)
    assert opened.examples == run.examples == saved.examples
    with pytest.raises(RunError, match="exists already"):
        run.save(tmp_path / "kept")
    del run
    assert not folder.exists()


def test_a_notebook_shows_numbers_and_escaped_examples() -> None:
    run = st.attack(predict, [("a <b>great</b> fun film", 1)], "deepwordbug", similarity=False)
    html = run._repr_html_()
    assert "<b>great" not in html
    assert "&lt;b&gt;" in html
    assert "clean accuracy" in html


def test_similarity_is_measured_with_its_scale_named() -> None:
    run = st.attack(predict, DATA, "deepwordbug")
    numbers = run.summary["attacks"]["deepwordbug"]
    assert numbers["similarity_scale"] == "cosine, all-MiniLM-L6-v2"
    encoder = SentenceEncoder()
    for record in (record for record in run.examples if record.status == "success"):
        one, other = encoder.embed([record.original, record.adversarial or ""])
        assert record.similarity == pytest.approx(float(one @ other), abs=1e-5)


def test_resuming_from_python_needs_the_same_objects(tmp_path: Path) -> None:
    first = st.attack(predict, DATA, "pwws", out=tmp_path / "a", similarity=False)
    again = st.attack(predict, DATA, "pwws", out=tmp_path / "a", similarity=False, resume=True)
    assert again.examples == first.examples
    with pytest.raises(RunError, match=r"data\.fingerprint"):
        st.attack(predict, DATA[1:], "pwws", out=tmp_path / "a", similarity=False, resume=True)
    with pytest.raises(RunError, match="Python objects"):
        st.resume(tmp_path / "a")


def test_a_targeted_attack_leaves_the_target_class_alone() -> None:
    run = st.attack(predict, DATA, "pwws", targeted="0", similarity=False)
    assert {record.label for record in run.examples} == {"1"}


class Coin:
    """Says positive with the given chance, whatever the text."""

    labels = ("negative", "positive")
    deterministic = False

    def __init__(self, chance: float) -> None:
        self._rng, self._chance = np.random.default_rng(0), chance
        self.asked = 0

    def predict_proba(self, inputs: Sequence[object]) -> Probabilities:
        self.asked += len(inputs)
        positive = (self._rng.random(len(inputs)) < self._chance) * 0.8 + 0.1
        return np.stack([1 - positive, positive], axis=1)


def test_a_randomised_model_is_fooled_only_if_it_is_fooled_again_and_again() -> None:
    lucky = st.attack(Coin(0.9), [("a great film", 1)] * 40, "pwws", similarity=False)
    for record in lucky.examples:
        assert record.status != "success" or (record.hit_rate or 0) >= 0.5
    rejected = [r for r in lucky.examples if r.hit_rate is not None and r.status == "failed"]
    assert rejected, "a model that is right nine times in ten is not fooled by asking it often"
    assert all("fooled the model once, but not half of the time; then: " in (r.reason or "") for r in rejected)


def test_wrong_options_are_refused_before_anything_is_loaded() -> None:
    with pytest.raises(OptionError, match="No attack was named"):
        st.attack(predict, DATA, [])
    with pytest.raises(OptionError, match="named twice"):
        st.attack(predict, DATA, ["pwws", "pwws"])
    with pytest.raises(OptionError, match="--concurrency is 0, expected a whole number from 1 up"):
        st.attack(predict, DATA, "pwws", concurrency=0)


def test_the_summary_is_json(tmp_path: Path) -> None:
    run = st.attack(predict, DATA, "pwws", out=tmp_path / "a", similarity=False)
    written = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert written == json.loads(json.dumps(run.summary))
