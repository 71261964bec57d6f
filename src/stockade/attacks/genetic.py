"""The genetic attack (Alzantot et al., Generating Natural Language Adversarial Examples, EMNLP 2018), and the faster
variant of Jia et al. (Certified Robustness to Adversarial Word Substitutions, EMNLP 2019).

    perturb(z): draw a word, with probability proportional to its number of near neighbours; try them, keep the best
        if it helps
    population: each member one perturb of the text
    each generation: the best member stays; every other place is taken by a child of two parents, drawn with
        probability softmax(score / temperature), word by word from either, and perturbed once

A neighbour is near within a squared distance of 0.5 in counter-fitted vectors (a cosine of 0.75). At most a fifth of
the words change. Of a word's neighbours the `likely` ones are tried: the 4 that a language model finds likeliest in
the text as it is then (`genetic`), or those that it finds on the original text at most e^5 times less likely than
the word itself (`genetic-fast`, which asks once and runs 40 generations). It sees six words to either side.

Differences to the papers: the language model is a masked LM, not the one-billion-word model; `likely=none` does
without. The preset `transfer` follows the transferability paper: the candidates of a word are its WordNet synonyms of
the same part of speech, as for PWWS, and no language model is asked, because that would remove two thirds of them.
Untargeted unless a target is given. Function words are left alone where the authors skip the most frequent words.
TextAttack draws parents by the negated score, so weak members are favoured; here strong ones are, in every preset.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from stockade.attacks.greedy import best_of
from stockade.attacks.word_attack import WordAttack, changeable, changes_allowed
from stockade.core.example import Example, Scores
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import Text, is_single_word, match_case
from stockade.engine.requests import Score, WordProbabilities
from stockade.lexicon.neighbours import load_neighbours
from stockade.lexicon.stopwords import StopList
from stockade.lexicon.synonyms import same_pos_synonyms


@dataclass(frozen=True, slots=True)
class Member:
    """A text of the population with what the model says of it."""

    text: Text
    scores: Scores


@dataclass(frozen=True, slots=True)
class Site:
    """A word that may change: what it may become, and how often it is drawn."""

    words: tuple[str, ...]
    weight: int


_TEXTATTACK = {"stop_words": "nltk-cased", "round_up": True}
_TRANSFER: dict[str, Any] = {"candidates": "wordnet", "likely": None, "stop_words": "none"}
_MISSING = {"neighbours": "near neighbour", "wordnet": "synonym"}
_FAST: dict[str, Any] = {"likely": None, "max_drop": 5.0, "generations": 40}


@published("genetic-fast", paper="Jia et al. 2019", presets={"paper": _FAST, "textattack": _FAST | _TEXTATTACK})
@published(
    "genetic",
    paper="Alzantot et al. 2018",
    presets={"paper": {}, "textattack": _TEXTATTACK, "transfer": _TRANSFER},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Genetic(WordAttack):
    """Breeds word swaps over generations and keeps what lowers the true class.

    Parameters
    ----------
    population : int
        Members of a generation.
    generations : int
        How many are bred.
    candidates : {"neighbours", "wordnet"}
        What may replace a word: its near neighbours, or all its WordNet synonyms of the same part of speech.
    neighbours : int
        How many near neighbours of a word may replace it.
    max_squared_distance : float
        How far a neighbour's counter-fitted vector may be.
    likely : int, optional
        Try only so many neighbours of a word: those a masked LM finds likeliest in its place; none asks no LM.
    max_drop : float, optional
        Try only neighbours whose log-probability on the original text is at most so far below the word's.
    lm_window : int
        How many words to either side the masked LM reads.
    temperature : float
        Parents are drawn with probability softmax(score / temperature).
    stop_words : {"none", "function", "function-cased", "nltk", "nltk-cased"}
        Words that are never changed.
    round_up : bool
        Round the number of words that may change up instead of down.
    max_changed, constraint, repair_articles
        As for every `WordAttack`; at most a fifth of the words change unless told otherwise, but always one may.
    """

    population: int = 60
    generations: int = 20
    candidates: Literal["neighbours", "wordnet"] = "neighbours"
    neighbours: int = 8
    max_squared_distance: float = 0.5
    likely: int | None = 4
    max_drop: float | None = None
    lm_window: int = 6
    temperature: float = 0.3
    stop_words: StopList = "function"
    max_changed: float | None = 0.2
    round_up: bool = False

    def english(self) -> set[str]:
        """Neighbours, or synonyms of the same part of speech, and a masked LM where it is asked."""
        swaps = {"neighbours"} if self.candidates == "neighbours" else {"wordnet", "pos"}
        asks = self.likely is not None or self.max_drop is not None
        return WordAttack.english(self) | swaps | ({"masked-lm"} if asks else set())

    async def search(self, example: Example, rng: Random) -> Outcome:
        sites = await self._sites(example)
        if not sites:
            return Outcome.failed(f"no word has a {_MISSING[self.candidates]}")
        allowed = max(1, changes_allowed(example, self.max_changed, round_up=self.round_up))
        await Score([example.text], probe=True)
        members = await self._perturbed(example, [example.text] * self.population, sites, allowed, rng)
        for _ in range(self.generations):
            best = _best(example, members)
            if example.fooled(best.scores):
                return Outcome.found(best.text)
            chances = parent_chances([example.score(member.scores) for member in members], self.temperature)
            couples = [rng.choices(members, chances, k=2) for _ in members[1:]]
            children = [crossover(mother, father, allowed, rng) for mother, father in couples]
            members = [best, *await self._perturbed(example, children, sites, allowed, rng)]
        best = _best(example, members)
        if example.fooled(best.scores):
            return Outcome.found(best.text)
        return Outcome.failed(f"no success in {self.generations} generations", best.text)

    async def _sites(self, example: Example) -> dict[int, Site]:
        indices = changeable(example, self.stop_words)
        if self.candidates == "wordnet":
            synonyms = same_pos_synonyms(example.text.words, indices)
            sites = {index: Site(tuple(words), len(words)) for index, words in synonyms.items() if words}
        else:
            sites = self._near_sites(example.text, indices)
        return sites if self.max_drop is None else await self._plausible(example.text, sites, self.max_drop)

    def _near_sites(self, text: Text, indices: Sequence[int]) -> dict[int, Site]:
        table, sites = load_neighbours(), dict[int, Site]()
        for index in indices:
            word = text.words[index]
            near = table.neighbours(word, count=50, max_squared_distance=self.max_squared_distance)
            words = [match_case(item.word, word) for item in near if is_single_word(item.word)][: self.neighbours]
            if words:
                sites[index] = Site(tuple(words), len(near))
        return sites

    async def _plausible(self, text: Text, sites: dict[int, Site], max_drop: float) -> dict[int, Site]:
        """The sites with the words that are hardly less likely in their place than the word that stands there."""
        answers = await WordProbabilities(
            [self._question_at(text, i, (text.words[i], *site.words)) for i, site in sites.items()]
        )
        plausible = {}
        for (index, site), (standing, *chances) in zip(sites.items(), answers, strict=True):
            words = tuple(w for w, chance in zip(site.words, chances, strict=True) if chance >= standing - max_drop)
            if words:
                plausible[index] = Site(words, site.weight)
        return plausible

    def _question_at(self, text: Text, index: int, words: Sequence[str]) -> tuple[Text, int, Sequence[str]]:
        start = max(0, index - self.lm_window)
        return text.part(start, index + self.lm_window + 1), index - start, words

    async def _perturbed(
        self, example: Example, texts: Sequence[Text], sites: dict[int, Site], allowed: int, rng: Random
    ) -> list[Member]:
        """Each text with the best swap at one drawn word, if it helps; all their candidates are scored together."""
        drawn = [_draw(text, sites, allowed, rng) for text in texts]
        places = [(text, index) for text, index in zip(texts, drawn, strict=True) if index is not None]
        likely = iter(await self._likely_words(places, sites))
        tried: list[list[Text]] = []
        for text, index in zip(texts, drawn, strict=True):
            swaps = [] if index is None else [text.replace(index, word) for word in next(likely)]
            tried.append([text] if index is None else [text, *await self.allowed(swaps, text, index)])
        scores = iter(await Score([text for group in tried for text in group]))
        members = []
        for group in tried:
            scored = [Member(text, next(scores)) for text in group]
            members.append(_best(example, scored))
        return members

    async def _likely_words(self, places: Sequence[tuple[Text, int]], sites: dict[int, Site]) -> list[tuple[str, ...]]:
        """The words to try at each place: all of its site, or the `likely` ones, in the order of the site."""
        words = [sites[index].words for _, index in places]
        if self.likely is None or not any(len(group) > self.likely for group in words):
            return words
        answers = await WordProbabilities([self._question_at(text, i, sites[i].words) for text, i in places])
        likeliest = []
        for group, chances in zip(words, answers, strict=True):
            ranked = sorted(range(len(group)), key=lambda number: -round(chances[number], 3))
            likeliest.append(tuple(group[number] for number in sorted(ranked[: self.likely])))
        return likeliest


def _best(example: Example, members: Sequence[Member]) -> Member:
    return members[best_of(example, [member.scores for member in members])]


def _draw(text: Text, sites: dict[int, Site], allowed: int, rng: Random) -> int | None:
    """A word that has not changed yet, by the weight of its site; None when no more words may change."""
    original = text.original.words
    free = [index for index in sites if text.words[index] == original[index]]
    if not free or len(text.edits) >= allowed:
        return None
    return rng.choices(free, [sites[index].weight for index in free])[0]


def parent_chances(scores: Sequence[float], temperature: float) -> list[float]:
    """How likely each member is to be drawn as a parent: the better its score, the likelier."""
    largest = max(scores)
    powers = [math.exp((score - largest) / temperature) for score in scores]
    return [power / sum(powers) for power in powers]


def crossover(mother: Member, father: Member, allowed: int, rng: Random) -> Text:
    """Each word from either parent; changes beyond the allowed number are taken back, drawn at random."""
    original, words = mother.text.original, mother.text.words
    child = {i: rng.choice((words[i], father.text.words[i])) for i in range(len(words))}
    changed = [i for i, word in child.items() if word != original.words[i]]
    for index in rng.sample(changed, max(0, len(changed) - allowed)):
        child[index] = original.words[index]
    return original.replace_all({i: word for i, word in child.items() if word != original.words[i]})
