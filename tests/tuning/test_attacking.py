"""A trial attacks in several ways: a text survives only if it survives all of them, and noise is no defense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.attacks.registry import make_attack
from stockade.core.protocols import Classifier
from stockade.core.records import Record, Status
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.evaluation.averaged import Averaged
from stockade.models.language import LanguageModels
from stockade.runs.attack import AttackSettings
from stockade.tuning.attacking import Attacker
from tests.toys import WeightVictim

REVIEW = "good funny clever great dull slow film number tells us about people who live there"
REVIEWS = [(f"{REVIEW} {number}", "positive") for number in range(10)]
LIKED, DISLIKED = ("good", "funny", "clever", "great"), ("dull", "slow")
VICTIM = WeightVictim({**dict.fromkeys(LIKED, 1.0), **dict.fromkeys(DISLIKED, -0.6)})
"""Fooled when two or three of the four words are gone: the first lucky draw is not enough."""


def test_noise_does_not_win_by_luck(tmp_path: Path) -> None:
    """With one copy a search sees a flip at once, stops, and is told that it was chance. Every text can be fooled."""
    tuned = st.tune(VICTIM, REVIEWS, "ranmask:rate=0.3", attack="pwws", ranges=["copies=1|50"], trials=2, limit=None,
                    out=tmp_path / "t")  # fmt: skip
    robust = {trial.options["copies"]: trial.robust for trial in tuned.trials}
    assert robust == {1: 0.0, 50: 0.0}


def test_more_answers_are_averaged_where_finds_did_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without what transfers from the bare model, which would hide it."""
    views = Attacker._views
    monkeypatch.setattr(
        Attacker, "_views", lambda self, model: {way: one for way, one in views(self, model).items() if way == "direct"}
    )
    robust = {}
    for expectation in (1, 3):
        tuned = st.tune(VICTIM, REVIEWS, "ranmask:rate=0.3,copies=1", attack="pwws", ranges=["kept=1|1"], trials=1,
                        limit=None, expectation=expectation, out=tmp_path / str(expectation))  # fmt: skip
        robust[expectation] = tuned.trials[0].robust or 0.0
    assert robust[1] >= 0.4
    assert robust[3] <= 0.1


def test_what_tune_calls_robust_evaluate_does_too(tmp_path: Path) -> None:
    """Where no way is tried again, a trial's numbers are those of an evaluation of the same ways."""
    data = [("a good film in all ways", "positive"), ("a bad film in all ways", "negative")] * 3
    victim = WeightVictim({"good": 2.0, "bad": -2.0, "film": 0.1}, bias=-0.05)
    tuned = st.tune(victim, data, "ranmask:copies=50", attack="deepwordbug", ranges=["rate=0.1|0.2"], trials=1,
                    limit=None, out=tmp_path / "t")  # fmt: skip
    defense = str(tuned.best_defense)
    found = st.evaluate({"toy": victim}, data, attacks=["deepwordbug"], defenses=[defense], expectation=3)
    assert tuned.trials[0].robust == found.row(defense)["worst"]["robust_accuracy"]["value"]
    assert tuned.trials[0].clean == found.row(defense)["clean"]["accuracy"]["value"]


Script = dict[str, dict[str, tuple[Status, float | None]]]


class Scripted:
    """Attacks whose outcomes are written down, by what the searches see."""

    def __init__(self, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script, self.tried = script, list[tuple[str, list[str]]]()
        monkeypatch.setattr(Attacker, "_attacked", lambda _, *asked: self.attacked(*asked))

    def attacked(self, model: Classifier, examples: ExampleSet, through: Classifier | None) -> list[Record]:
        way = "direct" if through is None else "transfer" if through is VICTIM else self._twin_or_mean(model, through)
        texts = [example.id for example in examples] if examples.size else []
        self.tried.append((way, texts))
        return [_record(text, *self.script.get(way, {}).get(text, ("failed", None))) for text in texts]

    def _twin_or_mean(self, model: Any, through: Any) -> str:
        if not isinstance(through, Averaged):
            assert through.defense == model.defense.surrogate()
            return "twin"
        seen: Any = through.inner
        assert seen.defense == model.defense.surrogate()
        return f"mean of {through.draws}"


def _record(text: str, status: Status, hit_rate: float | None) -> Record:
    return Record(text, "toy", status, None, "positive", "", None, None, None, None, None, 0, 0, hit_rate=hit_rate)


def _outcomes(model: Classifier, expectation: int = 3) -> dict[str, Status]:
    examples = prepare_examples(st.load_data(REVIEWS[:5]), VICTIM.labels)
    attacker = Attacker(examples, AttackSettings((make_attack("pwws"),)), expectation, LanguageModels())
    return {record.id: record.status for record in attacker.records(model)}


def test_each_way_is_tried_on_what_the_ways_before_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(
        {
            "transfer": {"0": ("success", 1.0), "1": ("skipped", None), "2": ("failed", 0.0)},
            "twin": {"2": ("failed", 0.3), "3": ("error", None)},
            "mean of 3": {"4": ("success", 0.5)},
            "mean of 12": {"2": ("success", 0.6)},
        },
        monkeypatch,
    )
    found = _outcomes(st.defend(VICTIM, "ranmask", combine="vote"))
    assert scripted.tried == [
        ("transfer", ["0", "1", "2", "3", "4"]),
        ("twin", ["2", "3", "4"]),
        ("mean of 3", ["2", "3", "4"]),
        ("mean of 6", ["2"]),
        ("mean of 12", ["2"]),
        ("mean of 24", []),
    ]
    assert found == {"0": "success", "1": "skipped", "2": "success", "3": "error", "4": "success"}


def test_an_error_in_a_later_way_is_not_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what it hides; a success in spite of it is known."""
    Scripted({"twin": {"0": ("error", None), "1": ("error", None)}, "mean of 3": {"1": ("success", 1.0)}}, monkeypatch)
    found = _outcomes(st.defend(VICTIM, "ranmask", combine="vote"))
    assert (found["0"], found["1"], found["2"]) == ("error", "success", "failed")


@pytest.mark.parametrize(
    ("options", "expectation", "ways"),
    [
        ({}, 1, ["transfer", "direct"]),
        ({"combine": "vote"}, 1, ["transfer", "twin"]),
        ({"draws": "fixed"}, 3, ["transfer", "direct"]),
        ({"draws": "fixed", "combine": "vote"}, 3, ["transfer", "twin"]),
    ],
)
def test_ways_that_would_show_the_same_are_left_out(
    options: dict[str, Any], expectation: int, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = Scripted({}, monkeypatch)
    _outcomes(st.defend(VICTIM, "ranmask", **options), expectation)
    assert [way for way, texts in scripted.tried if texts] == ways
