"""LIST (Hsieh et al., On the Robustness of Self-Attentive Models, ACL 2019, §3.2; the list is that of Alzantot et al.,
EMNLP 2018): one word, replaced by one of its synonyms.

From left to right every word is replaced by each of its synonyms in turn and put back before the next; the first text
that fools the model is the result. The list is the table of counter-fitted neighbours, eight a word within a squared
distance of 0.5, as in the genetic attack.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from stockade.attacks.word_attack import NOT_EVEN_ONE, WordAttack, changeable, one_word_may_change
from stockade.core.example import Example
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import is_single_word, match_case
from stockade.engine.requests import Score
from stockade.lexicon.neighbours import load_neighbours
from stockade.lexicon.stopwords import StopList


@published("list", paper="Hsieh et al. 2019", presets={"paper": {}})
@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymList(WordAttack):
    """Replaces one word by a synonym, the first that fools the model from the left.

    Parameters
    ----------
    neighbours : int
        How many synonyms of a word are tried.
    max_squared_distance : float
        How far a synonym's counter-fitted vector may be.
    stop_words : {"none", "function", "function-cased", "nltk", "nltk-cased"}
        Words that are never changed.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    neighbours: int = 8
    max_squared_distance: float = 0.5
    stop_words: StopList = "none"

    async def search(self, example: Example, rng: Random) -> Outcome:
        if not one_word_may_change(example, self.max_changed):
            return Outcome.failed(NOT_EVEN_ONE)
        table, text, tried = load_neighbours(), example.text, 0
        for index in changeable(example, self.stop_words):
            word = text.words[index]
            near = table.neighbours(word, count=self.neighbours, max_squared_distance=self.max_squared_distance)
            synonyms = [match_case(item.word, word) for item in near if is_single_word(item.word)]
            texts = await self.allowed([text.replace(index, synonym) for synonym in synonyms], text, index)
            if not texts:
                continue
            tried += len(texts)
            for candidate, score in zip(texts, await Score(texts), strict=True):
                if example.fooled(score):
                    return Outcome.found(candidate)
        return Outcome.failed("no synonym fools the model" if tried else "no word has a synonym")
