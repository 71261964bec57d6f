"""What a body of the zoo reads: a vector for each word of each text, looked up by word or made from characters.

Rows of character ids are cut into words inside the model, so that a tokenizer can give it plain characters. A blank
ends a word and belongs to none; a mark (a punctuation character, a separator) is a word of its own. Of a very long word
only the first characters are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

_FEW_TEXTS = 2
"""So few texts share no words worth looking for."""
_GROUPS = (4, 8, 14)
_MULTIPLIER, _POSITIVE = 0x1E3779B97F4A7C15, 2**63 - 1


@dataclass(frozen=True, slots=True)
class Vectors:
    """The words' vectors of a batch: `vectors` of shape (texts, words, width), and where `mask` is False, no word."""

    vectors: Tensor
    mask: Tensor

    @property
    def dense(self) -> Tensor:
        return self.vectors


@dataclass(frozen=True, slots=True)
class DistinctVectors:
    """The same with every distinct word kept once: word (i, j) has the vector `table[places[i, j]]`.

    Row 0 of the table is zeros and stands where there is no word.
    """

    table: Tensor
    places: Tensor
    mask: Tensor

    @property
    def dense(self) -> Tensor:
        return functional.embedding(self.places, self.table)


Words = Vectors | DistinctVectors


def read_ids(embedding: nn.Module, ids: Tensor, mask: Tensor, distinct: bool) -> Words:
    """The words of a batch of word ids; with `distinct` each word once, unless gradients or a hook need them all."""
    if not distinct or len(ids) <= _FEW_TEXTS or torch.is_grad_enabled() or is_watched(embedding):
        return Vectors(embedding(ids), mask)
    marked = functional.pad(torch.where(mask, ids + 1, 0), (0, 1))
    words, places = torch.unique(marked, return_inverse=True)
    table: Tensor = embedding((words - 1).clamp(min=0))
    table[0] = 0.0
    return DistinctVectors(table, places[:, :-1], mask)


def is_watched(module: nn.Module) -> bool:
    """Whether a hook waits for the module to be called on the batch as it came."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return any(hooks)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutWords:
    """The words of a batch, numbered from 1 in reading order, and the characters they are made of.

    Character n of the batch, counting only those of words, stands at `rows[n], columns[n]` of the ids and is character
    `places[n]` of word `owners[n]`. `numbers` (texts, words) holds the word's number, or 0 where there is no word.
    """

    numbers: Tensor
    rows: Tensor
    columns: Tensor
    owners: Tensor
    places: Tensor
    lengths: Tensor
    """Characters of each word; the first entry is 0 and stands for no word."""

    @property
    def mask(self) -> Tensor:
        return self.numbers > 0

    def ids(self, ids: Tensor, width: int, fill: int) -> Tensor:
        """The ids as (1 + words, width), `fill` behind each word's end."""
        table = ids.new_full((len(self.lengths), width), fill)
        table[self.owners, self.places] = ids[self.rows, self.columns]
        return table

    def vectors(self, vectors: Tensor, width: int) -> Tensor:
        """Character vectors (texts, characters, size) as (1 + words, width, size), zeros behind each word's end."""
        table = vectors.new_zeros(len(self.lengths), width, vectors.shape[2])
        return table.index_put((self.owners, self.places), vectors[self.rows, self.columns])

    def texts(self, table: Tensor) -> Vectors:
        """Word vectors (1 + words, size) put where the words stand; zeros where there is none."""
        return Vectors(functional.embedding(self.numbers, table) * self.mask.unsqueeze(2), self.mask)

    def distinct(self, table: Tensor, inverse: Tensor) -> DistinctVectors:
        """Vectors (1 + distinct words, size), the first zeros; `inverse` says which row is which word's."""
        return DistinctVectors(table, inverse[self.numbers], self.mask)


def cut_words(ids: Tensor, mask: Tensor, blank: int, marks: Sequence[int], longest: int) -> CutWords:
    """Cut `ids` (texts, characters) at the blanks and around the marks."""
    inside = mask & (ids != blank)
    alone = inside & torch.isin(ids, torch.tensor(list(marks), dtype=ids.dtype, device=ids.device))
    before = functional.pad(inside & ~alone, (1, 0))[:, :-1]
    begins = inside & (alone | ~before)
    per_text = begins.sum(1)
    numbers = begins.flatten().cumsum(0).view_as(ids)
    positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    started = torch.where(begins, positions, 0).cummax(1).values
    places = positions - started
    read = inside & (places < longest)
    rows, columns = read.nonzero(as_tuple=True)
    owners = numbers[rows, columns]
    width = max(1, int(per_text.max())) if len(ids) else 1
    ends = per_text.cumsum(0)
    order = torch.arange(width, device=ids.device).expand(len(ids), width)
    table = torch.where(order < per_text.unsqueeze(1), order + 1 + (ends - per_text).unsqueeze(1), 0)
    lengths = torch.bincount(owners, minlength=int(ends[-1]) + 1 if len(ids) else 1)
    return CutWords(
        numbers=table, rows=rows, columns=columns, owners=owners, places=places[rows, columns], lengths=lengths
    )


def distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of a table of ids, and for each row which of them it is; a row of zeros comes first.

    torch's own way sorts whole rows, which takes as long as reading the words does. Here rows are sorted by a hash, and
    the slow way is left for the day when two rows share one.
    """
    powers = torch.full((rows.shape[1],), _MULTIPLIER, device=rows.device).cumprod(0)  # overflow is part of the hash
    hashes = (rows * powers).sum(1) & _POSITIVE
    values, inverse = torch.unique(hashes, return_inverse=True)
    examples = torch.empty_like(values).scatter_(0, inverse, torch.arange(len(rows), device=rows.device))
    distinct = rows[examples]
    if torch.equal(distinct[inverse], rows):
        return distinct, inverse
    distinct, inverse = torch.unique(rows, dim=0, return_inverse=True)
    return distinct, inverse


def of_like_lengths(lengths: Tensor, compute: Callable[[Tensor, int], Tensor]) -> Tensor:
    """`compute(rows, longest)` for groups of words of like lengths, put together in order; zeros for words of length 0.

    One long word in a batch would otherwise make all of them as long.
    """
    groups: list[tuple[Tensor, Tensor]] = []
    shortest = 0
    for longest in (*_GROUPS, int(lengths.max())):
        rows = ((lengths > shortest) & (lengths <= longest)).nonzero().squeeze(1)
        if len(rows) or not groups:
            groups.append((rows, compute(rows, int(lengths[rows].max()) if len(rows) else 1)))
        shortest = max(shortest, longest)
    answers = torch.cat([answer for _, answer in groups])
    table = answers.new_zeros(len(lengths), answers.shape[1])
    return table.index_copy(0, torch.cat([rows for rows, _ in groups]), answers)
