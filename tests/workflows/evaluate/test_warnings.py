"""What a reader is warned of, exactly from where on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stockade.workflows.evaluate.analysis import AttackShares, ClassMeasures, Row, ViewShares, analyse_row
from stockade.workflows.evaluate.answers import Answers, Predictions, Votes
from stockade.workflows.evaluate.measures import Measure, PairedTest, Shares
from stockade.workflows.evaluate.outcomes import Cell, GridRow
from stockade.workflows.evaluate.warnings import row_warnings

LABELS = ("negative", "positive", "neutral", "mixed")


def measure(value: float | None) -> Measure:
    return Measure(value=value, low=None, high=None, over_seeds=None, by_seed={})


def shares(robust: float | None = None, unknown: int = 0) -> dict[str, Any]:
    return {
        "clean_accuracy": measure(None),
        "robust_accuracy": measure(robust),
        "success_rate": measure(None),
        "n": {},
        "unknown": unknown,
        "complete": True,
    }


def row(
    accuracy: float | None = 0.9,
    votes: tuple[float | None, float | None] | None = None,
    views: Mapping[str, float | None] | None = None,
    p: float | None = None,
    unknown: int = 0,
    undecided: int = 0,
) -> Row:
    """A row with what the warnings look at; `p` is of each view against the direct one."""
    test = None if p is None else PairedTest(texts=0, gained=0, lost=0, p=p)
    cells = {
        view: ViewShares(**shares(value), mean_queries=None, against_direct=test)
        for view, value in (views or {}).items()
    }
    attack = AttackShares(**shares(unknown=unknown), undecided=undecided, views=cells)
    return Row(
        model="m",
        defense="d",
        deterministic=False,
        views=tuple(cells),
        clean=ClassMeasures(measure(accuracy), measure(None)),
        premade={},
        votes=None if votes is None else Votes(entropy=0.1, unanimous=votes[0], same_answer=votes[1]),
        attacks={"toy": attack},
        worst=Shares(**shares()),
        mcnemar=None,
    )


def warnings(texts: int = 10, **fields: Any) -> list[str]:
    return [warning.removeprefix("m, d: ") for warning in row_warnings(row(**fields), texts, LABELS)]


@pytest.mark.parametrize(
    ("accuracy", "texts", "warned"), [(0.2, 200, False), (0.2, 250, True), (0.2, 10, False), (None, 250, False)]
)
def test_so_few_right_that_it_is_not_by_chance(accuracy: float | None, texts: int, warned: bool) -> None:
    """With four classes chance is a quarter: at most 40 of 200 happen with p = 0.058, 50 of 250 with 0.037."""
    sentence = "right on only 20% of the clean texts, below chance (25%)"
    assert [warning.startswith(sentence) for warning in warnings(accuracy=accuracy, texts=texts)] == [True] * warned


@pytest.mark.parametrize(
    ("votes", "warned"),
    [((0.5, 0.0), True), ((0.49, 0.49), False), ((0.49, None), False), ((0.1, 0.5), True), (None, False)],
)
def test_votes_that_starve_a_search(votes: tuple[float, float | None] | None, warned: bool) -> None:
    assert ["Such votes starve a search" in warning for warning in warnings(votes=votes)] == [True] * warned


def test_what_was_not_probed_is_not_written() -> None:
    assert "the very same one-hot answer" not in warnings(votes=(0.8, None))[0]
    assert "and 30% of texts with one word less get the very same one-hot answer" in warnings(votes=(0.8, 0.3))[0]


@pytest.mark.parametrize(("direct", "transfer", "warned"), [(0.1, 0.0, True), (0.09, 0.0, False), (0.5, 0.7, False)])
def test_a_direct_number_that_is_a_tenth_better_flatters(direct: float, transfer: float, warned: bool) -> None:
    sentences = warnings(views={"direct": direct, "transfer": transfer})
    assert [f"{transfer:.0%} in the transfer view" in sentence for sentence in sentences] == [True] * warned


def test_the_worst_view_is_named_and_how_sure_it_is() -> None:
    views = {"direct": 0.8, "surrogate": 0.5, "transfer": 0.3, "eot": None}
    (sure,) = warnings(views=views, p=0.049)
    assert "30% in the transfer view (p = 0.049): the direct number flatters the defense." in sure
    (unsure,) = warnings(views=views, p=0.05)
    assert "the direct number may flatter the defense, more texts would show." in unsure
    assert warnings(views=views, p=0.49) != []
    assert warnings(views=views, p=0.5) == [], "two texts and none: what chance does"
    (untested,) = warnings(views=views)
    assert "may flatter" in untested
    assert warnings(views={"surrogate": 0.5, "transfer": 0.3}) == [], "without a direct number nothing is compared"
    assert warnings(views={"direct": None, "transfer": 0.3}) == []


def test_texts_that_were_left_out_are_counted() -> None:
    assert warnings(unknown=1) == ["toy: 1 text ended in an error and is left out."]
    assert warnings(unknown=2) == ["toy: 2 texts ended in an error and are left out."]
    assert warnings() == []


@pytest.mark.parametrize(("undecided", "warned"), [(9, False), (10, True)])
def test_texts_that_are_robust_by_luck(undecided: int, warned: bool) -> None:
    sentence = f"toy: {undecided} of 100 texts count as robust although what was found for them fools the model in some"
    assert [warning.startswith(sentence) for warning in warnings(texts=100, undecided=undecided)] == [True] * warned


def test_a_seed_that_does_not_flatter_does_not_silence_those_that_do() -> None:
    """Of 100 texts 60 are robust directly with two seeds and 40 with the third, and 40 in the surrogate view."""
    texts = tuple(str(number) for number in range(100))
    right = ("positive",) * 100
    views = ("direct", "surrogate")
    answers = Answers(deterministic=False, views=views, clean=Predictions(texts, right, right), premade={})

    def cell(robust: int) -> Cell:
        return Cell({text: "failed" if at < robust else "success" for at, text in enumerate(texts)}, None)

    direct = {("toy", "direct", seed): cell(robust) for seed, robust in enumerate([60, 60, 40])}
    surrogate = {("toy", "surrogate", seed): cell(40) for seed in range(3)}
    noisy = GridRow("m", "noisy", dict.fromkeys(range(3), answers), {**direct, **surrogate})
    analysed = analyse_row(noisy, None, ["toy"], range(3))
    assert isinstance(analysed, Row)
    (warning,) = row_warnings(analysed, 100, LABELS)
    assert "toy leaves 53% robust in the direct view, but 40% in the surrogate view (p < 0.001)" in warning
