"""What white-box attacks read inside a Hugging Face classifier, word by word: gradients, the answer with a word's
vectors zeroed, sentence vectors, and how much attention each word gets.

Everything goes through hooks on the model's own forward pass, so it holds for any architecture: the input embedding's
answer is altered at the tokens of a word, and the sentence vector is what the last linear layer reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stockade.core.errors import ModelError
from stockade.core.protocols import AttentionQuery, VocabularyKind, WordVocabulary
from stockade.core.text import Text, is_single_word
from stockade.models.encoding import logits_of
from stockade.models.input_vectors import altered_vectors, input_variable
from stockade.models.word_tokens import WordReader, WordTokens, whole_words

_TOKENS, _ROWS, _GRADIENT_ROWS = 2048, 128, 32


class WhiteBox:
    """Zeroed words and attention of one model; made once for a classifier."""

    def __init__(self, reader: WordReader) -> None:
        self._reader, self._model = reader, reader.model

    def logits_zeroed(self, places: Sequence[tuple[Text, int]]) -> NDArray[np.float64]:
        """The logits of each text with the input vectors of one word set to zero; the word keeps its positions."""
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

    def piece_attention(
        self, texts: Sequence[Text], layer: int, query: AttentionQuery
    ) -> list[list[NDArray[np.float32]]]:
        """How much attention each token of each word gets: the mean over heads and over queries."""
        answers: dict[int, list[NDArray[np.float32]]] = {}
        for tokens in self._reader.batches(texts, _TOKENS, _ROWS):
            answers.update(zip(tokens.numbers, self._attention(tokens, layer, query), strict=True))
        return [answers[number] for number in range(len(texts))]

    def _attention(self, tokens: WordTokens, layer: int, query: AttentionQuery) -> Iterator[list[NDArray[np.float32]]]:
        with torch.inference_mode(), eager_attention(self._model):
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
            yield [received[places].float().cpu().numpy() for places in words]


def _received(weights: Tensor, mask: Tensor, query: AttentionQuery) -> Tensor:
    """The attention that each token gets, a distribution over tokens: heads × queries × keys, averaged."""
    mean = weights.mean(0)
    return mean[0] if query == "first" else mean[mask].mean(0)


def final_layer(model: Any) -> nn.Linear:
    """The linear layer that makes the logits; what it reads is the model's sentence vector."""
    classes = int(model.config.num_labels)
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear) and layer.out_features == classes]
    if not layers:
        raise ModelError(f"{type(model).__name__} has no linear layer for its classes, so it has no sentence vector.")
    return layers[-1]


@contextmanager
def sentence_vectors(model: Any) -> Iterator[list[Tensor]]:
    """Collect what the last linear layer reads in the forward passes of this thread inside the `with`.

    Other threads may compute with the same model meanwhile, each with a hook of its own.
    """
    vectors: list[Tensor] = []
    thread = get_ident()

    def look(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if get_ident() != thread:
            return
        if inputs[0].dim() != 2:
            raise ModelError(f"{type(model).__name__} classifies token by token, so it has no sentence vector.")
        vectors.append(inputs[0].detach())

    handle = final_layer(model).register_forward_pre_hook(look)
    try:
        yield vectors
    finally:
        handle.remove()


@contextmanager
def eager_attention(model: Any) -> Iterator[None]:
    """Compute attention the plain way inside the `with`: fast kernels keep no weights."""
    before = getattr(model.config, "_attn_implementation", None)
    if before in (None, "eager") or not hasattr(model, "set_attn_implementation"):
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def word_gradients(reader: WordReader, texts: Sequence[Text], label: int) -> list[NDArray[np.float32]]:
    """A row per word of each text: d loss(label) / d input vector, summed over the word's pieces."""
    gradients: dict[int, NDArray[np.float32]] = {}
    for tokens in reader.batches(texts, _TOKENS, _GRADIENT_ROWS):
        rows = _gradients(reader.model, tokens, label)
        for number, row, words in zip(tokens.numbers, rows, tokens.positions, strict=True):
            gradients[number] = np.stack([row[places].sum(0) for places in words]) if words else row[:0]
    return [gradients[number] for number in range(len(texts))]


def _gradients(model: Any, tokens: WordTokens, label: int) -> NDArray[np.float32]:
    with torch.enable_grad():
        with input_variable(model) as inputs:
            logits = logits_of(model(**tokens.inputs))
        targets = torch.full((len(logits),), label, device=logits.device)
        loss = nn.functional.cross_entropy(logits, targets, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, inputs[0])
    rows: NDArray[np.float32] = gradient.float().cpu().numpy()
    return rows


def word_vocabulary(model: Any, tokenizer: Any, kind: VocabularyKind = "letters") -> WordVocabulary:
    """The vocabulary entries that are whole words, with their rows of the input embedding.

    A model that reads characters has none: its entries are letters.

    Parameters
    ----------
    model, tokenizer
        Whose vocabulary it is.
    kind
        "all" adds digits, punctuation and other signs: whatever the tokenizer reads as that very entry when it is
        written by itself, which placeholders such as [unused7] are not.
    """
    entries = whole_words(tokenizer)
    chosen = [i for i, (word, whole) in enumerate(entries) if whole and word.isalpha() and is_single_word(word)]
    if all(len(entries[i][0]) == 1 for i in chosen):
        chosen = []
    elif kind == "all":
        words = frozenset(chosen)
        others = [i for i, (word, whole) in enumerate(entries) if whole and i not in words and _is_sign(word)]
        read = tokenizer([entries[i][0] for i in others], add_special_tokens=False)["input_ids"] if others else []
        chosen = sorted([*chosen, *(i for i, ids in zip(others, read, strict=True) if ids == [i])])
    table = model.get_input_embeddings().weight.detach().float().cpu().numpy()
    return WordVocabulary(tuple(entries[i][0] for i in chosen), table[chosen])


def _is_sign(word: str) -> bool:
    """Whether an entry can be written in place of a word and is no word of letters."""
    return word.isprintable() and not word.isalpha() and bool(word) and not any(map(str.isspace, word))
