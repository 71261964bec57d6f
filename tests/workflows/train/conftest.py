"""What the tests of whole trainings have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.workflows.train.result import TrainResult
from tests.training.tiny import OPTIONS, rows, tiny_origin, train_tiny, without_plots


@pytest.fixture
def plain_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the curves out of reports."""
    without_plots(monkeypatch)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    """A training that learns its texts by heart."""
    out = tmp_path_factory.mktemp("trained") / "m"
    options = OPTIONS.changed(epochs=6, learning_rate=0.02)
    return train_tiny(out, rows(200), origin=tiny_origin(dropout=0.0), options=options)


@pytest.fixture
def csv_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with `data.csv` in it."""
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{text},{label}\n" for text, label in rows(60))
    (tmp_path / "data.csv").write_text("text,label\n" + lines)
    return tmp_path
