"""Characters and bytes: how they are cut into words, what of a word is read, and what a zeroed word is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.core.errors import ModelError
from stockade.models.zoo import words as zoo_words
from stockade.models.zoo.heads import ZooConfig, _reader
from stockade.models.zoo.readers import CharacterReader, CharacterSizes
from stockade.models.zoo.tokenizers import alphabet, blank_and_marks, byte_tokenizer, character_tokenizer
from stockade.models.zoo.words import DistinctVectors, Vectors, cut_words
from tests.models.zoo_kit import TEXTS, build, built

few = settings(max_examples=30, deadline=None)
SIZES = CharacterSizes(character_size=3, character_widths=(1, 2, 3), character_filters=2, longest_word=6)
BLANK, MARK = 1, 2
BYTES = byte_tokenizer(lowercase=False)


def reader() -> CharacterReader:
    torch.manual_seed(0)
    return CharacterReader(9, SIZES, BLANK, [MARK])


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(1, *map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    return ids, torch.tensor([[True] * len(row) + [False] * (width - len(row)) for row in rows])


def words_of(row: list[int]) -> list[list[int]]:
    """The words of a row, slowly: cut at blanks, marks alone."""
    words: list[list[int]] = [[]]
    for character in row:
        if character in (BLANK, MARK):
            words += [[MARK], []] if character == MARK else [[]]
        else:
            words[-1].append(character)
    return [word for word in words if word]


rows_of_ids = st.lists(st.lists(st.integers(1, 8), max_size=14), min_size=1, max_size=5)


@few
@given(rows=rows_of_ids)
def test_rows_are_cut_at_blanks_and_around_marks(rows: list[list[int]]) -> None:
    ids, mask = padded(rows)
    cut = cut_words(ids, mask, BLANK, [MARK], longest=4)
    table = cut.ids(ids, 4, 0).tolist()
    words = [[[i for i in table[number] if i] for number in text if number] for text in cut.numbers.tolist()]
    assert words == [[word[:4] for word in words_of(row)] for row in rows]
    assert cut.lengths.tolist() == [sum(i > 0 for i in row) for row in table]


@few
@given(rows=rows_of_ids)
def test_distinct_words_are_computed_once_with_the_same_answer(rows: list[list[int]]) -> None:
    model, (ids, mask) = reader(), padded(rows)
    fast = model(ids, mask)
    plain = model(ids, mask, model.embedding(ids))
    assert isinstance(fast, DistinctVectors)
    assert isinstance(plain, Vectors)
    assert torch.equal(fast.mask, plain.mask)
    torch.testing.assert_close(fast.dense, plain.dense, atol=1e-6, rtol=0)
    distinct = {tuple(word[:6]) for row in rows for word in words_of(row)}
    assert len(fast.table) == 1 + len(distinct)


@few
@given(rows=rows_of_ids)
def test_both_ways_teach_the_characters_the_same(rows: list[list[int]]) -> None:
    gradients = []
    for watched in (False, True):
        model, (ids, mask) = reader(), padded(rows)
        words = model(ids, mask, model.embedding(ids) if watched else None)
        (words.dense * torch.linspace(-1, 1, words.dense.shape[2])).sum().backward()
        gradients.append([weight.grad for weight in model.parameters()])
    for gradient, other in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, other, atol=1e-5, rtol=0)


@pytest.mark.parametrize("multiplier", [zoo_words._MULTIPLIER, 1, 0])
@few
@given(rows=st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), max_size=12))
def test_distinct_rows_are_right_even_when_hashes_collide(multiplier: int, rows: list[list[int]]) -> None:
    table = torch.tensor([[0, 0, 0], *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zoo_words, "_MULTIPLIER", multiplier)
        distinct, inverse = zoo_words.distinct_rows(table)
    assert torch.equal(distinct[inverse], table)
    assert not distinct[0].any()
    assert len(distinct) == len(set(map(tuple, table.tolist())))


def test_a_convolution_over_distinct_words_learns_like_the_plain_one() -> None:
    gradients = []
    for hooks in (0, 1):
        model, tokenizer = build("CNN-C-Random-2", dropout=0.0)
        handles = [model.get_input_embeddings().register_forward_hook(lambda *_: None) for _ in range(hooks)]
        inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
        model.train()(**inputs, labels=torch.tensor([0, 1, 0, 1, 1])).loss.backward()
        gradients.append({key: weight.grad for key, weight in model.named_parameters()})
        assert len(handles) == hooks
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][key], atol=1e-6, rtol=0)


def test_a_word_small_enough_to_compute_by_hand() -> None:
    sizes = CharacterSizes(character_size=1, character_widths=(2,), character_filters=1)
    model: Any = CharacterReader(6, sizes, BLANK, [])
    with torch.no_grad():
        model.embedding.weight.copy_(torch.tensor([[0.0], [99.0], [0.0], [1.0], [2.0], [-4.0]]))
        model.convolutions[0].weight.copy_(torch.tensor([[[1.0, 10.0]]]))
        model.convolutions[0].bias.fill_(0.5)
        # "3 4": 0+10, 1+20, 2+0 -> 21.5; "5": 0-40, -4+0, cut off -> 0; "3": 0+10, 1+0 -> 10.5
        words = model(*padded([[3, 4, BLANK, 5], [3]]))
    assert words.dense.squeeze(2).tolist() == [[21.5, 0.0], [10.5, 0.0]]
    assert words.mask.tolist() == [[True, True], [True, False]]


def test_of_a_long_word_the_first_characters_count() -> None:
    model = reader()
    long, longer, other = ([3, 4, 5, 6, 7, 8, *tail] for tail in ([3], [4, 4, 4], []))
    vectors = model(*padded([long, longer, other, [4, *long[1:]]])).dense[:, 0]
    assert torch.equal(vectors[0], vectors[1])
    assert torch.equal(vectors[0], vectors[2])
    assert not torch.equal(vectors[0], vectors[3])


def test_a_zeroed_word_is_a_word_of_zero_vectors_between_its_blanks() -> None:
    model: Any = reader()
    ids, mask = padded([[3, 4, BLANK, 5, 6], [3, 4, BLANK, 7]])
    shown = torch.ones_like(ids)
    shown[:, 3:] = 0
    handle = model.embedding.register_forward_hook(lambda _module, _inputs, vectors: vectors * shown.unsqueeze(2))
    with torch.no_grad():
        zeroed = model(ids, mask)
        bias = torch.relu(torch.cat([convolution.bias for convolution in model.convolutions]))
    handle.remove()
    assert zeroed.mask.tolist() == [[True, True], [True, True]]
    torch.testing.assert_close(zeroed.dense[:, 1], bias.expand(2, -1))
    torch.testing.assert_close(zeroed.dense[:, 0], model(ids, mask).dense[:, 0])


def test_the_character_tokenizer_gives_each_character_and_its_place() -> None:
    tokenizer = character_tokenizer(alphabet(["a Film, naïve"]))
    text = "  A\n\n film, xi😀 "
    encoded = tokenizer(text, return_offsets_mapping=True)
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    assert tokens == ["a", " ", "f", "i", "l", "m", ",", " ", "[UNK]", "i", "[UNK]"]
    assert [text[start:end].lower() for start, end in encoded["offset_mapping"]] == list("a film, xi😀")
    assert tokenizer("")["input_ids"] == tokenizer(" \n ")["input_ids"] == []
    assert tokenizer.convert_ids_to_tokens(tokenizer("a", "film")["input_ids"]) == ["a", "[SEP]", *"film"]
    blank, marks = blank_and_marks(tokenizer)
    assert tokenizer.convert_ids_to_tokens([blank, *marks]) == [" ", "[SEP]", ","]


def test_the_alphabet_is_by_frequency_and_bounded() -> None:
    assert alphabet(["BbB aa c d"]) == ["b", "a", "c", "d"]
    assert alphabet(["BbB aa c d"], 2) == ["b", "a"]


@few
@given(text=st.text(max_size=20))
def test_the_byte_tokenizer_gives_each_byte_plus_one(text: str) -> None:
    plain = "".join(character for character in text if not character.isspace() and ord(character) > 31)
    assert BYTES(plain)["input_ids"] == [byte + 1 for byte in plain.encode()]


def test_bytes_lower_case_only_if_told_and_a_line_feed_between_sides() -> None:
    assert byte_tokenizer(lowercase=True)("A  É")["input_ids"] == [byte + 1 for byte in "a é".encode()]
    assert byte_tokenizer(lowercase=False)("A\n", "B")["input_ids"] == [66, 11, 67]


@pytest.mark.parametrize("name", ["CNN-C-Random-1", "LSTM-WC-ELMo-1"])
def test_vectors_alone_do_not_tell_where_words_begin(name: str) -> None:
    model, _ = built(name)
    with pytest.raises(ModelError, match="give both"):
        model(inputs_embeds=torch.zeros(1, 3, 5))


@pytest.mark.parametrize("name", ["CNN-C-Random-1", "LSTM-WC-ELMo-1"])
def test_a_misspelt_word_is_not_an_unknown_word(name: str) -> None:
    model, tokenizer = built(name)
    inputs = tokenizer(["a great film", "a graet film", "a grxqt film"], padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits[:, 0].numpy()
    assert len(np.unique(logits)) == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"unit": "syllable", "blank_token_id": 3}, 'not "syllable"'), ({"unit": "character"}, "needs blank_token_id")],
)
def test_a_config_of_no_known_unit_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        _reader(ZooConfig(**fields))


def test_the_texts_of_the_kit_are_cut_as_the_word_tokenizer_cuts_them() -> None:
    from stockade.models.zoo.tokenizers import split_words

    tokenizer = character_tokenizer(alphabet(TEXTS))
    blank, marks = blank_and_marks(tokenizer)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    cut = cut_words(inputs["input_ids"], inputs["attention_mask"].bool(), blank, marks, longest=40)
    table = cut.ids(inputs["input_ids"], 40, 0).tolist()
    spelt = ["".join(tokenizer.convert_ids_to_tokens([i for i in row if i])) for row in table]
    assert [[spelt[number] for number in text if number] for text in cut.numbers.tolist()] == split_words(TEXTS)
