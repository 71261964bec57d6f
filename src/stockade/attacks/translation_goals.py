"""What attacks on translators want: a keyword, a lower BLEU, or that no word of the translation survives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from stockade.core.text import Text
from stockade.core.translation import character_loss, has_keyword
from stockade.models.translation.bleu import sacrebleu_metrics

Overlap = Literal["anywhere", "position"]


@dataclass(frozen=True, slots=True)
class HasKeyword:
    """The keyword is in the translation."""

    keyword: str
    unchanged: str = "the keyword is in the translation already"

    def reached(self, translation: str) -> bool:
        return has_keyword(translation, self.keyword)

    def distance(self, translation: str) -> float:
        return character_loss(translation, self.keyword)


@dataclass(frozen=True, slots=True)
class LowerBleu:
    """The BLEU of the sentence falls to a share of what it was.

    Parameters
    ----------
    reference
        The translation by a human.
    before
        The BLEU of the unchanged source's translation.
    share
        Of it, what the new one may have; None for anything lower.
    """

    reference: str
    before: float
    share: float | None = None
    keyword: None = None
    unchanged: str = "the BLEU of the translation is 0 already"

    @classmethod
    def of(cls, translation: str, reference: str, share: float | None = None) -> LowerBleu:
        """The goal for a sentence with this translation."""
        return cls(reference, sentence_bleu(translation, reference), share)

    def reached(self, translation: str) -> bool:
        bleu = sentence_bleu(translation, self.reference)
        if self.share is None:
            return bleu < self.before
        return bleu <= self.share * self.before

    def distance(self, translation: str) -> float:
        return sentence_bleu(translation, self.reference)


@dataclass(frozen=True, slots=True)
class NoOverlap:
    """No word of the former translation is in the new one.

    Parameters
    ----------
    before
        The words of the former translation, in lower case.
    overlap
        Whether a word survives anywhere, or only where it stood.
    """

    before: tuple[str, ...]
    overlap: Overlap = "anywhere"
    keyword: None = None
    unchanged: str = "the translation has no words"

    @classmethod
    def of(cls, translation: str, overlap: Overlap = "anywhere") -> NoOverlap:
        """The goal for a sentence with this translation."""
        return cls(_lower_words(translation), overlap)

    def reached(self, translation: str) -> bool:
        return self.survivors(translation) == 0

    def distance(self, translation: str) -> float:
        return float(self.survivors(translation))

    def survivors(self, translation: str) -> int:
        """How many words of the former translation are in the new one."""
        words = _lower_words(translation)
        if self.overlap == "position":
            return sum(before == after for before, after in zip(self.before, words, strict=False))
        present = set(words)
        return sum(word in present for word in self.before)


def sentence_bleu(translation: str, reference: str) -> float:
    """The BLEU of one sentence from 0 to 100, by sacrebleu, with the n-grams that it has; rounded."""
    return round(float(_metric().sentence_score(translation, [reference]).score), 4)


@lru_cache(maxsize=1)
def _metric() -> Any:
    return sacrebleu_metrics().BLEU(effective_order=True)


def _lower_words(translation: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in Text.parse(translation).words)
