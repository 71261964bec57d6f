"""What all attacks by words share: their options, which words they may change and write, and the care for articles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np

from stockade.attacks.constraints import Constraint, MaxChanged, conjunction
from stockade.core.errors import OptionError
from stockade.core.example import Example
from stockade.core.protocols import VocabularyKind, WordVocabulary
from stockade.core.shares import at_least, at_most
from stockade.core.text import Text, is_single_word, match_case
from stockade.engine.requests import Vocabulary
from stockade.lexicon.neighbours import Neighbours, load_neighbours
from stockade.lexicon.stopwords import StopList, is_stop_word

EVERY_WORD_TRIED = "every word was tried"
NOT_EVEN_ONE = "the share of changed words does not allow even one"
_SILENT_H = re.compile(r"hour|honou?r|honest|heir")
_BEGINS_LIKE_YOU_OR_ONE = re.compile(
    r"uni(?!n|m[pa]|d)|us[aeu]|ut(?![tm])|ub[ei]q|uk|ufo|ur[aio]|eu|ewe|on(?:e|ce)(?![a-z])|ouija"
)
_SPELT_OUT_WITH_VOWEL = frozenset("AEFHILMNORSX")


def check_max_changed(share: float | None) -> None:
    """Refuse a limit in percent, or one that nothing can meet: the model would look as if nothing could fool it."""
    if share is not None and not 0 < share <= 1:
        raise OptionError(f"--max-changed is {share:g}, expected a share of the words above 0, at most 1, such as 0.2.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordAttack:
    """The options of all attacks that edit words.

    Parameters
    ----------
    max_changed : float, optional
        The largest share of the original's words that may change.
    constraint : Constraint, optional
        What candidates must keep besides what the attack itself demands, such as `similarity(cosine, 0.9)`.
    repair_articles : bool
        Put "a" and "an" right in front of a new word; the article is then a changed word too.
    """

    max_changed: float | None = None
    constraint: Constraint | None = None
    repair_articles: bool = False

    def english(self) -> set[str]:
        """What it reads that is there for English alone (`attacks/languages.py`): here, what the constraint reads."""
        constraint = "" if self.constraint is None else str(self.constraint)
        return {name for name, part in (("pos", "same-pos"), ("encoder", "similarity(")) if part in constraint}

    def unlimited(self) -> Self:
        """The same attack with any number of changed words, for a search that takes changes back in the end."""
        return replace(self, max_changed=None)

    def written(self, candidates: Sequence[Text], before: Text, index: int) -> Sequence[Text]:
        """The candidates with their articles put right, if that is wanted."""
        return [repaired(text, before, index) for text in candidates] if self.repair_articles else candidates

    def limits(self, *recipe: Constraint | None) -> Constraint | None:
        """The constraints of the attack's recipe and the user's, in one."""
        count = MaxChanged(self.max_changed) if self.repair_articles and self.max_changed is not None else None
        return conjunction(*recipe, self.constraint, count)

    async def allowed(self, candidates: Sequence[Text], before: Text, index: int) -> Sequence[Text]:
        """The candidates that hold the user's constraint, with their articles put right.

        Parameters
        ----------
        candidates : sequence of Text
            Edits of `before` at `index`.
        before : Text
            The text before the edit.
        index : int
            The edited word; for an insertion, the word it stands next to.
        """
        limits, candidates = self.limits(), self.written(candidates, before, index)
        return candidates if limits is None else await limits.keep(candidates, before, index)


def changes_allowed(example: Example, max_changed: float | None, *, round_up: bool = False) -> int:
    """How many words may differ from the original: a share of its words, rounded down (or up, as TextAttack does)."""
    if max_changed is None:
        return len(example.text)
    return (at_least if round_up else at_most)(max_changed, len(example.text))


def one_word_may_change(example: Example, max_changed: float | None) -> bool:
    """For attacks that change exactly one word: whether the share allows it."""
    return changes_allowed(example, max_changed) >= 1


def changeable(example: Example, stop_words: StopList) -> list[int]:
    """The words a search may change, by index: all that the model reads but stop words."""
    words = example.text.words
    return [i for i in example.indices if not is_stop_word(words[i], stop_words)]


async def replacement_words(kind: VocabularyKind = "letters") -> WordVocabulary:
    """The words that may stand anywhere: the victim's vocabulary, or the neighbour table's where it shows none.

    A black box and a model of characters show none; the table's words come without vectors.

    Parameters
    ----------
    kind : {"letters", "all"}
        Whether digits and punctuation of the victim's vocabulary are words too.
    """
    vocabulary = await Vocabulary(required=False, kind=kind)
    return vocabulary if vocabulary.words else _of_table(load_neighbours())


@lru_cache(maxsize=2)
def _of_table(table: Neighbours) -> WordVocabulary:
    words = tuple(word for word in table.words if word.isalpha() and is_single_word(word))
    return WordVocabulary(words, np.zeros((len(words), 0), dtype=np.float32))


def article_for(word: str) -> str:
    """The article in front of a word, by its sound: "an hour", "a union", "an NFL game"."""
    if len(word) > 1 and word.isupper() and not re.search("[AEIOU]", word):
        return "an" if word[0] in _SPELT_OUT_WITH_VOWEL else "a"
    low = word.lower()
    if low[:1] in "aeiou":
        return "a" if _BEGINS_LIKE_YOU_OR_ONE.match(low) else "an"
    return "an" if _SILENT_H.match(low) or low.startswith(("8", "11", "18")) else "a"


def repaired(text: Text, before: Text, index: int) -> Text:
    """`text` with a or an in front of the words that an edit of `before` at `index` has changed put right.

    An article that was wrong already, or that is not in front of a changed word, is the author's and stays.
    """
    for at in range(max(1, index), min(index + 3, len(text))):
        article = text.words[at - 1]
        if article.lower() not in ("a", "an") or text.gaps[at].strip():
            continue
        if text.stretch_of(at) != text.stretch_of(at - 1):  # the last word of a premise, the first of its hypothesis
            continue
        origin = text.origins[at - 1]
        place = None if origin is None else before.position_of(origin)
        if place is None or place + 1 >= len(before) or before.words[place + 1] == text.words[at]:
            continue
        was_right = article_for(before.words[place + 1]) == article.lower()
        right = article_for(text.words[at])
        if was_right and right != article.lower():
            text = text.replace(at - 1, match_case(right, article) if article != "A" else right.capitalize())
    return text
