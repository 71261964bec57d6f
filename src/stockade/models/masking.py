"""Copies of a text with words hidden, as token ids: the text is tokenised once, each hidden word becomes one mask.

Every copy is put together from the tokens of the words that stay, then cut to what the model can read. So a copy
depends on the words it shows and on nothing else: not on what a hidden word was, nor on how many pieces it had, be it
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError
from stockade.core.masks import Keep
from stockade.models.encoding import ID_TYPE, EncodedText, TextEncoder

Ids = NDArray[np.int32]
NO_TOKEN = -1


def mask_token(tokenizer: Any) -> int:
    """The id that stands for a hidden word: the tokenizer's mask, or, where it has none, its unknown token."""
    for number in (tokenizer.mask_token_id, tokenizer.unk_token_id):
        if number is not None:
            return int(number)
    raise ModelError("The model's tokenizer has neither a mask nor an unknown token, so no word can be hidden from it.")


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
        if not tokenizer.is_fast:
            raise ModelError("Hiding words needs a fast tokenizer, which knows where in the text each token stands.")
        string = " ".join(words)
        sides = (string,) if premise is None else (premise, string)
        found = tokenizer(*sides, return_offsets_mapping=True, truncation=False, verbose=False)
        own = len(sides) - 1
        belongs = found.sequence_ids()
        ends = np.cumsum([len(word) + 1 for word in words])
        starts = np.array([start for start, _ in found["offset_mapping"]])
        stops = np.array([stop for _, stop in found["offset_mapping"]])
        mine = np.array([side == own for side in belongs]) & (stops > starts)
        # A token may begin with the blank before its word: its last character tells the word.
        owner = np.where(mine, np.searchsorted(ends, stops - 1, side="right"), -1) if len(starts) else np.zeros(0)
        types = found.get("token_type_ids", [0] * len(starts))
        side = [-1 if one is None else one for one in belongs]
        read = (np.array(values, dtype=ID_TYPE) for values in (found["input_ids"], types, owner, side))
        return cls(*read)._with_dropped(len(words), own)

    def _with_dropped(self, words: int, own: int) -> TokenisedWords:
        missing = sorted(set(range(words)) - set(self.owner.tolist()))
        if not missing:
            return self
        mine = np.flatnonzero(self.side == own)
        end = int(mine[-1]) + 1 if len(mine) else len(self.ids)
        places = [int(later[0]) if len(later := np.flatnonzero(self.owner > word)) else end for word in missing]
        kind = self.types[mine[-1]] if len(mine) else 0
        return TokenisedWords(
            np.insert(self.ids, places, NO_TOKEN),
            np.insert(self.types, places, kind),
            np.insert(self.owner, places, missing),
            np.insert(self.side, places, own),
        )


def encode_masked(
    encoder: TextEncoder, words: Sequence[str], premise: str | None, keep: Keep, maximum: int | None
) -> list[EncodedText]:
    """The copies that `keep` describes, a row each."""
    text = TokenisedWords.read(encoder.tokenizer, words, premise)
    of_word = text.owner >= 0
    first = of_word & np.concatenate([[True], text.owner[1:] != text.owner[:-1]])
    shown = np.ones((len(keep), len(text.ids)), dtype=np.bool_)
    shown[:, of_word] = keep[:, text.owner[of_word]]
    stays = (shown | first) & ~(shown & (text.ids == NO_TOKEN))
    ids = np.where(shown, text.ids, np.int32(mask_token(encoder.tokenizer))).astype(ID_TYPE)
    if maximum is not None:
        for row in np.flatnonzero(stays.sum(1) > maximum):
            stays[row] = _cut(stays[row], text.side, maximum, encoder.tokenizer.truncation_side)
    with_types = encoder.with_types and (premise is not None or encoder.singles_have_types)
    types = np.broadcast_to(text.types, ids.shape)[stays].tobytes() if with_types else b""
    return _rows(ids[stays].tobytes(), types, stays.sum(1))


def _cut(stays: NDArray[np.bool_], side: Ids, maximum: int, from_side: str) -> NDArray[np.bool_]:
    """What is left of a copy when the longer side loses tokens at its end until all fit."""
    left = {one: list(np.flatnonzero(stays & (side == one))) for one in (0, 1)}
    surplus = int(stays.sum()) - maximum
    kept = stays.copy()
    for _ in range(surplus):
        longer = left[0] if len(left[0]) > len(left[1]) else left[1]
        if not longer:
            break
        kept[longer.pop(0 if from_side == "left" else -1)] = False
    return kept


def _rows(ids: bytes, types: bytes, lengths: NDArray[np.intp]) -> list[EncodedText]:
    ends = np.cumsum(lengths * ID_TYPE.itemsize).tolist()
    starts = [0, *ends[:-1]]
    return [EncodedText(ids[start:end], types[start:end]) for start, end in zip(starts, ends, strict=True)]
