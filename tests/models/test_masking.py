"""Copies with words hidden: one mask each, whatever the tokenizer does with the word, and nothing else tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors, trainers
from tokenizers.models import BPE, Unigram, WordPiece
from transformers import PreTrainedTokenizerFast

from stockade.core.errors import ModelError
from stockade.core.masks import Keep
from stockade.models.encoding import ID_TYPE, EncodedText, TextEncoder
from stockade.models.masking import encode_masked, mask_token
from stockade.models.zoo.tokenizers import byte_tokenizer, character_tokenizer, word_tokenizer
from tests.models.conftest import tiny_tokenizer

CORPUS = ["the film was great and the story was not bad at all", "a naïve café über und über", "zq xylo"] * 5
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
NAMES = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}


def byte_level() -> PreTrainedTokenizerFast:
    """As RoBERTa's: a blank belongs to the word behind it, and is a token by itself before a rare word."""
    backend = Tokenizer(BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    letters = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=290, special_tokens=SPECIAL[:-1], initial_alphabet=letters)
    )
    return _fast(backend)


def sentence_piece(split: bool = True) -> PreTrainedTokenizerFast:
    """As XLM-R's; without `split` tokens reach from one word into the next."""
    backend = Tokenizer(Unigram())
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace(split=split)
    backend.train_from_iterator(
        CORPUS, trainers.UnigramTrainer(vocab_size=70, special_tokens=SPECIAL[:-1], unk_token="<unk>")
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return _fast(backend)


def blank_runs() -> PreTrainedTokenizerFast:
    """As Llama's: several blanks may be one token, and a blank is written like the letter ▁."""
    pieces = [*SPECIAL[:-1], "▁", "▁▁", *"abfilmthezq.'é", "▁f", "▁a"]
    vocabulary = {token: number for number, token in enumerate(pieces)}
    backend = Tokenizer(BPE(vocab=vocabulary, merges=[("▁", "▁"), ("▁", "f"), ("▁", "a")], unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return _fast(backend)


def with_added(special: bool) -> PreTrainedTokenizerFast:
    """With a token that takes the blanks beside it with it."""
    tokenizer = byte_level()
    tokenizer.add_tokens([AddedToken("<x>", lstrip=True, rstrip=True, special=special)], special_tokens=special)
    return tokenizer


def _fast(backend: Tokenizer) -> PreTrainedTokenizerFast:
    mask = AddedToken("<mask>", lstrip=True, special=True)
    return PreTrainedTokenizerFast(tokenizer_object=backend, mask_token=mask, **NAMES)


def dropping() -> PreTrainedTokenizerFast:
    """A word-piece tokenizer that drops control characters, and so words of nothing else."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film", "##s"]
    backend = Tokenizer(WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="[MASK]", model_input_names=inputs, **names)


MAKERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "word pieces": tiny_tokenizer,
    "byte-level": byte_level,
    "sentence pieces": sentence_piece,
    "sentence pieces across words": lambda: sentence_piece(split=False),
    "dropping": dropping,
    "words": lambda: word_tokenizer(["the", "film", "was", "great", "."]),
    "characters": lambda: character_tokenizer("abcdefghijklmnopqrstuvwxyz"),
    "bytes": lambda: byte_tokenizer(lowercase=True),
}
ENCODERS = {
    name: TextEncoder(make(), None, with_types=name in ("word pieces", "dropping")) for name, make in MAKERS.items()
}
WORDS = st.text(st.sampled_from("abfilmthezq.'🙂é\u200b\u00adﬁ"), min_size=1, max_size=6).filter(
    lambda word: word.split() == [word]
)


def rows(*patterns: str) -> Keep:
    """A row for each pattern, such as "x.x": the second of three words is hidden."""
    return np.array([[sign == "x" for sign in pattern] for pattern in patterns])


def ids(encoded: EncodedText) -> list[int]:
    return np.frombuffer(encoded.ids, dtype=ID_TYPE).tolist()


def masked(encoder: TextEncoder, text: str, *patterns: str, premise: str | None = None) -> list[list[int]]:
    return [ids(copy) for copy in encode_masked(encoder, text.split(), premise, rows(*patterns), encoder.maximum)]


def tokens(encoder: TextEncoder, row: Sequence[int]) -> list[str]:
    names: list[str] = encoder.tokenizer.convert_ids_to_tokens(list(row))
    return names


def test_a_hidden_word_is_one_mask_however_many_pieces_it_had() -> None:
    encoder = ENCODERS["word pieces"]
    assert [tokens(encoder, row) for row in masked(encoder, "the films greatly", "xxx", "x..", "..x")] == [
        ["[CLS]", "the", "film", "##s", "great", "##ly", "[SEP]"],
        ["[CLS]", "the", "[MASK]", "[MASK]", "[SEP]"],
        ["[CLS]", "[MASK]", "[MASK]", "great", "##ly", "[SEP]"],
    ]


def test_a_word_that_the_tokenizer_drops_is_one_mask_where_it_stood() -> None:
    encoder = ENCODERS["dropping"]
    assert [
        tokens(encoder, row) for row in masked(encoder, "a \u0001 film \u0001", "xxxx", "x.x.", "..x.", "xx.x")
    ] == [
        ["[CLS]", "a", "film", "[SEP]"],
        ["[CLS]", "a", "[MASK]", "film", "[MASK]", "[SEP]"],
        ["[CLS]", "[MASK]", "[MASK]", "film", "[MASK]", "[SEP]"],
        ["[CLS]", "a", "[MASK]", "[SEP]"],
    ]
    assert [tokens(encoder, row) for row in masked(encoder, "\u0001 \u0001", ".x", premise="a film")] == [
        ["[CLS]", "a", "film", "[SEP]", "[MASK]", "[SEP]"]
    ]


def test_of_a_pair_only_the_hypothesis_is_hidden() -> None:
    encoder = ENCODERS["word pieces"]
    copy = encode_masked(encoder, ["not", "bad"], "the film was bad", rows(".x"), None)[0]
    assert tokens(encoder, ids(copy)) == ["[CLS]", "the", "film", "was", "bad", "[SEP]", "[MASK]", "bad", "[SEP]"]
    assert np.frombuffer(copy.types, dtype=ID_TYPE).tolist() == [0] * 6 + [1] * 3


def test_the_blank_before_a_rare_word_is_hidden_with_it() -> None:
    """Byte-level and SentencePiece vocabularies write it as a token of its own, which must not stay behind."""
    for name in ("byte-level", "sentence pieces"):
        encoder = ENCODERS[name]
        rare, common = (masked(encoder, f"the {word} was great", "x.xx")[0] for word in ("🙂🙂", "film"))
        assert rare == common
        assert tokens(encoder, rare).count("<mask>") == 1


def test_blanks_stay_where_each_is_a_token_of_its_own() -> None:
    encoder = ENCODERS["characters"]
    assert tokens(encoder, masked(encoder, "ab cd e", "x.x")[0]) == ["a", "b", " ", "[UNK]", " ", "e"]
    encoder = ENCODERS["bytes"]
    assert masked(encoder, "ab é e", "x.x")[0] == [ord("a") + 1, ord("b") + 1, 33, 1, 33, ord("e") + 1]


@pytest.mark.parametrize("name", sorted(MAKERS))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_copy_shows_nothing_of_hidden_words(name: str, data: st.DataObject) -> None:
    """Two texts that differ in hidden words only have the same copy, with a mask for each of those words."""
    encoder = ENCODERS[name]
    words = data.draw(st.lists(WORDS, min_size=1, max_size=6))
    keep = np.array([data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))])
    others = [word if stays else data.draw(WORDS) for word, stays in zip(words, keep[0], strict=True)]
    premise = data.draw(st.sampled_from([None, "the film"])) if name in ("word pieces", "dropping") else None
    copies = [ids(encode_masked(encoder, each, premise, keep, None)[0]) for each in (words, others)]
    assert copies[0] == copies[1]
    shown = ids(encode_masked(encoder, words, premise, np.ones_like(keep), None)[0])
    assert encoder.encode([" ".join(words) if premise is None else (premise, " ".join(words))]) == encode_masked(
        encoder, words, premise, np.ones_like(keep), None
    )
    mask = mask_token(encoder.tokenizer)[1]
    if mask not in shown:
        assert copies[0].count(mask) == int((~keep).sum())


TYPED = {
    **ENCODERS,
    "runs of blanks": TextEncoder(blank_runs(), None, with_types=False),
    "an added token": TextEncoder(with_added(special=False), None, with_types=False),
    "an added special token": TextEncoder(with_added(special=True), None, with_types=False),
}


@pytest.mark.parametrize("name", sorted(TYPED))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_nor_if_somebody_types_what_is_special_to_the_tokenizer(name: str, data: st.DataObject) -> None:
    """An attacker may write [SEP], or what stands for a blank: neighbours of the hidden word must not show it."""
    word = WORDS | st.sampled_from(["[SEP]", "[UNK]", "[PAD]", "[MASK]", "<mask>", "</s>", "<x>", "a<x>", "▁", "▁▁"])
    words = data.draw(st.lists(word, min_size=1, max_size=5))
    keep = np.array([data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))])
    others = [original if stays else data.draw(word) for original, stays in zip(words, keep[0], strict=True)]
    assert encode_masked(TYPED[name], words, None, keep, None) == encode_masked(TYPED[name], others, None, keep, None)


def test_a_typed_special_token_is_read_as_its_letters() -> None:
    encoder = ENCODERS["characters"]
    assert tokens(encoder, masked(encoder, "a [SEP] e", "xxx")[0]) == [*"a ", "[UNK]", *"sep", "[UNK]", *" e"]


@pytest.mark.parametrize("name", ["word pieces", "dropping", "words"])
@pytest.mark.parametrize("maximum", [None, 9, 12])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_copy_is_what_the_tokenizer_makes_of_the_masked_string(
    name: str, maximum: int | None, data: st.DataObject
) -> None:
    encoder = TextEncoder(ENCODERS[name].tokenizer, maximum, with_types=ENCODERS[name].with_types)
    words = data.draw(st.lists(st.sampled_from(["the", "films", "was", "greatly", "a."]), min_size=1, max_size=8))
    keep = np.array([data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))])
    pairs = name in ("word pieces", "dropping")
    premise = data.draw(st.sampled_from([None, "a", "the film was bad and not great ."])) if pairs else None
    written = mask_token(encoder.tokenizer)[0]
    string = " ".join(word if stays else written for word, stays in zip(words, keep[0], strict=True))
    expected = encoder.encode([string if premise is None else (premise, string)])
    assert encode_masked(encoder, words, premise, keep, maximum) == expected


def test_texts_are_cut_after_masking() -> None:
    encoder = TextEncoder(tiny_tokenizer(), 5, with_types=False)
    assert tokens(encoder, masked(encoder, "films films films films", "xxxx")[0]) == [
        "[CLS]",
        "film",
        "##s",
        "film",
        "[SEP]",
    ]
    assert tokens(encoder, masked(encoder, "films films films films", "...x")[0]) == ["[CLS]", *["[MASK]"] * 3, "[SEP]"]


@pytest.mark.parametrize(("first", "second"), [(8, 8), (9, 8), (8, 9), (2, 9), (9, 2)])
def test_the_sides_of_a_pair_are_cut_as_the_tokenizer_cuts_them(first: int, second: int) -> None:
    encoder = TextEncoder(tiny_tokenizer(), 12, with_types=True)
    premise, words = " ".join(["film"] * first), ["bad"] * second
    keep = np.array([[True] * second, [False] * second])
    written = [(premise, " ".join(words)), (premise, " ".join(["[MASK]"] * second))]
    assert encode_masked(encoder, words, premise, keep, 12) == encoder.encode(written)


class SlowTokenizer:
    """A tokenizer that cannot tell where its tokens stand."""

    is_fast = False

    def __init__(self) -> None:
        self._inner = tiny_tokenizer()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, *texts: Any, **options: Any) -> Any:
        assert "return_offsets_mapping" not in options
        return self._inner(*texts, **options)


def test_a_slow_tokenizer_reads_every_copy_by_itself() -> None:
    encoder = TextEncoder(SlowTokenizer(), 6, with_types=True)
    assert tokens(encoder, masked(encoder, "the films greatly", "x..")[0]) == [
        "[CLS]",
        "the",
        "[MASK]",
        "[MASK]",
        "[SEP]",
    ]


def test_without_a_mask_or_unknown_token_nothing_can_be_hidden() -> None:
    backend = Tokenizer(BPE(vocab={"a": 0, "b": 1}, merges=[]))
    with pytest.raises(ModelError, match="neither a mask nor an unknown token"):
        mask_token(PreTrainedTokenizerFast(tokenizer_object=backend))
