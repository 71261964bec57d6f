"""Training on the worst mixtures of a word's vector with those of its synonyms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from stockade.core.errors import OptionError
from stockade.defenses.hull import BatchHulls, HullAscent, HullTraining
from stockade.defenses.registry import make_defense
from stockade.training.objective import TrainingKit
from tests.defenses.adversarial_kit import (
    TEXTS,
    assert_same_gradients,
    gradients,
    loss_at,
    make_batch,
    make_kit,
    pair_kit,
    watched_vectors,
)
from tests.defenses.test_adv_hotflip import directions

TABLE = directions(good=0, great=10, fine=20, film=100, picture=110, bad=200)


@pytest.fixture(autouse=True)
def small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.defenses.hull.neighbour_table", lambda path: TABLE)


def hull_of(kit: TrainingKit, **options: Any) -> HullTraining:
    objective = make_defense("hull", **{"count": 2, "min_cosine": 0.9, **options}).defense.objective(kit)
    assert isinstance(objective, HullTraining)
    return objective


def reference(kit: TrainingKit, batch: Any, hull: HullTraining) -> torch.Tensor:
    """The loss at the mixtures, word by word: plain steps on the scores, then a mixture of the table's vectors."""
    table, ids, ascent = kit.network.get_input_embeddings().weight, batch.tensors["input_ids"], hull.ascent
    near = {token: list(dict.fromkeys(row)) for token, row in enumerate(hull.neighbours.tolist())}
    places = [(t, i) for t, row in enumerate(ids.tolist()) for i, token in enumerate(row) if len(near[token]) > 1]
    columns = torch.tensor([[c < len(near[int(ids[place])]) for c in range(3)] for place in places])
    scores = ascent.start(columns, np.random.default_rng(batch.rng.getrandbits(64)))
    of_text = [sum(t == text for t, _ in places) for text in range(len(ids))]

    def mixed(now: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, entropy = [list(table[row]) for row in ids], torch.zeros(())
        for number, (text, token) in enumerate(places):
            words = near[int(ids[text, token])]
            weights = now[number, : len(words)].softmax(0)
            rows[text][token] = sum(weight * table[word] for weight, word in zip(weights, words, strict=True))
            entropy = entropy - (weights * weights.log()).sum() / of_text[text]
        return torch.stack([torch.stack(row) for row in rows]), entropy

    for _ in range(ascent.steps):
        scores = scores.detach().requires_grad_()
        vectors, entropy = mixed(scores)
        raised = len(ids) * loss_at(kit.network, batch, vectors) - ascent.sparsity * entropy
        (slope,) = torch.autograd.grad(raised, scores)
        scores = scores + ascent.step_size * slope / slope.square().sum(1, keepdim=True).sqrt()
    worst = loss_at(kit.network, batch, mixed(scores.detach())[0])
    clean = loss_at(kit.network, batch, table[ids]) if hull.clean else 0.0
    return hull.clean * clean + (1 - hull.clean) * worst


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 3},
        {"steps": 2, "sparsity": 0.0, "clean": 0.0, "start": "dirichlet", "concentration": 0.5},
        {"steps": 0, "clean": 0.0},
    ],
)
def test_loss_and_gradients_are_those_of_a_plain_loop(options: dict[str, Any]) -> None:
    kit = make_kit()
    hull = hull_of(kit, **options)
    expected = reference(kit, make_batch(kit), hull)
    expected.backward()
    wanted = gradients(kit.network)
    kit.network.zero_grad()
    loss = hull.loss(kit.network, hull.augment(make_batch(kit)))
    if not hull.clean:
        assert all(weight.grad is None for weight in kit.network.parameters())
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    assert_same_gradients(gradients(kit.network), wanted)


def test_only_words_with_synonyms_are_mixed() -> None:
    kit = make_kit()
    hull, batch = hull_of(kit, steps=1, clean=0.0), make_batch(kit)
    with watched_vectors(kit.network) as vectors, torch.no_grad():
        kit.network(**batch.tensors)
    with watched_vectors(kit.network) as moved:
        hull.loss(kit.network, batch)
    differs = (moved[-1] - vectors[0]).abs().amax(2) > 1e-6
    texts = [text.split() for text in TEXTS]
    for row, words in zip(differs.tolist(), texts, strict=True):
        assert [word for word, moves in zip(words, row, strict=False) if moves] == [
            word for word in words if word in ("good", "film", "picture")
        ]


def test_the_premise_of_a_pair_is_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.defenses.hull.neighbour_table", lambda path: directions(great=0, bad=10))
    kit = pair_kit()
    batch = make_batch(kit, [("a great film", "a bad film"), "a great film"], [1, 0])
    hull = hull_of(kit, steps=1, clean=0.0)
    with watched_vectors(kit.network) as vectors, torch.no_grad():
        kit.network(**batch.tensors)
    with watched_vectors(kit.network) as moved:
        hull.loss(kit.network, batch)
    differs = (moved[-1] - vectors[0]).abs().amax(2) > 1e-6
    assert [torch.nonzero(row).squeeze(1).tolist() for row in differs] == [[6], [2]]


