"""Random synonym replacement: the baseline that replacement rules must beat.

Words in random order are replaced by a random WordNet synonym of the same part of speech, at most floor(budget * n) of
n words, and judged as rules are (`attacks/rules.py`). The random choices of a text depend on the seed and the text's
id.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from stockade.attacks.rules import BUDGET, Judge, replace_in_order
from stockade.attacks.word_attack import WordAttack
from stockade.core.example import Example
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.lexicon.rules import check_budget
from stockade.lexicon.synonyms import same_pos_synonyms


@published("random-synonyms", paper="a baseline", presets={"paper": {}})
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSynonyms(WordAttack):
    """Replaces random words by random synonyms of the same part of speech.

    Parameters
    ----------
    budget : float
        The largest share of the words that may change, rounded down to a number of words.
    judge : {"any-prefix", "final"}
        Ask the model after each replacement, or once about the final text.
    max_changed, constraint, repair_articles
        As for every `WordAttack`; of `budget` and `max_changed` the smaller counts.
    """

    budget: float = BUDGET
    judge: Judge = "any-prefix"

    def __post_init__(self) -> None:
        check_budget(self.budget)

    def english(self) -> set[str]:
        """Synonyms of the same part of speech."""
        return WordAttack.english(self) | {"wordnet", "pos"}

    async def search(self, example: Example, rng: Random) -> Outcome:
        synonyms = same_pos_synonyms(example.text.words, example.indices)
        order = [index for index, words in synonyms.items() if words]
        rng.shuffle(order)
        plan = [(index, rng.choice(synonyms[index])) for index in order]
        return await replace_in_order(self, example, plan, self.budget, self.judge)
