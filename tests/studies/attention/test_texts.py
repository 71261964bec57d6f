"""Which texts the study takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from stockade.core.errors import DataError
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.studies.attention.texts import select_texts, selected_examples

ROWS = [(f"text {number}", number % 2) for number in range(300)]


class Knows:
    """Gets every n-th text right."""

    deterministic = True
    labels: tuple[str, ...] = ("no", "yes")

    def __init__(self, every: int) -> None:
        self.every, self.queries = every, 0

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        self.queries += len(inputs)
        numbers = [int(str(text).split()[1]) for text in inputs]
        classes = [number % 2 if number % self.every == 0 else 1 - number % 2 for number in numbers]
        return np.eye(2)[classes]


def test_the_order_is_that_of_samples() -> None:
    source = load_data(ROWS)
    order = list(select_texts(source, {"all": Knows(1)}, seed=3).ids)
    assert sorted(order, key=int) == [str(number) for number in range(300)]
    for limit in (1, 10, 77):
        assert set(prepare_examples(source, ["no", "yes"], limit=limit, seed=3).ids or ()) == set(order[:limit])


def test_the_first_texts_in_order_that_all_get_right() -> None:
    source = load_data(ROWS)
    models = {"two": Knows(2), "three": Knows(3)}
    selection = select_texts(source, models, limit=5, seed=1)
    order = select_texts(source, {"all": Knows(1)}, seed=1).ids
    wanted = [row_id for row_id in order if int(row_id) % 6 == 0]
    assert list(selection.ids) == wanted[:5]
    assert selection.classified == order.index(wanted[4]) + 1
    assert selection.correct["two"] >= 5
    assert models["two"].queries < 300
    everything = select_texts(source, models, seed=1)
    assert (list(everything.ids), everything.classified, everything.total) == (wanted, 300, 300)
    assert everything.correct == {"two": 150, "three": 100}
    assert len(select_texts(source, models, limit=1000).ids) == 50


def test_chosen_texts_come_in_the_order_of_the_data_and_keep_their_ids() -> None:
    examples = selected_examples(load_data(ROWS), ["no", "yes"], ["12", "7", "9"])
    assert [(example.id, str(example.text), example.label) for example in examples] == [
        ("7", "text 7", 1),
        ("9", "text 9", 1),
        ("12", "text 12", 0),
    ]
    assert (examples.size, examples.total, examples.ids) == (3, 300, ("7", "9", "12"))
    assert examples.label_counts == {"no": 1, "yes": 2}


def test_what_cannot_be_chosen() -> None:
    source = load_data([("text 1", 1), ("text 3", 1)])
    with pytest.raises(DataError, match=r"no text that all models get right \(of 2 texts: two 0\)"):
        select_texts(source, {"two": Knows(2)})
