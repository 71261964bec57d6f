"""One small study of attention, run once for all tests that look at it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.studies.attention.study import AttentionResult
from tests.studies.attention.toys import toy_bert, toy_lstm, toy_rows

SMALL: dict[str, Any] = {"draws": 20, "samples": 400}


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models `bert` and `lstm` and with `data.csv`; not to be written to."""
    folder = tmp_path_factory.mktemp("toys")
    for name, parts in (("bert", toy_bert()), ("lstm", toy_lstm())):
        for part in parts:
            part.save_pretrained(folder / name)
    rows = "".join(f'"{text}",{label}\n' for text, label in toy_rows())
    (folder / "data.csv").write_text(f"text,label\n{rows}")
    return folder


@pytest.fixture(scope="session")
def finished(toys: Path, tmp_path_factory: pytest.TempPathFactory) -> AttentionResult:
    """A study of two toys; not to be written to."""
    result = st.study(
        "attention",
        [str(toys / "bert"), str(toys / "lstm")],
        str(toys / "data.csv"),
        out=tmp_path_factory.mktemp("attention") / "made",
        **SMALL,
    )
    assert isinstance(result, AttentionResult)
    return result


@pytest.fixture
def copied(finished: AttentionResult, tmp_path: Path) -> Path:
    """A copy of the study's folder."""
    return shutil.copytree(finished.folder, tmp_path / "study")
