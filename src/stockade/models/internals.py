"""What studies read inside a Hugging Face classifier: hidden vectors by layer and word, and the weights and inputs of
its self-attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stockade.core.errors import ModelError
from stockade.core.text import Text
from stockade.models.huggingface import HuggingFaceClassifier

Vectors = NDArray[np.float32]
Kind = Literal["self-attentive", "recurrent", "other"]

_TOKENS, _ROWS = 1024, 32
_PROJECTIONS = (("query", "key"), ("q_lin", "k_lin"), ("q_proj", "k_proj"), ("query_proj", "key_proj"))
"""What libraries call the two linear maps whose products are attention scores."""


@dataclass(frozen=True, slots=True)
class SelfAttention:
    """One layer of self-attention; `query` and `key` are d × (heads · width), a block of columns for each head."""

    heads: int
    query: Vectors
    key: Vectors

    def of_head(self, head: int) -> tuple[Vectors, Vectors]:
        """W_Q and W_K of one head, d × width each."""
        width = self.query.shape[1] // self.heads
        columns = slice(head * width, (head + 1) * width)
        return self.query[:, columns], self.key[:, columns]


def kind_of(classifier: object) -> Kind:
    """Whether words meet each other by self-attention or by recurrence."""
    if not isinstance(classifier, HuggingFaceClassifier):
        return "other"
    if _projections(classifier):
        return "self-attentive"
    recurrent = any(isinstance(layer, nn.RNNBase) for layer in classifier.model.modules())
    return "recurrent" if recurrent else "other"


def self_attention(classifier: HuggingFaceClassifier) -> list[SelfAttention]:
    """The self-attention of every layer, from the first; none for a model without."""
    heads = int(getattr(classifier.model.config, "num_attention_heads", 1))
    return [SelfAttention(heads, _weights(query), _weights(key)) for query, key in _projections(classifier)]


def attention_inputs(classifier: HuggingFaceClassifier, texts: Sequence[Text], most: int) -> list[Vectors]:
    """For every layer of self-attention the vectors its queries are made from, a row per token, `most` rows at most."""
    layers = _projections(classifier)
    rows: list[list[Vectors]] = [[] for _ in layers]
    count = 0
    for tokens in classifier.word_reader.batches(texts, _TOKENS, _ROWS):
        mask = tokens.inputs["attention_mask"].bool()
        with torch.inference_mode(), _inputs_of([query for query, _ in layers]) as inputs:
            classifier.model(**tokens.inputs)
        for layer, vectors in inputs.items():
            rows[layer].append(vectors[mask].float().cpu().numpy())
        count += int(mask.sum())
        if count >= most:
            break
    return [np.concatenate(vectors)[:most] for vectors in rows] if count else []


def hidden_by_word(classifier: HuggingFaceClassifier, texts: Sequence[Text]) -> list[list[Vectors]]:
    """For each text its hidden vectors, layer by layer from the input vectors up, a row per word.

    A word of several tokens has their mean; one that the model does not read has NaN.
    """
    answers: dict[int, list[Vectors]] = {}
    for tokens in classifier.word_reader.batches(texts, _TOKENS, _ROWS):
        with torch.inference_mode():
            layers = getattr(classifier.model(**tokens.inputs, output_hidden_states=True), "hidden_states", None)
        length = tokens.inputs["input_ids"].shape[1]
        if not layers or any(layer.shape[1] != length for layer in layers):
            raise ModelError(f"{type(classifier.model).__name__} shows no hidden vectors for each of its tokens.")
        for row, index in enumerate(tokens.numbers):
            answers[index] = [_by_word(layer[row].float().cpu(), tokens.positions[row]) for layer in layers]
    return [answers[index] for index in range(len(texts))]


def pieces_by_word(classifier: HuggingFaceClassifier, texts: Sequence[Text]) -> list[list[int]]:
    """For each text of how many tokens each of its words is; 0 for one that the model does not read."""
    counts: dict[int, list[int]] = {}
    for tokens in classifier.word_reader.batches(texts, _TOKENS, _ROWS):
        for row, number in enumerate(tokens.numbers):
            counts[number] = [len(places) for places in tokens.positions[row]]
    return [counts[number] for number in range(len(texts))]


def _by_word(vectors: Tensor, words: list[list[int]]) -> Vectors:
    nothing = torch.full((vectors.shape[1],), torch.nan)
    rows = [vectors[places].mean(0) if places else nothing for places in words]
    by_word: Vectors = torch.stack(rows).numpy() if rows else np.zeros((0, vectors.shape[1]), dtype=np.float32)
    return by_word


def _projections(classifier: HuggingFaceClassifier) -> list[tuple[nn.Linear, nn.Linear]]:
    pairs = []
    for module in classifier.model.modules():
        for names in _PROJECTIONS:
            query, key = (getattr(module, name, None) for name in names)
            if isinstance(query, nn.Linear) and isinstance(key, nn.Linear) and query.weight.shape == key.weight.shape:
                pairs.append((query, key))
    return pairs


def _weights(layer: nn.Linear) -> Vectors:
    """The map as the papers write it, for rows from the left."""
    weights: Vectors = layer.weight.detach().float().cpu().numpy().T
    return weights


@contextmanager
def _inputs_of(layers: Sequence[nn.Linear]) -> Iterator[dict[int, Tensor]]:
    """Collect what each layer reads in the forward pass inside the `with`; of one that runs twice, its first input."""
    inputs: dict[int, Tensor] = {}

    def watch(number: int) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def look(_: nn.Module, arguments: tuple[Tensor, ...]) -> None:
            inputs.setdefault(number, arguments[0].detach())

        return look

    handles = [layer.register_forward_pre_hook(watch(number)) for number, layer in enumerate(layers)]
    try:
        yield inputs
    finally:
        for handle in handles:
            handle.remove()
