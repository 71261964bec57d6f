"""HotFlip at the level of words (Ebrahimi et al., HotFlip: White-Box Adversarial Examples for Text Classification,
ACL 2018).

Replacing the word a at place i by b changes the loss, to first order, by g_i · (E_b - E_a), where g_i is the gradient
with respect to the word's input vector. A beam of the best flips by that estimate is scored by the model; gradients are
computed anew after every flip. A word is only replaced by one whose vector is near (cosine at least 0.8), that has the
same part of speech and is no function word, at most twice in a text.

Differences to the paper: only words that are one entry of the model's vocabulary are flipped, to other such words.
With a target the loss of the target falls instead of the true class's loss rising.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from stockade.attacks.greedy import best_of
from stockade.attacks.word_attack import WordAttack, changeable, changes_allowed
from stockade.core.example import Example
from stockade.core.protocols import WordVocabulary
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import Text, match_case
from stockade.engine.requests import Gradient, Score, Vocabulary
from stockade.lexicon.pos import load_tagger
from stockade.lexicon.stopwords import StopList, is_stop_word


@published("hotflip", paper="Ebrahimi et al. 2018", presets={"paper": {}})
@dataclass(frozen=True, slots=True, kw_only=True)
class HotFlip(WordAttack):
    """Flips words along the gradient of the model's loss (white box).

    Parameters
    ----------
    beam : int
        How many flips, and how many texts, are kept at each step.
    min_cosine : float
        The least cosine between the vectors of a word and its replacement.
    max_flips : int
        How many words may be flipped.
    same_pos : bool
        Replacements must keep the part of speech.
    stop_words : {"none", "function", "function-cased", "nltk", "nltk-cased"}
        Words that are neither changed nor written.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    beam: int = 10
    min_cosine: float = 0.8
    max_flips: int = 2
    same_pos: bool = True
    stop_words: StopList = "function"

    def english(self) -> set[str]:
        """Parts of speech, unless told otherwise."""
        return WordAttack.english(self) | ({"pos"} if self.same_pos else set())

    async def search(self, example: Example, rng: Random) -> Outcome:
        space = space_of(await Vocabulary())
        clean = (await Score([example.text], probe=True))[0]
        beam, best = [example.text], example.gain(clean)
        flips = min(self.max_flips, changes_allowed(example, self.max_changed))
        loss_of, sign = (example.label, 1.0) if example.target is None else (example.target, -1.0)
        for _ in range(flips):
            gradients = await Gradient(beam, loss_of)
            flipped = [
                flip
                for text, gradient in zip(beam, gradients, strict=True)
                for flip in await self._flips(example, text, sign * gradient, space)
            ]
            flipped = list(dict.fromkeys(flipped))
            if not flipped:
                return Outcome.failed("no word has a near neighbour of the same kind", beam[0])
            scores = await Score(flipped)
            strongest = best_of(example, scores)
            if example.fooled(scores[strongest]):
                return Outcome.found(flipped[strongest])
            order = sorted(range(len(scores)), key=lambda i: -example.gain(scores[i]))
            beam = [flipped[i] for i in order[: self.beam] if scores[i].answered] or beam
            best = example.gain(scores[order[0]])
        return Outcome.failed(f"no success with {flips} flips", beam[0] if best > example.gain(clean) else None)

    async def _flips(self, example: Example, text: Text, gradient: NDArray[np.float32], space: Space) -> list[Text]:
        """The `beam` flips of single words with the largest first-order rise of the loss."""
        flips: list[tuple[float, int, str]] = []
        for index in changeable(example, self.stop_words):
            position = space.position.get(text.words[index].lower())
            if position is None or text.words[index] != text.original.words[index]:
                continue
            near = space.near(position, self.min_cosine)
            rise = (space.vectors[near] - space.vectors[position]) @ gradient[index]
            best = np.argsort(-rise, kind="stable")[: self.beam]
            flips += [(float(rise[at]), index, space.words[near[at]]) for at in best]
        flips = [flip for flip in flips if not is_stop_word(flip[2], self.stop_words)]
        flips.sort(key=lambda flip: (-round(flip[0], 6), flip[1], flip[2]))
        return await self._of_same_kind(text, flips)

    async def _of_same_kind(self, text: Text, flips: list[tuple[float, int, str]]) -> list[Text]:
        tagger = load_tagger() if self.same_pos else None
        tags = tagger.universal(text.words) if tagger is not None else []
        texts: list[Text] = []
        for _, index, word in flips:
            if len(texts) == self.beam:
                break
            changed = text.replace(index, match_case(word, text.words[index]))
            if tagger is None or tagger.universal(changed.words)[index] == tags[index]:
                texts += await self.allowed([changed], text, index)
        return texts


class Space:
    """A vocabulary as directions; the words near a word are computed once."""

    def __init__(self, vocabulary: WordVocabulary) -> None:
        self.words, self.vectors = vocabulary.words, vocabulary.vectors
        self.position = {word: index for index, word in enumerate(vocabulary.words)}
        norms = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        self._directions = self.vectors / np.maximum(norms, 1e-12)
        self._near: dict[tuple[int, float], NDArray[np.intp]] = {}

    def near(self, word: int, min_cosine: float) -> NDArray[np.intp]:
        """The other words whose vectors have at least that cosine with the word's."""
        key = (word, min_cosine)
        if key not in self._near:
            cosines = self._directions @ self._directions[word]
            cosines[word] = -1.0
            self._near[key] = np.flatnonzero(cosines >= min_cosine)
        return self._near[key]


@lru_cache(maxsize=2)
def space_of(vocabulary: WordVocabulary) -> Space:
    """The space of a model's vocabulary; the model hands out the same object each time."""
    return Space(vocabulary)
