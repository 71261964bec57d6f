"""The typo attack of Hsieh et al. (On the Robustness of Self-Attentive Models, ACL 2019, §6): in each sentence one
random word is misspelled, and the BLEU of all translations is compared before and after. The noises are those of
Belinkov and Bisk (Synthetic and Natural Noise Both Break Neural Machine Translation, ICLR 2018):

    natural   a misspelling that people make, from a list
    swap      two neighbouring letters, neither the first nor the last
    middle    all letters but the first and the last, shuffled
    full      all letters, shuffled
    key       one letter for that of a neighbouring key, in its case

The model is not asked: there is nothing to search. A success is a translation with a lower sentence BLEU; in the BLEU
of the corpus every sentence counts, also one without a word that can be misspelled.

Differences: the paper's list is that of Belinkov and Bisk, which states no licence; ours is smaller (`typos=FILE` takes
theirs). They change every word by swap, middle and full; here it is one, as in the paper. Their key noise turns
capitals into small letters; this one does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

from stockade.attacks.translation_goals import LowerBleu
from stockade.attacks.word_attack import NOT_EVEN_ONE, WordAttack
from stockade.core.attacked_translation import Task, TranslationExample
from stockade.core.errors import OptionError
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.shares import at_most
from stockade.core.text import Text, match_case
from stockade.lexicon.typos import Keyboard, Typos, key_neighbours, load_typos, read_typos, typos_hash

Noise = Literal["natural", "swap", "middle", "full", "key"]
_SHORTEST = 4
"""Words of fewer letters have nothing between the first and the last that could be moved."""
_SHUFFLES = 20


@published(
    "mt-typo",
    paper="Hsieh et al. 2019",
    presets={"paper": {}, **{noise: {"noise": noise} for noise in ("swap", "middle", "full", "key")}},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class MtTypo(WordAttack):
    """Misspells a random word of the source.

    Parameters
    ----------
    noise : {"natural", "swap", "middle", "full", "key"}
        How: a misspelling from a list, letters swapped or shuffled, or the letter of a neighbouring key.
    typos : str, optional
        A list of natural typos: on each line a word and its misspellings. Ours if None.
    language : str, optional
        The language of the source, for natural typos; what the column of the data is called, else English.
    keyboard : {"qwerty", "qwertz", "azerty"}
        Whose keys are neighbours.
    words : int
        How many words are misspelled.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    task: ClassVar[Task] = "translation"

    noise: Noise = "natural"
    typos: str | None = None
    language: str | None = None
    keyboard: Keyboard = "qwerty"
    words: int = 1

    def __post_init__(self) -> None:
        if self.words < 1:
            raise OptionError(f"words is {self.words}, expected a whole number from 1 up.")
        if self.typos is not None and self.noise != "natural":
            raise OptionError(f"typos={self.typos} has no effect with noise={self.noise}: leave out one of them.")

    def resources(self) -> Mapping[str, str]:
        """The fingerprint of the list, if it is a file of the user's own."""
        return {} if self.typos is None else {"typos": typos_hash(self.typos)}

    def goal_for(self, example: TranslationExample, rng: Random) -> LowerBleu:
        return LowerBleu.of(example.translation, example.reference)

    async def search(self, example: TranslationExample, rng: Random) -> Outcome:
        allowed = self.words
        if self.max_changed is not None:
            allowed = min(allowed, at_most(self.max_changed, len(example.text)))
        if not allowed:
            return Outcome.failed(NOT_EVEN_ONE)
        misspell = self._misspeller(example.language)
        places = list(example.indices)
        rng.shuffle(places)
        text, count = example.text, 0
        for index in places:
            misspelled = misspell(text.words[index], rng)
            if misspelled is None:
                continue
            kept = await self.allowed([text.replace(index, misspelled)], text, index)
            if kept:
                text, count = kept[0], count + 1
            if count == allowed:
                break
        return Outcome.found(text) if count else Outcome.failed("no word can be misspelled that way")

    def _misspeller(self, language: str | None) -> Callable[[str, Random], str | None]:
        if self.noise == "natural":
            typos = read_typos(self.typos) if self.typos is not None else load_typos(self.language or language or "en")
            return lambda word, rng: natural_typo(word, typos, rng)
        if self.noise == "key":
            neighbours = key_neighbours(self.keyboard)
            return lambda word, rng: key_typo(word, neighbours, rng)
        return _SHUFFLED[self.noise]


def natural_typo(word: str, typos: Typos, rng: Random) -> str | None:
    """A listed misspelling of the word, in its case; None if it has no entry."""
    listed = typos.get(word) or tuple(match_case(typo, word) for typo in typos.get(word.lower(), ()))
    others = [typo for typo in listed if typo != word]
    return rng.choice(others) if others else None


def key_typo(word: str, neighbours: Mapping[str, str], rng: Random) -> str | None:
    """The word with one letter for that of a neighbouring key, in its case."""
    places = [index for index, letter in enumerate(word) if letter.lower() in neighbours]
    if not places:
        return None
    at = rng.choice(places)
    letter = rng.choice(neighbours[word[at].lower()])
    return word[:at] + (letter.upper() if word[at].isupper() else letter) + word[at + 1 :]


def swapped(word: str, rng: Random) -> str | None:
    """The word with two neighbouring letters swapped, neither the first nor the last."""
    places = [index for index in range(1, len(word) - 2) if word[index] != word[index + 1]]
    if not places:
        return None
    at = rng.choice(places)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def shuffled_middle(word: str, rng: Random) -> str | None:
    """The word with all letters but the first and the last shuffled."""
    middle = _shuffled(word[1:-1], rng) if len(word) >= _SHORTEST else None
    return None if middle is None else word[0] + middle + word[-1]


def shuffled_whole(word: str, rng: Random) -> str | None:
    """The word with all letters shuffled."""
    return _shuffled(word, rng)


def _shuffled(letters: str, rng: Random) -> str | None:
    """Another order of the letters that is one word too (no mark at its edge); None if there is none."""
    for _ in range(_SHUFFLES if len(set(letters)) > 1 else 0):
        drawn = "".join(rng.sample(letters, len(letters)))
        if drawn != letters and Text.parse(drawn).words == (drawn,):
            return drawn
    return None


_SHUFFLED: Mapping[Noise, Callable[[str, Random], str | None]] = {
    "swap": swapped,
    "middle": shuffled_middle,
    "full": shuffled_whole,
}
