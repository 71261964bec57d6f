"""Texts with hidden words, tokenised for a masked language model.

A hidden word becomes exactly one mask token whatever stood there (or as many as a word has pieces that is to be scored
in its place), the text around it is tokenised on its own, and a text that is too long is cut around the mask.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from stockade.models.word_tokens import BLANKS

Spans = Sequence[tuple[int, int]]
"""Where words begin and end in a text, in characters."""


@dataclass(frozen=True, slots=True)
class EncodedPlace:
    """A tokenised text with one mask token."""

    ids: tuple[int, ...]
    mask: int

    @property
    def key(self) -> Hashable:
        return self.ids

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class EncodedWords:
    """A tokenised text with mask tokens for words of as many pieces."""

    ids: tuple[int, ...]
    mask: int
    pieces: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...]

    @property
    def key(self) -> Hashable:
        return self.ids, self.pieces

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class PlaceEncoder:
    """A tokenizer of a masked LM that reads at most `maximum` tokens."""

    tokenizer: Any
    maximum: int

    def encode(self, places: Sequence[tuple[str, str]]) -> list[EncodedPlace]:
        """Token ids of each place with one mask token between what stands before and behind."""
        sides = [side for before, after in places for side in (before.rstrip(), after)]
        pieces = self._pieces(sides)
        return [self._place(pieces[at], pieces[at + 1]) for at in range(0, len(pieces), 2)]

    def encode_words(self, place: tuple[str, str], words: Sequence[str]) -> list[EncodedWords]:
        """The place with as many mask tokens as the words have pieces, once for each number of pieces."""
        before, after = self._pieces([place[0].rstrip(), place[1]])
        behind_blank = bool(before) and self._blank_matters
        pieces = self._pieces([f" {word}" if behind_blank else word for word in words])
        parts = []
        for length in sorted({len(word_pieces) for word_pieces in pieces} - {0}):
            numbers = tuple(number for number, word_pieces in enumerate(pieces) if len(word_pieces) == length)
            hidden = self._place(before, after, length)
            parts.append(EncodedWords(hidden.ids, hidden.mask, tuple(tuple(pieces[n]) for n in numbers), numbers))
        return parts

    def hidden_in_turn(self, text: str) -> list[tuple[EncodedPlace, int]]:
        """Every piece of the text with the text in which it alone is hidden, special and unknown tokens left out; the
        end of a long text is cut.
        """
        ids = self.tokenizer(text, truncation=True, max_length=self.maximum, verbose=False)["input_ids"]
        special, mask = set(self.tokenizer.all_special_ids), self.tokenizer.mask_token_id
        return [
            (EncodedPlace((*ids[:at], mask, *ids[at + 1 :]), at), piece)
            for at, piece in enumerate(ids)
            if piece not in special
        ]

    def encode_whole(self, texts: Sequence[str], spans: Sequence[Spans]) -> list[tuple[EncodedPlace, list[list[int]]]]:
        """Each text with nothing hidden, and for each of its spans the tokens that it overlaps."""
        if not texts:
            return []
        cut = {"truncation": True, "max_length": self.maximum, "verbose": False}
        encoded = self.tokenizer(list(texts), return_offsets_mapping=True, **cut)
        rows = zip(encoded["input_ids"], encoded["offset_mapping"], spans, strict=True)
        return [(EncodedPlace(tuple(ids), 0), _overlapping(offsets, words)) for ids, offsets, words in rows]

    def padded(self, batch: Sequence[EncodedPlace | EncodedWords]) -> tuple[Tensor, Tensor]:
        """Ids and attention mask of a batch."""
        width = max(map(len, batch))
        pad = self.tokenizer.pad_token_id or 0
        flat = array("q")
        for place in batch:
            flat.extend(place.ids)
            flat.extend([pad] * (width - len(place)))
        ids = torch.frombuffer(flat, dtype=torch.int64).view(len(batch), width)
        lengths = torch.tensor([len(place) for place in batch])
        return ids, (torch.arange(width) < lengths[:, None]).long()

    @cached_property
    def _blank_matters(self) -> bool:
        """Whether a word behind a blank has other tokens than the word alone."""
        return any(mark in token for token in self.tokenizer.tokenize(" a") for mark in BLANKS)

    def _pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text without special tokens; fast tokenizers are called through their Rust object."""
        if not texts:
            return []
        if not self.tokenizer.is_fast:
            ids: list[list[int]] = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
            return ids
        backend = self.tokenizer.backend_tokenizer
        backend.no_padding()
        backend.no_truncation()
        return [encoding.ids for encoding in backend.encode_batch_fast(list(texts), add_special_tokens=False)]

    def _place(self, before: list[int], after: list[int], masks: int = 1) -> EncodedPlace:
        room = max(0, self.maximum - 2 - masks)
        left = min(len(before), max(room // 2, room - len(after)))
        before, after = before[len(before) - left :], after[: room - left]
        tokenizer = self.tokenizer
        begin = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        end = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        hidden = [tokenizer.mask_token_id] * masks
        return EncodedPlace((begin, *before, *hidden, *after, end), 1 + len(before))


def _overlapping(offsets: Sequence[tuple[int, int]], spans: Spans) -> list[list[int]]:
    """The tokens that each stretch of a text overlaps."""
    return [[at for at, (a, b) in enumerate(offsets) if a < end and b > start and b > a] for start, end in spans]
