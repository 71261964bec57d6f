"""Models that several tests of defenses use, trained once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stockade as st
from tests.training.tiny import rows, without_plots


@pytest.fixture
def plain_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the curves out of reports of trainings."""
    without_plots(monkeypatch)


@pytest.fixture(scope="session")
def ranmask_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A word CNN that was trained on masked texts until it knows its words, with ranmask in its folder."""
    out = tmp_path_factory.mktemp("ranmask") / "m"
    training: dict[str, Any] = {"epochs": 6, "batch": 8, "learning_rate": 0.02, "sizes": {"filters": 8}}
    with pytest.MonkeyPatch.context() as patched:
        without_plots(patched)
        st.train(rows(60), "CNN-W-Random-1", out=out, defenses=["ranmask:rate=0.2,copies=9"], **training)
    return out
