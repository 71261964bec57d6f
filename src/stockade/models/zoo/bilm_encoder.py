"""A character-aware language model in both directions (Peters et al. 2018, §3), the input of the WC-ELMo models.

A word is its UTF-8 bytes between a begin and an end mark: byte vectors, convolutions of several widths, the maximum
over the word, highway layers, a projection. A text stands between a begin and an end word. Two stacks of LSTMs
read it, one from each side, each layer after the first adding its input to its output.

The numbers of bytes and marks are those of the published weights, so that those fit (`elmo.py`). Differences to the
published code: the state begins at zero for every batch instead of going on from the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from stockade.models.zoo.words import CutWords, cut_words, distinct_rows, is_watched, of_like_lengths

PADDING, TEXT_BEGIN, TEXT_END, WORD_BEGIN, WORD_END, WORD_PADDING = 0, 257, 258, 259, 260, 261
"""Byte b has the id b + 1."""
CHARACTERS = 262
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


@dataclass(frozen=True, slots=True, kw_only=True)
class BiLmSizes:
    """Sizes of a `BiLmEncoder`; `filters` are pairs of a width and how many filters have it.

    With a `cell_size` the LSTMs have that many cells and project their state; the clips are for those only.
    """

    character_size: int = 16
    filters: Sequence[Sequence[int]] = ((1, 32), (2, 32), (3, 64), (4, 64), (5, 64))
    highways: int = 1
    activation: str = "relu"
    projection_size: int = 128
    cell_size: int | None = None
    layers: int = 2
    longest_word: int = 50
    cell_clip: float | None = None
    projection_clip: float | None = None


class Highway(nn.Module):
    """g · relu(W x) + (1 − g) · x with a learned gate g (Srivastava et al. 2015)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, size)
        self.gate = nn.Linear(size, size)

    def forward(self, vectors: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(vectors))
        return gate * torch.relu(self.transform(vectors)) + (1 - gate) * vectors


class ProjectedLstm(nn.Module):
    """An LSTM with a projection whose state may be clipped, as published ELMo weights need it; torch's own cannot.

    c = clip(f · c + i · tanh(j)); h = clip(P (o · tanh c)). Gates in the order i, f, j, o, one bias for all.
    """

    def __init__(self, size: int, cells: int, cell_clip: float | None, projection_clip: float | None) -> None:
        super().__init__()
        self.cells, self.cell_clip, self.projection_clip = cells, cell_clip, projection_clip
        self.inputs = nn.Linear(size, 4 * cells, bias=False)
        self.states = nn.Linear(size, 4 * cells)
        self.projection = nn.Linear(cells, size, bias=False)

    def forward(self, vectors: Tensor) -> tuple[Tensor, None]:
        """The states of (texts, words, size) vectors; a pair because torch's LSTM answers with one."""
        gates = self.inputs(vectors)
        hidden = vectors.new_zeros(len(vectors), vectors.shape[2])
        cell = vectors.new_zeros(len(vectors), self.cells)
        states = []
        for step in range(vectors.shape[1]):
            enter, forget, new, out = (gates[:, step] + self.states(hidden)).chunk(4, 1)
            cell = _clip(torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new), self.cell_clip)
            hidden = _clip(self.projection(torch.sigmoid(out) * torch.tanh(cell)), self.projection_clip)
            states.append(hidden)
        return torch.stack(states, 1), None


