"""Two translators of one table: one easy to move, one that keeps most of what it wrote."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stockade.core.text import Text
from stockade.core.translation import SourceAttention
from tests.toy_translators import LogitTranslator

LOGITS = {
    "the": {"der": 9.0},
    "a": {"ein": 9.0},
    "dog": {"Hund": 5.0, "Katze": 4.5},
    "cat": {"Katze": 5.0, "Hund": 4.5},
    "house": {"Haus": 5.0},
    "sleeps": {"schläft": 9.0},
    "stands": {"steht": 9.0},
    "there": {"dort": 9.0},
    "today": {"heute": 9.0},
}
NOUNS = ("dog", "cat", "house")
TARGETS = {"dog": "Hund", "cat": "Katze", "house": "Haus"}


def pairs(count: int = 24) -> list[tuple[str, str]]:
    """Sentences of five words and their translations."""
    rows = []
    for number in range(count):
        noun, verb = NOUNS[number % 3], ("sleeps", "stands")[number % 2]
        article = ("the", "a")[number % 4 // 2]
        target = f"{'der' if article == 'the' else 'ein'} {TARGETS[noun]} {LOGITS_OF[verb]} dort heute"
        rows.append((f"{article} {noun} {verb} there today", target))
    return rows


LOGITS_OF = {"sleeps": "schläft", "stands": "steht"}


class Recurrent(LogitTranslator):
    """Writes the noun that it reads; a word it does not know takes all attention."""

    architecture = "toy-lstm"

    def __init__(self) -> None:
        super().__init__(LOGITS)

    def source_attention(self, texts: Sequence[Text], layer: int = -1) -> list[SourceAttention]:
        answers = []
        for text, translation in zip(texts, self.translate([str(text) for text in texts]), strict=True):
            weights = np.full((len(text), len(text)), 1 / len(text), dtype=np.float32)
            for column, word in enumerate(text.words):
                if word not in LOGITS:
                    weights[:] = 0.0
                    weights[:, column] = 1.0
            answers.append(SourceAttention(translation, tuple(translation.split()), weights))
        return answers


class Attentive(LogitTranslator):
    """Always writes "Haus" for a noun, known or not: no keyword gets in, and attention stays where it is."""

    architecture = "toy-transformer"

    def __init__(self) -> None:
        stubborn = {word: {"Haus": 50.0} if word in NOUNS else {**row, "Haus": 0.0} for word, row in LOGITS.items()}
        super().__init__({**stubborn, "none": {"Hund": 0.0, "Katze": 0.0}}, dict.fromkeys(LOGITS, (1.0,)))

    def source_attention(self, texts: Sequence[Text], layer: int = -1) -> list[SourceAttention]:
        return [
            SourceAttention(translation, tuple(translation.split()), np.eye(len(text), dtype=np.float32))
            for text, translation in zip(texts, self.translate([str(text) for text in texts]), strict=True)
        ]
