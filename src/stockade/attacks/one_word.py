"""The greedy and attention attacks of Hsieh et al. (On the Robustness of Self-Attentive Models, ACL 2019, §3.3–3.4):
the victim itself says which one word is replaced, and any word of its vocabulary may take its place.

Which word (`where`):

    gs      the word whose input vectors the true class misses most when they are zeroed
    asmin   the word with the least attention
    asmax   the word with the most attention

By what (`how`):

    gr      words in random order, until one fools the model
    ec      of all words that fool the model the one that moves its sentence vector least (L1)

Attention is the victim's own: for the BERT family layer 0, mean over heads and query tokens (`query=first` takes the
[CLS] row), of a word that of its most attended token (`pieces`); for a BiLSTM-attention its pooling weights. The
sentence vector is what the victim's last linear layer reads. A word of several tokens is replaced whole. In a character
model the word's character vectors are zeroed.

Differences to the paper: it leaves open which query counts, what the attention of a word of several pieces is, and how
EC searches; its success rates say that every word of the vocabulary must be within reach, so it is here (see
`nearest_flip` for how few of them are asked about). Its examples write "0", "!" and "?", so the vocabulary here has
digits and punctuation too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.attacks.nearest_flip import NearestFlip
from stockade.attacks.word_attack import NOT_EVEN_ONE, WordAttack, one_word_may_change, replacement_words
from stockade.core.errors import OptionError
from stockade.core.example import Example
from stockade.core.protocols import AttentionPieces, AttentionQuery, VocabularyKind, WordVocabulary
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import Text, match_case
from stockade.engine.requests import Attention, Score, Zeroed

Where = Literal["gs", "asmin", "asmax"]
How = Literal["gr", "ec"]
_FIRST, _MOST = 16, 512
"""Random words are asked about in growing groups: an easy text wastes few, a hard one takes few rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWord(WordAttack):
    """Replaces the word that the model itself points at, by any word of its vocabulary (white box).

    Parameters
    ----------
    where : {"gs", "asmin", "asmax"}
        Which word: the one missed most, or the one with the least or the most attention.
    how : {"gr", "ec"}
        By what: random words until one fools the model, or the one that moves the sentence vector least.
    layer : int
        The layer whose attention counts.
    query : {"mean", "first"}
        The query tokens whose attention counts: the mean over all, or the first.
    pieces : {"max", "mean", "sum"}
        The attention of a word of several pieces: the most that one of them gets, their mean, or their sum, which
        favours long words.
    vocabulary : {"all", "letters"}
        What may be written: all entries of the victim's vocabulary, digits and punctuation among them as in the paper's
        examples, or words of letters.
    exhaustive : bool
        For `ec`: ask about every word of the vocabulary instead of those that an estimate cannot rule out.
    sample : int
        For `ec`: how many random words the estimate is made from.
    caution : float
        For `ec`: how many times its leave-one-out error the estimate may be off before a word is ruled out; more
        asks more.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    where: Where = "gs"
    how: How = "gr"
    layer: int = 0
    query: AttentionQuery = "mean"
    pieces: AttentionPieces = "max"
    vocabulary: VocabularyKind = "all"
    exhaustive: bool = False
    sample: int = 512
    caution: float = 1.0

    def __post_init__(self) -> None:
        if self.sample < 1 or not 0 <= self.caution < math.inf:
            raise OptionError(
                f"sample is {self.sample} and caution {self.caution}; expected at least one word, and 0 or more."
            )

    @property
    def scan_order(self) -> int:
        """EC goes first: it sees scores with every sentence vector, and GR needs no more than those."""
        return 0 if self.how == "ec" else 1

    async def search(self, example: Example, rng: Random) -> Outcome:
        if not one_word_may_change(example, self.max_changed):
            return Outcome.failed(NOT_EVEN_ONE)
        vocabulary = await replacement_words(self.vocabulary)
        index = await self._weakest(example)
        if index is None:
            return Outcome.failed("the model reads no word of the text")
        if self.how == "gr":
            return await self._random_order(example, index, vocabulary, rng)
        scan = NearestFlip(
            attack=self,
            example=example,
            index=index,
            vocabulary=vocabulary,
            sample=self.sample,
            exhaustive=self.exhaustive,
            caution=self.caution,
        )
        return await scan.search(rng)

    async def _weakest(self, example: Example) -> int | None:
        """The word to replace; the first of several alike."""
        places = list(example.indices)
        if self.where == "gs":
            scores = await Zeroed([(example.text, place) for place in places])
            values = [example.gain(score) for score in scores]
        else:
            attention = await Attention(example.text, self.layer, self.query, self.pieces)
            return attended_word(attention, places, most=self.where == "asmax")
        return places[values.index(max(values))] if values else None

    async def _random_order(self, example: Example, index: int, vocabulary: WordVocabulary, rng: Random) -> Outcome:
        order = list(vocabulary.words)
        rng.shuffle(order)
        size, start = _FIRST, 0
        while start < len(order):
            words = order[start : start + size]
            texts = await self.allowed(replacements(example.text, index, words), example.text, index)
            scores = await Score(texts) if texts else []
            for text, score in zip(texts, scores, strict=True):
                if example.fooled(score):
                    return Outcome.found(text)
            start, size = start + size, min(_MOST, 2 * size)
        return Outcome.failed(f'no word of the vocabulary in place of "{example.text.words[index]}" fools it')


def attended_word(attention: Sequence[float] | NDArray[np.float32], places: Sequence[int], *, most: bool) -> int | None:
    """Of some words the one with the most attention, or the least; the first of several alike, None of none."""
    sign = 1.0 if most else -1.0
    values = [round(sign * float(attention[place]), 6) for place in places]
    return places[values.index(max(values))] if values else None


def replacements(text: Text, index: int, words: list[str]) -> list[Text]:
    """The text with each other word in that place, in the case of the word that stands there."""
    replaced = text.words[index]
    return [text.replace(index, match_case(word, replaced)) for word in words if word.lower() != replaced.lower()]


def _presets(where: str, how: str) -> dict[str, dict[str, Any]]:
    paper = {"where": where, "how": how}
    return {"paper": paper, "exhaustive": {**paper, "exhaustive": True}} if how == "ec" else {"paper": paper}


for _where in ("gs", "asmin", "asmax"):
    for _how in ("gr", "ec"):
        published(f"{_where}-{_how}", paper="Hsieh et al. 2019", presets=_presets(_where, _how))(OneWord)