class BiLmEncoder(nn.Module):
    """Byte ids to the states of every layer. `embedding` holds the vectors of the bytes and marks."""

    def __init__(self, sizes: BiLmSizes, blank: int, marks: Sequence[int]) -> None:
        super().__init__()
        self.sizes, self.blank, self.marks = sizes, blank, tuple(marks)
        self.embedding = nn.Embedding(CHARACTERS, sizes.character_size, padding_idx=PADDING)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(sizes.character_size, count, width) for width, count in sizes.filters
        )
        self._widest = max(width for width, _ in sizes.filters)
        total = sum(count for _, count in sizes.filters)
        self.highways = nn.ModuleList(Highway(total) for _ in range(sizes.highways))
        self.projection = nn.Linear(total, sizes.projection_size)
        self.forwards = nn.ModuleList(_layer(sizes) for _ in range(sizes.layers))
        self.backwards = nn.ModuleList(_layer(sizes) for _ in range(sizes.layers))

    def cut(self, ids: Tensor, mask: Tensor) -> CutWords:
        return cut_words(ids, mask, self.blank, self.marks, self.sizes.longest_word - 2)

    def forward(
        self, ids: Tensor, mask: Tensor, vectors: Tensor | None = None, dropout: nn.Module | None = None
    ) -> tuple[list[Tensor], CutWords]:
        """The states of the word layer and of each LSTM layer, (texts, 1 + words + 1, 2 · size), and how the words
        were cut. Place 0 is the begin of the text; its end follows the last word.
        """
        cut = self.cut(ids, mask)
        words = self._word_vectors(cut, ids, vectors)
        begin, end = self._mark_words()
        counts = cut.mask.sum(1)
        sequence = functional.pad(words, (0, 0, 1, 1))
        places = torch.arange(sequence.shape[1], device=ids.device)
        is_end = places == counts.unsqueeze(1) + 1
        sequence = torch.where(is_end.unsqueeze(2), end, sequence)
        sequence = torch.where((places == 0)[None, :, None], begin, sequence)
        mirror = torch.where(places < (counts + 2).unsqueeze(1), counts.unsqueeze(1) + 1 - places, places)
        sequence = sequence if dropout is None else dropout(sequence)
        ahead = _stack(self.forwards, sequence, dropout)
        mirrored = _stack(self.backwards, _reordered(sequence, mirror), dropout)
        behind = [_reordered(states, mirror) for states in mirrored]
        first = torch.cat([sequence, sequence], 2)
        return [first, *(torch.cat(both, 2) for both in zip(ahead, behind, strict=True))], cut

    def _word_vectors(self, cut: CutWords, ids: Tensor, vectors: Tensor | None) -> Tensor:
        """The vector of every word of every text; distinct words are computed once unless a hook needs them all."""
        if vectors is None and not is_watched(self.embedding):
            table, inverse = distinct_rows(self._marked(cut, ids))
            lengths = (table != WORD_PADDING).sum(1) - 2
            distinct = self._words(functional.embedding(table, self.embedding.weight), lengths)
            return cut.texts(distinct[inverse]).vectors
        characters = self.embedding(ids) if vectors is None else vectors
        frame = self._marked(cut, torch.zeros_like(ids))  # the bytes' own vectors come from `characters`
        framed = functional.embedding(frame, self.embedding.weight)
        inside = (frame == PADDING).unsqueeze(2)
        shifted = functional.pad(cut.vectors(characters, frame.shape[1] - 2), (0, 0, 1, 1))
        return cut.texts(self._words(torch.where(inside, shifted, framed), cut.lengths)).vectors

    def _marked(self, cut: CutWords, ids: Tensor) -> Tensor:
        """The words' ids between their marks, padded far enough for every filter to see padding alone where it would
        among `longest_word` characters.
        """
        width = min(self.sizes.longest_word, int(cut.lengths.max()) + 2 + self._widest)
        table = functional.pad(cut.ids(ids, width - 2, WORD_PADDING), (1, 1), value=WORD_PADDING)
        table[:, 0] = WORD_BEGIN
        rows = torch.arange(len(table), device=ids.device)
        table[rows, cut.lengths + 1] = WORD_END
        return table

    def _mark_words(self) -> tuple[Tensor, Tensor]:
        """The vectors of the words that begin and end a text."""
        frame = [WORD_PADDING] * (min(self.sizes.longest_word, 3 + self._widest) - 3)
        ids = torch.tensor([[WORD_BEGIN, mark, WORD_END, *frame] for mark in (TEXT_BEGIN, TEXT_END)])
        begin, end = self._convolved(functional.embedding(ids.to(self.embedding.weight.device), self.embedding.weight))
        return begin, end

    def _words(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Vectors of words given as (words, width, size) characters between their marks."""
        return of_like_lengths(
            lengths, lambda rows, longest: self._convolved(characters[rows, : longest + 2 + self._widest])
        )

    def _convolved(self, characters: Tensor) -> Tensor:
        activation, columns = ACTIVATIONS[self.sizes.activation], characters.transpose(1, 2)
        vectors = torch.cat([activation(convolution(columns).amax(2)) for convolution in self.convolutions], 1)
        for highway in self.highways:
            vectors = highway(vectors)
        return cast(Tensor, self.projection(vectors))


def _layer(sizes: BiLmSizes) -> nn.Module:
    """torch's own LSTM is much faster, and enough where nothing is projected or clipped."""
    size = sizes.projection_size
    if sizes.cell_size is None:
        return nn.LSTM(size, size, batch_first=True)
    return ProjectedLstm(size, sizes.cell_size, sizes.cell_clip, sizes.projection_clip)


def _stack(layers: nn.ModuleList, sequence: Tensor, dropout: nn.Module | None) -> list[Tensor]:
    """The states of each layer; all but the first add what they read."""
    stack: list[Tensor] = []
    for layer in layers:
        read = stack[-1] if stack else sequence
        states = layer(read if dropout is None or not stack else dropout(read))[0]
        stack.append(states + read if stack else states)
    return stack


def _reordered(states: Tensor, order: Tensor) -> Tensor:
    return states.gather(1, order.unsqueeze(2).expand(-1, -1, states.shape[2]))


def _clip(values: Tensor, limit: float | None) -> Tensor:
    return values if limit is None else values.clamp(-limit, limit)


def sizes_as_dict(sizes: BiLmSizes) -> dict[str, Any]:
    """The sizes as JSON keeps them."""
    return {**asdict(sizes), "filters": [list(pair) for pair in sizes.filters]}
