"""Attacks that ask a masked LM, a sentence encoder or gradients, on a built-in victim with the embedded defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import ModelError

ATTACKS = (
    *("bae-r:score_first=true", "bae-i:score_first=true", "bert-attack", "textfooler", "hotflip"),
    "genetic:population=20,generations=10",
)


def test_every_one_runs_without_errors_and_does_not_depend_on_concurrency(tmp_path: Path) -> None:
    runs = [
        st.attack(
            "builtin:sentiment-cnn",
            "builtin:reviews",
            ATTACKS,
            limit=6,
            concurrency=concurrency,
            out=tmp_path / str(concurrency),
            similarity=False,
        )
        for concurrency in (64, 1)
    ]
    for numbers in runs[0].summary["attacks"].values():
        assert numbers["errors"] == 0
        assert numbers["n"] == 6
    assert runs[0].summary["attacks"]["bae-r"]["succeeded"] > 0
    assert runs[0].summary["attacks"]["bert-attack"]["succeeded"] > 0
    one, other = ([(r.attack, r.id, r.status, r.adversarial, r.queries) for r in run.examples] for run in runs)
    assert sum(a == b for a, b in zip(one, other, strict=True)) >= len(one) - 1
    operations = {record.attack: {edit.op for edit in record.edits} for record in runs[0].examples if record.edits}
    assert operations["bae-r"] == {"replace"}
    assert operations["bae-i"] == {"insert"}


def test_another_masked_lm_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"masked LM .* cannot be loaded"):
        st.attack("builtin:sentiment-cnn", "builtin:reviews", "bae-r", limit=2, mlm=str(tmp_path / "none"))
    out = tmp_path / "run"
    for name in ("mlm", "encoder"):
        options: dict[str, Any] = {name: str(tmp_path / "none")}
        with pytest.raises(ModelError):
            st.attack("builtin:sentiment-cnn", "builtin:reviews", "pwws", limit=2, out=out, **options)
        assert not out.exists()
