"""Models of a study that may grow: recorded once, marked where they fail, added under names of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.core.errors import ModelError, OptionError
from stockade.experiment.inputs import DataOptions, ModelOptions
from stockade.experiment.pool import DataPool
from stockade.experiment.store import ResultStore
from stockade.models.language import LanguageModels
from stockade.studies.transferability.cross_scoring import second
from stockade.studies.transferability.roster import (
    Roster,
    mark,
    marking,
    name_pairs,
    recorded_failures,
    recorded_models,
    with_recorded,
)
from tests.toys import RandomVictim, WeightVictim

ROWS = [("a good film", 1), ("a bad film", 0)]


def roster(**models: object) -> Roster:
    return Roster(models, DataPool(ROWS, DataOptions()), ModelOptions(), LanguageModels(), 0)


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path, writable=True)


def test_a_model_is_recorded_when_it_is_first_loaded(store: ResultStore) -> None:
    victim = WeightVictim({"good": 1})
    models = Roster(
        {"a": victim, second("a"): victim}, DataPool(ROWS, DataOptions()), ModelOptions(), LanguageModels(), 0
    )
    classifier, examples = models.load("a", store)
    assert classifier.labels == ("negative", "positive")
    assert [example.label for example in examples] == [1, 0]
    models.load(second("a"), store)
    assert list(recorded_models(store)) == ["a"]  # a second training is no model of the study
    assert recorded_models(store)["a"]["reference"] == "a Python object (WeightVictim)"
    assert models.reference("a") is victim


def test_classes_must_agree_also_with_those_that_were_recorded_earlier(store: ResultStore) -> None:
    roster(a=WeightVictim({})).load("a", store)
    with pytest.raises(ModelError, match="a has negative, positive, r has 0, 1, 2"):
        roster(r=RandomVictim()).load("r", store)
    with pytest.raises(ModelError, match="disagree on the classes"):
        roster(a=WeightVictim({}), r=RandomVictim()).check()


def test_marks_come_and_go_by_stage(store: ResultStore) -> None:
    with marking(store, "a", "attack"):
        raise ModelError("it is gone")
    with marking(store, "a", "scoring"):
        raise KeyError("weights")
    mark(store, "b", "training", "no checkpoint")
    assert recorded_failures(store) == {"a": "it is gone", "b": "no checkpoint"}
    with marking(store, "a", "attack"):
        pass
    assert recorded_failures(store)["a"] == "the model raised KeyError: 'weights'"
    mark(store, "a", "scoring", None)
    assert recorded_failures(store) == {"b": "no checkpoint"}


def test_an_interruption_is_no_failure(store: ResultStore) -> None:
    def interrupted() -> None:
        with marking(store, "a", "attack"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert recorded_failures(store) == {}


def test_new_models_come_behind_those_that_were_recorded() -> None:
    recorded = {"a": "models/a", "b": "a Python object (WeightVictim)"}
    victim = WeightVictim({})
    assert with_recorded({"c": "models/c", "b": victim}, recorded, "The model") == {
        "a": "models/a",
        "b": victim,
        "c": "models/c",
    }
    with pytest.raises(OptionError, match=r"The model a of this study is models/a, not other/a\. Name the models"):
        with_recorded({"a": "other/a"}, recorded, "The model")


def test_pairs_of_the_command_line() -> None:
    assert name_pairs(["a=models/a", " b = x=y "], "--second", "NAME=MODEL") == {"a": "models/a", "b": "x=y"}
    assert name_pairs("a=1", "--second", "NAME=MODEL") == {"a": "1"}
    assert name_pairs({"a": 1}, "--second", "NAME=MODEL") == {"a": 1}
    assert name_pairs(None, "--second", "NAME=MODEL") == {}
    with pytest.raises(OptionError, match="--second =x is not of the form NAME=VALUE, such as --second NAME=MODEL"):
        name_pairs(["=x"], "--second", "NAME=MODEL")
