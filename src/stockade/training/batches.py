"""Texts to batches: tokenised once, grouped by length, in an order that the seed and the epoch decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stockade.core.errors import OptionError
from stockade.core.seeds import derive_rng, derive_seed
from stockade.core.text import TextInput
from stockade.models.encoding import EncodedText, TextEncoder, length_batches
from stockade.training.objective import Batch

_VALIDATION_TOKENS, _VALIDATION_ROWS = 8192, 256
_POOL = 24
"""Batches per pool: within a pool texts are sorted by length, so that little is padding and much is chance."""


def plan_batches(lengths: Sequence[int], size: int, seed: int, epoch: int) -> list[list[int]]:
    """The rows of each batch of an epoch: shuffled, sorted by length within pools, the batches shuffled again."""
    rng = derive_rng(seed, "batches", epoch)
    order = list(range(len(lengths)))
    rng.shuffle(order)
    batches: list[list[int]] = []
    for start in range(0, len(order), size * _POOL):
        rows = sorted(order[start : start + size * _POOL], key=lengths.__getitem__)
        batches += [rows[at : at + size] for at in range(0, len(rows), size)]
    rng.shuffle(batches)
    return batches


def count_batches(texts: int, size: int) -> int:
    """How many batches an epoch has."""
    whole, rest = divmod(texts, size * _POOL)
    return whole * _POOL + -(-rest // size)


@dataclass(frozen=True, slots=True)
class WordDropout:
    """Turns a share of the tokens into the unknown one; special tokens and padding stay."""

    share: float
    unknown: int
    special: Tensor

    @classmethod
    def of(cls, share: float, encoder: TextEncoder) -> WordDropout | None:
        if not share:
            return None
        unknown = encoder.tokenizer.unk_token_id
        if unknown is None:
            raise OptionError(
                f"word_dropout is {share}, but the model's tokenizer has no unknown token to put in. Set it to 0."
            )
        return cls(share, unknown, torch.tensor(sorted(encoder.tokenizer.all_special_ids)))

    def __call__(self, ids: Tensor, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        dropped = torch.rand(ids.shape[:2], generator=generator) < self.share
        return torch.where(dropped & ~torch.isin(ids, self.special), self.unknown, ids)


class BatchSource(Protocol):
    """Where the loop takes its batches from."""

    @property
    def inputs(self) -> Sequence[TextInput]:
        """All texts."""

    @property
    def per_epoch(self) -> int:
        """How many batches an epoch has, the same for all."""

    def epoch(self, epoch: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, without the first `skip`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Texts that are ready to be taken in batches.

    Parameters
    ----------
    inputs, labels, encoded
        The texts, the numbers of their classes, and their tokens.
    encoder
        Makes the model's arguments from tokens.
    size, seed, epochs
        Texts per batch, the seed of their order, and how many epochs there will be.
    device, backward
        Where the batches are computed, and how gradients are added there.
    dropout
        Word dropout, if any.
    rank, world
        This process takes its part, `rank` of `world`, of each batch.
    """

    inputs: Sequence[TextInput]
    labels: NDArray[np.int64]
    encoded: Sequence[EncodedText]
    encoder: TextEncoder
    size: int
    seed: int
    device: torch.device
    backward: Callable[[Tensor], None]
    dropout: WordDropout | None = None
    rank: int = 0
    world: int = 1
    epochs: int = 1

    @property
    def per_epoch(self) -> int:
        return count_batches(len(self.encoded), self.size)

    def epoch(self, epoch: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, without the first `skip`."""
        plan = plan_batches([len(tokens) for tokens in self.encoded], self.size, self.seed, epoch)
        for number in range(skip, len(plan)):
            rows = plan[number][self.rank :: self.world] or plan[number][:1]  # no process may miss a step
            progress = (epoch + number / len(plan)) / self.epochs
            yield self._batch(rows, derive_seed(self.seed, "batch", epoch, number, self.rank), progress)

    def by_length(self) -> Iterator[Batch]:
        """All texts in order of length, in batches as large as a validation allows."""
        for rows in length_batches([len(tokens) for tokens in self.encoded], _VALIDATION_TOKENS, _VALIDATION_ROWS):
            yield self._batch(rows, 0, 1.0)

    def _batch(self, rows: list[int], seed: int, progress: float) -> Batch:
        tensors = self.encoder.tensors([self.encoded[row] for row in rows], torch.device("cpu"))
        if self.dropout is not None:
            tensors["input_ids"] = self.dropout(tensors["input_ids"], seed)
        if self.device.type != "cpu":
            tensors = {name: tensor.to(self.device) for name, tensor in tensors.items()}
        labels = torch.from_numpy(self.labels[rows]).to(self.device)
        inputs = tuple([self.inputs[row] for row in rows])
        return Batch(
            inputs=inputs,
            labels=labels,
            tensors=tensors,
            rng=Random(seed),
            encode=self.encode,
            backward=self.backward,
            progress=progress,
        )

    def encode(self, inputs: Sequence[TextInput]) -> Mapping[str, Tensor]:
        """Texts as the model's arguments."""
        return self.encoder.tensors(self.encoder.encode(inputs), self.device)
