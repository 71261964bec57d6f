"""Translators whose translations, logits and vectors a person can compute: word by word, from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stockade.core.protocols import WordVocabulary
from stockade.core.text import Text
from stockade.core.translation import GreedySteps, SourceAttention, Vectors, ZeroableSource

END = "</s>"


class TableTranslator:
    """A black box that translates word by word; words that are not in the table are copied."""

    def __init__(self, table: Mapping[str, str], *, deterministic: bool = True, poison: str = "") -> None:
        self.table, self.deterministic, self.poison = table, deterministic, poison
        self.asked: list[list[str]] = []

    def translate(self, texts: Sequence[str], *, beam: int = 1) -> list[str]:
        self.asked.append(list(texts))
        if self.poison and any(self.poison in text for text in texts):
            raise ValueError("a poisoned source")
        return [" ".join(self.table.get(word, word) for word in Text.parse(text).words) for text in texts]

    def fingerprint(self) -> str:
        return str(sorted(self.table.items()))


class LogitTranslator:
    """A white box: at step i it writes the target word with the largest logit for source word i, then it ends.
    Zeroing a word halves its logits.

    Parameters
    ----------
    logits
        For each source word the logits of target words; those that are not named have 0.
    vectors
        The vector of each word that may be written into a source; the sentence vector is the sum over its words.
    longest
        How many words it reads.
    zeroing
        By what the logits of a word are multiplied when it is zeroed, if not by a half.
    """

    deterministic = True

    def __init__(
        self,
        logits: Mapping[str, Mapping[str, float]],
        vectors: Mapping[str, Sequence[float]] | None = None,
        *,
        longest: int = 1000,
        zeroing: Mapping[str, float] | None = None,
    ) -> None:
        self.logits, self.longest, self.zeroing = logits, longest, zeroing or {}
        self.vectors = vectors or {word: (float(place), 0.0) for place, word in enumerate(logits, 1)}
        letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
        words = [word for row in logits.values() for word in row]
        self.targets = {word: number for number, word in enumerate(dict.fromkeys([END, *letters, *words]))}
        self.asked: list[ZeroableSource] = []

    def target_tokens(self, word: str) -> tuple[int, ...]:
        if word in self.targets:
            return (self.targets[word],)
        return tuple(self.targets[letter] for letter in word)

    def greedy_steps(self, sources: Sequence[ZeroableSource], wanted: Sequence[int]) -> list[GreedySteps]:
        self.asked += sources
        return [self._steps(source, list(wanted)) for source in sources]

    def _steps(self, source: ZeroableSource, wanted: list[int]) -> GreedySteps:
        names = list(self.targets)
        rows = []
        for index, word in enumerate(source.text.words[: self.longest]):
            named, factor = self.logits.get(word, {}), self.zeroing.get(word, 0.5) if index == source.zeroed else 1.0
            rows.append([-9.0 if name == END else factor * named.get(name, 0.0) for name in names])
        rows.append([9.0 if name == END else 0.0 for name in names])
        table = np.array(rows, dtype=np.float32)
        order = np.argsort(-table, axis=1, kind="stable")[:, :2]
        tokens = order[:, 0]
        translation = " ".join(names[token] for token in tokens[:-1])
        highest = np.take_along_axis(table, order, axis=1)
        return GreedySteps(translation, tuple(map(int, tokens)), table[:, wanted], highest, order)

    def translate(self, texts: Sequence[str], *, beam: int = 1) -> list[str]:
        return [row.translation for row in self.greedy_steps([ZeroableSource(Text.parse(t)) for t in texts], ())]

    def sentence_vectors(self, texts: Sequence[str]) -> Vectors:
        zero = (0.0,) * len(next(iter(self.vectors.values())))
        return np.array(
            [np.sum([self.vectors.get(word, zero) for word in Text.parse(text).words], axis=0) for text in texts],
            dtype=np.float32,
        )

    def source_attention(self, texts: Sequence[Text], layer: int = -1) -> list[SourceAttention]:
        return [
            SourceAttention(translation, tuple(translation.split()), np.eye(len(text.words), dtype=np.float32))
            for text, translation in zip(texts, self.translate([str(text) for text in texts]), strict=True)
        ]

    def word_vocabulary(self) -> WordVocabulary:
        return WordVocabulary(tuple(self.vectors), np.array(list(self.vectors.values()), dtype=np.float32))

    def visible_words(self, texts: Sequence[Text]) -> list[range]:
        return [range(min(self.longest, len(text))) for text in texts]

    def fingerprint(self) -> str:
        return str(sorted((word, sorted(row.items())) for word, row in self.logits.items()))