def test_a_batch_without_synonyms_is_trained_on_as_it_is() -> None:
    kit = make_kit()
    batch = make_batch(kit, ["the story", "dull"], [1, 0])
    assert hull_of(kit).loss(kit.network, batch).item() == kit.plain.loss(kit.network, batch).item()


def test_sparseness_takes_every_mixture_nearer_to_one_word() -> None:
    kit = make_kit()
    ends = []
    for sparsity in (0.0, 1000.0):
        with watched_weights() as watched:
            hull_of(kit, steps=1, step_size=0.3, sparsity=sparsity, clean=0.0).loss(kit.network, make_batch(kit))
        ends.append((entropies(watched[0]), entropies(watched[-1])))
    (start, plain), (again, sparse) = ends
    assert torch.equal(start, again)
    assert len(start) == 4
    assert (sparse < start).all()
    assert (plain > start).any()  # the loss alone does not care


def entropies(weights: torch.Tensor) -> torch.Tensor:
    return -torch.xlogy(weights, weights).sum(1)


@contextmanager
def watched_weights() -> Iterator[list[torch.Tensor]]:
    """Notes the weights of every mixture meanwhile."""
    mixtures: list[torch.Tensor] = []
    combined = BatchHulls.combined

    def watched(hulls: BatchHulls, vectors: torch.Tensor, table: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        mixtures.append(weights.detach())
        return combined(hulls, vectors, table, weights)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BatchHulls, "combined", watched)
        yield mixtures


def test_dirichlet_starts_have_the_mean_and_spread_of_their_law() -> None:
    columns = torch.tensor([[True, True, True], [True, True, False]]).repeat(4000, 1)
    weights = (
        HullAscent(steps=1, step_size=1.0, sparsity=0.0, concentration=2.0)
        .start(columns, np.random.default_rng(0))
        .softmax(1)
    )
    three, two = weights[::2], weights[1::2]
    torch.testing.assert_close(three.mean(0), torch.full((3,), 1 / 3), atol=0.01, rtol=0)
    torch.testing.assert_close(two.mean(0), torch.tensor([0.5, 0.5, 0.0]), atol=0.01, rtol=0)
    assert three[:, 0].var().item() == pytest.approx(2 * 4 / (6**2 * 7), rel=0.1)  # a (s - a) / s² (s + 1), s = 3 a


def test_a_small_concentration_takes_one_word_at_random() -> None:
    """Its gamma draws are too small for numbers; all of them at the least number would be an even mixture."""
    columns = torch.ones(2000, 3, dtype=torch.bool)
    weights = (
        HullAscent(steps=1, step_size=1.0, sparsity=0.0, concentration=0.003)
        .start(columns, np.random.default_rng(0))
        .softmax(1)
    )
    assert (weights.amax(1) > 0.99).float().mean() > 0.95
    torch.testing.assert_close(weights.mean(0), torch.full((3,), 1 / 3), atol=0.03, rtol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [("count=0", "count of 0"), ("clean=1", "clean share of hull is 1.0"), ("concentration=0", "concentration of hull"),
     ("step_size=-1", "step_size of hull is -1.0")],
)  # fmt: skip
def test_bad_options(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_defense(f"hull:{options}")


def test_hull_does_not_nest_with_other_searches() -> None:
    kit = make_kit()
    inside = make_kit(plain=make_defense("pgd").defense.objective(kit))
    with pytest.raises(OptionError, match="hull and another defense"):
        hull_of(inside)


def test_a_batch_without_synonyms_costs_one_pass() -> None:
    kit = make_kit()
    with watched_vectors(kit.network) as passes:
        hull_of(kit).loss(kit.network, make_batch(kit, ["the story", "dull"], [1, 0]))
    assert len(passes) == 1


def test_a_word_without_a_gradient_keeps_its_weights() -> None:
    scores = torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, -torch.inf]])
    gradient = torch.tensor([[torch.nan, torch.nan], [3.0, 4.0], [5.0, torch.nan]])
    after = HullAscent(steps=1, step_size=0.5, sparsity=0.0, concentration=None).ascended(scores, gradient)
    torch.testing.assert_close(after, torch.tensor([[1.0, 2.0], [1.3, 2.4], [1.5, -torch.inf]]))


def test_the_start_is_the_one_that_was_asked_for() -> None:
    kit = make_kit()
    assert hull_of(kit, start="dirichlet", concentration=0.5).ascent.concentration == 0.5
    assert hull_of(kit, start="normal", concentration=0.5).ascent.concentration is None
