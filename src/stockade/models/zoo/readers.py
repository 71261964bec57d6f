"""Readers: from characters to word vectors, by a convolution over each word or by a language model.

The convolution has filters of several widths and takes the maximum over the word. The filters see zeros before and
behind the word, so that prefixes and suffixes can be told from the middle. A word's vector depends on its characters
alone, so each distinct word of a batch is computed once.

The language model reads in both directions, and a word's vector is a learned mix of its layers (Peters et al. 2018,
eq. 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from stockade.models.zoo.bilm_encoder import BiLmEncoder, BiLmSizes
from stockade.models.zoo.words import Vectors, Words, cut_words, distinct_rows, is_watched, of_like_lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterSizes:
    """Sizes of a `CharacterReader`; `character_filters` of each of the `character_widths`."""

    character_size: int = 32
    character_widths: Sequence[int] = (2, 3, 4, 5)
    character_filters: int = 50
    longest_word: int = 40


class CharacterReader(nn.Module):
    """Character ids to word vectors. `embedding` holds the vectors of the characters."""

    def __init__(self, characters: int, sizes: CharacterSizes, blank: int, marks: Sequence[int], pad: int = 0) -> None:
        super().__init__()
        self.sizes, self.blank, self.marks = sizes, blank, tuple(marks)
        self.embedding = nn.Embedding(characters, sizes.character_size, padding_idx=pad)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(sizes.character_size, sizes.character_filters, width, padding=width - 1)
            for width in sizes.character_widths
        )
        self.width = sizes.character_filters * len(sizes.character_widths)

    def forward(self, ids: Tensor, mask: Tensor, vectors: Tensor | None = None) -> Words:
        """The words of a batch; `vectors` stand in for what the embedding says about the ids."""
        cut = cut_words(ids, mask, self.blank, self.marks, self.sizes.longest_word)
        width = max(1, int(cut.lengths.max()))
        if vectors is None and not is_watched(self.embedding):
            words, inverse = distinct_rows(cut.ids(ids + 1, width, 0))
            lengths = (words > 0).sum(1)
            table = functional.embedding((words - 1).clamp(min=0), self.embedding.weight)
            return cut.distinct(self._words(table * (words > 0).unsqueeze(2), lengths), inverse)
        spread = cut.vectors(self.embedding(ids) if vectors is None else vectors, width)
        return cut.texts(self._words(spread, cut.lengths))

    def _words(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Vectors of words given as (words, width, size) characters; zeros for a word without characters."""
        return of_like_lengths(
            lengths, lambda rows, longest: self._convolved(characters[rows, :longest], lengths[rows])
        )

    def _convolved(self, characters: Tensor, lengths: Tensor) -> Tensor:
        columns = characters.transpose(1, 2)
        answers = []
        for width, convolution in zip(self.sizes.character_widths, self.convolutions, strict=True):
            windows = convolution(columns)
            reach = lengths + width - 1  # windows that touch the word
            past = torch.arange(windows.shape[2], device=lengths.device) >= reach.unsqueeze(1)
            answers.append(windows.masked_fill(past.unsqueeze(1), -torch.inf).amax(2))
        return torch.relu(torch.cat(answers, 1))


class ElmoReader(nn.Module):
    """γ · Σ softmax(w)_k · layer k. A frozen language model stays as it was trained; only γ and w learn."""

    def __init__(self, sizes: BiLmSizes, blank: int, marks: Sequence[int], frozen: bool) -> None:
        super().__init__()
        self.bilm = BiLmEncoder(sizes, blank, marks)
        self.frozen = frozen
        self.bilm.requires_grad_(not frozen)
        self.weights = nn.Parameter(torch.zeros(sizes.layers + 1))
        self.scale = nn.Parameter(torch.ones(1))
        self.width = 2 * sizes.projection_size

    def train(self, mode: bool = True) -> Self:
        """Frozen again each time: loading a model makes all its weights learn."""
        super().train(mode)
        self.bilm.requires_grad_(not self.frozen)
        return self

    @property
    def embedding(self) -> nn.Embedding:
        """The vectors of the bytes."""
        return self.bilm.embedding

    def forward(self, ids: Tensor, mask: Tensor, vectors: Tensor | None = None) -> Vectors:
        """The words of a batch; `vectors` stand in for what the embedding says about the ids."""
        states, cut = self.bilm(ids, mask, vectors)
        shares = self.weights.softmax(0)
        mixed = self.scale * sum(share * layer for share, layer in zip(shares, states, strict=True))
        return Vectors(mixed[:, 1:-1] * cut.mask.unsqueeze(2), cut.mask)
