"""Gradients of a Hugging Face classifier with respect to the input vectors of its words."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stockade.core.protocols import WordVocabulary
from stockade.core.text import Text, is_single_word
from stockade.models.word_tokens import tokenise_by_word

_ROWS = 32


def word_gradients(
    model: Any, tokenizer: Any, maximum: int | None, texts: Sequence[Text], label: int
) -> list[NDArray[np.float32]]:
    """A row per word of each text: d loss(label) / d input vector, summed over the word's pieces."""
    found: list[NDArray[np.float32]] = []
    for at in range(0, len(texts), _ROWS):
        found += _batch_gradients(model, tokenizer, maximum, texts[at : at + _ROWS], label)
    return found


def _batch_gradients(
    model: Any, tokenizer: Any, maximum: int | None, texts: Sequence[Text], label: int
) -> list[NDArray[np.float32]]:
    takes = tuple(inspect.signature(model.forward).parameters)
    tokens = tokenise_by_word(tokenizer, maximum, texts, model.device, takes)
    with torch.enable_grad():
        seen: list[Tensor] = []
        handle = model.get_input_embeddings().register_forward_hook(lambda _m, _g, answer: _leaf(answer, seen))
        try:
            logits: Tensor = model(**tokens.inputs).logits
        finally:
            handle.remove()
        targets = torch.full((len(texts),), label, device=logits.device)
        loss = nn.functional.cross_entropy(logits, targets, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, seen[0])
    rows = gradient.float().cpu().numpy()
    return [
        np.stack([rows[row][places].sum(0) for places in words]) if words else rows[row][:0]
        for row, words in enumerate(tokens.positions)
    ]


def _leaf(vectors: Tensor, seen: list[Tensor]) -> Tensor:
    """The vectors as the variable that gradients are taken of."""
    seen.append(vectors.detach().requires_grad_(True))
    return seen[-1]


def word_vocabulary(model: Any, tokenizer: Any) -> WordVocabulary:
    """The vocabulary entries that are whole words, with their rows of the input embedding.

    A model that reads characters has none: its entries are letters.
    """
    from stockade.models.masked_lm import whole_words

    entries = whole_words(tokenizer)
    chosen = [i for i, (word, whole) in enumerate(entries) if whole and word.isalpha() and is_single_word(word)]
    if all(len(entries[i][0]) == 1 for i in chosen):
        chosen = []
    table = model.get_input_embeddings().weight.detach().float().cpu().numpy()
    return WordVocabulary(tuple(entries[i][0] for i in chosen), table[chosen])
