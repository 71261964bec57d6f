"""Fates, shares over seeds, F1 and paired tests, against numbers computed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.statistics import wilson
from stockade.evaluation.grid import CellResult, Row
from stockade.evaluation.measures import macro_f1, paired, share_over_seeds, t_interval
from stockade.evaluation.outcomes import Fate, cell_fates, counts, fates, is_complete, row_fates

STATUSES = st.sampled_from(["success", "failed", "skipped", "error"])
TRIED = st.sampled_from(["success", "failed", "error"])


def answers(*pairs: tuple[str, str | None]) -> dict[str, Any]:
    return {
        "clean": {
            "ids": [str(at) for at in range(len(pairs))],
            "labels": [label for label, _ in pairs],
            "predicted": [predicted for _, predicted in pairs],
        }
    }


@pytest.mark.parametrize(
    ("predicted", "seen", "fate"),
    [
        ("a", ["failed", "failed"], "robust"),
        ("a", ["failed", "success"], "fooled"),
        ("b", ["failed", "failed"], "wrong"),  # a randomised model: wrong in the clean pass, right when attacked
        ("b", ["success"], "wrong"),
        ("a", ["skipped", "failed"], "wrong"),  # wrong in half of the cells
        ("a", ["skipped", "failed", "failed"], "robust"),
        ("a", ["skipped", "success"], "fooled"),
        ("a", ["error", "failed"], "unknown"),
        ("a", ["error", "success"], "fooled"),
        ("a", ["error", "skipped"], "wrong"),
        (None, ["failed"], "unknown"),
        ("b", ["error"], "wrong"),
    ],
)
def test_the_fate_of_a_text(predicted: str | None, seen: list[Any], fate: Fate) -> None:
    assert fates(answers(("a", predicted)), [{"0": status} for status in seen]) == {"0": fate}


def test_a_text_that_a_cell_has_not_seen_is_unknown() -> None:
    assert fates(answers(("a", "a")), [{"0": "failed"}, {}]) == {"0": "unknown"}


@given(st.lists(st.lists(STATUSES, min_size=3, max_size=3), min_size=1, max_size=5), st.lists(TRIED, max_size=3))
def test_more_attacks_never_make_a_model_look_better(cells: list[list[Any]], more: list[Any]) -> None:
    """What is fooled stays fooled; where the model gets the clean text right, what is not robust stays so."""
    told = answers(("a", "a"), ("a", "a"), ("a", "b"))
    some = [dict(zip("012", cell, strict=True)) for cell in cells]
    further = [dict.fromkeys("012", status) for status in more]
    before, after = fates(told, some), fates(told, [*some, *further])
    for text, fate in before.items():
        if fate == "fooled" or text == "2":
            assert after[text] == fate
        elif all(cell[text] != "skipped" for cell in some):
            assert after[text] != "robust" or fate == "robust"


@given(st.lists(st.sampled_from(["robust", "fooled", "wrong", "unknown"]), max_size=30))
def test_success_is_one_minus_robust_over_clean(given_fates: list[Any]) -> None:
    found = counts({str(at): fate for at, fate in enumerate(given_fates)})
    assert found["n"] + found["unknown"] == len(given_fates)
    if found["attacked"]:
        clean, robust = found["attacked"] / found["n"], found["robust"] / found["n"]
        assert math.isclose(found["fooled"] / found["attacked"], 1 - robust / clean, abs_tol=1e-12)


def test_the_t_interval_by_hand() -> None:
    """Mean 0.52, standard deviation 0.02, t(0.975, 2) = 4.302653."""
    found = t_interval([0.50, 0.52, 0.54])
    assert found is not None
    half = 4.302653 * 0.02 / math.sqrt(3)
    assert found["low"] == pytest.approx(0.52 - half, abs=1e-6)
    assert found["high"] == pytest.approx(0.52 + half, abs=1e-6)
    assert t_interval([0.0, 1.0]) == {"value": 0.5, "low": 0.0, "high": 1.0}
    assert t_interval([0.5]) is None


def test_a_share_over_seeds_encloses_the_intervals_of_all_seeds() -> None:
    found = share_over_seeds({0: (8, 10), 1: (6, 10)})
    assert found["value"] == pytest.approx(0.7)
    assert (found["low"], found["high"]) == (wilson(6, 10)["low"], wilson(8, 10)["high"])
    assert found["by_seed"] == {"0": wilson(8, 10), "1": wilson(6, 10)}
    assert share_over_seeds({0: (0, 0)})["value"] is None
    assert share_over_seeds({})["value"] is None


def test_macro_f1_by_hand() -> None:
    labels, predicted = ["a", "a", "b", "b", "c", "c"], ["a", "b", "b", "b", "c", None]
    assert macro_f1(labels, predicted) == pytest.approx((2 / 3 + 4 / 5 + 1) / 3)
    assert macro_f1(["a", "a"], ["b", "b"]) == 0
    assert macro_f1(["a"], [None]) is None


def test_the_paired_test_by_hand() -> None:
    """Five gained, one lost: p = 2 (1 + 6) / 2**6; what is unknown on one side is left out."""
    defended: dict[str, Fate] = {**dict.fromkeys("abcde", "robust"), "f": "fooled", "g": "robust", "h": "unknown"}
    bare: dict[str, Fate] = {
        **dict.fromkeys("abcd", "fooled"),
        "e": "wrong",
        "f": "robust",
        "g": "robust",
        "h": "fooled",
    }
    once = {"texts": 7, "gained": 5, "lost": 1, "p": pytest.approx(14 / 64)}
    assert paired([(defended, bare)]) == once
    assert paired([(defended, bare)] * 3) == once  # the same again is no evidence


def test_seeds_of_a_text_go_together() -> None:
    """Text a is robust with two seeds more, b with one more and one less, c with one less: sums of 2 and 1 are at least
    as far from zero as 1 with every sign.
    """
    seeds: list[tuple[dict[str, Fate], dict[str, Fate]]] = [
        ({"a": "robust", "b": "robust", "c": "fooled"}, {"a": "fooled", "b": "fooled", "c": "robust"}),
        ({"a": "robust", "b": "fooled", "c": "unknown"}, {"a": "wrong", "b": "robust", "c": "robust"}),
    ]
    assert paired(seeds) == {"texts": 3, "gained": 1, "lost": 1, "p": pytest.approx(1.0)}


def row(**statuses: Any) -> Row:
    """Two attacks in two ways with two seeds on one text that the model gets right; cells are `attack_way_seed`."""
    cells = {}
    for name, status in statuses.items():
        attack, way, seed = name.split("_")
        cells[attack, way, int(seed)] = CellResult({"0": status}, None)
    return Row("m", "d", {0: answers(("a", "a")), 1: answers(("a", "a"))}, ("direct", "twin"), cells)


def test_the_worst_case_of_a_row_is_over_all_ways_and_the_attacks_that_are_asked_about() -> None:
    """Only the second attack by the second way fools the text, and only with the second seed."""
    whole = row(
        x_direct_0="failed", x_twin_0="failed", y_direct_0="failed", y_twin_0="failed",
        x_direct_1="failed", x_twin_1="failed", y_direct_1="failed", y_twin_1="success",
    )  # fmt: skip
    assert row_fates(whole, 1, ["x", "y"]) == {"0": "fooled"}
    assert row_fates(whole, 1, ["y"]) == {"0": "fooled"}
    assert row_fates(whole, 1, ["x"]) == {"0": "robust"}
    assert row_fates(whole, 0, ["x", "y"]) == {"0": "robust"}
    assert row_fates(whole, 0, ["z"]) is None
    assert is_complete(whole, [0, 1], ["x", "y"])


def test_the_worst_case_is_never_better_than_an_attack() -> None:
    """The model is wrong in half of the cells of x, and right in most cells of both attacks together."""
    noisy = row(x_direct_0="skipped", x_twin_0="failed", y_direct_0="failed", y_twin_0="failed")
    assert row_fates(noisy, 0, ["x"]) == {"0": "wrong"}
    assert row_fates(noisy, 0, ["y"]) == {"0": "robust"}
    assert row_fates(noisy, 0, ["x", "y"]) == {"0": "wrong"}


@given(st.lists(st.tuples(STATUSES, STATUSES, STATUSES, STATUSES), min_size=1, max_size=12))
def test_worst_case_accuracy_is_at_most_that_of_each_attack(texts: list[tuple[Any, ...]]) -> None:
    """By text, and as a share, although texts that ended in an error leave the share."""
    names = [("x", "direct", 0), ("x", "twin", 0), ("y", "direct", 0), ("y", "twin", 0)]
    cells = {
        name: CellResult({str(text): seen[at] for text, seen in enumerate(texts)}, None)
        for at, name in enumerate(names)
    }
    told = answers(*[("a", "a")] * len(texts))
    made = Row("m", "d", {0: told}, ("direct", "twin"), cells)
    worst = row_fates(made, 0, ["x", "y"]) or {}
    for attack in ("x", "y"):
        alone = row_fates(made, 0, [attack]) or {}
        assert all(alone[text] == "robust" for text, fate in worst.items() if fate == "robust")
        one, all_of_them = counts(alone), counts(worst)
        if one["n"] and all_of_them["n"]:
            assert all_of_them["robust"] / all_of_them["n"] <= one["robust"] / one["n"] + 1e-12


def test_a_row_is_complete_only_with_every_cell() -> None:
    part = row(x_direct_0="failed", x_twin_0="failed", y_direct_0="failed", x_direct_1="failed")
    assert is_complete(part, [0], ["x"])
    assert not is_complete(part, [0], ["x", "y"])
    assert not is_complete(part, [0, 1], ["x"])
    assert not is_complete(Row("m", "d", {}, (), {}), [0], [])


def test_a_cell_by_itself_counts_as_its_run_does() -> None:
    found = cell_fates({"0": "success", "1": "failed", "2": "skipped", "3": "error"})
    assert found == {"0": "fooled", "1": "robust", "2": "wrong", "3": "unknown"}
