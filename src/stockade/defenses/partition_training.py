"""Training on single groups of the words of a text, another group in every step."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from stockade.core.masks import Keep
from stockade.core.text import TextInput
from stockade.defenses.masked_training import with_hidden_words
from stockade.defenses.partition import Partition

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.models.encoding import TextEncoder
    from stockade.training.objective import Batch, Objective


@dataclass(frozen=True, slots=True)
class GroupTraining:
    """Shows one group of every text of a batch, all groups as likely, then trains as `plain` does.

    A text of which an empty group was drawn is shown whole; the premise of a pair always.
    """

    partition: Partition
    encoder: TextEncoder
    plain: Objective

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(self._grouped(batch))

    def judged(self, batch: Batch) -> Batch:
        from stockade.training.objective import as_judged

        return as_judged(self.plain, self._grouped(batch))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)

    def _grouped(self, batch: Batch) -> Batch:
        if self.partition.by == "position":
            return with_hidden_words(batch, self.encoder, self._one_group)
        return batch.with_inputs([self._shortened(one, batch.rng) for one in batch.inputs])

    def _one_group(self, generator: np.random.Generator, words: int) -> Keep:
        groups = self.partition.positions(words)
        return generator.choice(groups, 1)

    def _shortened(self, one: TextInput, rng: Random) -> TextInput:
        premise, string = (None, one) if isinstance(one, str) else one
        group = " ".join(rng.choice(self.partition.hashed(string.split()))) or string
        return group if premise is None else (premise, group)
