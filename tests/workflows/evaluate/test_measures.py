"""Outcomes, shares over seeds, F1 and paired tests, against numbers computed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.statistics import wilson
from stockade.workflows.evaluate.answers import Answers, Predictions
from stockade.workflows.evaluate.f1 import macro_f1
from stockade.workflows.evaluate.measures import Interval, paired, share_over_seeds, t_interval
from stockade.workflows.evaluate.outcomes import (
    Cell,
    Counts,
    GridRow,
    Outcome,
    cell_outcomes,
    combined_outcomes,
    is_complete,
    row_outcomes,
    undecided_texts,
)

STATUSES = st.sampled_from(["success", "failed", "skipped", "error"])
TRIED = st.sampled_from(["success", "failed", "error"])


def answers(*pairs: tuple[str, str | None], views: tuple[str, ...] = ("direct", "surrogate")) -> Answers:
    """A model's answers to texts, each with its true and its predicted class."""
    ids = tuple(str(at) for at in range(len(pairs)))
    labels, predicted = tuple(label for label, _ in pairs), tuple(answer for _, answer in pairs)
    return Answers(deterministic=False, views=views, clean=Predictions(ids, labels, predicted), premade={})


@pytest.mark.parametrize(
    ("predicted", "statuses", "outcome"),
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
def test_the_outcome_of_a_text(predicted: str | None, statuses: list[Any], outcome: Outcome) -> None:
    assert combined_outcomes(answers(("a", predicted)), [{"0": status} for status in statuses]) == {"0": outcome}


def test_a_text_that_a_cell_has_not_seen_is_unknown() -> None:
    assert combined_outcomes(answers(("a", "a")), [{"0": "failed"}, {}]) == {"0": "unknown"}


@given(st.lists(st.lists(STATUSES, min_size=3, max_size=3), min_size=1, max_size=5), st.lists(TRIED, max_size=3))
def test_more_attacks_never_make_a_model_look_better(cells: list[list[Any]], more: list[Any]) -> None:
    """What is fooled stays fooled; where the model gets the clean text right, what is not robust stays so."""
    clean = answers(("a", "a"), ("a", "a"), ("a", "b"))
    some = [dict(zip("012", cell, strict=True)) for cell in cells]
    further = [dict.fromkeys("012", status) for status in more]
    before, after = combined_outcomes(clean, some), combined_outcomes(clean, [*some, *further])
    for text, outcome in before.items():
        if outcome == "fooled" or text == "2":
            assert after[text] == outcome
        elif all(cell[text] != "skipped" for cell in some):
            assert after[text] != "robust" or outcome == "robust"


@given(st.lists(st.sampled_from(["robust", "fooled", "wrong", "unknown"]), max_size=30))
def test_success_is_one_minus_robust_over_clean(outcomes: list[Any]) -> None:
    counts = Counts.of({str(at): outcome for at, outcome in enumerate(outcomes)})
    assert counts.n + counts.unknown == len(outcomes)
    if counts.attacked:
        clean, robust = counts.attacked / counts.n, counts.robust / counts.n
        assert math.isclose(counts.fooled / counts.attacked, 1 - robust / clean, abs_tol=1e-12)


def test_the_t_interval_by_hand() -> None:
    """Mean 0.52, standard deviation 0.02, t(0.975, 2) = 4.302653."""
    interval = t_interval([0.50, 0.52, 0.54])
    assert interval is not None
    half = 4.302653 * 0.02 / math.sqrt(3)
    assert interval.low == pytest.approx(0.52 - half, abs=1e-6)
    assert interval.high == pytest.approx(0.52 + half, abs=1e-6)
    assert t_interval([0.0, 1.0]) == Interval(0.5, 0.0, 1.0)
    assert t_interval([0.5]) is None


def test_a_share_over_seeds_encloses_the_intervals_of_all_seeds() -> None:
    measure = share_over_seeds({0: (8, 10), 1: (6, 10)})
    assert measure.value == pytest.approx(0.7)
    assert (measure.low, measure.high) == (wilson(6, 10)["low"], wilson(8, 10)["high"])
    assert measure.by_seed == {"0": Interval(**wilson(8, 10)), "1": Interval(**wilson(6, 10))}
    assert share_over_seeds({0: (0, 0)}).value is None
    assert share_over_seeds({}).value is None


def test_macro_f1_by_hand() -> None:
    labels, predicted = ["a", "a", "b", "b", "c", "c"], ["a", "b", "b", "b", "c", None]
    assert macro_f1(labels, predicted) == pytest.approx((2 / 3 + 4 / 5 + 1) / 3)
    assert macro_f1(["a", "a"], ["b", "b"]) == 0
    assert macro_f1(["a"], [None]) is None


def test_the_paired_test_by_hand() -> None:
    """Five gained, one lost: p = 2 (1 + 6) / 2**6; what is unknown on one side is left out."""
    defended: dict[str, Outcome] = {**dict.fromkeys("abcde", "robust"), "f": "fooled", "g": "robust", "h": "unknown"}
    bare: dict[str, Outcome] = {
        **dict.fromkeys("abcd", "fooled"),
        "e": "wrong",
        "f": "robust",
        "g": "robust",
        "h": "fooled",
    }
    once = paired([(defended, bare)])
    assert (once.texts, once.gained, once.lost) == (7, 5, 1)
    assert once.p == pytest.approx(14 / 64)
    assert paired([(defended, bare)] * 3) == once  # the same again is no evidence


def test_seeds_of_a_text_go_together() -> None:
    """Text a is robust with two seeds more, b with one more and one less, c with one less: sums of 2 and 1 are at least
    as far from zero as 1 with every sign.
    """
    seeds: list[tuple[dict[str, Outcome], dict[str, Outcome]]] = [
        ({"a": "robust", "b": "robust", "c": "fooled"}, {"a": "fooled", "b": "fooled", "c": "robust"}),
        ({"a": "robust", "b": "fooled", "c": "unknown"}, {"a": "wrong", "b": "robust", "c": "robust"}),
    ]
    test = paired(seeds)
    assert (test.texts, test.gained, test.lost) == (3, 1, 1)
    assert test.p == pytest.approx(1.0)


def row(**statuses: Any) -> GridRow:
    """Two attacks in two views with two seeds on one text that the model gets right; cells are `attack_view_seed`."""
    cells = {}
    for name, status in statuses.items():
        attack, view, seed = name.split("_")
        cells[attack, view, int(seed)] = Cell({"0": status}, None)
    return GridRow("m", "d", {0: answers(("a", "a")), 1: answers(("a", "a"))}, cells)


def test_the_worst_case_of_a_row_is_over_all_views_and_the_attacks_that_are_asked_about() -> None:
    """Only the second attack in the second view fools the text, and only with the second seed."""
    whole = row(
        x_direct_0="failed", x_surrogate_0="failed", y_direct_0="failed", y_surrogate_0="failed",
        x_direct_1="failed", x_surrogate_1="failed", y_direct_1="failed", y_surrogate_1="success",
    )  # fmt: skip
    assert row_outcomes(whole, 1, ["x", "y"]) == {"0": "fooled"}
    assert row_outcomes(whole, 1, ["y"]) == {"0": "fooled"}
    assert row_outcomes(whole, 1, ["x"]) == {"0": "robust"}
    assert row_outcomes(whole, 0, ["x", "y"]) == {"0": "robust"}
    assert row_outcomes(whole, 0, ["z"]) is None
    assert is_complete(whole, [0, 1], ["x", "y"])


def test_the_worst_case_is_never_better_than_an_attack() -> None:
    """The model is wrong in half of the cells of x, and right in most cells of both attacks together."""
    noisy = row(x_direct_0="skipped", x_surrogate_0="failed", y_direct_0="failed", y_surrogate_0="failed")
    assert row_outcomes(noisy, 0, ["x"]) == {"0": "wrong"}
    assert row_outcomes(noisy, 0, ["y"]) == {"0": "robust"}
    assert row_outcomes(noisy, 0, ["x", "y"]) == {"0": "wrong"}


@given(st.lists(st.tuples(STATUSES, STATUSES, STATUSES, STATUSES), min_size=1, max_size=12))
def test_worst_case_accuracy_is_at_most_that_of_each_attack(texts: list[tuple[Any, ...]]) -> None:
    """By text, and as a share, although texts that ended in an error leave the share."""
    names = [("x", "direct", 0), ("x", "surrogate", 0), ("y", "direct", 0), ("y", "surrogate", 0)]
    cells = {
        name: Cell({str(text): statuses[at] for text, statuses in enumerate(texts)}, None)
        for at, name in enumerate(names)
    }
    made = GridRow("m", "d", {0: answers(*[("a", "a")] * len(texts))}, cells)
    worst = row_outcomes(made, 0, ["x", "y"]) or {}
    for attack in ("x", "y"):
        alone = row_outcomes(made, 0, [attack]) or {}
        assert all(alone[text] == "robust" for text, outcome in worst.items() if outcome == "robust")
        by_itself, together = Counts.of(alone), Counts.of(worst)
        if by_itself.n and together.n:
            assert together.robust / together.n <= by_itself.robust / by_itself.n + 1e-12


def test_a_row_is_complete_only_with_every_cell() -> None:
    part = row(x_direct_0="failed", x_surrogate_0="failed", y_direct_0="failed", x_direct_1="failed")
    assert is_complete(part, [0], ["x"])
    assert not is_complete(part, [0], ["x", "y"])
    assert not is_complete(part, [0, 1], ["x"])
    assert not is_complete(GridRow("m", "d"), [0], [])


def test_a_cell_by_itself_counts_as_its_run_does() -> None:
    outcomes = cell_outcomes({"0": "success", "1": "failed", "2": "skipped", "3": "error"})
    assert outcomes == {"0": "fooled", "1": "robust", "2": "wrong", "3": "unknown"}


def test_a_text_is_undecided_if_it_is_robust_and_something_fools_it_now_and_then() -> None:
    """The first text is fooled in the other view, the second in none, and nothing was found for the third."""
    direct = Cell(dict.fromkeys("012", "failed"), None, frozenset({"0", "1"}))
    surrogate = Cell({"0": "success", "1": "failed", "2": "failed"}, None)
    cells = {("toy", "direct", 0): direct, ("toy", "surrogate", 0): surrogate}
    assert undecided_texts(GridRow("m", "noisy", {0: answers(*[("a", "a")] * 3)}, cells), "toy", 0) == 1
