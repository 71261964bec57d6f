"""The study with the models that come with the installation, on a few short texts."""

from __future__ import annotations

from pathlib import Path

import pytest

import stockade as st
from stockade.studies.bae.analysis import ATTACKS
from tests.e2e.conftest import ROWS


@pytest.mark.slow
def test_a_study_of_the_built_in_cnn(tmp_path: Path) -> None:
    result = st.study("bae", "builtin:sentiment-cnn", ROWS, limit=4, score_first=True, out=tmp_path / "a")
    numbers = result.numbers
    assert result.complete
    assert list(numbers.attacks) == list(ATTACKS)
    assert {attack.n for attack in numbers.attacks.values()} == {4}
    assert numbers.attacks["bae-r+i"].succeeded > 0
    assert numbers.fluency.attacks["bae-r+i"].median_ratio > 0
    assert result.verify().holds
    # score_first changes how many queries there are, not the texts
    plain = st.study("bae", "builtin:sentiment-cnn", ROWS, limit=4, fluency=False)
    texts = [[record.adversarial for record in study.run.records("bae-r")] for study in (result, plain)]
    assert texts[0] == texts[1]
    assert numbers.attacks["bae-r"].mean_queries >= plain.numbers.attacks["bae-r"].mean_queries
