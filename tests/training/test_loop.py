"""The loop and what it is made of: schedules, batches, objectives, class weights, devices, early stopping."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch.nn import functional

from stockade.core.errors import OptionError
from stockade.datasets.load import load_data
from stockade.training.batches import count_batches, plan_batches
from stockade.training.data import prepare_data
from stockade.training.loop import rate_factor
from stockade.training.network import Origin
from stockade.training.objective import Batch, CrossEntropy, ModelLoss, class_weights
from stockade.training.state import Evaluation, State
from tests.training.tiny import OPTIONS, rows, tiny_origin, train_tiny

pytestmark = pytest.mark.usefixtures("plain_report")
SHORT = OPTIONS.changed(epochs=1)


def test_a_training_begins_somewhere() -> None:
    with pytest.raises(OptionError, match="name one of --arch and --model"):
        Origin()
    with pytest.raises(OptionError, match="name one of --arch and --model"):
        Origin(architecture="tiny", model="folder")


def test_schedules() -> None:
    assert [rate_factor("linear", step, 4) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]
    assert [rate_factor("linear", step, 6, 2) for step in range(6)] == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    assert rate_factor("cosine", 0, 10) == 1.0
    assert rate_factor("cosine", 5, 10) == pytest.approx(0.5)
    assert rate_factor("cosine", 10, 10) == pytest.approx(0.0)
    assert rate_factor("constant", 9, 10) == 1.0
    assert [rate_factor("inverse-sqrt", step, 99, 4) for step in (0, 3, 15, 63)] == [0.25, 1.0, 0.5, 0.25]
    assert rate_factor("linear", 12, 10) == 0.0


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
    result = train_tiny(tmp_path / "m", options=one_sided)
    assert result.load().predict_proba([text for text, _ in rows()]).argmax(1).sum() == 0


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
    result = train_tiny(tmp_path / "m", rows(100), origin=tiny_origin(dropout=0.0), options=wild)
    assert len(result.history) == result.best.number + 2 < 40
    validation = prepare_data(load_data(rows(100)), seed=wild.seed).validation
    guesses = torch.from_numpy(result.load().predict_proba(validation.inputs))
    assert float(functional.nll_loss(guesses.log(), torch.tensor(validation.labels))) == pytest.approx(
        result.best.validation.loss, abs=1e-5
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
    result = train_tiny(tmp_path / "m", objective=Doubling())
    assert len(result.history) == 3
    assert math.isfinite(result.history[-1].loss)
    assert "Doubling" in result.manifest.spec["objective"]


def test_several_passes_add_up_to_one(tmp_path: Path) -> None:
    """Two halves of the loss, one put into the weights early, move them as the whole does."""

    class Halves(CrossEntropy):
        def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
            half = CrossEntropy().loss(model, batch) / 2
            batch.backward(half)
            return CrossEntropy().loss(model, batch) / 2

    origin = tiny_origin(dropout=0.0)
    whole = train_tiny(tmp_path / "whole", origin=origin, options=SHORT)
    halves = train_tiny(tmp_path / "halves", origin=origin, options=SHORT, objective=Halves())
    assert halves.history[0].validation.loss == pytest.approx(whole.history[0].validation.loss, abs=1e-4)


def test_models_with_a_loss_of_their_own() -> None:
    class Model(torch.nn.Module):
        def forward(self, input_ids: torch.Tensor) -> Any:
            return type("Output", (), {"loss": input_ids.float().mean()})

    batch = Batch(
        inputs=("a",),
        labels=torch.zeros(1),
        tensors={"input_ids": torch.tensor([[1, 3]])},
        rng=Random(0),
        encode=lambda inputs: {},
        backward=torch.autograd.backward,
    )
    assert float(ModelLoss().loss(Model(), ModelLoss().augment(batch))) == 2.0


def test_lengths_are_cut_and_remembered(tmp_path: Path) -> None:
    result = train_tiny(tmp_path / "m", options=SHORT.changed(max_length=3))
    first, second = result.load().predict_proba(["a film the good", "a film the bad"])
    assert first.tolist() == second.tolist()


def test_precision_is_what_the_device_can_do(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="float16 needs a CUDA device"):
        train_tiny(tmp_path / "m", options=OPTIONS.changed(precision="float16"), device="cpu")
    result = train_tiny(tmp_path / "m", options=SHORT.changed(precision="bfloat16"))
    assert math.isfinite(result.history[0].loss)
    with pytest.raises(OptionError, match='no device "gpu"'):
        train_tiny(tmp_path / "n", device="gpu")
