"""Copies of a text with words hidden, as token ids: the text is tokenised once, each hidden word becomes one mask.

Every copy is put together from the tokens of the words that stay, then cut to what the model can read. So a copy
depends on the words it shows and on nothing else: not on what a hidden word was, nor on how many pieces it had, even
if it had none. A special token in the text, such as [SEP], is read as the letters it is written with, because a
tokenizer may take the blanks beside it away from its neighbours. Where the tokens of a word may still depend on its
neighbours, or the position of a token in the text is not known, every copy of every text is written out and tokenised
by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError
from stockade.core.masks import Keep
from stockade.core.text import TextInput
from stockade.models.encoding import ID_TYPE, EncodedText, TextEncoder

Ids = NDArray[np.int32]
NO_TOKEN = -1
_BLANKS = (" ", "\u0120", "\u2581")
"""How vocabularies write a blank: as it is, byte-level, and as SentencePiece does."""
_TYPED_BLANKS = (" ", "\u2581")
"""Of these, those that stand for themselves: byte-level vocabularies write a typed \u0120 otherwise than a blank."""
_NUL = "\0"
"""What stands for a hidden word where every byte is a token, so that none is special or unknown."""


def mask_token(tokenizer: Any) -> tuple[str, int]:
    """What stands for a hidden word, written and as an id: the tokenizer's mask, or, where it has none, its unknown
    token, or the byte 0.
    """
    for written in (tokenizer.mask_token, tokenizer.unk_token):
        if written is not None:
            return str(written), int(tokenizer.convert_tokens_to_ids(written))
    ids = tokenizer(_NUL, add_special_tokens=False)["input_ids"]
    if len(ids) == 1:
        return _NUL, int(ids[0])
    raise ModelError("The model's tokenizer has neither a mask nor an unknown token, so no word can be hidden from it.")


@dataclass(frozen=True, slots=True)
class BlankTokens:
    """How a vocabulary treats the blanks between words."""

    ids: tuple[int, ...]
    """The tokens that are nothing but blanks."""
    apart: bool
    """No token holds a blank and something else, so every blank is a token of its own and says nothing of words."""
    shared: bool
    """A token may hold what belongs to two words: a blank behind other characters, or several blanks, of which one may
    be a word that is written like a blank.
    """


@lru_cache(maxsize=8)
def blank_tokens(tokenizer: Any) -> BlankTokens:
    """What the vocabulary of a tokenizer says of blanks, read once."""
    added = tokenizer.get_added_vocab()
    vocabulary = tokenizer.get_vocab()
    tokens = [token for token in vocabulary if token not in added and any(mark in token for mark in _BLANKS)]
    blank = "".join(_BLANKS)
    return BlankTokens(
        ids=tuple(vocabulary[token] for token in tokens if not token.strip(blank)),
        apart=not any(token.strip(blank) for token in tokens),
        shared=any(mark in token.lstrip(blank) for token in tokens for mark in _BLANKS)
        or any(2 * mark in token for token in tokens for mark in _TYPED_BLANKS),
    )


@lru_cache(maxsize=8)
def must_write_out(tokenizer: Any) -> bool:
    """Whether the tokens of a word may depend on the words beside it, or their places in the text are not known."""
    if not tokenizer.is_fast or blank_tokens(tokenizer).shared:
        return True
    return any(not token.special for token in tokenizer.added_tokens_decoder.values())


@dataclass(frozen=True, slots=True)
class TokenisedWords:
    """The tokens of a text; `owner` is the word each belongs to, -1 for those of no word, `side` that of a pair.

    A word that the tokenizer drops has a place all the same, of id `NO_TOKEN`, for the mask that hides it.
    """

    ids: Ids
    types: Ids
    owner: Ids
    side: Ids
    """0 for the premise (or a single text), 1 for the hypothesis, -1 for special tokens."""

    @classmethod
    def read(cls, tokenizer: Any, words: Sequence[str], premise: str | None) -> TokenisedWords:
        string = " ".join(words)
        sides = (string,) if premise is None else (premise, string)
        encoded = tokenizer(
            *sides, return_offsets_mapping=True, truncation=False, verbose=False, split_special_tokens=True
        )
        text_side = len(sides) - 1
        token_sides = encoded.sequence_ids()
        ends = np.cumsum([len(word) + 1 for word in words])
        starts = np.array([start for start, _ in encoded["offset_mapping"]])
        stops = np.array([stop for _, stop in encoded["offset_mapping"]])
        in_text = np.array([side == text_side for side in token_sides], dtype=np.bool_)
        # A token may begin with the blank before its word: its last character tells the word.
        owner = np.where(in_text, np.searchsorted(ends, stops - 1, side="right"), -1)
        between = in_text & ((stops <= starts) | ((stops - starts == 1) & np.isin(stops, ends)))
        if between.any():
            blanks = blank_tokens(tokenizer)
            owner = np.where(between, np.minimum(np.searchsorted(ends, stops, side="right"), len(words) - 1), owner)
            if blanks.apart:
                owner[between & np.isin(encoded["input_ids"], blanks.ids)] = -1
        types = encoded.get("token_type_ids", [0] * len(starts))
        side = [-1 if token_side is None else token_side for token_side in token_sides]
        read = (np.array(values, dtype=ID_TYPE) for values in (encoded["input_ids"], types, owner, side))
        return cls(*read)._with_dropped(len(words), text_side)

    def _with_dropped(self, words: int, text_side: int) -> TokenisedWords:
        missing = sorted(set(range(words)) - set(self.owner.tolist()))
        if not missing:
            return self
        in_text = np.flatnonzero(self.side == text_side)
        end = int(in_text[-1]) + 1 if len(in_text) else len(self.ids)
        places = [int(later[0]) if len(later := np.flatnonzero(self.owner > word)) else end for word in missing]
        kind = self.types[in_text[-1]] if len(in_text) else 0
        return TokenisedWords(
            np.insert(self.ids, places, NO_TOKEN),
            np.insert(self.types, places, kind),
            np.insert(self.owner, places, missing),
            np.insert(self.side, places, text_side),
        )


def encode_masked(
    encoder: TextEncoder, words: Sequence[str], premise: str | None, keep: Keep, maximum: int | None
) -> list[EncodedText]:
    """The copies that `keep` describes, a row each."""
    written, mask = mask_token(encoder.tokenizer)
    if must_write_out(encoder.tokenizer):
        return encoder.encode(masked_strings(words, premise, keep, written))
    text = TokenisedWords.read(encoder.tokenizer, words, premise)
    of_word = text.owner >= 0
    if not (text.ids[of_word] != NO_TOKEN).any():
        return encoder.encode(masked_strings(words, premise, keep, written))
    first = of_word & np.concatenate([[True], text.owner[1:] != text.owner[:-1]])
    shown = np.ones((len(keep), len(text.ids)), dtype=np.bool_)
    shown[:, of_word] = keep[:, text.owner[of_word]]
    stays = (shown | first) & ~(shown & (text.ids == NO_TOKEN))
    ids = np.where(shown, text.ids, np.int32(mask)).astype(ID_TYPE)
    if maximum is not None:
        for row in np.flatnonzero(stays.sum(1) > maximum):
            stays[row] = _cut(stays[row], text.side, maximum, encoder.tokenizer.truncation_side)
    with_types = encoder.with_types and (premise is not None or encoder.singles_have_types)
    types = np.broadcast_to(text.types, ids.shape)[stays].tobytes() if with_types else b""
    return _rows(ids[stays].tobytes(), types, stays.sum(1))


def masked_strings(words: Sequence[str], premise: str | None, keep: Keep, mask: str) -> list[TextInput]:
    """The copies written out."""
    strings = [
        " ".join([word if stays else mask for word, stays in zip(words, row, strict=True)]) for row in keep.tolist()
    ]
    if premise is None:
        return list(strings)
    return [(premise, string) for string in strings]


def _cut(stays: NDArray[np.bool_], side: Ids, maximum: int, from_side: str) -> NDArray[np.bool_]:
    """What is left of a copy when its sides lose tokens until all fit, as the tokenizer itself would cut it."""
    first, second = (np.flatnonzero(stays & (side == number)) for number in (0, 1))
    room = max(0, maximum - int(stays.sum()) + len(first) + len(second))
    left = stays.copy()
    for places, count in zip((first, second), _shares(len(first), len(second), room), strict=True):
        if count < len(places):
            left[places[: len(places) - count] if from_side == "left" else places[count:]] = False
    return left


def _shares(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens each side keeps: the longer side is cut down to the other, then both alike."""
    shorter = min(first, second, room // 2)
    longer = min(max(first, second), room - shorter)
    return (longer, shorter) if first > second else (shorter, longer)


def _rows(ids: bytes, types: bytes, lengths: NDArray[np.intp]) -> list[EncodedText]:
    ends = np.cumsum(lengths * ID_TYPE.itemsize).tolist()
    starts = [0, *ends[:-1]]
    return [EncodedText(ids[start:end], types[start:end]) for start, end in zip(starts, ends, strict=True)]
