"""Which tokens of a batch are of the hypothesis, held against what the tokenizer says of the same pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.defenses.changeable import changeable_tokens
from stockade.models.zoo.tokenizers import word_tokenizer
from tests.models.conftest import tiny_tokenizer
from tests.models.test_masking import byte_level, sentence_piece

TOKENIZERS = {
    "word pieces": tiny_tokenizer(),
    "bytes": byte_level(),
    "sentence pieces": sentence_piece(),
    "words": word_tokenizer(["film", "great", "bad", "the", "was"], pairs=True),
    "nothing between": word_tokenizer(["film", "great", "bad", "the", "was"]),
}
WORDS = ("film", "great", "bad", "the", "was", "zq")


def words_of_hypothesis(changeable: torch.Tensor, tokenizer: Any, ids: torch.Tensor) -> list[list[int]]:
    """The places that may change without those of special tokens, which nobody changes."""
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids)) & (ids != (tokenizer.unk_token_id or -1))
    return [torch.nonzero(row).squeeze(1).tolist() for row in changeable & ~special]


def second_sequence(encoded: Any, pairs: Sequence[Any]) -> list[list[int]]:
    sides = [encoded.sequence_ids(row) for row in range(len(pairs))]
    return [[at for at, side in enumerate(row) if side == 1] for row in sides]


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("side", ["right", "left"])
def test_they_are_those_that_the_tokenizer_says(kind: str, side: str) -> None:
    tokenizer = TOKENIZERS[kind]
    pairs = [("the film was great", "the film was bad"), ("", "bad film"), ("zq zq", "zq"), ("the film", "")]
    encoded = tokenizer(
        [premise for premise, _ in pairs],
        [hypothesis for _, hypothesis in pairs],
        padding=True,
        padding_side=side,
        return_tensors="pt",
    )
    changeable = changeable_tokens(pairs, encoded, tokenizer)
    assert words_of_hypothesis(changeable, tokenizer, encoded["input_ids"]) == second_sequence(encoded, pairs)


def test_single_texts_may_change_everywhere() -> None:
    tokenizer = tiny_tokenizer()
    encoded = tokenizer(["a film", "a great film was bad"], padding=True, return_tensors="pt")
    changeable = changeable_tokens(["a film", "a great film was bad"], encoded, tokenizer)
    assert torch.equal(changeable, encoded["attention_mask"].bool())


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join),
    st.integers(6, 20),
    st.sampled_from(["right", "left"]),
)
def test_a_pair_may_have_been_cut(premise: str, hypothesis: str, maximum: int, side: str) -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.truncation_side = side
    encoded = tokenizer(
        [premise], [hypothesis], truncation="longest_first", max_length=maximum, padding=True, return_tensors="pt"
    )
    changeable = changeable_tokens([(premise, hypothesis)], encoded, tokenizer)
    assert words_of_hypothesis(changeable, tokenizer, encoded["input_ids"]) == second_sequence(encoded, [premise])


def test_unknown_words_in_the_place_of_others_do_not_matter() -> None:
    """Word dropout writes them anywhere."""
    tokenizer = tiny_tokenizer()
    encoded = tokenizer(["the film was"], ["a bad film"], return_tensors="pt")
    encoded["input_ids"][0, [1, 3, 6]] = tokenizer.unk_token_id
    changeable = changeable_tokens([("the film was", "a bad film")], encoded, tokenizer)
    assert torch.nonzero(changeable[0]).squeeze(1).tolist() == [5, 6, 7, 8]
