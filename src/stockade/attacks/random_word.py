"""RANDOM (Hsieh et al., On the Robustness of Self-Attentive Models, ACL 2019, §3.1): one random word at one random
place, again and again.

It is a baseline, and its number is the share of draws that fool the model, not the share of texts: the paper draws
100,000 times in all over 100 texts, hence 1,000 draws for each. The record keeps that share (`flip_share`), the summary
its mean over the attacked texts (`mean_flip_share`); a text counts as fooled when any of its draws does.

The words drawn are those of the victim's vocabulary, or of the neighbour table for a victim that shows none.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from stockade.attacks.word_attack import NOT_EVEN_ONE, WordAttack, one_word_may_change, replacement_words
from stockade.core.example import Example
from stockade.core.protocols import VocabularyKind
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import Text, match_case
from stockade.engine.requests import Fallback, Score

_AT_ONCE = 250
_MOST_REFUSED = 20
"""How many draws a constraint may refuse for each that is wanted before the attack gives up."""


@published("random", paper="Hsieh et al. 2019", presets={"paper": {}})
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWord(WordAttack):
    """Replaces one random word by another at random, many times over.

    Parameters
    ----------
    draws : int
        How many texts are drawn.
    vocabulary : {"all", "letters"}
        What may be written: all entries of the victim's vocabulary, digits and punctuation among them, or words of
        letters.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    draws: int = 1000
    vocabulary: VocabularyKind = "all"

    async def search(self, example: Example, rng: Random) -> Outcome:
        if not one_word_may_change(example, self.max_changed):
            return Outcome.failed(NOT_EVEN_ONE)
        words = (await replacement_words(self.vocabulary)).words
        first: Text | None = None
        tried = flipped = drawn = 0
        outcome = _outcome(first, tried, flipped)
        while tried < self.draws and drawn < _MOST_REFUSED * self.draws:
            pairs = [_draw(example, words, rng) for _ in range(min(_AT_ONCE, self.draws - tried))]
            drawn += len(pairs)
            texts = [text for text, index in pairs for text in await self.allowed([text], example.text, index)]
            if not texts:
                continue
            answered = [pair for pair in zip(texts, await Score(texts), strict=True) if pair[1].answered]
            fooled = [text for text, scores in answered if example.fooled(scores)]
            first = first or next(iter(fooled), None)
            tried, flipped = tried + len(answered), flipped + len(fooled)
            outcome = _outcome(first, tried, flipped)
            await Fallback(outcome)
        return outcome


def _outcome(first: Text | None, tried: int, flipped: int) -> Outcome:
    """What came of so many draws, `flipped` of which fool the model, the text `first` before all others."""
    share = flipped / tried if tried else None
    if first is None:
        return Outcome.failed(f"none of {tried:,} draws fools the model", flip_share=share)
    return Outcome.found(first, flip_share=share)


def _draw(example: Example, words: tuple[str, ...], rng: Random) -> tuple[Text, int]:
    """A text with one other word at one place."""
    index = rng.choice(example.indices)
    replaced = example.text.words[index]
    word = rng.choice(words)
    while word.lower() == replaced.lower():
        word = rng.choice(words)
    return example.text.replace(index, match_case(word, replaced)), index
