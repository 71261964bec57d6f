"""Models that several tests of defenses use, trained once."""

from __future__ import annotations

from pathlib import Path

import pytest

import stockade as st
from stockade.training import recording
from tests.training.tiny import rows


@pytest.fixture
def plain_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the curves out of the page, for tests of other things: drawing takes longer than training here."""
    monkeypatch.setattr(recording, "render_page", lambda *arguments: "")


@pytest.fixture(scope="session")
def ranmask_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A word CNN that was trained on masked texts until it knows its words, with ranmask in its folder."""
    out = tmp_path_factory.mktemp("ranmask") / "m"
    training = {"epochs": 6, "batch": 8, "learning_rate": 0.02, "sizes": {"filters": 8}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recording, "render_page", lambda *arguments: "")
        st.train(rows(60), "CNN-W-Random-1", out=out, defenses=["ranmask:rate=0.2,copies=9"], **training)
    return out
