"""Training on texts whose words are perturbed anew in every step: what ranmask, deletion, partition and safer share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from stockade.core.masks import Keep
from stockade.core.text import TextInput

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.models.encoding import EncodedText, TextEncoder
    from stockade.training.objective import Batch, Objective

DrawMask = Callable[[np.random.Generator, int], Keep]
"""Which of so many words a text shows, as a single row."""


@dataclass(frozen=True, slots=True)
class PerturbedTexts:
    """Trains as `plain` does on batches that `perturb` changes; validation texts are changed likewise."""

    perturb: Callable[[Batch], Batch]
    plain: Objective

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(self.perturb(batch))

    def validation_batch(self, batch: Batch) -> Batch:
        from stockade.training.objective import validation_batch

        return validation_batch(self.plain, self.perturb(batch))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)


def with_changed_texts(batch: Batch, change: Callable[[str, Random], str]) -> Batch:
    """The batch with `change` applied to every text, of a pair to the hypothesis."""

    def changed(text: TextInput) -> TextInput:
        return change(text, batch.rng) if isinstance(text, str) else (text[0], change(text[1], batch.rng))

    return batch.with_inputs([changed(text) for text in batch.inputs])


def with_masked_words(batch: Batch, encoder: TextEncoder, draw: DrawMask) -> Batch:
    """The batch with a mask for every word that `draw` does not keep; a text without words stays as it is."""
    encoded = [_masked(text, encoder, draw, batch.rng) for text in batch.inputs]
    return replace(batch, tensors=encoder.tensors(encoded, batch.labels.device))


def _masked(text: TextInput, encoder: TextEncoder, draw: DrawMask, rng: Random) -> EncodedText:
    from stockade.models.masking import encode_masked

    premise, string = (None, text) if isinstance(text, str) else text
    words = string.split()
    if not words:
        return encoder.encode([text])[0]
    keep = draw(np.random.default_rng(rng.getrandbits(64)), len(words))
    return encode_masked(encoder, words, premise, keep, encoder.maximum)[0]
