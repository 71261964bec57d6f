"""PWWS: probability weighted word saliency (Ren et al. 2019, Generating Natural Language Adversarial Examples through
…, ACL).

    S_i  = p_y(x) - p_y(x with word i unknown)                    how much the model needs the word
    w*_i = the synonym of word i that lowers p_y(x) most, dP_i = by how much
    H_i  = softmax(S)_i * dP_i
    replace words by their w*_i in order of decreasing H_i, until the label changes

A word that is a named entity has one candidate in place of its synonyms: the most frequent entity of its type in the
other classes of the data (see `lexicon/entities.py`). The paper has that on; here it is on when `entities` names a
table, because it takes labelled data and an entity recogniser to make one (`stockade lexicon entities`). Entities of
several words, of types that are not in the table, or in texts of a class that is not, are words like any other.

Differences to the paper: an unknown word is written as `[UNK]` instead of a zeroed embedding, because the model is a
black box; parts of speech come from a tagger that also works on lower-case text. The preset `authors` follows the
authors' code, where a synonym must also have the same fine-grained tag and another lemma. `textattack` follows that
package: any WordNet lemma whatever its part of speech, stop words kept, dP_i = 1 - min p_y, and the substitute chosen
anew on the current text, kept only if it helps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Literal

from stockade.attacks.decision import Moves
from stockade.attacks.greedy import best_of, descending, greedy
from stockade.attacks.word_attack import NOT_EVEN_ONE, WordAttack, changeable, changes_allowed
from stockade.core.errors import DataError
from stockade.core.example import Example, Scores
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import Text, match_case
from stockade.engine.requests import ClassNames, Fallback, Score
from stockade.lexicon.entities import (
    EntityTable,
    finder_name,
    load_finder,
    read_bytes,
    single_words,
    split_possessive,
    table_hash,
)
from stockade.lexicon.pos import load_tagger, wordnet_pos
from stockade.lexicon.stopwords import StopList
from stockade.lexicon.synonyms import same_pos_synonyms, usable_synonyms
from stockade.lexicon.wordnet import load_wordnet

_TEXTATTACK = {"same_pos": "any", "stop_words": "nltk-cased", "choose_again": True, "weight": "score"}


@published(
    "pwws", paper="Ren et al. 2019", presets={"paper": {}, "authors": {"same_pos": "fine"}, "textattack": _TEXTATTACK}
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PWWS(WordAttack):
    """Swaps words for WordNet synonyms in order of probability weighted saliency.

    Parameters
    ----------
    same_pos : {"coarse", "fine", "any"}
        Synonyms of the word's part of speech, of its fine-grained tag as well, or of any.
    stop_words : {"none", "function", "function-cased", "nltk", "nltk-cased"}
        Words that are never changed.
    choose_again : bool
        Choose each substitute on the current text, not once on the original; keep it only if it helps.
    weight : {"drop", "score"}
        dP_i as the fall of p_y, or as 1 - min p_y, which adds the same constant to every word that has a synonym.
    unknown : str
        What hides a word when its saliency is measured.
    entities : str, optional
        A table that `stockade lexicon entities` made: named entities are replaced by those of other classes.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    same_pos: Literal["coarse", "fine", "any"] = "coarse"
    stop_words: StopList = "none"
    choose_again: bool = False
    weight: Literal["drop", "score"] = "drop"
    unknown: str = "[UNK]"
    entities: str | None = None

    def resources(self) -> Mapping[str, str]:
        """The table and what finds entities, if there is a table."""
        if self.entities is None:
            return {}
        return {"entities": table_hash(self.entities), "entity_finder": finder_name()}

    def english(self) -> set[str]:
        """Synonyms, and their parts of speech."""
        return WordAttack.english(self) | {"wordnet"} | ({"pos"} if self.same_pos != "any" else set())

    async def search(self, example: Example, rng: Random) -> Outcome:
        text = example.text
        words = changeable(example, self.stop_words)
        if not words:
            return Outcome.failed("every word is a stop word")
        allowed = changes_allowed(example, self.max_changed)
        if not allowed:
            return Outcome.failed(NOT_EVEN_ONE)
        clean = (await Score([text], probe=True))[0]
        hidden = await Score([text.replace(i, self.unknown) for i in words], probe=True)
        synonyms = self._synonyms(text, words) | await self._names(example, words)
        best = await self._best_swaps(example, clean, synonyms)
        saliency = softmax([example.score(scores) for scores in hidden])
        order = descending(words, [weight * best[i][1] for i, weight in zip(words, saliency, strict=True)])
        if self.choose_again:
            return await greedy(example, clean, order, lambda now, i: self._swaps(now, i, synonyms[i]), allowed)
        return await self._replace_in_order(example, [(i, best[i][0]) for i in order], allowed)

    async def moves(self, example: Example, rng: Random) -> Moves:
        """For models without scores: any word that has a synonym, with all of its synonyms."""
        free = self.unlimited()
        words = changeable(example, self.stop_words)
        synonyms = self._synonyms(example.text, words) | await self._names(example, words)
        return Moves(
            words=[index for index in words if synonyms[index]],
            candidates=lambda now, index: free._swaps(now, index, synonyms[index]),
            allowed=changes_allowed(example, self.max_changed),
            constraint=free.limits(),
            repair_articles=self.repair_articles,
        )

    async def _best_swaps(
        self, example: Example, clean: Scores, synonyms: dict[int, Sequence[str]]
    ) -> dict[int, tuple[str | None, float]]:
        """For each word its best synonym on the original text, and dP. One that fools the model already is what the
        search falls back on: the words may be replaced in an order that never comes to it.
        """
        offset = example.score(clean) if self.weight == "drop" else 0.0
        candidates = [(i, swap) for i, words in synonyms.items() for swap in await self._swaps(example.text, i, words)]
        scored = await Score([swap for _, swap in candidates])
        best: dict[int, tuple[str | None, float]] = dict.fromkeys(synonyms, (None, 0.0))
        gains: dict[int, float] = {}
        for (i, swap), scores in zip(candidates, scored, strict=True):
            if scores.answered and (i not in gains or example.gain(scores) > gains[i]):
                gains[i] = example.gain(scores)
                best[i] = (swap.words[i], example.score(scores) - offset)
        if candidates:
            strongest = best_of(example, scored)
            if example.fooled(scored[strongest]):
                await Fallback(Outcome.found(candidates[strongest][1]))
        return best

    async def _replace_in_order(
        self, example: Example, plan: Sequence[tuple[int, str | None]], allowed: int
    ) -> Outcome:
        text = example.text
        for index, word in plan:
            if word is None:
                continue
            if len(text.edits) >= allowed:
                return Outcome.failed(f"no success with {allowed} changed words", text)
            swapped = await self._swaps(text, index, [word])
            if not swapped:
                continue
            scores = (await Score(swapped[:1]))[0]
            if example.fooled(scores):
                return Outcome.found(swapped[0])
            text = swapped[0] if scores.answered else text
        return Outcome.failed("every word was replaced" if text.edits else "no word has a synonym", text)

    async def _swaps(self, text: Text, index: int, words: Sequence[str]) -> Sequence[Text]:
        """The text with each of the words at `index`, as far as that is allowed."""
        return await self.allowed([text.replace(index, word) for word in words], text, index)

    async def _names(self, example: Example, indices: Sequence[int]) -> dict[int, Sequence[str]]:
        """The candidates of words that are named entities."""
        if self.entities is None:
            return {}
        swaps = await entity_swaps(self.entities, example)
        return {i: swaps[i] for i in indices if i in swaps}

    def _synonyms(self, text: Text, indices: Sequence[int]) -> dict[int, Sequence[str]]:
        wordnet = load_wordnet()
        if self.same_pos == "any":
            return {i: usable_synonyms(text.words[i], wordnet.synonyms(text.words[i])) for i in indices}
        if self.same_pos == "coarse":
            return same_pos_synonyms(text.words, indices)
        tagger = load_tagger()
        tags = tagger.tag(text.words)
        synonyms: dict[int, Sequence[str]] = {}
        for i in indices:
            word, pos = text.words[i], wordnet_pos(tags[i])
            synonyms[i] = [] if pos is None else usable_synonyms(word, wordnet.synonyms(word, pos))
            if synonyms[i] and pos is not None:
                lemmas = set(wordnet.lemmas(word.lower(), pos))
                fine = tagger.tag_candidates(text.words, i, synonyms[i])
                synonyms[i] = [
                    synonym
                    for synonym, tag in zip(synonyms[i], fine, strict=True)
                    if tag == tags[i] and not lemmas & set(wordnet.lemmas(synonym.lower(), pos))
                ]
        return synonyms


