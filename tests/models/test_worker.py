"""Python models in a process of their own: what hangs, leaves or dies costs the call, and nothing else."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import ModelError, ModelGone, NoAnswer, OptionError
from stockade.models import worker as module
from stockade.models.adapters import load_model

ROWS = {"good": [0.2, 0.8], "bad": [0.7, 0.3]}
VICTIMS = """
import os, sys, time

def predict(texts):
    print("printed by the model")
    for text in texts:
        if "hang" in text:
            time.sleep(600)
        if "leave" in text:
            sys.exit(0)
        if "die" in text:
            os._exit(0)
        if "raise" in text:
            raise ValueError("cannot read it")
    return [[0.2, 0.8] if "good" in text else [0.7, 0.3] for text in texts]

predict.labels = ["negative", "positive"]
"""


def predict(texts: Sequence[str]) -> list[list[float]]:
    print("printed by the model")
    for text in texts:
        if "hang" in text:
            time.sleep(600)
        if "die" in text:
            os._exit(3)
        if "leave" in text:
            sys.exit(0)
        if "raise" in text:
            raise ValueError("cannot read it")
    return [ROWS["good"] if "good" in text else ROWS["bad"] for text in texts]


@pytest.fixture(params=["object", "reference"])
def model(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "object":
        return predict
    (tmp_path / "victims_of_this_test.py").write_text(VICTIMS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "python:victims_of_this_test:predict"


def test_a_worker_answers_as_the_model_does_and_outlives_its_faults(
    model: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    limited = load_model(model, timeout=2.0, labels=["negative", "positive"])
    assert limited.labels == ("negative", "positive")
    assert limited.deterministic
    texts = ["a good film", "a film", "\ud800 good"]
    np.testing.assert_array_equal(limited.predict_proba(texts), [ROWS["good"], ROWS["bad"], ROWS["good"]])
    with pytest.raises(NoAnswer, match="did not answer within 2 s"):
        limited.predict_proba(["hang"])
    with pytest.raises(NoAnswer, match="ended the process"):
        limited.predict_proba(["die"])
    with pytest.raises(RuntimeError, match=r"sys\.exit"):
        limited.predict_proba(["leave"])
    with pytest.raises(RuntimeError, match="ValueError: cannot read it"):
        limited.predict_proba(["raise"])
    np.testing.assert_array_equal(limited.predict_proba(["good"]), [ROWS["good"]])
    printed = capfd.readouterr()
    assert "printed by the model" not in printed.out
    assert "printed by the model" in printed.err


def test_a_model_that_never_answers_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_IN_A_ROW", 3)
    limited = load_model(predict, timeout=0.05, labels=["negative", "positive"])
    for _ in range(2):
        with pytest.raises(NoAnswer):
            limited.predict_proba(["hang"])
    with pytest.raises(ModelGone, match="3 calls in a row"):
        limited.predict_proba(["hang"])


def test_a_limit_for_what_cannot_hang_or_of_no_time_is_refused() -> None:
    with pytest.raises(OptionError, match="--timeout is for Python models"):
        load_model("builtin:sentiment-cnn", timeout=5.0)
    with pytest.raises(OptionError, match="expected seconds above 0"):
        load_model(predict, timeout=0.0)


def test_a_model_that_cannot_be_imported_is_one_sentence() -> None:
    with pytest.raises(ModelError, match="There is no module no_such_module"):
        load_model("python:no_such_module:predict", timeout=30.0)


def test_a_text_that_hangs_is_an_error_and_the_others_are_attacked() -> None:
    data = [("a good film", 1), ("hang a good film", 1), ("a film", 0)]
    options = st.ModelOptions(labels=["negative", "positive"], timeout=1.0)
    result = st.attack(predict, data, "list", similarity=False, model_options=options)
    statuses = {record.original: record.status for record in result.records()}
    assert statuses.pop("hang a good film") == "error"
    assert "error" not in statuses.values()
    (hung,) = result.records("list", "error")
    assert hung.reason == "The model did not answer within 1 s."
