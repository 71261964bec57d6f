"""Training on copies whose tokens are flipped along the gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from stockade.core.errors import ModelError, OptionError
from stockade.defenses.adv_hotflip import FlipTraining, best_of_all, chosen_places
from stockade.defenses.chain import combined_objective
from stockade.defenses.neighbours import neighbour_tokens, word_tokens
from stockade.defenses.registry import make_defense
from stockade.lexicon.neighbours import Neighbours, use_neighbours
from stockade.training.objective import Batch, CrossEntropy, TrainingKit
from tests.defenses.adversarial_kit import LABELS, loss_at, make_batch, make_kit, pair_kit

LONG = ("a good film with the story and a fine picture of fun", "the worst film")


def directions(**angles: float) -> Neighbours:
    """Words at angles (in degrees) of a plane: the cosine of two is that of the difference."""
    radians = np.deg2rad(list(angles.values()))
    matrix = np.rint(120 * np.stack([np.cos(radians), np.sin(radians)], 1)).astype(np.int8)
    return Neighbours(tuple(angles), matrix)


def flips_of(kit: TrainingKit, **options: Any) -> FlipTraining:
    objective = make_defense("adv-hotflip", **options).defense.objective(kit)
    assert isinstance(objective, FlipTraining)
    return objective


def reference_flips(kit: TrainingKit, batch: Any, allowed: Any, share: float) -> torch.Tensor:
    """One round, place by place and token by token."""
    table, ids = kit.network.get_input_embeddings().weight.detach(), batch.tensors["input_ids"]
    vectors = table[ids].clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss_at(kit.network, batch, vectors), vectors)
    flipped = ids.clone()
    for text, row in enumerate(ids.tolist()):
        length = int(batch.tensors["attention_mask"][text].sum())
        gains = []
        for place in range(length):
            each = [(float(slope[text, place] @ (table[b] - table[row[place]])), -b) for b in allowed(row[place])]
            gain, number = max(each)
            gains.append((gain, -place, -number))
        for gain, place, number in sorted(gains, reverse=True)[: int(share * length)]:
            if gain > 0:
                flipped[text, -place] = number
    return flipped


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_flips_are_those_of_a_plain_search_over_the_vocabulary(share: float) -> None:
    kit = make_kit()
    batch = make_batch(kit, LONG, (1, 0))
    words = set(word_tokens(kit.tokenizer))
    assert words == set(range(2, 18))  # all but [PAD] and [UNK]
    expected = reference_flips(kit, batch, lambda _: words, share)
    flipped = flips_of(kit, rounds=1, share=share).flipped(batch)
    assert torch.equal(flipped["input_ids"], expected)
    changed = (expected != batch.tensors["input_ids"]).sum(1).tolist()
    assert changed == [int(share * 12), int(share * 3)]


def test_neighbours_are_the_only_candidates_when_asked_for() -> None:
    kit = make_kit()
    batch = make_batch(kit, LONG, (1, 0))
    table = directions(good=0, great=10, fine=20, film=100, picture=110, bad=200, unheard=5)
    number = kit.tokenizer.convert_tokens_to_ids
    with use_neighbours(table):
        flips = flips_of(kit, rounds=1, share=1.0, candidates="neighbours", count=2, min_cosine=0.9)
    near = {
        number("good"): {number("great"), number("fine")},
        number("great"): {number("good"), number("fine")},
        number("fine"): {number("good"), number("great")},
        number("film"): {number("picture")},
        number("picture"): {number("film")},
    }
    assert {
        token: set(row) - {token} for token, row in enumerate(flips.candidates.tolist()) if set(row) != {token}
    } == near
    expected = reference_flips(kit, batch, lambda token: near.get(token, set()) | {token}, 1.0)
    assert torch.equal(flips.flipped(batch)["input_ids"], expected)
    assert not torch.equal(expected, batch.tensors["input_ids"])


def test_neighbours_keep_the_case_and_come_nearest_first() -> None:
    class Cased:
        all_special_tokens = ()

        def __len__(self) -> int:
            return 6

        def convert_ids_to_tokens(self, _: object) -> list[str]:
            return ["good", "Good", "fine", "Great", "great", "##great"]

    rows = neighbour_tokens(Cased(), directions(good=0, fine=20, great=-10), 3, 0.9)
    assert rows.tolist() == [[0, 4, 2, 0], [1, 3, 1, 1], [2, 0, 2, 2], [3, 1, 3, 3], [4, 0, 4, 4], [5, 5, 5, 5]]


def test_later_rounds_see_the_gradient_anew() -> None:
    kit = make_kit()
    batch = make_batch(kit, LONG, (1, 0))
    flips = flips_of(kit, rounds=1)
    once = flips.flipped(batch)
    assert torch.equal(
        flips.flipped(replace(batch, tensors=once))["input_ids"],
        flips_of(kit, rounds=2).flipped(batch)["input_ids"],
    )
    losses = [
        kit.network(**tensors, labels=batch.labels).loss.item()
        for tensors in (batch.tensors, flips_of(kit, rounds=3).flipped(batch))
    ]
    assert losses[1] > losses[0]


def test_the_batch_is_clean_and_adversarial() -> None:
    kit = make_kit()
    batch = make_batch(kit, LONG, (1, 0))
    flips = flips_of(kit)
    both = flips.augment(batch)
    assert both.labels.tolist() == [1, 0, 1, 0]
    assert len(both) == 4
    assert torch.equal(both.tensors["input_ids"][:2], batch.tensors["input_ids"])
    assert torch.equal(both.tensors["input_ids"][2:], flips.flipped(batch)["input_ids"])
    assert all(weight.grad is None for weight in kit.network.parameters())
    assert flips.loss(kit.network, both).item() == pytest.approx(kit.plain.loss(kit.network, both).item())


def test_what_hides_words_is_not_flipped() -> None:
    kit = make_kit()
    make = combined_objective([make_defense("ranmask:rate=0.5"), make_defense("adv-hotflip:share=1.0")])
    assert make is not None
    both = make(kit).augment(make_batch(kit))
    clean, flipped = both.tensors["input_ids"].split(len(LABELS))
    hidden = clean == kit.tokenizer.unk_token_id
    assert hidden.sum() == 7
    assert torch.equal(flipped[hidden], clean[hidden])
    assert not torch.equal(flipped, clean)


def test_places_are_those_of_the_greatest_gain() -> None:
    gains = torch.tensor([[0.5, 3.0, -1.0, 2.0, 2.0], [9.0, -1.0, -2.0, 1.0, 1.0]])
    may_flip = torch.tensor([[True] * 5, [False, True, True, True, True]])
    assert chosen_places(gains, may_flip, 0.4).tolist() == [
        [False, True, False, True, False],  # two of five; of equal gains the first
        [False, False, False, True, False],  # one of four
    ]
    assert chosen_places(torch.ones(1, 100), torch.ones(1, 100, dtype=torch.bool), 0.29).sum() == 29
    assert chosen_places(-torch.ones(1, 15), torch.ones(1, 15, dtype=torch.bool), 1.0).sum() == 0


def test_a_vocabulary_of_letters_is_refused() -> None:
    class Letters:
        all_special_tokens = ()

        def __len__(self) -> int:
            return 3

        def convert_ids_to_tokens(self, _: object) -> list[str]:
            return ["a", "b", "c"]

    with pytest.raises(ModelError, match="has no whole words"):
        word_tokens(Letters())


@pytest.mark.parametrize(
    ("options", "message"),
    [("rounds=0", "has 0 rounds"), ("share=0", "share of adv-hotflip is 0.0"), ("candidates=all", "candidates")],
)
def test_bad_options(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_defense(f"adv-hotflip:{options}")


@pytest.mark.parametrize("seed", range(4))
def test_of_neighbours_too_the_greatest_gains_are_taken_first(seed: int) -> None:
    """A gain is over the token that stands there: what else fits badly is no better for it."""
    kit = make_kit(seed=seed)
    batch = make_batch(kit, ("good film fine picture great bad film good", "fine film"), (1, 0))
    table = directions(good=0, great=10, fine=20, film=100, picture=110, bad=200)
    with use_neighbours(table):
        flips = flips_of(kit, rounds=1, share=0.25, candidates="neighbours", count=2, min_cosine=0.9)
    near = {token: set(row) for token, row in enumerate(flips.candidates.tolist())}
    expected = reference_flips(kit, batch, lambda token: near[token], 0.25)
    assert torch.equal(flips.flipped(batch)["input_ids"], expected)


def test_neighbours_are_as_near_as_was_asked_for() -> None:
    kit = make_kit()
    good, fine = kit.tokenizer.convert_tokens_to_ids(["good", "fine"])
    for least, allowed in ((0.9, {good}), (0.6, {good, fine})):
        with use_neighbours(directions(good=0, fine=45)):
            flips = flips_of(kit, candidates="neighbours", count=2, min_cosine=least)
        assert set(flips.candidates[good].tolist()) == allowed


def test_what_begins_and_ends_a_text_is_not_flipped() -> None:
    kit = pair_kit()
    batch = make_batch(kit, ["great film", "a bad film was not great"], [0, 1])
    before, after = batch.tensors["input_ids"], flips_of(kit, rounds=1, share=1.0).flipped(batch)["input_ids"]
    special = torch.isin(before, torch.tensor(kit.tokenizer.all_special_ids))
    assert special.sum() == 2 * 2 + 4
    assert torch.equal(after[special], before[special])
    assert not torch.equal(after, before)


PAIRS = [("a great film", "bad film"), ("a film", "the film was not bad"), "a great film"]


def test_the_premise_of_a_pair_is_not_flipped() -> None:
    kit = pair_kit()
    batch = make_batch(kit, PAIRS, [0, 1, 0])
    before, after = batch.tensors["input_ids"], flips_of(kit, share=1.0).flipped(batch)["input_ids"]
    words = [[5, 6], [4, 5, 6, 7, 8], [1, 2, 3]]
    for row, words_of_text in zip(before != after, words, strict=True):
        changed = torch.nonzero(row).squeeze(1).tolist()
        assert changed
        assert set(changed) <= set(words_of_text)


def test_the_share_is_of_the_hypothesis() -> None:
    kit = pair_kit()
    batch = make_batch(kit, [("a great film was a bad film", "a bad film is great")], [0])
    flipped = flips_of(kit, rounds=1, share=0.2).flipped(batch)["input_ids"]
    assert (flipped != batch.tensors["input_ids"]).sum() == 1


def test_the_premise_stays_where_words_of_the_hypothesis_are_hidden() -> None:
    """A hidden word is one token, "filmly" is two: the text that is flipped is shorter than the one that was given."""
    kit = pair_kit()
    make = combined_objective([make_defense("ranmask:rate=0.5"), make_defense("adv-hotflip:share=1.0")])
    assert make is not None
    batch = make_batch(kit, [("a great film", "filmly filmly filmly not")], [0])
    clean, flipped = make(kit).augment(batch).tensors["input_ids"]
    assert len(clean) < batch.tensors["input_ids"].shape[1]
    assert torch.equal(flipped[:5], clean[:5])
    assert not torch.equal(flipped, clean)


def test_what_else_trains_sees_both_copies() -> None:
    class Dropping(CrossEntropy):
        def augment(self, batch: Batch) -> Batch:
            return replace(batch, labels=batch.labels[1:])

    kit = make_kit(plain=Dropping())
    assert flips_of(kit).augment(make_batch(kit, LONG, (1, 0))).labels.tolist() == [0, 1, 0]


class Listed:
    """A tokenizer of these tokens."""

    all_special_tokens = ()

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def convert_ids_to_tokens(self, _: object) -> list[str]:
        return self.tokens


def test_words_are_whole_and_of_letters() -> None:
    tokens = Listed(["good", "##ly", "3d", "...", "don't", "a", "café"])
    assert word_tokens(tokens) == {0: "good", 5: "a", 6: "café"}


def test_neighbours_of_a_large_vocabulary_are_those_of_a_plain_search() -> None:
    """More words than are compared at once."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [first + second for first in letters for second in letters][:600]
    matrix = np.random.default_rng(0).integers(-127, 128, (600, 3)).astype(np.int8)
    table = Neighbours(tuple(words), matrix)
    shuffled = words[::-1]
    rows = neighbour_tokens(Listed(shuffled), table, 4, 0.95)
    unit = matrix / np.linalg.norm(matrix.astype(float), axis=1, keepdims=True)
    for number in (0, 1, 80, 90, 300, 599):
        word = words.index(shuffled[number])
        cosines = unit @ unit[word]
        near = [at for at in np.argsort(-cosines, kind="stable").tolist() if at != word and cosines[at] >= 0.95][:4]
        expected = [shuffled.index(words[at]) for at in near]
        assert len(expected) == 4
        assert rows[number].tolist() == [number, *expected]


def test_the_best_of_many_candidates_is_the_first_of_the_greatest_products() -> None:
    """More places and more candidates than are compared at once; whole numbers, so that products are exact and ties
    are many.
    """
    generator = torch.Generator().manual_seed(0)
    slopes = torch.randint(-3, 4, (1100, 3), generator=generator).float()
    vectors = torch.randint(-9, 10, (1300, 3), generator=generator).float()
    value, place = best_of_all(slopes, vectors)
    products = slopes.double() @ vectors.double().T
    assert torch.equal(value.double(), products.amax(1))
    assert place.tolist() == [row.index(max(row)) for row in products.tolist()]
    assert len(set((place // 512).tolist())) == 3


def test_places_that_may_not_be_flipped_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(slopes: torch.Tensor, vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        calls.append(len(slopes))
        return best_of_all(slopes, vectors)

    monkeypatch.setattr("stockade.defenses.adv_hotflip.best_of_all", counted)
    kit = make_kit()
    batch = make_batch(kit, ("a good film with fun", "[UNK] film"), (1, 0))
    flips_of(kit, rounds=2).flipped(batch)
    assert calls == [6, 6]  # of ten: three are padding and one hides a word
