"""What one-word attacks look at inside a Hugging Face classifier: what it says with a word's vectors zeroed, its
sentence vectors, and how much attention its words get.

Everything goes through hooks on the model's own forward pass, so it holds for any architecture: the input embedding's
answer is altered at the tokens of a word, and the sentence vector is what the last linear layer reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stockade.core.errors import ModelError
from stockade.core.protocols import AttentionQuery
from stockade.core.text import Text
from stockade.models.encoding import logits_of
from stockade.models.input_vectors import altered_vectors
from stockade.models.word_tokens import WordReader, WordTokens

_TOKENS, _ROWS = 2048, 128


class WhiteBox:
    """Looks into a model by way of its words; made once for a classifier."""

    def __init__(self, reader: WordReader) -> None:
        self._reader, self._model = reader, reader.model

    def logits_zeroed(self, places: Sequence[tuple[Text, int]]) -> NDArray[np.float64]:
        """The logits of each text as if the input vectors of one word were zero; the word's places stay."""
        answers: dict[int, NDArray[np.float64]] = {}
        for tokens in self._reader.batches([text for text, _ in places], _TOKENS, _ROWS):
            keep = torch.ones(tokens.inputs["input_ids"].shape, device=self._model.device)
            for row, number in enumerate(tokens.numbers):
                keep[row, tokens.positions[row][places[number][1]]] = 0.0
            factors = keep.unsqueeze(-1)
            with torch.inference_mode(), altered_vectors(self._model, partial(torch.mul, factors)):
                logits = logits_of(self._model(**tokens.inputs)).to("cpu", torch.float64).numpy()
            answers.update(zip(tokens.numbers, logits, strict=True))
        return np.stack([answers[number] for number in range(len(places))])

    def word_attention(self, texts: Sequence[Text], layer: int, query: AttentionQuery) -> list[NDArray[np.float32]]:
        """How much attention each word gets: the sum over its tokens, the mean over heads and over queries."""
        answers: dict[int, NDArray[np.float32]] = {}
        for tokens in self._reader.batches(texts, _TOKENS, _ROWS):
            answers.update(zip(tokens.numbers, self._attention(tokens, layer, query), strict=True))
        return [answers[number] for number in range(len(texts))]

    def _attention(self, tokens: WordTokens, layer: int, query: AttentionQuery) -> Iterator[NDArray[np.float32]]:
        with torch.inference_mode(), _eager(self._model):
            layers = getattr(self._model(**tokens.inputs, output_attentions=True), "attentions", None)
        if not layers or layers[0] is None:
            raise ModelError(
                f"{type(self._model).__name__} has no attention to look at: give a model of the BERT family or a "
                "BiLSTM-attention, or choose an attack that does not need attention."
            )
        if not -len(layers) <= layer < len(layers):
            raise ModelError(f"The model has {len(layers)} attention layers; there is no layer {layer} (from 0).")
        weights = layers[layer].float()
        mask = tokens.inputs["attention_mask"].bool()
        for row, words in enumerate(tokens.positions):
            received = weights[row] if weights.dim() == 2 else _received(weights[row], mask[row], query)
            yield np.array([float(received[places].sum()) for places in words], dtype=np.float32)


def _received(weights: Tensor, mask: Tensor, query: AttentionQuery) -> Tensor:
    """The attention that each token gets, a distribution over tokens: heads × queries × keys, averaged."""
    mean = weights.mean(0)
    return mean[0] if query == "first" else mean[mask].mean(0)


def final_layer(model: Any) -> nn.Linear:
    """The linear layer that makes the logits; what it reads is the model's sentence vector."""
    classes = int(model.config.num_labels)
    found = [layer for layer in model.modules() if isinstance(layer, nn.Linear) and layer.out_features == classes]
    if not found:
        raise ModelError(f"{type(model).__name__} has no linear layer for its classes, so it has no sentence vector.")
    return found[-1]


@contextmanager
def sentence_vectors(model: Any) -> Iterator[list[Tensor]]:
    """Collects what the last linear layer reads in the forward passes meanwhile."""
    seen: list[Tensor] = []

    def look(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        if given[0].dim() != 2:
            raise ModelError(f"{type(model).__name__} classifies token by token, so it has no sentence vector.")
        seen.append(given[0].detach())

    handle = final_layer(model).register_forward_pre_hook(look)
    try:
        yield seen
    finally:
        handle.remove()


@contextmanager
def _eager(model: Any) -> Iterator[None]:
    """Fast attention kernels keep no weights: compute attention plainly meanwhile."""
    before = getattr(model.config, "_attn_implementation", None)
    if before in (None, "eager") or not hasattr(model, "set_attn_implementation"):
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)
