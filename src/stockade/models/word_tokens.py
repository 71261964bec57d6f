"""Which tokens of a model's input make up which word of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stockade.core.errors import ModelError
from stockade.core.text import Text


@dataclass(frozen=True, slots=True)
class WordTokens:
    """A padded batch and, for each text and word, the positions of the word's tokens (none beyond the window)."""

    inputs: dict[str, Tensor]
    positions: list[list[list[int]]]


def tokenise_by_word(
    tokenizer: Any, maximum: int | None, texts: Sequence[Text], device: torch.device | str, takes: Sequence[str]
) -> WordTokens:
    """Tokenise texts (all single or all pairs) for a model whose forward takes the arguments `takes`."""
    if not tokenizer.is_fast:
        raise ModelError(
            "Looking into a model word by word needs a fast tokenizer, which knows where in the text each token stands."
        )
    paired = texts[0].premise is not None
    sides = [[text.premise for text in texts]] if paired else []
    cut = {"truncation": True, "max_length": maximum} if maximum is not None else {}
    encoded = tokenizer(
        *sides, [str(text) for text in texts], padding=True, return_offsets_mapping=True, return_tensors="pt", **cut
    )
    offsets = encoded.pop("offset_mapping").tolist()
    own = 1 if paired else 0
    positions = [
        _tokens_of_words(text, offsets[row], [owner == own for owner in encoded.sequence_ids(row)])
        for row, text in enumerate(texts)
    ]
    wanted = {name: tensor.to(device) for name, tensor in encoded.items() if name in takes}
    return WordTokens(wanted, positions)


def _tokens_of_words(text: Text, offsets: Sequence[Sequence[int]], own: Sequence[bool]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in text.words]
    word = 0
    for token, ((start, end), mine) in enumerate(zip(offsets, own, strict=True)):
        if not mine or end <= start:
            continue
        while word < len(text.words) and text.starts[word] + len(text.words[word]) <= start:
            word += 1
        if word < len(text.words) and end > text.starts[word]:
            found[word].append(token)
    return found
