"""SWITCH: alternatives of a text in which the words that matter most are replaced by their neighbours.

The component that FuSE and FACT share (FireBERT, section 2.1.1 and figure 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Literal, TypeVar

import numpy as np

from stockade.attacks.similarity import Scale, to_cosine
from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Classifier, ImportanceClassifier, ImportanceObjective, TokenScores
from stockade.core.text import Text, match_case
from stockade.defenses.neighbours import neighbour_table, replacements
from stockade.engine.requests import Embed, Importance
from stockade.engine.services import innermost
from stockade.lexicon.stopwords import StopList, is_stop_word

Place = TypeVar("Place")
SimilarityUse = Literal["filter", "rank", "off"]
_AT_LEAST = {"perturb_words": 1, "candidates": 1, "multiplier": 1, "total_alternatives": 1, "leave_alone": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Makes alternatives of a text with important words replaced (SWITCH).

    The defaults are those of the released code, but for `importance`.

    Differences to the paper and its code: importance is the gradient of the predicted class's loss (the code's is that
    of half the squared logits: `importance=half_sq_norm`); `candidates` and `match_pos` have an effect; words stay with
    their places; parts of speech are the tags that words have most often (the code tags lists of words); alternatives
    differ from each other and from the text. Neighbours and sentence encoder are Stockade's.

    Parameters
    ----------
    perturb_words
        How many words every alternative replaces. Stop words and words without neighbours do not count.
    candidates
        A word is replaced by one of so many nearest neighbours, or by itself.
    match_pos
        Whether neighbours must have the word's part of speech.
    stop_words
        Which list of stop words.
    leave_alone
        So many of the most important words are passed over.
    random_out_of
        If not 0, the words are drawn at random from so many of the most important ones.
    similarity
        `filter` keeps alternatives above `threshold`, `rank` takes the most similar ones, `off` does not compare.
    scale, threshold
        The least similarity to the text, and on which scale it is.
    multiplier
        So many times as many alternatives are made for `similarity` to choose from.
    total_alternatives
        How many alternatives a text has at most.
    importance
        What the importance of a word is the gradient of.
    neighbours
        A file with a table of neighbours in place of the package's.
    """

    perturb_words: int = 2
    candidates: int = 10
    match_pos: bool = True
    stop_words: StopList = "function"
    leave_alone: int = 0
    random_out_of: int = 0
    similarity: SimilarityUse = "filter"
    scale: Scale = "tf"
    threshold: float = 0.0
    multiplier: int = 3
    total_alternatives: int = 5
    importance: ImportanceObjective = "loss_pred"
    neighbours: str | None = None

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            if getattr(self, name) < least:
                raise OptionError(f"{name} is {getattr(self, name)}, expected a number of at least {least}.")
        if self.random_out_of and self.random_out_of < self.perturb_words:
            raise OptionError(
                f"random_out_of is {self.random_out_of}, expected 0 or at least perturb_words ({self.perturb_words}): "
                "so many words cannot be drawn from fewer."
            )

    async def alternatives(self, text: Text, rng: Random) -> list[Text]:
        """At most `total_alternatives` texts, none equal to `text` or to another."""
        scores = await Importance(text, self.importance)
        return await self.similar(text, self.written(text, self.chosen(text, scores, rng), rng))

    def chosen(self, text: Text, scores: TokenScores, rng: Random) -> list[int]:
        """The words to replace, by index."""
        table = neighbour_table(self.neighbours)
        usable = [i for i in ranked_words(text, scores, self.stop_words) if text.words[i] in table]
        usable = usable[self.leave_alone :]
        if self.random_out_of:
            pool = usable[: self.random_out_of]
            return rng.sample(pool, min(self.perturb_words, len(pool)))
        return usable[: self.perturb_words]

    def written(self, text: Text, indices: Sequence[int], rng: Random) -> Iterator[Text]:
        """Different alternatives in random order, as many as similarity may look at.

        An alternative is a number: its digits, each in the base of a word's choices, say which choice stands there.
        Zero is the text itself.
        """
        table = neighbour_table(self.neighbours)
        choices = []
        for index in indices:
            word = text.words[index]
            near = replacements(table, word.lower(), self.candidates, self.match_pos)
            choices.append(list(dict.fromkeys([word, *(match_case(other, word) for other in near)])))
        possible = math.prod(map(len, choices))
        wanted = self.total_alternatives * (1 if self.similarity == "off" else self.multiplier)
        drawn: set[int] = set()
        while len(drawn) < min(wanted, possible - 1):
            number = rng.randrange(1, possible)
            if number in drawn:
                continue
            drawn.add(number)
            changed = {}
            for index, words in zip(indices, choices, strict=True):
                number, digit = divmod(number, len(words))
                changed[index] = words[digit]
            yield text.replace_all(changed)

    async def similar(self, text: Text, alternatives: Iterator[Text]) -> list[Text]:
        """The alternatives that similarity leaves.

        A filter takes the first that pass, so only those it needs are compared.
        """
        count = self.total_alternatives
        if self.similarity == "off":
            return _first(alternatives, count)
        if self.similarity == "rank":
            every = list(alternatives)
            cosines = await _cosines(text, every)
            order = sorted(range(len(every)), key=lambda number: -round(cosines[number], 4))
            return [every[number] for number in order[:count]]
        limit, passed = to_cosine(self.threshold, self.scale), list[Text]()
        while len(passed) < count and (some := _first(alternatives, count - len(passed))):
            cosines = await _cosines(text, some)
            passed += [alternative for alternative, cosine in zip(some, cosines, strict=True) if cosine > limit]
        return passed


def ranked_words(text: Text, scores: TokenScores, stop_words: StopList) -> list[int]:
    """The words that the model reads and that are no stop words, the most important first.

    A word is as important as its most important token.
    """
    read = {index: max(tokens) for index, tokens in enumerate(scores) if tokens}
    return [index for index in order_of(read) if not is_stop_word(text.words[index], stop_words)]


def order_of(importance: Mapping[Place, float]) -> list[Place]:
    """The places, the most important first.

    Equal to three digits is equal, so that rounding does not decide; the first place is first then.
    """
    keys = {place: -round(math.log(max(value, 1e-300)), 3) for place, value in importance.items()}
    return sorted(keys, key=keys.__getitem__)


def check_importance(name: str, inner: Classifier) -> None:
    """Refuse a model that does not show what its answer depends on."""
    if not isinstance(innermost(inner), ImportanceClassifier):
        raise ModelError(
            f"{name} needs the model's gradients to find the words that matter, and this model does not show them: "
            "give a Hugging Face model or a built-in one, or choose a defense that needs scores only, such as ranmask."
        )


async def _cosines(text: Text, others: Sequence[Text]) -> list[float]:
    if not others:
        return []
    vectors = await Embed([str(text), *map(str, others)])
    cosines: list[float] = np.clip(vectors[1:] @ vectors[0], -1.0, 1.0).tolist()
    return cosines


def _first(texts: Iterator[Text], count: int) -> list[Text]:
    return list(islice(texts, count))
