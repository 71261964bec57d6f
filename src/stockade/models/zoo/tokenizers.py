"""The tokenizers of the zoo: words, characters, bytes. No special tokens stand around a text.

Word level: lower-cased words and punctuation marks. A word is a run of letters and digits; every ASCII mark stands
alone. "It's well-made." is read as `it ' s well - made .`.

Characters and bytes: each is a token, with a blank between words. White space of any kind and length is one blank, and
none stands at the ends. The models cut the tokens into words themselves (`words.py`): at blanks, and around the ASCII
punctuation marks, as the word-level tokenizer does.

All of it runs in Rust (`tokenizers`), so that a text costs microseconds.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import BPE, WordLevel
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

PAD, UNKNOWN, SEPARATOR = "[PAD]", "[UNK]", "[SEP]"
MAXIMUM_WORDS = 512
MAXIMUM_CHARACTERS = 3072
"""About as much text as the 512 words of the word-level tokenizer."""
MARKS = string.punctuation
_BYTE_BLANK, _BYTE_LINE_FEED = "Ġ", "Ċ"
"""How byte-level tokenizers write a blank and a line feed."""


def word_tokenizer(
    words: Iterable[str], maximum: int = MAXIMUM_WORDS, *, pairs: bool = False, sides: bool = False
) -> PreTrainedTokenizerFast:
    """A tokenizer over `words`, in that order after [PAD] (0) and [UNK] (1), and [SEP] (2) if it is for `pairs`.

    A pair is read as its first side, [SEP], its second side; with `sides` the model is told which words are the second.
    """
    vocabulary = {PAD: 0, UNKNOWN: 1}
    if pairs:
        vocabulary[SEPARATOR] = 2
    for word in words:
        vocabulary.setdefault(word, len(vocabulary))
    backend = _word_backend(vocabulary)
    if pairs:
        backend.post_processor = pair_template(SEPARATOR, vocabulary[SEPARATOR])
    return fast_tokenizer(backend, maximum, unknown=UNKNOWN, separator=SEPARATOR if pairs else None, sides=sides)


def fast_tokenizer(
    backend: Tokenizer, maximum: int, *, unknown: str | None = None, separator: str | None = None, sides: bool = False
) -> PreTrainedTokenizerFast:
    """A backend with what transformers and our encoder ask of a tokenizer."""
    special = {"unk_token": unknown, "sep_token": separator}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        padding_side="right",
        truncation_side="right",
        model_max_length=maximum,
        model_input_names=["input_ids", *(["token_type_ids"] if sides else []), "attention_mask"],
        **{name: token for name, token in special.items() if token is not None},
    )


def pair_template(separator: str, number: int) -> TemplateProcessing:
    """Nothing around a text; a separator between the sides of a pair, the second of which has token type 1."""
    return TemplateProcessing(single="$A", pair=f"$A {separator} $B:1", special_tokens=[(separator, number)])


def split_words(texts: Sequence[str]) -> list[list[str]]:
    """The texts cut as the tokenizer cuts them, for counting the words of a corpus."""
    backend = _word_backend({PAD: 0, UNKNOWN: 1})
    normalizer, cutter = backend.normalizer, backend.pre_tokenizer
    return [[word for word, _ in cutter.pre_tokenize_str(normalizer.normalize_str(text))] for text in texts]


def _word_backend(vocabulary: dict[str, int]) -> Tokenizer:
    backend = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation()])
    return backend


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
