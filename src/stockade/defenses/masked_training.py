"""Training on texts with words hidden, other words in every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from stockade.core.masks import draw_masks, kept_words
from stockade.core.text import TextInput

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.models.encoding import EncodedText, TextEncoder
    from stockade.training.objective import Batch, Objective

RISING = 0.6
"""The share of the training in which the rate of a curriculum rises."""


@dataclass(frozen=True, slots=True)
class MaskedTraining:
    """Hides words of every text of a batch anew, then trains as `plain` does; the hypothesis only of a pair.

    Texts that `plain` adds are there before words are hidden; what it does to tokens comes after.
    """

    encoder: TextEncoder
    plain: Objective
    rate: float
    kept: int
    curriculum: float | None = None

    def augment(self, batch: Batch) -> Batch:
        adds_texts = getattr(self.plain, "adds_texts", False)
        if adds_texts:
            batch = self.plain.augment(batch)
        rate = self.rate_at(batch.progress)
        encoded = [self._masked(one, rate, batch.rng) for one in batch.inputs]
        device = batch.labels.device
        masked = replace(batch, tensors=self.encoder.tensors(encoded, device))
        return masked if adds_texts else self.plain.augment(masked)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)

    def rate_at(self, progress: float) -> float:
        """The mask rate when so much of the training is over."""
        if self.curriculum is None:
            return self.rate
        return self.curriculum + (self.rate - self.curriculum) * min(1.0, progress / RISING)

    def _masked(self, one: TextInput, rate: float, rng: Random) -> EncodedText:
        from stockade.models.masking import encode_masked

        premise, string = (None, one) if isinstance(one, str) else one
        words = string.split()
        if not words:
            return self.encoder.encode([one])[0]
        generator = np.random.default_rng(rng.getrandbits(64))
        keep = draw_masks(generator, len(words), kept_words(len(words), rate, self.kept), 1)
        return encode_masked(self.encoder, words, premise, keep, self.encoder.maximum)[0]