def softmax(values: Sequence[float]) -> list[float]:
    largest = max(values)
    powers = [math.exp(value - largest) for value in values]
    return [power / sum(powers) for power in powers]


async def entity_swaps(path: str, example: Example) -> dict[int, list[str]]:
    """The names that an entity table puts in place of a text's own, by index.

    A word that is an entity of a type in the table has one candidate, or none if it is that word already. Words that
    are not in the result are words like any other.
    """
    words = words_by_class(read_bytes(path), path, await ClassNames()).get(example.label, {})
    if not words:
        return {}
    text = example.text
    (mentions,) = load_finder().find([str(text)])
    types = single_words(text, mentions)
    swaps = {i: _in_place(words[kind], text, i) for i, kind in types.items() if kind in words}
    return {i: [swap] if swap != text.words[i] else [] for i, swap in swaps.items()}


@lru_cache(maxsize=16)
def words_by_class(content: bytes, name: str, labels: tuple[str, ...]) -> Mapping[int, Mapping[str, str]]:
    """The rows of an entity table by the model's class index, matched by name as labels of data are.

    A class of the model without a row is attacked without names; a row without a class is an error, because a
    misspelled name would silently switch the table off.
    """
    from stockade.datasets.labels import align_labels
    from stockade.datasets.source import as_label

    table = EntityTable.parse(content, name)
    matched: dict[int, Mapping[str, str]] = {}
    for written, words in table.classes.items():
        label = as_label(written)
        assert label is not None  # every string is a label
        try:
            index = align_labels([label], None, labels)[label]
        except DataError:
            index = -1
        if index < 0 or index in matched:
            problem = "is none of" if index < 0 else "stands for one class twice of"
            raise DataError(
                f'The class "{written}" in {name} {problem} the model\'s classes ({", ".join(labels)}). Rename it in '
                f"the file, or make the table with --label-map {written}=CLASS."
            )
        matched[index] = words
    return matched


def _in_place(name: str, text: Text, index: int) -> str:
    """A name in the case of the word it replaces, with that word's possessive ending. Names keep their capitals in a
    text that has any, so that "today" becomes "Monday"; a text in lower case stays so.
    """
    word, ending = split_possessive(text.words[index])
    cased = match_case(name, word) if str(text) != str(text).lower() else name.lower()
    return cased + ending
