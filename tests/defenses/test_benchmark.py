"""The rows of `benchmarks/defenses.py`, and what it says of its settings."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stockade.defenses.registry import make_defense


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """The script, which is no part of a package."""
    path = Path(__file__).parents[2] / "benchmarks" / "defenses.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_defenses", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def defenses_by_row(benchmark: ModuleType, norm: str = "auto") -> dict[str, dict[str, Any]]:
    recipes = benchmark.recipes(0.3, Path("base"), norm)
    return {
        row.name: {named.name: named for named in benchmark.defenses_of(row, recipes[row.model])}
        for row in benchmark.table_rows(0.3, 100, "five")
    }


def test_every_row_is_made_of_defenses_that_can_be_made(benchmark: ModuleType) -> None:
    rows = defenses_by_row(benchmark)
    assert rows.pop("undefended") == rows.pop("retrained") == {}
    assert all(rows.values())
    assert set(rows["FIVE(FACT)"]) == {"five", "fact"}
    assert set(rows["RanMASK + FreeLB"]) == {"ranmask", "freelb"}


def test_both_ways_to_answer_and_the_language_model_have_their_rows(benchmark: ModuleType) -> None:
    rows = defenses_by_row(benchmark)
    answers = {name: rows[name]["ranmask"].options for name in rows if "ranmask" in rows[name]}
    assert answers["RanMASK, logit"]["combine"] == "logit"
    assert (answers["RanMASK, vote"]["combine"], answers["RanMASK, vote"]["sampling"]) == ("vote", "uniform")
    assert (answers["RanMASK, vote + LM"]["combine"], answers["RanMASK, vote + LM"]["sampling"]) == ("vote", "lm")
    assert [rows[name]["safer"].options["combine"] for name in ("SAFER", "SAFER, vote")] == ["probability", "vote"]


def test_changes_to_published_settings_come_from_the_defenses_themselves(benchmark: ModuleType) -> None:
    rows = defenses_by_row(benchmark)
    fact, fuse = benchmark.changed_options(rows["FACT"]["fact"]), benchmark.changed_options(rows["FuSE"]["fuse"])
    assert fact == "perturb_words 4 (paper: 9), similarity off (paper: filter)"
    assert fuse == "similarity off (paper: filter)"
    assert benchmark.changed_options(make_defense("fuse@paper")) == ""
    assert benchmark.changed_options(rows["RanMASK, vote"]["ranmask"]) == ""
    assert benchmark.changed_options(rows["SAFER"]["safer"]) == "combine probability (paper: vote)"
    assert benchmark.changed_options(rows["PGD"]["pgd"]) == "norm auto (paper: absolute)"


def test_the_norm_of_both_is_an_option_of_the_benchmark(benchmark: ModuleType) -> None:
    rows = defenses_by_row(benchmark, "relative")
    chosen = [rows[name][defense].options["norm"] for name, defense in _NORMED]
    assert chosen == ["relative"] * 3


_NORMED = (("PGD", "pgd"), ("FreeLB", "freelb"), ("RanMASK + FreeLB", "freelb"))
