"""What is trained, what it is trained on, and what is said about it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import stockade as st
from stockade.core.errors import DataError, ModelError, OptionError
from stockade.datasets.load import load_data
from stockade.datasets.source import Row
from stockade.training.batches import count_batches, plan_batches
from stockade.training.data import prepare_data, split
from stockade.training.job import train
from stockade.training.loop import Progress, rate_factor
from stockade.training.network import Origin
from stockade.training.objective import Batch, CrossEntropy, ModelLoss, class_weights
from stockade.training.options import PRESETS, TrainingOptions, preset, preset_for, read_class_weights
from stockade.training.state import Evaluation, State
from tests.training.tiny import BAD, GOOD, OPTIONS, build, rows, tiny_origin

LONG = OPTIONS.changed(epochs=12, learning_rate=0.02)


def prepared(data: object, **options: Any) -> Any:
    return prepare_data(load_data(data, empty_texts=True), **options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> st.Trained:
    out = tmp_path_factory.mktemp("trained") / "m"
    return train(rows(200), tiny_origin(dropout=0.0), out, options=LONG)


def test_it_learns_and_the_folder_is_a_model(trained: st.Trained) -> None:
    assert trained.accuracy == 1.0
    assert trained.history[-1].loss < trained.history[0].loss / 5
    classifier = st.load_model(trained.folder)
    assert classifier.labels == ("negative", "positive")
    texts = [f"a {word} film" for word in (*GOOD, *BAD)]
    assert classifier.predict_proba(texts).argmax(1).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_the_folder_tells_what_was_done(trained: st.Trained) -> None:
    names = {path.name for path in trained.folder.iterdir()}
    assert {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "README.md",
        "training.json",
        "training.html",
    } <= names
    assert not any(name.startswith(".") for name in names)
    assert "checkpoint" not in names
    record = json.loads((trained.folder / "training.json").read_text())
    assert record["complete"]
    assert record["config"]["options"]["seed"] == 3
    assert [epoch["validation"]["accuracy"] for epoch in record["history"]][-1] is not None
    card = (trained.folder / "README.md").read_text()
    low, high = trained.interval or (0, 0)
    assert f"| all classes | 20 | 20 | 1.0000 ({low:.3f} to {high:.3f}) |" in card
    assert record["config"]["data"]["fingerprint"] in card
    assert "| learning_rate | 0.02 |" in card
    page = (trained.folder / "training.html").read_text()
    assert "<svg" in page
    assert "validation accuracy" in page
    assert "refresh" not in page
    assert "<script" not in page
    assert "src=" not in page
    assert 'href="http' not in page.replace("xlink:href", "")


def test_the_trained_folder_can_be_attacked(trained: st.Trained) -> None:
    run = st.attack(trained.folder, rows(8, seed=5), "deepwordbug", similarity=False)
    numbers = run.summary["attacks"]["deepwordbug"]
    assert numbers["n"] == 8
    assert numbers["errors"] == 0
    assert numbers["succeeded"] > 0


def test_a_trained_model_is_trained_further(trained: st.Trained, tmp_path: Path) -> None:
    again = st.train(rows(40, seed=9), model=trained.folder, out=tmp_path / "m", epochs=1, learning_rate=1e-9, seed=1)
    assert again.accuracy == 1.0
    with pytest.raises(DataError, match=r'has the label "spam".* which is no class of the model'):
        st.train([("a film", "spam"), ("the film", "positive")], model=trained.folder, out=tmp_path / "n")
    with pytest.raises(ModelError, match="has no weights to train"):
        st.train(rows(), model=lambda texts: [[0.5, 0.5] for _ in texts], out=tmp_path / "n")
    model, tokenizer = build([], ("negative", "positive"), 0)
    before = [weight.clone() for weight in model.parameters()]
    st.train(rows(), model=(model, tokenizer), out=tmp_path / "o", epochs=1)
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))


def test_a_training_begins_somewhere() -> None:
    with pytest.raises(OptionError, match="name one of --arch and --model"):
        Origin()
    with pytest.raises(OptionError, match="name one of --arch and --model"):
        Origin(architecture="tiny", model="folder")


# data


def test_one_class_alone_is_refused() -> None:
    with pytest.raises(DataError, match='All 3 rows of the list have the label "good"; a classifier needs'):
        prepared([("a", "good"), ("b", "good"), ("c", "good")])


def test_labels_that_are_not_contiguous_keep_their_names(tmp_path: Path) -> None:
    found = prepared([(f"text {i}", label) for i in range(4) for label in (7, 3, 12)])
    assert found.classes == ("3", "7", "12")
    assert set(found.train.labels) == {0, 1, 2}
    (tmp_path / "odd.csv").write_text(
        "text,label\n" + "".join(f"text {i},{v}\n" for i in range(4) for v in (3, 7, "x"))
    )
    assert prepared(tmp_path / "odd.csv").classes == ("3", "7", "x")
    out = train([(text, 7 if label == "positive" else 3) for text, label in rows()], tiny_origin(), tmp_path / "m",
                options=OPTIONS)  # fmt: skip
    assert out.load().labels == ("3", "7")
    run = st.attack(out.folder, [("a great film", 7), ("a dull film", 3)], "pwws", similarity=False)
    assert run.summary["attacks"]["pwws"]["n"] == 2


def test_rows_without_a_label_are_not_a_class() -> None:
    """Hub data sets mark them with -1."""

    class Named:
        name, label_names = "named", ("no", "yes")

        def rows(self) -> Any:
            return iter([Row(str(i), f"text {i}", None, i % 3 - 1) for i in range(9)])

        def fingerprint(self) -> str:
            return "n"

    with pytest.raises(DataError, match=r"-1 often marks rows without a label|has the label -1"):
        prepare_data(Named())


def test_names_can_be_chosen_and_labels_mapped() -> None:
    data = [("a", 0), ("b", 1), ("c", 0), ("d", 1)]
    assert prepared(data, classes=("no", "yes")).classes == ("no", "yes")
    assert prepared(data, label_map={"0": "no", "1": "yes"}).classes == ("no", "yes")
    swapped = prepared(data, classes=("no", "yes"), label_map={"0": "yes", "1": "no"}, hold_out=0.5)
    numbers = dict(zip((*swapped.train.inputs, *swapped.validation.inputs),
                       (*swapped.train.labels, *swapped.validation.labels), strict=True))  # fmt: skip
    assert numbers == {"a": 1, "b": 0, "c": 1, "d": 0}


def test_empty_texts_are_trained_on_and_counted(tmp_path: Path) -> None:
    data = [*rows(40), ("", "negative"), ("  ", "positive"), ("", "negative")]
    out = train(data, tiny_origin(), tmp_path / "m", options=OPTIONS)
    assert any("3 of the 43 texts of the list are empty; they are trained on" in warning for warning in out.warnings)
    assert out.load().predict_proba([""]).shape == (1, 2)


def test_a_class_of_one_text_is_warned_about() -> None:
    found = prepared([*rows(20), ("odd", "other")])
    assert found.warnings == (
        "the list has fewer than two texts of other (1): such a class can hardly be learned, nor validated.",
    )
    assert found.train.labels.count(1) == 1


def test_the_split_is_fair_and_seeded() -> None:
    whole = prepared(rows(100), hold_out=0.1)
    assert len(whole.train) == 90
    assert sorted(whole.validation.labels) == [0] * 5 + [1] * 5
    again, other = prepared(rows(100), hold_out=0.1), prepared(rows(100), hold_out=0.1, seed=1)
    assert again.validation == whole.validation != other.validation
    train_part, held_out = split(whole.train, 0.5, 0)
    assert sorted((*train_part.inputs, *held_out.inputs)) == sorted(whole.train.inputs)


def test_validation_data_of_its_own() -> None:
    found = prepare_data(load_data(rows(20)), load_data([*rows(4, seed=8), rows(20)[0]]))
    assert len(found.train) == 20
    assert len(found.validation) == 5
    assert "1 texts of the list are also trained on" in found.warnings[0]
    with pytest.raises(DataError, match='has the label "meh"'):
        prepare_data(load_data(rows(20)), load_data([("a", "meh")]))


def test_ids_are_not_taken_for_labels() -> None:
    with pytest.raises(DataError, match="has 120 different labels in 120 rows"):
        prepared([(f"text {i}", f"label {i}") for i in range(120)])


def test_pairs(tmp_path: Path) -> None:
    data = [(("a film", text), label) for text, label in rows()]
    out = train(data, tiny_origin(), tmp_path / "m", options=OPTIONS)
    assert out.load().predict_proba([("a film", "a great film")]).shape == (1, 2)


# options


def test_schedules() -> None:
    assert [rate_factor("linear", step, 4) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]
    assert [rate_factor("linear", step, 6, 0.34) for step in range(6)] == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    assert rate_factor("cosine", 0, 10) == 1.0
    assert rate_factor("cosine", 5, 10) == pytest.approx(0.5)
    assert rate_factor("cosine", 10, 10) == pytest.approx(0.0)
    assert rate_factor("constant", 9, 10) == 1.0
    assert rate_factor("linear", 12, 10) == 0.0


def test_presets_say_what_the_papers_say() -> None:
    ranmask, firebert, fact = preset("ranmask"), preset("firebert"), preset("fact")
    assert (ranmask.epochs, ranmask.batch, ranmask.learning_rate, ranmask.weight_decay) == (20, 32, 5e-5, 1e-6)
    assert (ranmask.schedule, ranmask.clip, ranmask.max_length) == ("cosine", 1.0, 128)
    assert preset("ranmask-authors") == ranmask.changed(epochs=10)
    assert (firebert.epochs, firebert.batch, firebert.learning_rate, firebert.epsilon) == (5, 32, 2e-5, 1e-8)
    assert (firebert.weight_decay, firebert.warm_up, firebert.schedule, firebert.max_length) == (0, 0, "linear", 128)
    assert (fact.epochs, fact.schedule_unit) == (1, "texts")
    for name, kind in {
        "CNN-W-GloVe-2": "zoo-word",
        "BiLSTM-C-Random-1": "zoo-character",
        "LSTM-WC-ELMo-1": "zoo-character",
        "BERT-NOPT": "scratch",
        "RoBERTa": "transformer",
        "BiLSTM-attention": "zoo-word",
        "MiniLM-L6": "minilm",
        "biLM": "bilm",
        "stockade-lstm": "zoo-word",
    }.items():
        assert preset_for(name) == kind
        assert kind in PRESETS
    with pytest.raises(OptionError, match=r'no training preset "ranmsk".*Did you mean "ranmask"'):
        preset("ranmsk")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epochs": 0}, "epochs is 0, expected a whole number from 1 up"),
        ({"batch": 2.5}, "batch is 2.5, expected a whole number"),
        ({"learning_rate": float("nan")}, "learning_rate is nan, expected a number above 0"),
        ({"word_dropout": 1.0}, "word_dropout is 1.0, expected a number from 0 up and below 1"),
        ({"schedule": "cosin"}, 'no schedule "cosin".*Did you mean "cosine"'),
        ({"epoch": 3}, 'no training option "epoch".*Did you mean "epochs"'),
        ({"epochs": "many"}, 'epochs is "many", expected a number'),
        ({"class_weights": "1,two"}, 'class weights "1,two" cannot be read'),
        ({"class_weights": (0.0, 0.0)}, "expected none, balanced"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        TrainingOptions().changed(**options)


def test_an_argument_by_the_name_of_the_command_is_answered_with_its_own(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r'no training option "arch".*Did you mean "architecture"'):
        st.train([{"text": "fine", "label": 1}], arch="CNN-W-Random-1", out=tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_options_from_text() -> None:
    found = TrainingOptions().changed(patience="none", clip="0.5", epochs="3", class_weights="balanced")
    assert (found.patience, found.clip, found.epochs, found.class_weights) == (None, 0.5, 3, "balanced")
    assert read_class_weights("1,2.5") == (1.0, 2.5)


# the loop


def test_class_weights() -> None:
    labels = [0, 0, 0, 1]
    balanced = class_weights("balanced", labels, ("a", "b"))
    assert balanced is not None
    assert balanced.tolist() == pytest.approx([4 / 6, 2.0])
    assert sum(balanced[label] for label in labels) / 4 == pytest.approx(1.0)
    assert class_weights("none", labels, ("a", "b")) is None
    with pytest.raises(OptionError, match="There are 3 class weights for 2 classes"):
        class_weights((1.0, 2.0, 3.0), labels, ("a", "b"))


def test_class_weights_change_what_is_learned(tmp_path: Path) -> None:
    one_sided = OPTIONS.changed(class_weights=(1.0, 0.0), epochs=4, learning_rate=0.05)
    out = train(rows(), tiny_origin(), tmp_path / "m", options=one_sided)
    assert out.load().predict_proba([text for text, _ in rows()]).argmax(1).sum() == 0


def test_early_stopping_keeps_the_best_epoch(tmp_path: Path) -> None:
    scores = [0.5, 0.7, 0.9, 0.8, 0.9, 0.6]
    state = State()
    for score in scores:
        state.end_epoch(Evaluation(1.0, (int(score * 10),), (10,)), 0.0)
    assert state.best is state.history[2], "the first of equals"
    assert state.out_of_patience(3)
    assert not state.out_of_patience(4)
    assert not state.out_of_patience(None)
    wild = OPTIONS.changed(epochs=40, patience=2, learning_rate=0.02, schedule="constant")
    out = train(rows(200), tiny_origin(dropout=0.0), tmp_path / "m", options=wild)
    assert len(out.history) == out.best.number + 2 < 40
    validation = prepared(rows(200), seed=wild.seed).validation
    guesses = torch.from_numpy(out.load().predict_proba(validation.inputs))
    assert float(functional.nll_loss(guesses.log(), torch.tensor(validation.labels))) == pytest.approx(
        out.best.validation.loss, abs=1e-5
    )


def test_batches_hold_every_text_once_and_like_lengths_together() -> None:
    lengths = [(i * 37) % 101 for i in range(1000)]
    plan = plan_batches(lengths, 8, 3, 0)
    assert sorted(row for batch in plan for row in batch) == list(range(1000))
    assert len(plan) == count_batches(1000, 8) == 125
    assert plan == plan_batches(lengths, 8, 3, 0) != plan_batches(lengths, 8, 3, 1)
    padding = sum(max(lengths[row] for row in batch) * len(batch) for batch in plan) / sum(lengths)
    assert padding < 1.15
    for texts in range(1, 70):
        assert count_batches(texts, 2) == len(plan_batches([1] * texts, 2, 0, 0))


class Doubling(CrossEntropy):
    """Every text a second time with a word hidden, and the loss in two parts."""

    def augment(self, batch: Batch) -> Batch:
        hidden = [" ".join([*str(text).split()[:-1], "hidden"]) for text in batch.inputs]
        return batch.with_inputs([*batch.inputs, *hidden], torch.cat([batch.labels, batch.labels]))

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        assert len(batch) == len(batch.labels) == len(batch.tensors["input_ids"])
        batch.backward(super().loss(model, batch) / 2)
        return super().loss(model, batch) / 2


def test_an_objective_may_add_texts_and_pass_several_times(tmp_path: Path) -> None:
    seen: list[Progress] = []
    train(rows(), tiny_origin(), tmp_path / "m", options=OPTIONS, objective=Doubling(), observe=seen.append)
    assert sum(progress.finished for progress in seen) == 3
    assert math.isfinite(seen[-1].loss)
    record = json.loads((tmp_path / "m/training.json").read_text())
    assert record["config"]["objective"].endswith("Doubling")


def test_several_passes_add_up_to_one(tmp_path: Path) -> None:
    """Two halves of the loss, one put into the weights early, move them as the whole does."""

    class Halves(CrossEntropy):
        def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
            half = CrossEntropy().loss(model, batch) / 2
            batch.backward(half)
            return CrossEntropy().loss(model, batch) / 2

    origin = tiny_origin(dropout=0.0)
    options = OPTIONS.changed(epochs=1)
    whole = train(rows(), origin, tmp_path / "whole", options=options)
    halves = train(rows(), origin, tmp_path / "halves", options=options, objective=Halves())
    assert halves.history[0].validation.loss == pytest.approx(whole.history[0].validation.loss, abs=1e-4)


def test_models_with_a_loss_of_their_own() -> None:
    class Model(torch.nn.Module):
        def forward(self, input_ids: torch.Tensor) -> Any:
            return type("Output", (), {"loss": input_ids.float().mean()})

    batch = Batch(
        inputs=("a",),
        labels=torch.zeros(1),
        tensors={"input_ids": torch.tensor([[1, 3]])},
        rng=None,
        encode=None,
        backward=None,
    )  # type: ignore[arg-type]
    assert float(ModelLoss().loss(Model(), ModelLoss().augment(batch))) == 2.0


def test_lengths_are_cut_and_remembered(tmp_path: Path) -> None:
    short = OPTIONS.changed(max_length=3, epochs=1)
    out = train(rows(), tiny_origin(), tmp_path / "m", options=short)
    first, second = out.load().predict_proba(["a film the good", "a film the bad"])
    assert first.tolist() == second.tolist()


def test_precision_is_what_the_device_can_do(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="float16 needs a CUDA device"):
        train(rows(), tiny_origin(), tmp_path / "m", options=OPTIONS.changed(precision="float16"), device="cpu")
    out = train(rows(), tiny_origin(), tmp_path / "m", options=OPTIONS.changed(precision="bfloat16", epochs=1))
    assert math.isfinite(out.history[0].loss)
    with pytest.raises(OptionError, match='no device "gpu"'):
        train(rows(), tiny_origin(), tmp_path / "n", options=OPTIONS, device="gpu")
