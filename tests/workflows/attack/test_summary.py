from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.records import Status
from stockade.core.statistics import wilson
from stockade.experiment.store import Effort
from stockade.workflows.attack.summary import assert_identity, summarise_attack, unanimous_votes, warnings_for
from tests.records import record

STATUSES: list[Status] = ["success", "failed", "skipped", "error"]


def test_the_numbers_of_a_run_computed_by_hand() -> None:
    records = [
        record(0, "success", queries=10, rows=9, perturbed_percent=20.0, similarity=0.9),
        record(1, "success", queries=30, rows=20, perturbed_percent=10.0, similarity=0.8),
        record(2, "failed", queries=50, rows=50),
        record(3, "skipped", queries=0, rows=0),
        record(4, "error", queries=3, rows=3),
    ]
    summary = summarise_attack(records, Effort(1.5, 1.0, 70), "cosine, test")
    assert {k: summary[k] for k in ("n", "attacked", "skipped", "succeeded", "failed", "errors")} == {
        "n": 4, "attacked": 3, "skipped": 1, "succeeded": 2, "failed": 1, "errors": 1,
    }  # fmt: skip
    assert summary["clean_accuracy"]["value"] == 0.75
    assert summary["robust_accuracy"]["value"] == 0.25
    assert summary["success_rate"]["value"] == pytest.approx(2 / 3)
    assert summary["mean_queries"] == 30
    assert summary["cache_hits"] == 11
    assert summary["mean_perturbed_percent"] == 15.0
    assert summary["mean_similarity"] == pytest.approx(0.85)
    assert (summary["seconds"], summary["model_seconds"], summary["model_rows"]) == (1.5, 1.0, 70)


@given(st.lists(st.sampled_from(STATUSES), max_size=60))
def test_success_is_one_minus_robust_over_clean_in_every_run(statuses: list[Status]) -> None:
    summary = summarise_attack([record(i, status) for i, status in enumerate(statuses)], Effort())
    assert_identity(summary)
    assert summary["n"] + summary["errors"] == len(statuses)
    for name in ("clean_accuracy", "robust_accuracy", "success_rate"):
        interval = summary[name]
        if interval["value"] is not None:
            assert 0 <= interval["low"] <= interval["value"] <= interval["high"] <= 1


def test_the_wilson_interval_matches_published_values() -> None:
    """Newcombe 1998, Table I: 81 of 263 gives 0.2553 to 0.3662; 0 of 20 gives 0 to 0.1611."""
    assert wilson(81, 263) == pytest.approx({"value": 81 / 263, "low": 0.2553, "high": 0.3662}, abs=1e-4)
    assert wilson(0, 20)["high"] == pytest.approx(0.1611, abs=1e-4)
    assert wilson(0, 0) == {"value": None, "low": None, "high": None}


def summary_of(right: int, wrong: int, errors: int = 0) -> dict[str, object]:
    counts: Counter[Status] = Counter({"failed": right, "skipped": wrong, "error": errors})
    return summarise_attack([record(i, status) for i, status in enumerate(counts.elements())], Effort())


def test_accuracy_below_chance_is_pointed_out() -> None:
    labels = ("negative", "positive")
    assert "labels swapped" in warnings_for({"toy": summary_of(3, 17)}, labels)[0]
    assert warnings_for({"toy": summary_of(12, 8)}, labels) == []
    assert warnings_for({"toy": summary_of(6, 14)}, ("a", "b", "c", "d")) == []
    assert "nothing was attacked" in warnings_for({"toy": summary_of(0, 3)}, labels)[0]
    assert "2 examples ended in an error" in warnings_for({"toy": summary_of(12, 3, 2)}, labels)[0]


def test_votes_are_sharp_where_all_copies_agree_whichever_class_it_is() -> None:
    """Of three scored texts two are unanimous; a text that was not scored does not count."""
    scores = [(0.0, 1.0), (1.0, 0.0), (0.05, 0.95), None]
    assert unanimous_votes([record(at, original_scores=row) for at, row in enumerate(scores)]) == pytest.approx(2 / 3)
    assert unanimous_votes([record(0, original_scores=None)]) is None
    assert unanimous_votes([record(0, original_scores=(0.4, 0.6))]) == 0


@pytest.mark.parametrize(("share", "warned"), [(None, False), (0.49, False), (0.5, True), (1.0, True)])
def test_sharp_votes_are_warned_of_from_one_half_on(share: float | None, warned: bool) -> None:
    warnings = warnings_for({"toy": summary_of(12, 8)}, ("negative", "positive"), share)
    assert any("no evidence of robustness" in sentence for sentence in warnings) == warned
