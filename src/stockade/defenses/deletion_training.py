"""Training on texts that lost words, other words in every step."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from stockade.core.text import TextInput
from stockade.defenses.deletion import Deletion, shortened

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.training.objective import Batch, Objective


@dataclass(frozen=True, slots=True)
class DeletionTraining:
    """Deletes words of every text of a batch anew, then trains as `plain` does; the hypothesis only of a pair.

    A text never loses all its words: one of them, drawn at random, stays then.
    """

    deletion: Deletion
    plain: Objective

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(self._shortened(batch))

    def judged(self, batch: Batch) -> Batch:
        from stockade.training.objective import as_judged

        return as_judged(self.plain, self._shortened(batch))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)

    def _shortened(self, batch: Batch) -> Batch:
        return batch.with_inputs([self._with_fewer_words(one, batch.rng) for one in batch.inputs])

    def _with_fewer_words(self, one: TextInput, rng: Random) -> TextInput:
        premise, string = (None, one) if isinstance(one, str) else one
        words = string.split()
        if not words:
            return one
        generator = np.random.default_rng(rng.getrandbits(64))
        keep = self.deletion.kept(generator, len(words), 1)
        if not keep.any():
            keep[0, generator.integers(len(words))] = True
        [copy] = shortened(words, keep)
        return copy if premise is None else (premise, copy)
