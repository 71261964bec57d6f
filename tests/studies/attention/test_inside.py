"""What is measured inside a model is kept text by text, and adds up to numbers that a person can count."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stockade.core.errors import RunError
from stockade.core.pairs import Side, Sides
from stockade.core.protocols import Classifier
from stockade.core.records import Record
from stockade.core.text import Edit, Text
from stockade.experiment.progress import Progress
from stockade.experiment.store import ResultStore
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.studies.attention.inputs import Victim, describe_victim
from stockade.studies.attention.inside import (
    CODEC,
    Attention,
    TextChange,
    changed_texts,
    measure_inside,
    read_changes,
    read_theorem,
    relative_changes,
)
from stockade.studies.attention.means import attention_shift, embedding_change, relative_embedding_change
from tests.records import record
from tests.studies.attention.toys import toy_bert, toy_lstm

TEXT = "a great film"


def success(example: int, after: str = "bad", *edits: Edit, original: str = TEXT) -> Record:
    adversarial = original.replace("great", after)
    changes = edits or (Edit("replace", 1, "great", after),)
    return record(example, "success", "gs-ec", original=original, adversarial=adversarial, edits=changes)


def change(
    index: int,
    before: tuple[float, ...],
    after: tuple[float, ...],
    layers: tuple[tuple[float | None, ...], ...] | None = None,
    relative: float | None = None,
) -> TextChange:
    return TextChange(
        id="0",
        label="positive",
        prediction="negative",
        words=tuple(f"w{number}" for number in range(len(before))),
        index=index,
        replacement="x",
        attention=Attention(before, after),
        layers=layers,
        relative_change=relative,
    )


def test_only_texts_with_one_replaced_word_are_measured() -> None:
    inserted = success(1, "great", Edit("insert", 1, "", "so"))
    two = success(2, "bad", Edit("replace", 1, "great", "bad"), Edit("replace", 2, "film", "day"))
    other = success(3, "bad", Edit("replace", 0, "a", "the"))
    ((text, before, after),) = changed_texts([success(0), inserted, two, other])
    assert (text.id, text.words, text.index, text.replacement) == ("0", ("a", "great", "film"), 1, "bad")
    assert (str(before), str(after)) == (TEXT, "a bad film")
    assert (text.attention, text.layers, text.relative_change) == (None, None, None)


def test_relative_changes() -> None:
    assert relative_changes([[3.0, 4.0], [0.0, 0.0]], [[3.0, 9.0], [1.0, 0.0]]) == [1.0, None]


class Once:
    """Loads a model and counts how often it was asked to."""

    def __init__(self, model: HuggingFaceClassifier) -> None:
        self.model, self.loads = model, 0

    def __call__(self) -> Classifier:
        self.loads += 1
        return self.model


def describe(model: HuggingFaceClassifier) -> Victim:
    return Victim.read("toy", json.loads(json.dumps(describe_victim("toy", model, [Text.parse(TEXT)]))))


def test_every_text_is_measured_once_and_a_kill_loses_one_at_most(tmp_path: Path) -> None:
    store, load = ResultStore(tmp_path, writable=True), Once(HuggingFaceClassifier(*toy_bert()))
    victim, texts = describe(load.model), [Text.parse(TEXT)]
    records = [success(example, after) for example, after in enumerate(("bad", "greatly", "not"))]
    reports: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        reports.append(progress)
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_inside(store, victim, load, successes={"gs-ec": records}, texts=texts, samples=50, observer=interrupt)
    assert list(read_changes(store, "toy")) == ["0", "1"]
    assert read_theorem(store, "toy") is None
    before = load.loads
    measure_inside(store, victim, load, successes={"gs-ec": records}, texts=texts, samples=50, observer=reports.append)
    assert load.loads == before + 2, "one text and the theorem"
    assert [(report.part, report.done, report.total) for report in reports] == [
        ("toy: inside", number, 3) for number in (1, 2, 3)
    ]
    measure_inside(store, victim, load, successes={"gs-ec": records}, texts=texts, samples=50)
    assert load.loads == before + 2, "nothing is left to measure"
    theorem = read_theorem(store, "toy")
    assert theorem is not None
    assert (len(theorem.heads), theorem.samples, theorem.real_vectors) == (4, 50, 5)


def test_what_is_measured_is_what_the_model_shows(tmp_path: Path) -> None:
    store, model = ResultStore(tmp_path, writable=True), HuggingFaceClassifier(*toy_lstm())
    victim = describe(model)
    assert (victim.kind, victim.missing, victim.without_attention, victim.without_layers) == (
        "recurrent",
        {},
        None,
        None,
    )
    measure_inside(store, victim, lambda: model, successes={"gs-ec": [success(0)]}, texts=[], samples=5)
    measured = read_changes(store, "toy")["0"]
    texts = [Text.parse(TEXT), Text.parse("a bad film")]
    before, after = model.word_attention(texts, 0, "mean")
    assert measured.attention is not None
    assert measured.attention.before == pytest.approx(before.tolist(), abs=1e-6)
    assert measured.attention.after == pytest.approx(after.tolist(), abs=1e-6)
    _, vectors = model.represent([text.input for text in texts])
    assert [measured.relative_change] == relative_changes(vectors[:1], vectors[1:])
    assert measured.layers is not None
    assert [move > 0 for move in measured.layers[0] if move is not None] == [False, True, False], "only its own input"
    assert read_theorem(store, "toy") is None, "it has no self-attention"


def test_a_damaged_measurement_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, writable=True)
    store.add("toy: inside", "0", {**CODEC.encode(change(0, (1.0,), (1.0,))), "words": 3})
    with pytest.raises(RunError, match="cannot be read"):
        read_changes(store, "toy")


def test_attention_of_the_other_words() -> None:
    shift = attention_shift([change(1, (0.5, 0.25, 0.25), (0.25, 0.5, 0.25)), change(0, (1.0,), (0.5,))])
    assert shift.texts == 2
    assert shift.others["value"] == pytest.approx(0.125)
    assert shift.relative["value"] == pytest.approx(0.25 / 0.75, abs=1e-6)
    assert shift.replaced["value"] == pytest.approx((0.25 + 0.5) / 2)
    assert shift.moved["value"] == pytest.approx((0.25 + 0.5) / 2), "a special token got half of it"
    assert attention_shift([]).moved == {"value": None, "low": None, "high": None}


def test_embedding_change_by_layer_and_distance() -> None:
    first = change(1, (0.0,) * 3, (0.0,) * 3, ((0.0, 4.0, 0.0), (1.0, 3.0, None)))
    second = change(0, (0.0,) * 2, (0.0,) * 2, ((2.0, 0.0), (5.0, 3.0)))
    mean = embedding_change([first, second])
    assert mean is not None
    middle = mean.distances.index(0)
    assert mean.layers[0][middle - 1 : middle + 2] == (0.0, 3.0, 0.0)
    assert mean.layers[1][middle - 1 : middle + 2] == (1.0, 4.0, 3.0)
    assert mean.layers[1][0] is None
    assert mean.counts[middle - 1 : middle + 3] == (1, 2, 2, 0)
    assert embedding_change([change(0, (1.0,), (1.0,))]) is None


def test_the_mean_leaves_out_words_of_another_number_of_pieces() -> None:
    """A word of two pieces that becomes one shifts all positions behind it, and so every input vector there."""
    kept = replace(change(1, (0.0,) * 3, (0.0,) * 3, ((0.0, 4.0, 0.0),)), pieces=(1, 1))
    shifted = replace(change(1, (0.0,) * 3, (0.0,) * 3, ((0.0, 9.0, 8.0),)), pieces=(2, 1))
    mean = embedding_change([kept, shifted])
    assert mean is not None
    middle = mean.distances.index(0)
    assert (mean.texts, mean.left_out) == (1, 1)
    assert mean.layers[0][middle - 1 : middle + 2] == (0.0, 4.0, 0.0)
    nothing = embedding_change([shifted])
    assert nothing is not None
    assert (nothing.texts, nothing.left_out, set(nothing.layers[0])) == (0, 1, {None})


def test_how_many_pieces_a_word_has_is_measured(tmp_path: Path) -> None:
    """ "greatly" is two pieces of the toy, all other words are one."""
    store, model = ResultStore(tmp_path, writable=True), HuggingFaceClassifier(*toy_bert())
    records = [success(0, "bad"), success(1, "greatly")]
    measure_inside(store, describe(model), lambda: model, successes={"gs-ec": records}, texts=[], samples=5)
    measured = read_changes(store, "toy")
    assert [measured[id].pieces for id in "01"] == [(1, 1), (1, 2)]
    assert [measured[id].keeps_length for id in "01"] == [True, False]
    assert measured["0"].layers is not None
    assert measured["1"].layers is not None
    moves = [[move > 0 for move in measured[id].layers[0] if move is not None] for id in "01"]  # type: ignore[index]
    assert moves == [[False, True, False], [False, True, True]], "behind a longer word the positions shift"


@pytest.mark.parametrize(
    ("sides", "side", "index", "place"),
    [("premise", "premise", 1, 1), ("both", "premise", 1, 1), ("both", "hypothesis", 1, 4)],
)
def test_the_changed_word_is_found_in_its_side_of_a_pair(sides: Sides, side: Side, index: int, place: int) -> None:
    premise, hypothesis = "a great film", "the great day"
    before = Text.parse(hypothesis, premise, sides)
    after = before.replace(place, "bad")
    made = record(
        0, "success", "gs-ec", original=hypothesis, adversarial=after.hypothesis, edits=after.edits, premise=premise,
        adversarial_premise=None if after.premise == premise else after.premise,
    )  # fmt: skip
    ((text, old, new),) = changed_texts([made], sides)
    assert (text.index, text.replacement, text.side, made.edits[0].index) == (place, "bad", side, index)
    assert (old.input, new.input) == (before.input, after.input)
    assert list(changed_texts([replace(made, edits=(Edit("replace", 9, "great", "bad", side),))], sides)) == []


def test_relative_embedding_change() -> None:
    changes = [change(0, (1.0,), (1.0,), relative=value) for value in (0.2, 0.4, None)]
    relative = relative_embedding_change(changes)
    assert relative.texts == 2
    assert relative.mean["value"] == pytest.approx(0.3)
