"""The word-level tokenizer of the zoo: lower-cased words and punctuation marks, no special tokens around a text.

A word is a run of letters and digits; every ASCII mark stands alone. "It's well-made."
is read as `it ' s well - made .`. All of it runs in Rust (`tokenizers`), so that a text costs microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

PAD, UNKNOWN, SEPARATOR = "[PAD]", "[UNK]", "[SEP]"
MAXIMUM_WORDS = 512


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
    backend = _backend(vocabulary)
    if pairs:
        backend.post_processor = pair_template(SEPARATOR, vocabulary[SEPARATOR])
    return fast_tokenizer(backend, maximum, unknown=UNKNOWN, separator=SEPARATOR if pairs else None, sides=sides)


def fast_tokenizer(
    backend: Tokenizer, maximum: int, *, unknown: str | None = None, separator: str | None = None, sides: bool = False
) -> PreTrainedTokenizerFast:
    """A backend with what transformers and our encoder ask of a tokenizer."""
    special = {"unk_token": unknown, "sep_token": separator}
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
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
    backend = _backend({PAD: 0, UNKNOWN: 1})
    normalizer, cutter = backend.normalizer, backend.pre_tokenizer
    return [[word for word, _ in cutter.pre_tokenize_str(normalizer.normalize_str(text))] for text in texts]


def _backend(vocabulary: dict[str, int]) -> Tokenizer:
    backend = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation()])
    return backend
