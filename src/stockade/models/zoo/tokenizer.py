"""The word-level tokenizer of the zoo: lower-cased words and punctuation marks, no special tokens around a text.

A word is a run of letters and digits; every ASCII mark stands alone. "It's well-made."
is read as `it ' s well - made .`. All of it runs in Rust (`tokenizers`), so that a text costs microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

PAD, UNKNOWN = "[PAD]", "[UNK]"
MAXIMUM_WORDS = 512


def word_tokenizer(words: Iterable[str], maximum: int = MAXIMUM_WORDS) -> PreTrainedTokenizerFast:
    """A tokenizer over `words`, in that order after [PAD] (0) and [UNK] (1)."""
    vocabulary = {PAD: 0, UNKNOWN: 1}
    for word in words:
        vocabulary.setdefault(word, len(vocabulary))
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=_backend(vocabulary),
        pad_token=PAD,
        unk_token=UNKNOWN,
        padding_side="right",
        truncation_side="right",
        model_max_length=maximum,
        model_input_names=["input_ids", "attention_mask"],
    )


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
