"""Several workers find what one process finds; what kills them costs only the text that does it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import OptionError
from stockade.scale import leases
from tests.toys import WeightVictim

ROWS = [(f"a good film number {number} with a fine story", "1") for number in range(12)]
DATA = "text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS)


def predict(texts: list[str]) -> list[list[float]]:
    return [[0.1, 0.9] if "good" in text or "fine" in text else [0.8, 0.2] for text in texts]


def deadly(texts: list[str]) -> list[list[float]]:
    """Ends the worker that asks about the fifth text, and never the process of the job."""
    if multiprocessing.parent_process() is not None and any("number 5" in text for text in texts):
        os.kill(os.getpid(), signal.SIGKILL)
    return predict(texts)


def mortal(texts: list[str]) -> list[list[float]]:
    """Ends one worker, once."""
    here = Path(os.environ["STOCKADE_TEST_FOLDER"]) / "died"
    if multiprocessing.parent_process() is not None and any("number 7" in text for text in texts) and not here.exists():
        here.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return predict(texts)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(DATA)
    return path


def attacked(function: Callable[..., Any], data: Path, out: Path, **options: Any) -> Any:
    attacks = ["deepwordbug", "pwws"]
    reference = f"python:{__name__}:{function.__name__}"
    return st.attack(reference, data, attacks, out=out, similarity=False, batch_tokens=512, **options)


def documents(run: Any) -> list[Any]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in run.rows()]


def test_two_workers_find_what_one_process_finds(data: Path, tmp_path: Path) -> None:
    alone = attacked(predict, data, tmp_path / "one")
    shown: list[tuple[str, int, int]] = []

    def observer(progress: st.Progress) -> None:
        shown.append((progress.part, progress.done, progress.total))

    together = attacked(predict, data, tmp_path / "two", workers=2, observer=observer)
    assert documents(together) == documents(alone)
    assert shown == [(attack, done, 12) for attack in ("deepwordbug", "pwws") for done in range(1, 13)]
    numbers = together.summary["attacks"]["pwws"]
    assert numbers["model_rows"] > 0
    assert numbers["success_rate"] == alone.summary["attacks"]["pwws"]["success_rate"]
    assert together.verify(trust=True).holds


def test_a_killed_worker_costs_nothing(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOCKADE_TEST_FOLDER", str(tmp_path))
    alone, together = attacked(predict, data, tmp_path / "one"), attacked(mortal, data, tmp_path / "two", workers=2)
    assert (tmp_path / "died").exists()
    assert documents(together) == documents(alone)


def test_a_text_that_ends_every_worker_is_an_error_and_the_others_finish(data: Path, tmp_path: Path) -> None:
    run = attacked(deadly, data, tmp_path / "run", workers=2)
    statuses = {record.id: record.status for record in run.records("pwws")}
    assert [id for id, status in statuses.items() if status == "error"] == ["5"]
    assert len(statuses) == 12
    [error] = run.records("pwws", "error")
    assert "ended two worker processes; the worker process was killed by signal 9" in error.reason
    assert run.summary["attacks"]["pwws"]["errors"] == 1


def test_an_interrupted_job_goes_on_with_another_number_of_workers(data: Path, tmp_path: Path) -> None:
    alone = attacked(predict, data, tmp_path / "one")

    def interrupt(progress: st.Progress) -> None:
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attacked(predict, data, tmp_path / "two", workers=2, observer=interrupt)
    resumed = st.resume(tmp_path / "two", trust=True, workers=3)
    assert documents(resumed) == documents(alone)


def test_no_text_is_begun_after_the_time_limit(data: Path, tmp_path: Path) -> None:
    run = attacked(predict, data, tmp_path / "run", workers=2, seconds=1e-6)
    assert not run.complete
    assert list(run.records()) == []


def test_objects_are_refused_before_anything_is_written(data: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="Several workers load the model themselves"):
        st.attack(WeightVictim({"good": 1}), data, "pwws", out=tmp_path / "run", workers=2)
    assert not (tmp_path / "run").exists()


def test_on_the_command_line(data: Path, tmp_path: Path) -> None:
    arguments = ["--attack", "deepwordbug", "--no-similarity", "--workers", "2", "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(
        cli, ["attack", "builtin:sentiment-cnn", str(data), "--label-map", "1=positive", *arguments]
    )
    assert result.exit_code == 0, result.output
    assert len(list(st.load(tmp_path / "run").records())) == 12
    too_few = CliRunner().invoke(
        cli, ["attack", "builtin:sentiment-cnn", str(data), "--attack", "pwws", "--workers", "0"]
    )
    assert str(too_few.exception) == "--workers is 0, expected a whole number from 1 up."


def test_leases_are_small_enough_for_every_worker(monkeypatch: pytest.MonkeyPatch, data: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(leases, "SMALLEST_LEASE", 2)
    assert attacked(predict, data, tmp_path / "run", workers=2).complete
