"""Victims that raise now and then, leave, print, answer at random or in odd shapes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import ModelError
from stockade.core.protocols import Probabilities
from stockade.core.text import Text, TextInput
from stockade.engine.requests import Score
from stockade.engine.scoring import ScoringService
from stockade.models.python import CallableClassifier
from tests.toys import WeightVictim

SENTENCES = [(f"a good film about the old town number {number}", 1) for number in range(12)]
OPTIONS = st.ModelOptions(labels=["negative", "positive"])


def rows(texts: Sequence[str]) -> list[list[float]]:
    return [[0.2, 0.8] if "good" in text or "film" in text else [0.7, 0.3] for text in texts]


def test_a_text_that_fails_costs_that_candidate_only() -> None:
    """The model raises on one text in twelve; no search ends for it."""

    def fragile(texts: Sequence[str]) -> list[list[float]]:
        if any(sum(map(ord, text)) % 12 == 0 and "[UNK]" not in text for text in texts):
            raise ValueError("not this one")
        return rows(texts)

    data = [item for item in SENTENCES if sum(map(ord, item[0])) % 12]
    result = st.attack(
        fragile, data, ["pwws", "deepwordbug@textattack", "list"], similarity=False, model_options=OPTIONS
    )
    assert len(data) > 8
    for name, numbers in result.summary["attacks"].items():
        assert (numbers["errors"], numbers["attacked"]) == (0, len(data)), name
        assert numbers["failed_queries"] > 0
        assert any(warning.startswith(f"{name}: the model failed on") for warning in result.summary["warnings"])


def test_a_model_that_fails_on_most_queries_is_not_called_robust() -> None:
    """It answers the clean text and nothing else."""

    def stubborn(texts: Sequence[str]) -> list[list[float]]:
        if any("good film about" not in text for text in texts):
            raise ValueError("no")
        return rows(texts)

    result = st.attack(stubborn, SENTENCES, "deepwordbug@textattack", similarity=False, model_options=OPTIONS)
    numbers = result.summary["attacks"]["deepwordbug@textattack"]
    assert numbers["errors"] + numbers["succeeded"] + numbers["failed"] == len(SENTENCES)
    errors = list(result.records(None, "error"))
    assert all("the model failed on" in (record.reason or "") for record in errors)
    assert all(2 * record.failed_queries <= record.queries for record in result.records(None, "failed"))


def test_a_text_is_asked_about_three_times_before_it_is_given_up() -> None:
    asked: Counter[str] = Counter()

    class Busy(WeightVictim):
        def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
            asked.update(map(str, inputs))
            if any(asked[str(item)] <= wanted[str(item)] for item in inputs):
                raise TimeoutError("busy")
            return np.array([(0.5, 0.5)] * len(inputs))

    wanted = {"a": 2, "b": 3}
    service = ScoringService(Busy({}))
    first, second = (service.answer_scores([Score([Text.parse(text)], partial=True)])[0] for text in "ab")
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert (first[0].answered, second[0].answered) == (True, False)
    assert asked == {"a": 3, "b": 3}


@pytest.mark.parametrize("code", [0, 1, None])
def test_sys_exit_in_a_victim_is_a_fault_of_that_text(code: int | None) -> None:
    def leaves(texts: Sequence[str]) -> list[list[float]]:
        if any("number 3" in text for text in texts):
            sys.exit(code)
        return rows(texts)

    result = st.attack(leaves, SENTENCES, "list", similarity=False, model_options=OPTIONS)
    assert Counter(record.status for record in result.records())["error"] == 1
    (error,) = result.records("list", "error")
    assert "sys.exit" in (error.reason or "")


def test_what_a_victim_prints_is_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    def chatty(texts: Sequence[str]) -> list[list[float]]:
        print("loading")
        return rows(texts)

    CallableClassifier(chatty).predict_proba(["good"])
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "loading\n")


def test_a_model_that_answers_at_random_is_noticed(tmp_path: Path) -> None:
    numbers = count()

    def random(texts: Sequence[str]) -> list[list[float]]:
        return [[0.1, 0.9] if next(numbers) % 3 else [0.8, 0.2] for _ in texts]

    result = st.attack(random, SENTENCES, "list", similarity=False, model_options=OPTIONS, out=tmp_path / "run")
    assert any("does not always answer the same text alike" in warning for warning in result.summary["warnings"])
    steady = st.attack(rows, SENTENCES, "list", similarity=False, model_options=OPTIONS)
    assert not any("alike" in warning for warning in steady.summary["warnings"])
    assert "unsteady" not in steady.manifest.inputs["model"]


def test_a_column_of_single_numbers_is_refused() -> None:
    model = CallableClassifier(lambda texts: [[0.7] for _ in texts])
    with pytest.raises(ModelError, match=r"shape \(2, 1\): one number in each row.*answer with shape \(2,\) instead"):
        model.predict_proba(["a", "b"])
    single = CallableClassifier(lambda texts: [0.7] * len(texts))
    np.testing.assert_allclose(single.predict_proba(["a"]), [[0.3, 0.7]])


def test_a_run_that_a_time_limit_ends_exits_with_3(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in SENTENCES))
    (tmp_path / "slow_victim.py").write_text("def predict(texts):\n    return [[0.2, 0.8]] * len(texts)\n")
    sys.path.insert(0, str(tmp_path))
    try:
        command = ["attack", "python:slow_victim:predict", str(data), "--attack", "list", "--no-similarity"]
        ended = CliRunner().invoke(
            cli, [*command, "--seconds", "1e-9", "--out", str(tmp_path / "run")], standalone_mode=False
        )
    finally:
        sys.path.remove(str(tmp_path))
    assert ended.exception is None, ended.exception
    assert ended.return_value == 3
    assert "not all texts have a result" in ended.output
