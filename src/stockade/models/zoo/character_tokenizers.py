"""Tokenizers that give a model plain characters or bytes, each a token, with a blank between words.

White space of any kind and length is one blank, and none stands at the ends. The models cut the tokens into words
themselves (`cutting.py`): at blanks, and around the ASCII punctuation marks, as the word-level tokenizer does.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Mapping

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import BPE, WordLevel
from transformers import PreTrainedTokenizerFast

from stockade.models.zoo.tokenizer import PAD, SEPARATOR, UNKNOWN, fast_tokenizer, pair_template

MAXIMUM_CHARACTERS = 3072
"""About as much text as the 512 words of the word-level tokenizer."""
MARKS = string.punctuation
_BYTE_BLANK, _BYTE_LINE_FEED = "Ġ", "Ċ"
"""How byte-level tokenizers write a blank and a line feed."""


def alphabet(texts: Iterable[str], size: int = 500) -> list[str]:
    """The characters of the texts, lower-cased, the most frequent first; of equally frequent ones the smaller."""
    normalizer = _normalizer(lowercase=True)
    counts = Counter[str]()
    for text in texts:
        counts.update(normalizer.normalize_str(text))
    del counts[" "]
    return sorted(counts, key=lambda character: (-counts[character], character))[:size]


def character_tokenizer(characters: Iterable[str], maximum: int = MAXIMUM_CHARACTERS) -> PreTrainedTokenizerFast:
    """One token per character: [PAD] (0), [UNK] (1), [SEP] (2), blank (3), then `characters`."""
    vocabulary = {PAD: 0, UNKNOWN: 1, SEPARATOR: 2, " ": 3}
    for character in characters:
        vocabulary.setdefault(character, len(vocabulary))
    backend = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    backend.normalizer = _normalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    backend.post_processor = pair_template(SEPARATOR, vocabulary[SEPARATOR])
    return fast_tokenizer(backend, maximum, unknown=UNKNOWN, separator=SEPARATOR)


def byte_tokenizer(*, lowercase: bool, maximum: int = MAXIMUM_CHARACTERS) -> PreTrainedTokenizerFast:
    """One token per byte of UTF-8, byte b with the id b + 1; a pair's sides have a line feed between them.

    No text has a line feed of its own: white space became blanks.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    numbers = {letter: _byte_of(letter) + 1 for letter in letters}
    backend = Tokenizer(BPE(vocab={PAD: 0, **numbers}, merges=[]))
    backend.normalizer = _normalizer(lowercase)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    backend.post_processor = pair_template(_BYTE_LINE_FEED, numbers[_BYTE_LINE_FEED])
    return fast_tokenizer(backend, maximum)


def blank_and_marks(tokenizer: PreTrainedTokenizerFast) -> tuple[int, list[int]]:
    """The id that ends a word and those that are words of their own, of a tokenizer made here."""
    vocabulary: Mapping[str, int] = tokenizer.get_vocab()
    if _BYTE_BLANK in vocabulary and SEPARATOR not in vocabulary:
        return vocabulary[_BYTE_BLANK], sorted(vocabulary[mark] for mark in (*MARKS, _BYTE_LINE_FEED))
    return vocabulary[" "], sorted(vocabulary[mark] for mark in (*MARKS, SEPARATOR) if mark in vocabulary)


def _normalizer(lowercase: bool) -> normalizers.Normalizer:
    steps = [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    return normalizers.Sequence([normalizers.Lowercase(), *steps] if lowercase else steps)


def _byte_of(letter: str) -> int:
    """The byte a byte-level letter stands for: printable ones stand for themselves, the others follow from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if ord(letter) < 256:
        return ord(letter)
    return [byte for byte in range(256) if byte not in printable][ord(letter) - 256]
