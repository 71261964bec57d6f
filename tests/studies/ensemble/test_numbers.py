"""Transfer to models outside an ensemble, differences between ensembles, and the claims, against numbers by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stockade.report.numbers import Interval
from stockade.studies.ensemble.analysis import (
    EnsembleNumbers,
    MeasuredEnsemble,
    Selection,
    compare_methods,
    matrix_means,
    outside_fitness,
    rank_correlation,
)
from stockade.studies.ensemble.claims import check_claims
from stockade.studies.ensemble.outside import Difference, Transfer
from stockade.studies.ensemble.published import HUMAN, score_published
from stockade.studies.ensemble.selection import EnsembleSearch
from stockade.studies.transferability.cross_scoring import Predictions
from stockade.studies.transferability.matrix import TransferMatrix
from tests.studies.published import published_matrix

ENSEMBLES = {"a": ("a",), "a+b": ("a", "b"), "a+c": ("a", "c")}
TARGETS = ("a", "b", "c", "d")


def predictions(wrong: Mapping[str, bool | None]) -> Predictions:
    """Texts of class 1; None for a text without an answer."""
    predicted = [None if value is None else int(not value) for value in wrong.values()]
    return Predictions(
        ids=tuple(wrong),
        labels=(1,) * len(wrong),
        predicted=tuple(predicted),
        gold=tuple(None if value is None else 0.5 for value in predicted),
        reason="broken" if None in predicted else None,
    )


def answers() -> dict[tuple[str, str], Predictions]:
    """Four texts were shown of `a` and `a+b`, two of `a+c`."""
    return {
        ("b", "a"): predictions({"0": True, "1": True, "2": False, "3": False}),
        ("c", "a"): predictions({"0": True, "1": False, "2": False, "3": False}),
        ("d", "a"): predictions({"0": False, "1": False, "2": False, "3": None}),
        ("c", "a+b"): predictions({"0": True, "1": True, "2": True, "3": False}),
        ("d", "a+b"): predictions({"0": True, "1": True, "2": False, "3": False}),
        ("b", "a+c"): predictions({"0": True, "1": False}),
        ("d", "a+c"): predictions({"0": True, "1": True}),
        ("b", "clean"): predictions({"0": True, "1": False, "2": False, "3": False}),
        ("c", "clean"): predictions({"0": False, "1": False, "2": False, "3": True}),
        ("d", "clean"): predictions({"0": False, "1": False, "2": True, "3": True}),
    }


def transfer(**options: Any) -> Transfer:
    return Transfer.of(ENSEMBLES, TARGETS, answers(), **options)


def test_rates_are_means_over_the_models_outside() -> None:
    raw = transfer()
    assert raw.mean("a")["value"] == pytest.approx((2 / 4 + 1 / 4 + 0 / 3) / 3)  # one text had no answer
    assert raw.mean("a+b")["value"] == pytest.approx((3 / 4 + 2 / 4) / 2)
    assert raw.mean("a+c")["value"] == pytest.approx((1 / 2 + 2 / 2) / 2)
    assert raw.mean("a", among=("c", "d"))["value"] == pytest.approx((1 / 4 + 0 / 3) / 2)
    assert raw.mean("a+b", among=("a", "b"))["value"] is None


def test_intervals_of_shares_stay_between_0_and_1() -> None:
    for name in ENSEMBLES:
        interval = transfer().mean(name)
        assert interval["low"] is not None
        assert interval["high"] is not None
        assert 0 <= interval["low"] <= interval["high"] <= 1


def test_only_texts_that_a_model_gets_right_before() -> None:
    clean = transfer(originals="clean")
    assert clean.mean("a")["value"] == pytest.approx((1 / 3 + 1 / 3 + 0 / 2) / 3)
    assert clean.mean("a+b")["value"] == pytest.approx((3 / 3 + 2 / 2) / 2)


def test_two_ensembles_are_compared_on_the_models_that_are_in_neither() -> None:
    raw = transfer()
    pair = raw.difference([("a+b", "a+c")])
    assert pair.targets == 1  # d alone
    assert pair.difference["value"] == pytest.approx(2 / 4 - 2 / 2)
    both = raw.difference([("a+b", "a+c"), ("a+b", "a")])
    assert both.difference["value"] == pytest.approx((-0.5 + ((3 / 4 + 2 / 4) / 2 - (1 / 4 + 0) / 2)) / 2)
    contrast = raw.contrast([("a+b", "a")], [("a+b", "a+c")])
    assert contrast.difference["value"] == pytest.approx(0.5 + 0.5)


def test_where_no_model_is_outside_of_both_nothing_is_compared() -> None:
    everyone = Transfer.of({"a": ("a",), "all": TARGETS}, TARGETS, answers())
    nowhere = everyone.difference([("a", "all")])
    assert nowhere == Difference(0, {"value": None, "low": None, "high": None}, None)
    assert everyone.mean("all")["value"] is None


def test_a_difference_that_every_text_shows_is_certain() -> None:
    """20 texts that one ensemble turns around on every target, and the other on none."""
    ids = [str(number) for number in range(20)]
    said = {
        (target, name): predictions(dict.fromkeys(ids, name == "a+b")) for target in ("c", "d") for name in ("a", "a+b")
    }
    certain = Transfer.of({"a": ("a",), "a+b": ("a", "b")}, ("c", "d"), said).difference([("a+b", "a")])
    assert certain.difference == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert certain.p == pytest.approx(1 / 1001, abs=1e-6)


def test_differences_by_method_and_size() -> None:
    selections = [
        Selection("single", 1, ("a",), 0.1),
        Selection("genetic", 2, ("a", "b"), 0.3),
        Selection("human", 2, ("a", "c"), 0.2),
        Selection("genetic", 3, ("a", "b", "c"), 0.4),  # was not measured
    ]
    compared: dict[str, Any] = compare_methods(transfer(), selections)
    assert compared["human"][2].difference["value"] == pytest.approx(-0.5)
    assert compared["single_all"].difference["value"] == pytest.approx(0.5)
    assert compared["growth"] == {}
    assert compared["human_small"] is None


def test_lines_and_predictions_from_a_matrix() -> None:
    matrix = TransferMatrix(("a", "b"), ("a", "b", "c"), np.array([[0.6, 0.2, 0.4], [0.1, np.nan, 0.5]]))
    assert matrix_means(matrix) == pytest.approx((0.6, (0.2 + 0.4 + 0.1 + 0.5) / 4))
    assert outside_fitness(matrix, ("a", "b")) == 0.5
    assert outside_fitness(matrix, ("b",)) == pytest.approx(0.3)


def test_the_papers_ensembles_with_names_that_are_missing() -> None:
    names = ("LSTM-W-Random-1", "CNN-C-Random-1", "LSTM-WC-ELMo-1", "MiniLM-L6")
    search = EnsembleSearch(TransferMatrix(names, names, np.full((4, 4), 0.25)))
    human = {entry.size: entry for entry in score_published(search, (2, 3, 4, 5), {}) if entry.selector == HUMAN}
    assert [human[size].missing for size in (2, 4, 5)] == [(), ("BERT",), ("BERT", "CNN-W-Random-1")]
    assert [human[size].fitness for size in (2, 3, 4)] == [0.25, 0.25, None]
    replaced = score_published(search, (4,), {"BERT": "MiniLM-L6"})[0]
    assert (replaced.members[-1], replaced.fitness) == ("MiniLM-L6", 0.25)
    twice = score_published(search, (4,), {"BERT": "LSTM-W-Random-1"})[0]
    assert (twice.missing, twice.fitness) == ((), None)


def test_all_the_papers_ensembles_on_its_own_matrix() -> None:
    scored = score_published(EnsembleSearch(published_matrix()), range(2, 8), {})
    assert len(scored) == 5 * 6
    assert all(entry.fitness is not None and not entry.missing for entry in scored)


def interval(value: float | None, spread: float = 0.01) -> Interval:
    return (
        {"value": value, "low": None, "high": None}
        if value is None
        else {"value": value, "low": value - spread, "high": value + spread}
    )


def difference(value: float | None, spread: float = 0.01) -> Difference:
    return Difference(5, interval(value, spread), 0.01)


def measured(rate: float, fitness: float = 0.5, members: tuple[str, ...] = ("a", "b")) -> MeasuredEnsemble:
    return MeasuredEnsemble(
        members=members,
        methods=("genetic",),
        fitness=fitness,
        outside_fitness=None,
        attacked=10,
        succeeded=10,
        sampled=10,
        mean_queries=None,
        mean_perturbed_percent=None,
        targets=5,
        transfer=interval(rate),
        clean_transfer=interval(rate),
        families={},
    )


def numbers(**fields: Any) -> EnsembleNumbers:
    empty = EnsembleNumbers(
        sources=2,
        targets=2,
        base_rate=0.5,
        pair_rate=0.3,
        selections=(),
        bounds=(),
        published=(),
        ensembles={},
        human={},
        human_all=None,
        human_small=None,
        single={},
        single_all=None,
        growth={},
        rank_correlation=None,
    )
    return replace(empty, **fields)


@pytest.mark.parametrize(
    ("fields", "verdicts"),
    [
        ({}, [None, None, None, None, None]),
        (
            {
                "human": {2: difference(0.1), 3: difference(0.05)},
                "human_all": difference(0.075),
                "human_small": difference(0.04),
                "single": {2: difference(0.1)},
                "single_all": difference(0.1),
                "ensembles": {"a+b": measured(0.6)},
                "growth": {7: difference(0.005)},
            },
            [True, True, True, True, True],
        ),
        (
            {
                "human": {2: difference(0.3), 3: difference(-0.01), 4: difference(-0.01)},
                "human_all": difference(0.09),  # one size carries it
                "human_small": difference(-0.04),
                "single": {2: difference(-0.1)},
                "single_all": difference(-0.1),
                "ensembles": {"a+b": measured(0.4)},
                "growth": {7: difference(0.05)},
            },
            [None, False, False, False, False],
        ),
        (
            {
                "human": {2: difference(0.1)},
                "human_all": difference(0.005),
                "human_small": difference(0.005),
                "single": {2: difference(0.0)},
                "single_all": difference(0.0),
                "ensembles": {"a+b": measured(0.5)},
                "growth": {7: difference(0.015)},
            },
            [None, None, None, None, None],
        ),
        ({"base_rate": None, "ensembles": {"a+b": measured(0.9)}}, [None, None, None, None, None]),
        ({"human_all": difference(None), "ensembles": {"a": measured(0.9, members=("a",))}}, [None] * 5),
    ],
)
def test_verdicts_follow_from_intervals(fields: dict[str, Any], verdicts: list[bool | None]) -> None:
    claims = check_claims(numbers(**fields))
    assert [claim.holds for claim in claims] == verdicts
    assert all(claim.numbers for claim in claims)


def test_rank_correlation_needs_a_few_different_ensembles() -> None:
    rising = [measured(rate, fitness) for rate, fitness in ((0.1, 0.2), (0.2, 0.3), (0.3, 0.4), (0.4, 0.5))]
    assert rank_correlation(rising) == 1.0
    assert rank_correlation(rising[:3]) is None
    assert rank_correlation([measured(0.1, 0.2)] * 4) is None
