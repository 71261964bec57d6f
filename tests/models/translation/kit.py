"""Small translators with random weights, and sentences for them."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

from stockade.models.translation.build import build_translator
from stockade.models.translation.common import TranslationModel

ARCHITECTURES = ("transformer-mt", "bilstm-mt")
SIZES: dict[str, dict[str, Any]] = {
    "transformer-mt": {
        "width": 16,
        "inner_width": 32,
        "heads": 2,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "vocabulary": 300,
    },
    "bilstm-mt": {"width": 16, "hidden_size": 12, "vocabulary": 300},
}
NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"}


def number_pairs(count: int = 60, seed: int = 0, longest: int = 6) -> list[tuple[str, str]]:
    """English numbers and the same in German, word by word, up to `longest` in a sentence."""
    rng, words = Random(seed), list(NUMBERS)
    sources = [[rng.choice(words) for _ in range(rng.randint(1, longest))] for _ in range(count)]
    return [(" ".join(source), " ".join(NUMBERS[word] for word in source)) for source in sources]


def tiny_translator(architecture: str, seed: int = 0, **sizes: Any) -> tuple[TranslationModel, Any]:
    """An untrained translator whose answers differ from word to word: its random weights are large."""
    model, tokenizer = build_translator(
        architecture, number_pairs(), seed=seed, options={**SIZES[architecture], **sizes}
    )
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(3.0)
    return model, tokenizer
