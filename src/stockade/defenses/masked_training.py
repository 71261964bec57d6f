"""Training on texts with words hidden, other words in every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from stockade.core.masks import Keep, draw_masks, kept_words
from stockade.core.text import TextInput

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.models.encoding import EncodedText, TextEncoder
    from stockade.training.objective import Batch, Objective

RISING = 0.6
"""The share of the training in which the rate of a curriculum rises."""

DrawMask = Callable[[np.random.Generator, int], Keep]
"""One row: which of so many words a text shows."""


@dataclass(frozen=True, slots=True)
class MaskedTraining:
    """Hides words of every text of a batch anew, then trains as `plain` does; the hypothesis only of a pair."""

    encoder: TextEncoder
    plain: Objective
    rate: float
    kept: int
    curriculum: float | None = None

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(self._masked(batch))

    def judged(self, batch: Batch) -> Batch:
        from stockade.training.objective import as_judged

        return as_judged(self.plain, self._masked(batch))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)

    def rate_at(self, progress: float) -> float:
        """The mask rate when so much of the training is over."""
        if self.curriculum is None:
            return self.rate
        return self.curriculum + (self.rate - self.curriculum) * min(1.0, progress / RISING)

    def _masked(self, batch: Batch) -> Batch:
        rate = self.rate_at(batch.progress)

        def draw(generator: np.random.Generator, words: int) -> Keep:
            return draw_masks(generator, words, kept_words(words, rate, self.kept), 1)

        return with_hidden_words(batch, self.encoder, draw)


def with_hidden_words(batch: Batch, encoder: TextEncoder, draw: DrawMask) -> Batch:
    """The batch with the words hidden that `draw` does not keep; a text without words stays as it is."""
    encoded = [_masked(one, encoder, draw, batch.rng) for one in batch.inputs]
    return replace(batch, tensors=encoder.tensors(encoded, batch.labels.device))


def _masked(one: TextInput, encoder: TextEncoder, draw: DrawMask, rng: Random) -> EncodedText:
    from stockade.models.masking import encode_masked

    premise, string = (None, one) if isinstance(one, str) else one
    words = string.split()
    if not words:
        return encoder.encode([one])[0]
    keep = draw(np.random.default_rng(rng.getrandbits(64)), len(words))
    return encode_masked(encoder, words, premise, keep, encoder.maximum)[0]
