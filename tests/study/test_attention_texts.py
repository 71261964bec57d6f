"""Which texts the study takes, and what its models are called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stockade.core.errors import DataError, OptionError
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.experiment.inputs import name_models
from stockade.studies.attention.texts import ChosenTexts, choose_texts

ROWS = [(f"text {number}", number % 2) for number in range(300)]


class Knows:
    """Gets every n-th text right."""

    deterministic = True
    labels = ("no", "yes")

    def __init__(self, every: int) -> None:
        self.every, self.asked = every, 0

    def predict_proba(self, inputs: Sequence[str]) -> np.ndarray:
        self.asked += len(inputs)
        numbers = [int(text.split()[1]) for text in inputs]
        classes = [number % 2 if number % self.every == 0 else 1 - number % 2 for number in numbers]
        return np.eye(2)[classes]


def test_the_order_is_that_of_samples() -> None:
    source = load_data(ROWS)
    order = list(choose_texts(source, {"all": Knows(1)}, seed=3).ids)
    assert sorted(order, key=int) == [str(number) for number in range(300)]
    for limit in (1, 10, 77):
        assert set(prepare_examples(source, ["no", "yes"], limit=limit, seed=3).ids or ()) == set(order[:limit])


def test_the_first_texts_in_order_that_all_get_right() -> None:
    source = load_data(ROWS)
    models = {"two": Knows(2), "three": Knows(3)}
    found = choose_texts(source, models, limit=5, seed=1)
    order = choose_texts(source, {"all": Knows(1)}, seed=1).ids
    wanted = [row_id for row_id in order if int(row_id) % 6 == 0]
    assert list(found.ids) == wanted[:5]
    assert found.looked_at == order.index(wanted[4]) + 1
    assert found.correct["two"] >= 5
    assert models["two"].asked < 300
    everything = choose_texts(source, models, seed=1)
    assert (list(everything.ids), everything.looked_at, everything.total) == (wanted, 300, 300)
    assert everything.correct == {"two": 150, "three": 100}
    assert len(choose_texts(source, models, limit=1000).ids) == 50


def test_chosen_rows_keep_their_ids() -> None:
    source = load_data(ROWS)
    chosen = ChosenTexts(source, frozenset({"7", "12"}))
    assert [(row.id, row.text) for row in chosen.rows()] == [("7", "text 7"), ("12", "text 12")]
    assert chosen.fingerprint() != ChosenTexts(source, frozenset({"7"})).fingerprint()
    examples = prepare_examples(chosen, ["no", "yes"])
    assert [example.id for example in examples] == ["7", "12"]


def test_what_cannot_be_chosen() -> None:
    source = load_data([("text 1", 1), ("text 3", 1)])
    with pytest.raises(DataError, match=r"no text that all models get right \(of 2 texts: two 0\)"):
        choose_texts(source, {"two": Knows(2)})
    for limit in (0, -1, True):
        with pytest.raises(OptionError, match="--limit is"):
            choose_texts(source, {"two": Knows(2)}, limit=limit)


def test_names_are_short_and_different() -> None:
    models = ["builtin:sentiment-bert", Path("./models/bert/"), "org/bert", "python:my:predict", Knows(2), len, (1, 2)]
    names = name_models(models, None)
    assert names == ("sentiment-bert", "bert", "bert-2", "predict", "Knows", "len", "int")
    assert name_models(["../", lambda texts: texts], None) == ("model", "lambda")
    assert name_models(["x", "y"], ["a", "b"]) == ("a", "b")
    for bad in ("", "..", "a/b", "a b"):
        with pytest.raises(OptionError, match="cannot be a folder"):
            name_models(["x"], [bad])
