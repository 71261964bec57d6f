"""One small study of attention, run once for all tests that look at it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import stockade as st
from tests.study.attention_toys import toy_bert, toy_lstm, toy_rows


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> st.Study:
    """A study of two toys; not to be written to."""
    folder = tmp_path_factory.mktemp("attention") / "made"
    models = {"bert": toy_bert(), "lstm": toy_lstm()}
    return st.study("attention", models, toy_rows(), out=folder, draws=20, samples=400)


@pytest.fixture
def study_folder(finished_study: st.Study, tmp_path: Path) -> Path:
    """A copy of the study's folder."""
    return shutil.copytree(finished_study.folder, tmp_path / "study")
