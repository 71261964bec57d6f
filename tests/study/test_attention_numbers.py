"""The numbers of the study on results that a person can count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stockade.core.statistics import mcnemar, wilson
from stockade.runs.run import Run
from stockade.studies.attention.orders import check_orders, compare_models
from stockade.studies.attention.rates import best_by_attention, success_rates
from stockade.studies.attention.shifts import (
    attention_shift,
    embedding_change,
    relative_embedding_change,
    telling_looks,
)
from stockade.studies.attention.victims import ATTACKS
from stockade.studies.results import Results, read_results
from tests.study.made_runs import failure, make_run, success


def run_of(folder: Path, outcomes: dict[str, str], flips: tuple[float, ...] = ()) -> Run:
    """One letter per text and attack: s succeeds, f fails."""
    records = {}
    for attack, letters in outcomes.items():
        shares = flips if attack == "random" else (None,) * len(letters)
        records[attack] = [
            success(at, attack, ("one", "x"), flip_share=share)
            if letter == "s"
            else failure(at, attack, flip_share=share)
            for at, (letter, share) in enumerate(zip(letters, shares, strict=True))
        ]
    return make_run(folder, records, attacks=list(outcomes))


def measured(folder: Path, outcomes: dict[str, str], flips: tuple[float, ...]) -> tuple[dict[str, Any], Results]:
    run = run_of(folder, outcomes, flips)
    results = read_results(run, run.attacks)
    rates = success_rates(run, results)
    return {
        "kind": "other",
        "attacks": rates,
        "a_star": best_by_attention(rates, results),
        "relative_embedding_change": relative_embedding_change([]),
    }, results


STRONG = {
    "random": "ssff",
    "list": "sfff",
    "asmin-gr": "fsff",
    "asmax-gr": "sfsf",
    "asmin-ec": "ffff",
    "asmax-ec": "sfsf",
    "gs-gr": "sssf",
    "gs-ec": "sssf",
}


def test_random_is_a_share_of_draws_and_a_star_the_best_of_four(tmp_path: Path) -> None:
    model, _ = measured(tmp_path / "a", STRONG, (0.5, 0.1, 0.0, 0.0))
    assert model["attacks"]["random"]["rate"]["value"] == pytest.approx(0.15)
    assert model["attacks"]["list"]["rate"] == wilson(1, 4)
    star = model["a_star"]
    assert (star["attack"], star["rate"]) == ("asmax-gr", wilson(2, 4))
    assert star["union"] == {"fooled": 3, "attacked": 4, "rate": wilson(3, 4)}


def test_orders_of_attacks_on_one_model(tmp_path: Path) -> None:
    model, results = measured(tmp_path / "a", STRONG, (0.5, 0.1, 0.0, 0.0))
    orders = check_orders({"toy": model}, {"toy": results})
    assert [order.holds for order in orders] == [True, True, True, True]
    assert "3 against 2 of 4 texts; 1 fooled only by gs-gr, 0 only by asmax-gr" in orders[0].numbers
    assert orders[2].numbers == "25.0 % of texts against 15.0 % of draws"
    assert orders[3].numbers == "3 against 3 of 4 texts: +0.0"
    weak, results = measured(tmp_path / "b", {**STRONG, "gs-ec": "sfff", "list": "ssss"}, (0.5, 0.1, 0.0, 0.0))
    assert [order.holds for order in check_orders({"toy": weak}, {"toy": results})] == [True, False, True, False]


def test_where_nothing_fools_a_model_no_order_can_be_told(tmp_path: Path) -> None:
    model, results = measured(tmp_path / "a", dict.fromkeys(STRONG, "ffff"), (0.0, 0.0, 0.0, 0.0))
    assert [order.verdict for order in check_orders({"toy": model}, {"toy": results})] == ["n/a"] * 4


def test_a_model_without_attention_has_orders_that_nobody_can_tell(tmp_path: Path) -> None:
    model, results = measured(tmp_path / "a", {"random": "sf", "list": "ff"}, (0.5, 0.0))
    assert model["a_star"] is None
    orders = check_orders({"toy": model}, {"toy": results})
    assert [order.holds for order in orders] == [None, None, False, None]
    assert orders[0].numbers == "the model does not allow one of them"


def test_orders_between_models_count_the_texts_that_fool_only_one(tmp_path: Path) -> None:
    bert, bert_results = measured(tmp_path / "a", STRONG, (0.1, 0.0, 0.0, 0.0))
    lstm, lstm_results = measured(
        tmp_path / "b", {**STRONG, "gs-gr": "ssss", "list": "fsss", "asmin-gr": "ffff"}, (0.5, 0.1, 0.0, 0.0)
    )
    bert["kind"], lstm["kind"] = "self-attentive", "recurrent"
    bert["relative_embedding_change"] = relative_embedding_change([{"relative_change": 0.2}])
    lstm["relative_embedding_change"] = relative_embedding_change([{"relative_change": 0.6}])
    models, results = {"bert": bert, "lstm": lstm}, {"bert": bert_results, "lstm": lstm_results}
    orders = {order.claim: order for order in check_orders(models, results)}
    assert len(orders) == 8 + len(ATTACKS) + 1
    assert orders["random: bert is fooled less often than lstm"].holds is True
    assert orders["gs-gr: bert is fooled less often than lstm"].holds is True
    assert orders["gs-ec: bert is fooled less often than lstm"].holds is None
    assert orders["asmin-gr: bert is fooled less often than lstm"].holds is False
    listed = orders["list: bert is fooled less often than lstm"]
    assert listed.numbers == "1 against 3 of 4 texts; 1 fool only bert, 3 only lstm; McNemar p = 0.625"
    assert orders["R_e is larger for lstm than for bert"].holds is True
    compared = compare_models(bert_results, lstm_results, "list")
    assert compared == {"texts": 4, "fooled": [1, 3], "only": [1, 3], "p": 0.625}
    assert compare_models(bert_results, {}, "list") is None


@pytest.mark.parametrize(
    ("one", "other", "p"), [(0, 0, 1.0), (1, 0, 1.0), (0, 6, 2 / 64), (3, 9, 598 / 4096), (40, 40, 1.0)]
)
def test_mcnemar_counts_the_outcomes_at_least_as_odd(one: int, other: int, p: float) -> None:
    assert mcnemar(one, other) == pytest.approx(p)


def look(index: int, before: list[float], after: list[float], layers: Any = None, **more: Any) -> dict[str, Any]:
    words = [f"w{at}" for at in range(len(before))]
    attention = {"before": before, "after": after}
    return {"id": "0", "words": words, "index": index, "attention": attention, "layers": layers, **more}


def test_attention_of_the_other_words() -> None:
    found = attention_shift([look(1, [0.5, 0.25, 0.25], [0.25, 0.5, 0.25]), look(0, [1.0], [0.5])])
    assert found["texts"] == 2
    assert found["others"]["value"] == pytest.approx(0.125)
    assert found["relative"]["value"] == pytest.approx(0.25 / 0.75)
    assert found["replaced"]["value"] == pytest.approx((0.25 + 0.5) / 2)
    assert found["moved"]["value"] == pytest.approx((0.25 + 0.25) / 2)
    assert attention_shift([])["moved"] == {"value": None, "low": None, "high": None}


def test_embedding_change_by_layer_and_distance() -> None:
    one = look(1, [0.0] * 3, [0.0] * 3, [[0.0, 4.0, 0.0], [1.0, 3.0, None]])
    other = look(0, [0.0] * 2, [0.0] * 2, [[2.0, 0.0], [5.0, 3.0]])
    found = embedding_change([one, other])
    assert found is not None
    middle = found["distances"].index(0)
    assert found["layers"][0][middle - 1 : middle + 2] == [0.0, 3.0, 0.0]
    assert found["layers"][1][middle - 1 : middle + 2] == [1.0, 4.0, 3.0]
    assert found["layers"][1][0] is None
    assert found["counts"][middle - 1 : middle + 3] == [1, 2, 2, 0]
    assert embedding_change([look(0, [1.0], [1.0])]) is None


def test_relative_embedding_change() -> None:
    found = relative_embedding_change([{"relative_change": 0.2}, {"relative_change": 0.4}, {"relative_change": None}])
    assert (found["texts"], found["mean"]["value"]) == (2, pytest.approx(0.3))


def test_texts_that_fool_most_models_are_shown_first() -> None:
    def of(*ids: str) -> dict[str, Any]:
        return {"looks": [{"id": one, "words": ["w"] * 6} for one in ids]}

    shown = telling_looks({"a": of("1", "2", "3"), "b": of("3")}, 2)
    assert [one["id"] for one in shown["a"]] == ["3", "1"]
    assert [one["id"] for one in shown["b"]] == ["3"]
