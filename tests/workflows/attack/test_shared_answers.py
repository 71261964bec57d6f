"""Attacks that scan a vocabulary at the same place find each other's answers: fewer rows, the same records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.attacks.registry import make_attacks
from stockade.core.records import Record
from stockade.workflows.attack.searches import work_order
from tests.toys import OpenVictim

WEIGHTS = {"great": 3.0, "fine": 1.0, "film": 0.5, "dull": -1.0, "bad": -2.0, "awful": -4.0}
UNFOOLABLE = {**WEIGHTS, "great": 100.0, "rich": 50.0}


def run(weights: dict[str, float], texts: list[str], attacks: list[str], **options: Any) -> Any:
    data = [{"text": text, "label": "positive"} for text in texts]
    return st.attack(OpenVictim(weights), data, attacks, similarity=False, **options)


def model_rows(result: Any) -> dict[str, int]:
    return {name: attack["model_rows"] for name, attack in result.summary["attacks"].items()}


def records_of(result: Any, attack: str) -> list[Record]:
    return list(result.records(attack))


def test_an_exhausted_place_is_not_scanned_again() -> None:
    """No word in place of "great" fools it: gs-ec learns that from six, and gs-gr only finds the place."""
    result = run(UNFOOLABLE, ["great rich"], ["gs-gr", "gs-ec"])
    words = len(UNFOOLABLE) - 1
    clean, zeroed, home = 1, 2, 1
    assert model_rows(result) == {"gs-ec": clean + zeroed + home + words, "gs-gr": zeroed}
    assert [record.queries for record in result.records("gs-gr")] == [2 + words]


def test_two_attacks_by_vectors_at_one_place_ask_once() -> None:
    """The first word is missed most and has the most attention."""
    result = run(UNFOOLABLE, ["great rich"], ["gs-ec", "asmax-ec"])
    assert model_rows(result)["asmax-ec"] == 1  # its attention
    assert [record.queries for record in result.records("asmax-ec")] == [len(UNFOOLABLE)]


@pytest.mark.parametrize(
    "texts", [["great rich"], ["great fine film", "film film great", "Fine film", "fine rich bad"]]
)
def test_records_and_queries_are_those_of_attacks_run_alone(texts: list[str]) -> None:
    attacks = ["random:draws=20", "asmin-gr", "asmax-gr", "gs-gr", "asmin-ec", "asmax-ec", "gs-ec"]
    together = run(UNFOOLABLE, texts, attacks)
    for attack in attacks:
        name = attack.partition(":")[0]
        assert records_of(together, name) == records_of(run(UNFOOLABLE, texts, [attack]), name)


def test_the_order_of_reports_is_the_one_that_was_asked_for() -> None:
    texts = [f"{word} film" for word in ("great", "fine", "rich")] * 7  # more than are attacked at once
    result = run(UNFOOLABLE, texts, ["gs-gr", "list", "gs-ec"])
    assert list(result.summary["attacks"]) == ["gs-gr", "list", "gs-ec"]
    assert [record.attack for record in result.examples] == ["gs-gr"] * 21 + ["list"] * 21 + ["gs-ec"] * 21
    assert [record.original for record in result.records("gs-gr")] == texts


def test_an_interrupted_job_goes_on_where_the_attacks_were(tmp_path: Path) -> None:
    texts = [f"{word} film" for word in ("great", "fine", "rich")] * 7
    whole = run(UNFOOLABLE, texts, ["gs-gr", "gs-ec"])
    ended = 0

    def stop(progress: Any) -> None:
        nonlocal ended
        ended += progress.status is not None
        if ended == 13:  # five texts into the second attack
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(UNFOOLABLE, texts, ["gs-gr", "gs-ec"], out=tmp_path / "run", observer=stop)
    resumed = run(UNFOOLABLE, texts, ["gs-gr", "gs-ec"], out=tmp_path / "run", resume=True)
    for attack in ("gs-gr", "gs-ec"):
        assert records_of(resumed, attack) == records_of(whole, attack)


def test_attacks_take_turns_only_where_that_spares_something() -> None:
    def keys(attacks: list[str], *, shared: bool = True) -> list[list[str]]:
        return [[attack.key for attack in group] for group in work_order(make_attacks(attacks), shared=shared)]

    assert keys(["gs-gr", "list", "asmin-ec", "gs-ec", "asmin-gr"]) == [
        ["list"],
        ["asmin-ec", "gs-ec", "gs-gr", "asmin-gr"],
    ]
    assert keys(["pwws", "gs-gr"]) == [["pwws"], ["gs-gr"]]
    assert keys(["gs-gr", "gs-ec"], shared=False) == [["gs-gr"], ["gs-ec"]]
