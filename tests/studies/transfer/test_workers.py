"""Several workers do what one does, and what they cannot do is marked like anywhere else."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import OptionError
from stockade.studies.transfer.study import TransferResult
from tests.toys import WeightVictim

MODELS = {"cnn": "builtin:sentiment-cnn", "lstm": "builtin:sentiment-lstm"}
SMALL: dict[str, Any] = {
    "second": {"cnn": "builtin:sentiment-lstm"},
    "attacked": 8,
    "importance": 2,
    "maps": 1,
    "batch_tokens": 2048,
}
TIMES = ("seconds", "model_seconds", "created", "run")


def rates(folder: Path) -> Any:
    """The summary without what differs from run to run."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items() if name not in TIMES}
        return [plain(item) for item in value] if isinstance(value, list) else value

    return plain(json.loads((folder / "summary.json").read_text()))


def test_two_workers_find_what_one_finds(tmp_path: Path) -> None:
    alone = st.study("transfer", MODELS, "builtin:reviews", out=tmp_path / "one", **SMALL)
    parts: list[str] = []
    st.study(
        "transfer",
        MODELS,
        "builtin:reviews",
        out=tmp_path / "two",
        workers=2,
        observer=lambda progress: parts.append(f"{progress.part} {progress.done}/{progress.total}"),
        **SMALL,
    )
    assert alone.complete
    assert rates(tmp_path / "two") == rates(tmp_path / "one")
    assert (tmp_path / "two" / "matrix.csv").read_text() == (tmp_path / "one" / "matrix.csv").read_text()
    # Everything was done by the workers: this process reports models, and attacks and scores none itself.
    assert parts == ["attacking 1/2", "attacking 2/2", "scoring 1/3", "scoring 2/3", "scoring 3/3"]
    assert st.load(tmp_path / "two").verify().problems == ()


def test_a_model_that_fails_in_a_worker_is_marked_and_the_rest_finishes(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    models = {**MODELS, "bad": f"python:{__name__}:mortal"}
    result = st.study("transfer", models, "builtin:reviews", out=folder, workers=2, **{**SMALL, "second": {}})
    assert isinstance(result, TransferResult)
    assert "a word it does not like" in result.failures["bad"]
    assert result.numbers.attacks["pwws"].matrix().rate("cnn", "lstm") is not None


def mortal(texts: list[str]) -> Any:
    """Answers the probe of a new study, but no review."""
    if any(len(text.split()) > 4 for text in texts):
        raise ValueError("a word it does not like")
    return [[0.4, 0.6] for _ in texts]


def killer(texts: list[str]) -> Any:
    """Ends a worker process, but not the one that begins the study."""
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return [[0.4, 0.6] for _ in texts]


def test_a_worker_that_is_killed_is_said_in_one_sentence(tmp_path: Path) -> None:
    models = {**MODELS, "killer": f"python:{__name__}:killer"}
    with pytest.raises(st.StockadeError, match="A worker process ended in the middle of its work"):
        st.study("transfer", models, "builtin:reviews", out=tmp_path / "made", workers=2, **{**SMALL, "second": {}})
    assert (tmp_path / "made" / "manifest.json").exists()


def test_objects_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="Several workers load the models and the data themselves"):
        st.study("transfer", {"a": WeightVictim({"great": 1})}, "builtin:reviews", out=tmp_path / "made", workers=2)
    assert not (tmp_path / "made").exists()


def test_only_studies_that_can_use_workers_take_them() -> None:
    assert "--workers" in CliRunner().invoke(cli, ["study", "transfer", "--help"]).output
    assert "--workers" not in CliRunner().invoke(cli, ["study", "bae", "--help"]).output
