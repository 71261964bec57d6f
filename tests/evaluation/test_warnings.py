"""What a reader is warned of, exactly from where on."""

from __future__ import annotations

from typing import Any

import pytest

from stockade.evaluation.analysis import analyse
from stockade.evaluation.grid import CellResult, Row
from stockade.evaluation.plan import Plan
from stockade.evaluation.warnings import row_warnings

LABELS = ("negative", "positive", "neutral", "mixed")


def row(
    accuracy: float | None = 0.9,
    votes: tuple[float | None, float | None] | None = None,
    ways: dict[str, float | None] | None = None,
    p: float | None = None,
    unknown: int = 0,
    undecided: int = 0,
) -> dict[str, Any]:
    """A row of a table with only what the warnings look at; `p` is of each way against the direct one."""
    test = None if p is None else {"p": p}
    cells = {way: {"robust_accuracy": {"value": value}, "against_direct": test} for way, value in (ways or {}).items()}
    shares = None if votes is None else {"unanimous": votes[0], "same_answer": votes[1], "entropy": 0.1}
    attacks = {"toy": {"ways": cells, "unknown": unknown, "undecided": undecided}}
    return {
        "model": "m",
        "defense": "d",
        "clean": {"accuracy": {"value": accuracy}},
        "votes": shares,
        "attacks": attacks,
    }


def told(texts: int = 10, **fields: Any) -> list[str]:
    return [one.removeprefix("m, d: ") for one in row_warnings(row(**fields), texts, LABELS)]


@pytest.mark.parametrize(
    ("accuracy", "texts", "warned"), [(0.2, 200, False), (0.2, 250, True), (0.2, 10, False), (None, 250, False)]
)
def test_so_few_right_that_it_is_not_by_chance(accuracy: float | None, texts: int, warned: bool) -> None:
    """With four classes chance is a quarter: at most 40 of 200 happen with p = 0.058, 50 of 250 with 0.037."""
    said = "right on only 20% of the clean texts, below chance (25%)"
    assert [one.startswith(said) for one in told(accuracy=accuracy, texts=texts)] == [True] * warned


@pytest.mark.parametrize(
    ("votes", "warned"),
    [((0.5, 0.0), True), ((0.49, 0.49), False), ((0.49, None), False), ((0.1, 0.5), True), (None, False)],
)
def test_votes_that_starve_a_search(votes: tuple[float, float | None] | None, warned: bool) -> None:
    found = told(votes=votes)
    assert ["is starved by such votes" in one for one in found] == [True] * warned


def test_what_was_not_probed_is_not_told() -> None:
    assert "the very same one-hot answer" not in told(votes=(0.8, None))[0]
    assert "and 30% of texts with one word less get the very same one-hot answer" in told(votes=(0.8, 0.3))[0]


@pytest.mark.parametrize(("direct", "transfer", "warned"), [(0.1, 0.0, True), (0.09, 0.0, False), (0.5, 0.7, False)])
def test_a_direct_number_that_is_a_tenth_better_flatters(direct: float, transfer: float, warned: bool) -> None:
    found = told(ways={"direct": direct, "transfer": transfer})
    assert [f"{transfer:.0%} by way of transfer" in one for one in found] == [True] * warned


def test_the_worst_way_is_told_and_how_sure_it_is() -> None:
    ways = {"direct": 0.8, "twin": 0.5, "transfer": 0.3, "expectation": None}
    (sure,) = told(ways=ways, p=0.049)
    assert "30% by way of transfer (p = 0.049): the direct number flatters the defense." in sure
    (unsure,) = told(ways=ways, p=0.05)
    assert "the direct number may flatter the defense, more texts would tell." in unsure
    assert told(ways=ways, p=0.49) != []
    assert told(ways=ways, p=0.5) == [], "two texts and none: what chance does"
    (untested,) = told(ways=ways)
    assert "may flatter" in untested
    assert told(ways={"twin": 0.5, "transfer": 0.3}) == [], "without a direct number there is nothing to compare"
    assert told(ways={"direct": None, "transfer": 0.3}) == []


def test_texts_that_were_left_out_are_told() -> None:
    assert told(unknown=1) == ["toy: 1 text ended in an error and is left out."]
    assert told(unknown=2) == ["toy: 2 texts ended in an error and are left out."]
    assert told() == []


@pytest.mark.parametrize(("undecided", "warned"), [(9, False), (10, True)])
def test_texts_that_are_robust_by_luck(undecided: int, warned: bool) -> None:
    said = f"toy: {undecided} of 100 texts count as robust although what was found for them fools the model in some"
    assert [one.startswith(said) for one in told(texts=100, undecided=undecided)] == [True] * warned


def test_a_text_is_undecided_if_it_is_robust_and_something_fools_it_now_and_then() -> None:
    """The first text is fooled by the other way, the second by none, and nothing was found for the third."""
    clean = {"ids": ["0", "1", "2"], "labels": ["positive"] * 3, "predicted": ["positive"] * 3}
    answers = {0: {"deterministic": False, "clean": clean, "premade": {}, "votes": None}}
    direct = CellResult(dict.fromkeys("012", "failed"), None, frozenset({"0", "1"}))
    twin = CellResult({"0": "success", "1": "failed", "2": "failed"}, None)
    noisy = Row("m", "noisy", answers, ("direct", "twin"), {("toy", "direct", 0): direct, ("toy", "twin", 0): twin})
    request = {"seed": 0, "seeds": 1, "expectation": 1, "budget": None, "max_changed": None, "constraint": None}
    plan = Plan(request, {"m": {"labels": list(LABELS)}}, {"size": 3}, {}, {"toy": {}}, ("none", "noisy"), "now")
    found = analyse("e", plan, [Row("m", "none", {}, (), {}), noisy], [])
    assert found["rows"][1]["attacks"]["toy"]["undecided"] == 1
    assert "toy: 1 of 3 texts count as robust" in "".join(found["warnings"])


def test_a_seed_that_does_not_flatter_does_not_silence_those_that_do() -> None:
    """Of 100 texts 60 are robust directly with two seeds and 40 with the third, and 40 by way of the twin."""
    texts = [str(number) for number in range(100)]
    clean = {"ids": texts, "labels": ["positive"] * 100, "predicted": ["positive"] * 100}
    answers = {"deterministic": False, "clean": clean, "premade": {}, "votes": None}

    def cell(robust: int) -> CellResult:
        return CellResult({text: "failed" if at < robust else "success" for at, text in enumerate(texts)}, None)

    direct = {("toy", "direct", seed): cell(robust) for seed, robust in enumerate([60, 60, 40])}
    twin = {("toy", "twin", seed): cell(40) for seed in range(3)}
    none = Row("m", "none", {}, (), {})
    noisy = Row("m", "noisy", dict.fromkeys(range(3), answers), ("direct", "twin"), {**direct, **twin})
    request = {"seed": 0, "seeds": 3, "expectation": 1, "budget": None, "max_changed": None, "constraint": None}
    plan = Plan(request, {"m": {"labels": list(LABELS)}}, {"size": 100}, {}, {"toy": {}}, ("none", "noisy"), "now")
    (warning,) = analyse("e", plan, [none, noisy], [])["warnings"]
    assert "toy leaves 53% robust the direct way, but 40% by way of twin (p < 0.001)" in warning
