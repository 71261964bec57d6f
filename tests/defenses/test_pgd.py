"""Training on the worst input vectors near a text."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
import torch
from torch import Tensor, nn

from stockade.core.errors import ModelError, OptionError
from stockade.defenses.changeable import perturbable_tokens
from stockade.defenses.embedding_perturbation import Ascent
from stockade.defenses.registry import make_defense
from stockade.models.input_vectors import altered_vectors
from tests.defenses.adversarial_kit import (
    assert_same_gradients,
    gradients,
    loss_at,
    make_batch,
    make_kit,
    reference_start,
    reference_step,
)

ASCENT = Ascent(steps=3, step_size=0.4, start_norm=0.5, max_norm=0.9)


@pytest.mark.parametrize("limit", [0.9, 0.05, 0.0])
def test_loss_and_gradients_are_those_of_a_plain_loop(limit: float) -> None:
    kit = make_kit()
    batch, table = make_batch(kit), kit.network.get_input_embeddings()
    moved = batch.tensors["attention_mask"].bool()
    now = reference_start(batch, 16, 0.5, moved)
    for _ in range(3):
        now = now.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss_at(kit.network, batch, table(batch.tensors["input_ids"]) + now), now)
        now = reference_step(now.detach(), slope, moved, 0.4, limit)
    expected = loss_at(kit.network, batch, table(batch.tensors["input_ids"]) + now)
    expected.backward()
    expected_gradients = gradients(kit.network)
    kit.network.zero_grad()

    options = f"pgd:steps=3,step_size=0.4,start_norm=0.5,max_norm={limit}"
    objective = make_defense(options).defense.objective(kit)
    loss = objective.loss(kit.network, objective.augment(make_batch(kit)))
    assert all(weight.grad is None for weight in kit.network.parameters())  # the ascent leaves nothing in the weights
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    loss.backward()
    assert_same_gradients(gradients(kit.network), expected_gradients)


def test_the_ascent_ends_where_the_loss_is_higher() -> None:
    kit = make_kit()
    clean = kit.plain.loss(kit.network, make_batch(kit)).item()
    losses = []
    for steps in (1, 10):
        pgd = make_defense("pgd", steps=steps, step_size=0.3, start_norm=0.0, max_norm=0.0).defense
        losses.append(pgd.objective(kit).loss(kit.network, make_batch(kit)).item())
    assert clean < losses[0] < losses[1]


def test_the_hook_is_gone_afterwards() -> None:
    kit = make_kit()
    before = kit.network(**make_batch(kit).tensors).logits
    make_defense("pgd").defense.objective(kit).loss(kit.network, make_batch(kit))
    assert torch.equal(kit.network(**make_batch(kit).tensors).logits, before)


def test_the_start_is_within_its_bounds_and_only_where_tokens_may_move() -> None:
    moved = torch.tensor([[True, True, False, False], [True, True, True, True]])
    start = ASCENT.start(moved, 9, Random(1))
    assert start.shape == (2, 4, 9)
    assert (start[~moved] == 0).all()
    for text, tokens in ((0, 2), (1, 4)):
        numbers = start[text][moved[text]].abs()
        bound = 0.5 / (tokens * 9) ** 0.5
        assert numbers.max() <= bound
        assert numbers.max() > 0.8 * bound
        assert start[text].norm() < 0.5
    assert torch.equal(start, ASCENT.start(moved, 9, Random(1)))
    assert not torch.equal(start, ASCENT.start(moved, 9, Random(2)))


def test_a_step_is_along_the_gradient_of_a_whole_text() -> None:
    gradient = torch.tensor([[[3.0, 0.0], [0.0, 4.0], [9.0, 9.0]], [[0.0] * 2] * 3, [[float("nan")] * 2] * 3])
    moved = torch.tensor([[True, True, False], [True] * 3, [True] * 3])
    here = torch.ones(3, 3, 2) * 0.1
    after = Ascent(steps=1, step_size=1.0, start_norm=0.0, max_norm=0.0).ascended(here, gradient, moved)
    expected = here.clone()
    expected[0] += torch.tensor([[0.6, 0.0], [0.0, 0.8], [0.0, 0.0]])  # 3, 4 have length 5; no gradient, no step
    torch.testing.assert_close(after, expected)


def test_projection_shortens_what_is_too_long() -> None:
    vectors = torch.tensor([[[3.0, 0.0], [0.0, 4.0]], [[0.3, 0.0], [0.0, 0.4]]])
    projected = Ascent(steps=1, step_size=1.0, start_norm=0.0, max_norm=1.0).projected(vectors)
    torch.testing.assert_close(projected, torch.tensor([[[0.6, 0.0], [0.0, 0.8]], [[0.3, 0.0], [0.0, 0.4]]]))
    assert torch.equal(Ascent(steps=1, step_size=1.0, start_norm=0.0, max_norm=0.0).projected(vectors), vectors)


def test_padding_and_hidden_words_do_not_move() -> None:
    kit = make_kit()
    tensors = make_batch(kit, ["a good film", "[UNK] good"], [1, 1]).tensors
    assert perturbable_tokens(tensors, kit.tokenizer).tolist() == [[True, True, True], [False, True, False]]


def test_a_model_that_does_not_use_its_embedding_is_refused() -> None:
    class Deaf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.layer = nn.Embedding(3, 2), nn.Linear(1, 2)

        def get_input_embeddings(self) -> nn.Module:
            return self.embedding

        def forward(self, input_ids: Tensor) -> Tensor:
            return self.layer(input_ids.float().mean(1, keepdim=True))

    with pytest.raises(ModelError, match="Deaf does not read its texts through its input embedding"):  # noqa: SIM117
        with altered_vectors(model := Deaf(), lambda vectors: vectors):
            model(torch.tensor([[1, 2]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("steps=0", "The steps of pgd are 0"),
        ("step_size=-1", "The step_size of pgd is -1.0, expected a number from 0 up"),
        ("max_norm=nan", "The max_norm of pgd is nan"),
        ("step_size=0,start_norm=0", "would perturb nothing"),
        ("adv_lr=0.1", "adv_lr"),
    ],
)
def test_bad_options(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_defense(f"pgd:{options}")


def test_one_search_for_the_worst_vectors_is_enough() -> None:
    kit = make_kit()
    inside = make_kit(plain=make_defense("freelb").defense.objective(kit))
    with pytest.raises(OptionError, match="pgd and another defense of pgd, freelb and hull were named"):
        make_defense("pgd").defense.objective(inside)


@pytest.mark.parametrize("outer", ["pgd", "freelb", "hull"])
@pytest.mark.parametrize("inner", ["pgd", "freelb", "hull"])
def test_nor_does_one_search_stand_around_another_with_something_between(outer: str, inner: str) -> None:
    kit = make_kit()
    for name in (inner, "safer"):
        kit = replace(kit, plain=make_defense(name).defense.objective(kit))
    with pytest.raises(OptionError, match=f"{outer} and another defense of pgd, freelb and hull were named"):
        make_defense(outer).defense.objective(kit)


def test_a_gradient_that_is_not_finite_moves_nothing() -> None:
    gradient = torch.tensor([[[float("inf"), 1.0]], [[3.0, 4.0]]])
    here = torch.full((2, 1, 2), 0.1)
    after = Ascent(steps=1, step_size=1.0, start_norm=0.0, max_norm=0.0).ascended(
        here, gradient, torch.ones(2, 1, dtype=torch.bool)
    )
    torch.testing.assert_close(after, torch.tensor([[[0.1, 0.1]], [[0.7, 0.9]]]))
