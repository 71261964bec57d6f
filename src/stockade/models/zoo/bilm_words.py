"""The words that a biLM learns to predict: what its labels are made of.

model, tokenizer = build_bilm(texts)
words = BiLmWords.of(tokenizer, texts, model.config.words)
model(**batch, labels=padded(words.labels(batch_texts), -1)).loss
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.models.zoo.character_tokenizers import MARKS

BEGIN_AND_END = 2
"""The head's first two words stand for the begin and the end of a text."""
_WORD = re.compile(rf"[{re.escape(MARKS)}]|[^ {re.escape(MARKS)}]+")


@dataclass(frozen=True)
class BiLmWords:
    """Words and their numbers in the head, 2 and up."""

    normalizer: Any
    numbers: dict[str, int]

    @classmethod
    def of(cls, tokenizer: Any, texts: Iterable[str], size: int) -> BiLmWords:
        """The most frequent words of the texts, as many as fit into a head of that size; ties as they come."""
        normalizer = tokenizer.backend_tokenizer.normalizer
        counts = Counter(word for text in texts for word in _WORD.findall(normalizer.normalize_str(text)))
        words = [word for word, _ in counts.most_common(max(0, size - BEGIN_AND_END))]
        return cls(normalizer, {word: number for number, word in enumerate(words, BEGIN_AND_END)})

    def __len__(self) -> int:
        return len(self.numbers) + BEGIN_AND_END

    def labels(self, texts: Sequence[str]) -> list[list[int]]:
        """For each text the numbers of its words, as the model cuts them; −1 for words it does not predict."""
        cut = (_WORD.findall(self.normalizer.normalize_str(text)) for text in texts)
        return [[self.numbers.get(word, -1) for word in words] for words in cut]
