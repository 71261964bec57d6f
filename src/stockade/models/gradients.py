"""Gradients of a Hugging Face classifier with respect to the input vectors of its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stockade.core.errors import ModelError
from stockade.core.protocols import WordVocabulary
from stockade.core.text import Text, is_single_word

_ROWS = 32


def word_gradients(
    model: Any, tokenizer: Any, maximum: int | None, texts: Sequence[Text], label: int
) -> list[NDArray[np.float32]]:
    """A row per word of each text: d loss(label) / d input vector, summed over the word's pieces."""
    if not tokenizer.is_fast:
        raise ModelError("Gradients by word need a fast tokenizer, which knows where in the text each token stands.")
    found: list[NDArray[np.float32]] = []
    for at in range(0, len(texts), _ROWS):
        found += _batch_gradients(model, tokenizer, maximum, texts[at : at + _ROWS], label)
    return found


def _batch_gradients(
    model: Any, tokenizer: Any, maximum: int | None, texts: Sequence[Text], label: int
) -> list[NDArray[np.float32]]:
    sides = [[text.premise for text in texts]] if texts[0].premise is not None else []
    cut = {"truncation": True, "max_length": maximum} if maximum is not None else {}
    encoded = tokenizer(
        *sides, [str(text) for text in texts], padding=True, return_offsets_mapping=True, return_tensors="pt", **cut
    )
    offsets = encoded.pop("offset_mapping").tolist()
    owners = [encoded.sequence_ids(row) for row in range(len(texts))]
    inputs = {name: tensor.to(model.device) for name, tensor in encoded.items() if name != "input_ids"}
    vectors = model.get_input_embeddings()(encoded["input_ids"].to(model.device)).detach().requires_grad_(True)
    with torch.enable_grad():
        logits: Tensor = model(inputs_embeds=vectors, **inputs).logits
        targets = torch.full((len(texts),), label, device=logits.device)
        loss = nn.functional.cross_entropy(logits, targets, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, vectors)
    rows = gradient.float().cpu().numpy()
    own = 1 if sides else 0
    return [_by_word(text, rows[i], offsets[i], [owner == own for owner in owners[i]]) for i, text in enumerate(texts)]


def _by_word(
    text: Text, gradient: NDArray[np.float32], offsets: Sequence[Sequence[int]], own: Sequence[bool]
) -> NDArray[np.float32]:
    rows = np.zeros((len(text.words), gradient.shape[1]), dtype=np.float32)
    word = 0
    for token, ((start, end), mine) in enumerate(zip(offsets, own, strict=True)):
        if not mine or end <= start:
            continue
        while word < len(text.words) and text.starts[word] + len(text.words[word]) <= start:
            word += 1
        if word < len(text.words) and end > text.starts[word]:
            rows[word] += gradient[token]
    return rows


def word_vocabulary(model: Any, tokenizer: Any) -> WordVocabulary:
    """The vocabulary entries that are whole words, with their rows of the input embedding."""
    from stockade.models.masked_lm import whole_words

    entries = whole_words(tokenizer)
    chosen = [i for i, (word, whole) in enumerate(entries) if whole and word.isalpha() and is_single_word(word)]
    table = model.get_input_embeddings().weight.detach().float().cpu().numpy()
    return WordVocabulary(tuple(entries[i][0] for i in chosen), table[chosen])
