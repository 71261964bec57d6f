"""Gradients of a Hugging Face classifier with respect to the input vectors of its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from stockade.core.protocols import WordVocabulary
from stockade.core.text import Text, is_single_word
from stockade.models.encoding import logits_of
from stockade.models.input_vectors import input_variable
from stockade.models.vocabulary import whole_words
from stockade.models.word_tokens import WordReader, WordTokens

_TOKENS, _ROWS = 2048, 32


def word_gradients(reader: WordReader, texts: Sequence[Text], label: int) -> list[NDArray[np.float32]]:
    """A row per word of each text: d loss(label) / d input vector, summed over the word's pieces."""
    found: dict[int, NDArray[np.float32]] = {}
    for tokens in reader.batches(texts, _TOKENS, _ROWS):
        rows = _gradients(reader.model, tokens, label)
        for number, row, words in zip(tokens.numbers, rows, tokens.positions, strict=True):
            found[number] = np.stack([row[places].sum(0) for places in words]) if words else row[:0]
    return [found[number] for number in range(len(texts))]


def _gradients(model: Any, tokens: WordTokens, label: int) -> NDArray[np.float32]:
    with torch.enable_grad():
        with input_variable(model) as seen:
            logits = logits_of(model(**tokens.inputs))
        targets = torch.full((len(logits),), label, device=logits.device)
        loss = nn.functional.cross_entropy(logits, targets, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, seen[0])
    rows: NDArray[np.float32] = gradient.float().cpu().numpy()
    return rows


def word_vocabulary(model: Any, tokenizer: Any) -> WordVocabulary:
    """The vocabulary entries that are whole words, with their rows of the input embedding.

    A model that reads characters has none: its entries are letters.
    """
    entries = whole_words(tokenizer)
    chosen = [i for i, (word, whole) in enumerate(entries) if whole and word.isalpha() and is_single_word(word)]
    if all(len(entries[i][0]) == 1 for i in chosen):
        chosen = []
    table = model.get_input_embeddings().weight.detach().float().cpu().numpy()
    return WordVocabulary(tuple(entries[i][0] for i in chosen), table[chosen])
