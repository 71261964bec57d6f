"""DeepWordBug (Gao et al. 2018, Black-box Generation of Adversarial Text Sequences to Evade Deep Learning
Classifiers, IEEE S&P Workshops).

Score the words, then misspell the most important ones. With F the score of the class under attack and x[a..b] words a
to b:

    replace-1:  F(x) - F(x with word i unknown)
    temporal:   F(x[..i]) - F(x[..i-1])          the first word against 1/C
    tail:       F(x[i..]) - F(x[i+1..])          the last word against 1/C
    combined:   temporal + tail

The preset `paper` is the one-shot attack: combined scores, each word in turn misspelled by one transform without
looking at the model, until the Levenshtein distance to the original would pass 30; then the model is asked once.
`textattack` is greedy: words in order of replace-1, all transforms tried once per word, the best kept if it helps,
until the label changes.

Differences to the paper: a blank is never inserted, so the number of words stays; letters of any script are swapped
and deleted, inserted and substituted letters are those of the Latin alphabet. The authors' one-shot tool does not say
how its transform is chosen when several are allowed: here at random for each word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from stockade.attacks.decision import Moves
from stockade.attacks.greedy import descending, greedy
from stockade.attacks.misspellings import TRANSFORMS, Transform, levenshtein, misspell
from stockade.attacks.word_attack import WordAttack, changeable, changes_allowed
from stockade.core.errors import OptionError
from stockade.core.example import Example, Scores
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import Text
from stockade.engine.requests import Score
from stockade.lexicon.stopwords import StopList

Scoring = Literal["combined", "temporal", "tail", "replace-1"]


@published(
    "deepwordbug",
    paper="Gao et al. 2018",
    presets={
        "paper": {},
        "textattack": {"scoring": "replace-1", "one_shot": False, "stop_words": "nltk-cased"},
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DeepWordBug(WordAttack):
    """Misspells the words the model relies on most, within an edit distance of 30.

    Parameters
    ----------
    scoring : {"combined", "temporal", "tail", "replace-1"}
        How the importance of a word is measured.
    transforms : tuple of {"swap", "substitute", "delete", "insert", "homoglyph"}
        The ways to misspell a word.
    max_edit_distance : int
        The largest sum of the words' Levenshtein distances to the original.
    one_shot : bool
        Misspell without looking at the model, then ask once; otherwise greedy.
    stop_words : {"none", "function", "function-cased", "nltk", "nltk-cased"}
        Words that are never changed.
    tail_weight : float
        The lambda of the combined score: temporal + lambda * tail.
    unknown : str
        What hides a word for `scoring=replace-1`.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    scoring: Scoring = "combined"
    transforms: tuple[Transform, ...] = ("swap", "substitute", "delete", "insert")
    max_edit_distance: int = 30
    one_shot: bool = True
    stop_words: StopList = "none"
    tail_weight: float = 1.0
    unknown: str = "[UNK]"

    def __post_init__(self) -> None:
        if not self.transforms:
            raise OptionError(f"deepwordbug needs at least one transform (there are: {', '.join(TRANSFORMS)}).")

    async def search(self, example: Example, rng: Random) -> Outcome:
        text = example.text
        words = [i for i in changeable(example, self.stop_words) if len(text.words[i]) > 1]
        if not words:
            return Outcome.failed("no word is long enough to be misspelled")
        clean = (await Score([text], probe=True))[0]
        importance = await self._importance(example, clean, words)
        order = descending(words, [importance[i] for i in words])
        allowed = changes_allowed(example, self.max_changed)
        if self.one_shot:
            return await self._one_shot(example, order[:allowed], rng)
        spent = Spending(self.max_edit_distance)
        return await greedy(example, clean, order, lambda now, i: self._misspelled(now, i, spent, rng), allowed)

    async def moves(self, example: Example, rng: Random) -> Moves:
        """For models without scores: any word of two letters or more, misspelled in every way that is allowed."""
        free = self.unlimited()
        spent = Spending(self.max_edit_distance)
        words = changeable(example, self.stop_words)
        return Moves(
            words=[index for index in words if len(example.text.words[index]) > 1],
            candidates=lambda now, index: free._misspelled(now, index, spent, rng),
            allowed=changes_allowed(example, self.max_changed),
            constraint=free.limits(),
            repair_articles=self.repair_articles,
        )

    async def _importance(self, example: Example, clean: Scores, words: Sequence[int]) -> dict[int, float]:
        if self.scoring == "replace-1":
            hidden = await Score([example.text.replace(i, self.unknown) for i in words], probe=True)
            return {i: example.score(scores) for i, scores in zip(words, hidden, strict=True)}
        importance = dict.fromkeys(example.indices, 0.0)
        if self.scoring in ("combined", "temporal"):
            importance = await temporal_scores(example, clean)
        if self.scoring in ("combined", "tail"):
            tail = await tail_scores(example, clean)
            weight = self.tail_weight if self.scoring == "combined" else 1.0
            importance = {i: importance[i] + weight * tail[i] for i in importance}
        return importance

    async def _one_shot(self, example: Example, order: Sequence[int], rng: Random) -> Outcome:
        left, text = self.max_edit_distance, example.text
        for index in order:
            misspelled = misspell(text.words[index], rng.choice(self.transforms), rng)
            if misspelled is None:
                continue
            if misspelled.distance > left:
                break
            allowed = await self.allowed([text.replace(index, misspelled.word)], text, index)
            if allowed:
                text = allowed[0]
                left -= misspelled.distance
        if not text.edits:
            return Outcome.failed("no word can be misspelled")
        scores = await Score([text])
        return Outcome.found(text) if example.fooled(scores[0]) else Outcome.failed("the model was not fooled", text)

    async def _misspelled(self, text: Text, index: int, spent: Spending, rng: Random) -> Sequence[Text]:
        made = (misspell(text.words[index], transform, rng) for transform in self.transforms)
        left = spent.left(text)
        texts = [text.replace(index, item.word) for item in made if item is not None and item.distance <= left]
        return await self.allowed(sorted(texts, key=str), text, index)


