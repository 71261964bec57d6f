"""Statistics of a transfer matrix: factors, classes and asymmetry by hand, and what chance alone would give."""

from __future__ import annotations

import numpy as np
import pytest

from stockade.studies.transfer.rates import Outcomes, Resampled
from stockade.studies.transfer.statistics import (
    class_table,
    factor_order,
    factor_table,
    in_family_order,
    measure_asymmetry,
    measure_effects,
)
from stockade.studies.transferability.matrix import traits_of
from tests.studies.transfer.made import make_outcomes, without_second_trainings

MODELS = ("LSTM-W-Random-1", "LSTM-W-GloVe-1", "LSTM-W-Random-2", "CNN-W-Random-1", "LSTM-C-Random-1")
FAR = {"input form": 0.5, "architecture": 0.3, "embedding": 0.2, "capacity": 0.1}


def rate(source: str, target: str) -> float:
    """0.8 to itself; less by what the factors that differ are worth."""
    one, other = traits_of(source), traits_of(target)
    lost = FAR["input form"] * (one.form != other.form) + FAR["architecture"] * (one.architecture != other.architecture)
    lost += FAR["embedding"] * (one.form == other.form and one.embedding != other.embedding)
    return max(0.0, 0.8 - lost - FAR["capacity"] * (one.layers != other.layers))


@pytest.fixture(scope="module")
def resampled() -> Resampled:
    return Resampled(make_outcomes(MODELS, rate))


def test_a_factor_is_worth_what_it_moves_the_rate_by(resampled: Resampled) -> None:
    table = factor_table(measure_effects(resampled))
    assert {name: entry.effect["value"] for name, entry in table.items()} == {
        name: pytest.approx(value, abs=1e-4) for name, value in FAR.items()
    }
    # The word models with random vectors have a neighbour in each factor, the others only such a model.
    assert {name: entry.pairs for name, entry in table.items()} == {
        "architecture": 2,
        "input form": 4,
        "embedding": 2,
        "capacity": 2,
    }
    for entry in table.values():
        assert entry.by_chance is not None
        assert 0 < entry.by_chance < 0.06
        assert entry.effect["low"] is not None
        assert entry.effect["high"] is not None
        assert entry.effect["low"] < (entry.effect["value"] or 0) < entry.effect["high"]


def test_the_order_of_factors_is_tested_by_resampled_texts(resampled: Resampled) -> None:
    orders = factor_order(resampled, measure_effects(resampled))
    assert [(order.first, order.second) for order in orders] == [
        ("input form", "architecture"),
        ("architecture", "embedding"),
        ("embedding", "capacity"),
    ]
    assert [order.difference["value"] for order in orders] == [pytest.approx(d, abs=1e-4) for d in (0.2, 0.1, 0.1)]
    assert all(order.p is not None and order.p < 0.05 for order in orders)
    assert [(order.larger, order.targets) for order in orders] == [(1, 1), (1, 1), (1, 1)]


def test_without_second_trainings_there_are_no_effects() -> None:
    resampled = Resampled(without_second_trainings(make_outcomes(MODELS, rate)))
    effects = measure_effects(resampled)
    assert {effect.pairs for effect in effects.values()} == {0}
    assert factor_table(effects)["capacity"].effect["value"] is None
    assert [order.p for order in factor_order(resampled, effects)] == [None] * 3


def test_class_means_with_their_averages(resampled: Resampled) -> None:
    table = class_table(resampled, lambda name: traits_of(name).form, ("Word", "Character", "ELMo"), averages=True)
    assert list(table) == ["Word", "Character", "Average"]  # there is no ELMo model
    words = [rate(source, target) for source in MODELS[:4] for target in MODELS[:4]]
    to_character = [rate(source, MODELS[4]) for source in MODELS[:4]]
    expected = np.mean(words), np.mean(to_character)
    assert (table["Word"]["Word"]["value"], table["Word"]["Character"]["value"]) == pytest.approx(expected, abs=0.01)
    assert table["Word"]["Average"]["value"] == pytest.approx(np.mean(expected), abs=0.01)
    assert table["Character"]["Character"]["value"] == pytest.approx(0.8, abs=1e-4)
    everything = np.mean([*expected, np.mean([rate(MODELS[4], target) for target in MODELS[:4]]), 0.8])
    assert table["Average"]["Average"]["value"] == pytest.approx(everything, abs=0.01)
    assert class_table(resampled, lambda name: "none", ("Word",)) == {}


def test_a_symmetric_matrix_is_not_called_asymmetric_and_a_skewed_one_is(resampled: Resampled) -> None:
    symmetric = measure_asymmetry(resampled)
    assert symmetric.pairs == 10
    assert symmetric.mean_difference["value"] == 0.0
    assert symmetric.p == 1.0
    strong = MODELS[0]
    skewed = measure_asymmetry(Resampled(make_outcomes(MODELS, lambda s, t: 0.9 if s == strong else 0.2)))
    assert skewed.mean_difference["value"] == pytest.approx(4 * 0.7 / 10, abs=1e-4)
    assert skewed.p is not None
    assert skewed.p < 0.01
    assert {pair.source for pair in skewed.largest[:4]} == {strong}
    assert skewed.largest[0].rate == pytest.approx(0.9)
    assert skewed.largest[0].difference["low"] is not None
    assert skewed.largest[0].difference["low"] > 0.5
    assert measure_asymmetry(Resampled(make_outcomes(MODELS[:1], rate))).p is None


def test_rates_of_texts_that_are_wrong_before_are_left_out() -> None:
    outcomes = make_outcomes(("a", "b"), lambda s, t: 0.5, texts=10)
    right = outcomes.right.copy()
    right[0, 1] = ~outcomes.fooled[0, 1]  # b gets wrong before whatever it gets wrong after
    changed = Outcomes(outcomes.models, outcomes.ids, outcomes.fooled, outcomes.scored, right, outcomes.knows)
    assert Resampled(changed).matrix.rate("a", "b") == 0.5
    assert Resampled(changed, clean=True).matrix.rate("a", "b") == 0.0
    assert Resampled(changed, clean=True).counts.tolist() == [[10, 5], [10, 10]]


def test_models_by_family() -> None:
    models = ("mine", "BERT", "CNN-C-Random-1", "CNN-W-GloVe-2", "CNN-W-GloVe-1", "BiLSTM-W-Random-1", "another")
    assert in_family_order(models) == (
        "BiLSTM-W-Random-1",
        "CNN-W-GloVe-1",
        "CNN-W-GloVe-2",
        "CNN-C-Random-1",
        "BERT",
        "mine",
        "another",
    )
