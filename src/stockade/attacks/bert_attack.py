"""BERT-Attack (Li et al., BERT-ATTACK: Adversarial Attack Against BERT Using BERT, EMNLP 2020).

Words are visited in order of importance (hidden as an unknown word; TextFooler's formula). A masked LM reads the text
once, as it is, and its guesses at a word's own place are the candidates. A word of one piece takes them in rank
order; a word of several pieces takes combinations of the best guesses per piece, ranked by the perplexity of the
pieces by themselves. The first candidate that fools the model is the result, otherwise the one that lowers p_y most
is kept. No more than 40 % of the words change.

Presets: `paper` (48 guesses, antonyms of WordNet dropped, no sentence similarity), `authors` (their code: words whose
counter-fitted vectors have a cosine below 0.4 dropped instead), `textattack` (version 0.3.11 of that package: 8
guesses, the text read anew at every word, antonyms and stop words tried, a cosine of at least 0.2 on the whole text).

Differences to the paper: of several pieces the 24 combinations with the largest sum of scores are ranked, found best
first; the authors' code takes the first 24 it enumerates, and TextAttack enumerates all and drops the ranking. The
last word is scored too, and a candidate that does not help is taken back: the authors' code does neither.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from stockade.attacks.constraints import Similarity
from stockade.attacks.decision import Moves
from stockade.attacks.greedy import descending, importance
from stockade.attacks.word_attack import EVERY_WORD_TRIED, WordAttack, changeable, changes_allowed
from stockade.core.example import Example
from stockade.core.protocols import Filling
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import Text, is_single_word, match_case
from stockade.engine.requests import Fallback, Perplexity, Predict, Score
from stockade.lexicon.neighbours import load_neighbours
from stockade.lexicon.stopwords import StopList, is_stop_word
from stockade.lexicon.wordnet import load_wordnet

Pieces = tuple[tuple[Filling, ...], ...]


_TEXTATTACK = {
    "antonyms": "allow",
    "threshold": 0.2,
    "guesses": 8,
    "combinations": 8,
    "stop_words": "nltk-cased",
    "write_stop_words": True,
    "read_again": True,
    "round_up": True,
}


@published(
    "bert-attack",
    paper="Li et al. 2020",
    presets={
        "paper": {},
        "authors": {"antonyms": "vectors"},
        "textattack": _TEXTATTACK,
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class BertAttack(WordAttack):
    """Swaps words for what a masked LM that reads them would also write there.

    Parameters
    ----------
    guesses : int
        How many guesses of the masked LM are taken at each place.
    min_score : float
        The raw score below which a guess, and all after it, are not tried.
    per_piece : int
        Guesses per piece of a word of several pieces.
    combinations : int
        How many combinations of them are ranked.
    unknown : str
        What hides a word when its importance is measured.
    antonyms : {"wordnet", "vectors", "allow"}
        Drop guesses that are antonyms in WordNet, or whose vectors are further than `min_word_cosine` from the word's,
        or none. Made for sentiment; allow them where opposites do not matter.
    min_word_cosine : float
        For `antonyms=vectors`.
    stop_words : {"none", "function", "function-cased", "nltk", "nltk-cased"}
        Words that are never changed, nor written unless `write_stop_words` is set.
    write_stop_words : bool
        Allow stop words as substitutes.
    read_again : bool
        Let the masked LM read the current text at every word, instead of the original once.
    threshold : float, optional
        The least cosine of the whole text with the original; none compares nothing.
    round_up : bool
        Round the number of words that may change up instead of down.
    max_changed, constraint, repair_articles
        As for every `WordAttack`; at most 40 % of the words change unless told otherwise.
    """

    guesses: int = 48
    min_score: float = 0.0
    per_piece: int = 4
    combinations: int = 24
    unknown: str = "[UNK]"
    antonyms: Literal["wordnet", "vectors", "allow"] = "wordnet"
    min_word_cosine: float = 0.4
    stop_words: StopList = "function"
    write_stop_words: bool = False
    read_again: bool = False
    threshold: float | None = None
    max_changed: float | None = 0.4
    round_up: bool = False

    def english(self) -> set[str]:
        """A masked LM; antonyms and a sentence encoder where they are asked."""
        antonyms = {"wordnet": {"wordnet"}, "vectors": {"neighbours"}}.get(self.antonyms, set())
        encoder = set() if self.threshold is None else {"encoder"}
        return WordAttack.english(self) | {"masked-lm"} | antonyms | encoder

    async def search(self, example: Example, rng: Random) -> Outcome:
        text = example.text
        words = changeable(example, self.stop_words)
        if not words:
            return Outcome.failed("every word is a stop word")
        clean, *hidden = await Score([text, *(text.replace(i, self.unknown) for i in words)], probe=True)
        order = descending(words, [importance(clean, scores, example.label) for scores in hidden])
        guesses = await Predict(text, self.guesses)
        current, gain = text, example.gain(clean)
        allowed = changes_allowed(example, self.max_changed, round_up=self.round_up)
        for index in order:
            if len(current.edits) >= allowed:
                return Outcome.failed(f"no success with {allowed} changed words", current)
            if self.read_again and current.edits:
                guesses = await Predict(current, self.guesses)
            candidates = await self._candidates(current, index, guesses[index])
            if not candidates:
                continue
            scores = await Score(candidates)
            for candidate, score in zip(candidates, scores, strict=True):
                if example.fooled(score):
                    return Outcome.found(candidate)
            gains = [example.gain(score) for score in scores]
            best = gains.index(max(gains))
            if gains[best] > gain:
                current, gain = candidates[best], gains[best]
                await Fallback(Outcome.failed(EVERY_WORD_TRIED, current))
        return Outcome.failed(EVERY_WORD_TRIED, current)

    async def moves(self, example: Example, rng: Random) -> Moves:
        """For models without scores: any word, with what the masked LM would also write there."""
        free = self.unlimited()
        words = changeable(example, self.stop_words)
        once = await Predict(example.text, self.guesses) if words else []

        async def candidates(now: Text, index: int) -> Sequence[Text]:
            guesses = await Predict(now, self.guesses) if self.read_again and now.edits else once
            return await free._candidates(now, index, guesses[index])

        return Moves(
            words=words,
            candidates=candidates,
            allowed=changes_allowed(example, self.max_changed, round_up=self.round_up),
            constraint=free.limits(None if self.threshold is None else Similarity("cosine", self.threshold)),
            repair_articles=self.repair_articles,
        )

    async def _candidates(self, text: Text, index: int, pieces: Pieces) -> Sequence[Text]:
        word = text.words[index]
        substitutes = self._usable(word, await self._substitutes(pieces))
        candidates: Sequence[Text] = [text.replace(index, match_case(item, word)) for item in substitutes]
        constraint = self.limits(None if self.threshold is None else Similarity("cosine", self.threshold))
        candidates = self.written(candidates, text, index)
        return candidates if constraint is None else await constraint.keep(candidates, text, index)

    async def _substitutes(self, pieces: Pieces) -> list[str]:
        """Words in order of preference: the guesses themselves, or ranked combinations of pieces."""
        if not pieces:
            return []
        if len(pieces) == 1:
            likely = [filling for filling in pieces[0] if filling.score >= self.min_score]
            return [filling.word for filling in likely if filling.whole]
        rows = list(best_combinations([piece[: self.per_piece] for piece in pieces], self.combinations))
        perplexities = await Perplexity(rows)
        ranked = sorted(zip(perplexities, rows, strict=True), key=lambda pair: round(pair[0], 3))
        return ["".join(filling.word for filling in row) for _, row in ranked if row[0].whole]

    def _usable(self, word: str, substitutes: Sequence[str]) -> list[str]:
        opposes = self._opposes(word)
        return [
            substitute
            for substitute in dict.fromkeys(substitutes)
            if substitute.isalpha()
            and is_single_word(substitute)
            and substitute.lower() != word.lower()
            and not opposes(substitute)
            and (self.write_stop_words or not is_stop_word(substitute, self.stop_words))
        ]

    def _opposes(self, word: str) -> Callable[[str], bool]:
        """What is taken for an antonym of a word; words without vectors oppose nothing."""
        if self.antonyms == "wordnet":
            opposites = load_wordnet().antonyms(word)
            return lambda other: other.lower() in opposites
        if self.antonyms == "vectors":
            table = load_neighbours()
            return lambda other: (cosine := table.cosine(word, other)) is not None and cosine < self.min_word_cosine
        return lambda other: False


def best_combinations(pieces: Sequence[Sequence[Filling]], count: int) -> Iterator[tuple[Filling, ...]]:
    """The `count` combinations of one guess per piece with the largest sums of scores, largest first.

    Each piece's guesses fall in score, so the next best differs from an earlier one by one step in one piece: no more
    than count × pieces combinations are ever looked at.
    """
    if not all(pieces):
        return

    def total(choice: tuple[int, ...]) -> float:
        return sum(piece[at].score for piece, at in zip(pieces, choice, strict=True))

    start = (0,) * len(pieces)
    queue, queued = [(-total(start), start)], {start}
    for _ in range(count):
        if not queue:
            return
        _, choice = heapq.heappop(queue)
        yield tuple(piece[at] for piece, at in zip(pieces, choice, strict=True))
        for place, at in enumerate(choice):
            step = (*choice[:place], at + 1, *choice[place + 1 :])
            if at + 1 < len(pieces[place]) and step not in queued:
                queued.add(step)
                heapq.heappush(queue, (-total(step), step))
