"""Training on every step of the search for the worst input vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from stockade.defenses.chain import combined_objective
from stockade.defenses.registry import make_defense
from tests.defenses.adversarial_kit import (
    assert_same_gradients,
    gradients,
    loss_at,
    make_batch,
    make_kit,
    reference_start,
    reference_step,
    watched_vectors,
)
from tests.training.tiny import OPTIONS, rows, tiny_origin, train_tiny

OPTION_TEXT = "freelb:steps=3,step_size=0.4,start_norm=0.5,max_norm=0.9"


def test_loss_and_gradients_are_those_of_a_plain_loop() -> None:
    kit = make_kit()
    batch, table = make_batch(kit), kit.network.get_input_embeddings()
    moved = batch.tensors["attention_mask"].bool()
    now, losses = reference_start(batch, 16, 0.5, moved), []
    for _ in range(3):
        now = now.detach().requires_grad_()
        loss = loss_at(kit.network, batch, table(batch.tensors["input_ids"]) + now) / 3
        loss.backward()
        losses.append(loss.item())
        assert now.grad is not None
        now = reference_step(now.detach(), now.grad, moved, 0.4, 0.9)
    expected = gradients(kit.network)
    kit.network.zero_grad()

    objective = make_defense(OPTION_TEXT).defense.objective(kit)
    loss_of_freelb = objective.loss(kit.network, objective.augment(make_batch(kit)))
    assert loss_of_freelb.item() == pytest.approx(sum(losses), abs=1e-6)
    loss_of_freelb.backward()
    assert_same_gradients(gradients(kit.network), expected)


def test_one_step_is_a_random_perturbation() -> None:
    kit = make_kit()
    batch = make_batch(kit)
    objective = make_defense("freelb:steps=1,start_norm=0.5").defense.objective(kit)
    loss = objective.loss(kit.network, make_batch(kit)).item()
    start = reference_start(batch, 16, 0.5, batch.tensors["attention_mask"].bool())
    vectors = kit.network.get_input_embeddings()(batch.tensors["input_ids"])
    assert loss == pytest.approx(loss_at(kit.network, batch, vectors + start).item(), abs=1e-6)
    assert loss != pytest.approx(kit.plain.loss(kit.network, batch).item(), abs=1e-6)


def dropped(model: nn.Module, passes: list[list[Tensor]]) -> None:
    """Note for every pass which numbers each dropout layer drops."""

    def look(module: nn.Module, inputs: tuple[Tensor, ...], answer: Tensor) -> None:
        passes[-1].append((answer == 0) & (inputs[0] != 0))

    model.register_forward_pre_hook(lambda *_: passes.append([]))
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.register_forward_hook(look)


def test_all_steps_drop_the_same_numbers_and_the_next_batch_others() -> None:
    kit = make_kit(dropout=0.5)
    passes: list[list[Tensor]] = []
    dropped(kit.network, passes)
    objective = make_defense(OPTION_TEXT).defense.objective(kit)
    for _ in range(2):
        objective.loss(kit.network, make_batch(kit))
    assert len(passes) == 6
    assert sum(int(mask.sum()) for mask in passes[0]) > 50
    for first, others in ((passes[0], passes[1:3]), (passes[3], passes[4:])):
        for other in others:
            assert all(torch.equal(mask, same) for mask, same in zip(first, other, strict=True))
    assert not all(torch.equal(mask, same) for mask, same in zip(passes[0], passes[3], strict=True))


def test_words_are_hidden_first_and_what_hides_them_is_not_moved() -> None:
    kit = make_kit()
    named = [make_defense("ranmask:rate=0.5"), make_defense("freelb:steps=2,start_norm=0.5")]
    make = combined_objective(named)
    assert make is not None
    objective = make(kit)
    batch = objective.augment(make_batch(kit))
    ids = batch.tensors["input_ids"]
    hidden = ids == kit.tokenizer.unk_token_id
    assert hidden.sum(1).tolist() == [2, 3, 0, 2]  # of 3, 6, 1 and 4 words, half hidden in Python's rounding
    with watched_vectors(kit.network) as plain, torch.no_grad():
        kit.network(**batch.tensors)
    with watched_vectors(kit.network) as moved:
        objective.loss(kit.network, batch)
    assert len(moved) == 2
    for after in moved:
        differs = (after - plain[0]).abs().amax(2) > 1e-6
        assert torch.equal(differs, batch.tensors["attention_mask"].bool() & ~hidden)


def trained(out: Path, texts: int, epochs: int, stop: int | None = None, resume: bool = False) -> Any:
    """A tiny model trained with masks and FreeLB, or stopped at a step."""
    named = [make_defense("ranmask:rate=0.2"), make_defense("freelb:steps=2,step_size=0.01,start_norm=0.02")]

    def watch(progress: Any) -> None:
        if progress.done == stop:
            raise RuntimeError("power cut")

    return train_tiny(
        out,
        rows(texts),
        origin=tiny_origin(dropout=0.05),
        options=OPTIONS.changed(epochs=epochs, learning_rate=0.02),
        defenses=named,
        resume=resume,
        observer=watch,
    )


@pytest.mark.usefixtures("plain_report")
def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", texts=30, epochs=2)
    with pytest.raises(RuntimeError, match="power cut"):
        trained(tmp_path / "cut", texts=30, epochs=2, stop=5)
    again = trained(tmp_path / "cut", texts=30, epochs=2, resume=True)
    first, second = (result.load().model.state_dict() for result in (whole, again))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
@pytest.mark.usefixtures("plain_report")
def test_a_tiny_model_learns(tmp_path: Path) -> None:
    assert trained(tmp_path / "m", texts=160, epochs=6).accuracy >= 0.9


@pytest.mark.parametrize("preset", ["paper", "mnli", "albert-sst2", "albert-mnli", "ranmask-authors"])
def test_presets_are_the_published_settings(preset: str) -> None:
    options = make_defense(f"freelb@{preset}").options
    assert (options["steps"], options["step_size"], options["start_norm"], options["max_norm"]) == {
        "paper": (2, 0.1, 0.75, 0.5),
        "mnli": (2, 0.1, 0.15, 0.25),
        "albert-sst2": (2, 0.1, 0.6, 0.0),
        "albert-mnli": (3, 0.04, 0.08, 0.0),
        "ranmask-authors": (3, 0.3, 0.5, 0.05),
    }[preset]