@dataclass(frozen=True, slots=True)
class Spending:
    """How much of the edit distance a text of one-word misspellings has left: the distances of its words add up."""

    limit: int

    def left(self, text: Text) -> int:
        pairs = zip(text.original.words, text.words, strict=True)
        return self.limit - sum(levenshtein(before, after) for before, after in pairs if before is not after)


async def temporal_scores(example: Example, clean: Scores) -> dict[int, float]:
    """F(x[..i]) - F(x[..i-1]) for every word that the model reads; they add up to F(x) - 1/C."""
    read = example.indices
    prefixes = await Score([example.text.part(read[0], end) for end in read[1:]], probe=True)
    chance = _chance(example, clean)
    values = _levels(example, [*prefixes, clean], chance)
    before = [chance, *values[:-1]]
    return {i: value - earlier for i, value, earlier in zip(read, values, before, strict=True)}


async def tail_scores(example: Example, clean: Scores) -> dict[int, float]:
    """F(x[i..]) - F(x[i+1..]) for every word that the model reads; they add up to F(x) - 1/C."""
    read = example.indices
    suffixes = await Score([example.text.part(start, read[-1] + 1) for start in read[1:]], probe=True)
    chance = _chance(example, clean)
    values = _levels(example, [clean, *suffixes][::-1], chance)[::-1]
    after = [*values[1:], chance]
    return {i: value - later for i, value, later in zip(read, values, after, strict=True)}


def _levels(example: Example, answers: Sequence[Scores], level: float) -> list[float]:
    """What the attacker wants to bring down in parts of growing length: the true class, or everything but the target.

    A part without an answer is taken to be like the one before it, the first like `level`.
    """
    levels = []
    for scores in answers:
        level = 1.0 - example.score(scores) if scores.answered else level
        levels.append(level)
    return levels


def _chance(example: Example, clean: Scores) -> float:
    classes = len(clean.probabilities)
    return 1 / classes if example.target is None else 1 - 1 / classes
