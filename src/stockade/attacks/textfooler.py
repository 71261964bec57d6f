"""TextFooler (Jin et al., Is BERT Really Robust?, AAAI 2020).

Words are visited in order of importance, with a term for the class the model changes to when the word is gone:

    I_i = p_y(x) - p_y(x without i)                                            if the prediction k stays y
    I_i = [p_y(x) - p_y(x without i)] + [p_k(x without i) - p_k(x)]            otherwise

At each word its nearest neighbours in counter-fitted vectors are tried, as far as they keep the part of speech (nouns
and verbs may exchange) and the sentence its meaning. If some fool the model, the most similar one is the result;
otherwise the one that lowers p_y most is applied.

Presets: `paper` (word cosine 0.7, words deleted for importance, compared with the original), `authors` (the code
behind the published numbers: word cosine 0.5, words written as unknown, tf 0.5 in a window of 15 against the text
before the edit, a step accepted when it beats the original text), `textattack` (that package's recipe: angular
0.840845 in a window of 15 against the text before the edit, texts shorter than it not compared; it scores similar
candidates alone, `score_first=false`, which takes the same steps with a few queries less and four times the time),
`calibrated` (the paper's with the threshold that the default sentence encoder needs to accept 95 % of published
edits; see `similarity.py`).

Differences to the paper: the paper does not state its sentence threshold; 0.840845 angular is what its numbers were
made with. Function words are a list of our own. The neighbours are Stockade's (GloVe counter-fitted with WordNet) and
the sentence encoder is not the Universal Sentence Encoder, so thresholds are not the same filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from stockade.attacks.constraints import Reference, SamePos, Similarity
from stockade.attacks.decision import Moves
from stockade.attacks.greedy import descending, importance, take_step
from stockade.attacks.similarity import Scale
from stockade.attacks.word_attack import EVERY_WORD_TRIED, WordAttack, changeable, changes_allowed
from stockade.core.example import Example
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import Text, is_single_word, match_case
from stockade.engine.requests import Fallback, Score
from stockade.lexicon.neighbours import load_neighbours
from stockade.lexicon.stopwords import StopList

Accept = Literal["improves", "beats-original"]
_AUTHORS = {
    "min_cosine": 0.5,
    "hide": "unknown",
    "scale": "tf",
    "threshold": 0.5,
    "reference": "previous",
    "short": 0.1,
    "accept": "beats-original",
}
_TEXTATTACK = {"min_cosine": 0.5, "reference": "previous", "short": None, "stop_words": "function-cased"}


_CALIBRATED = {"threshold": 0.8039}


@published(
    "textfooler",
    paper="Jin et al. 2020",
    presets={"paper": {}, "authors": _AUTHORS, "textattack": _TEXTATTACK, "calibrated": _CALIBRATED},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class TextFooler(WordAttack):
    """Swaps words for their nearest counter-fitted neighbours that keep part of speech and meaning.

    Parameters
    ----------
    candidates : int
        How many neighbours of a word are tried.
    min_cosine : float
        The least cosine of a neighbour's vector with the word's.
    hide : {"delete", "unknown"}
        How a word is hidden when its importance is measured.
    unknown : str
        What is written for `hide=unknown`.
    scale : {"cosine", "angular", "tf"}
        The scale of `threshold` and `short`; see `similarity.py`.
    threshold : float
        The least similarity of a candidate with the reference.
    window : int, optional
        Compare only so many words around the edit; none compares whole texts.
    reference : {"original", "previous"}
        Compare with the original, or with the text before the edit.
    short : float, optional
        The threshold for texts shorter than the window; 0 angular refuses nothing but lets the most similar win, none
        does not compare them.
    same_pos : bool
        Replacements must keep the part of speech.
    noun_verb_exchange : bool
        Nouns and verbs may replace each other.
    stop_words : {"none", "function", "function-cased", "nltk", "nltk-cased"}
        Words that are never changed.
    score_first : bool
        Score all candidates and compare only those that could be taken.
    accept : {"improves", "beats-original"}
        Keep a step that improves on the current text, or one that beats the original.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    candidates: int = 50
    min_cosine: float = 0.7
    hide: Literal["delete", "unknown"] = "delete"
    unknown: str = "[UNK]"
    scale: Scale = "angular"
    threshold: float = 0.840845057
    window: int | None = 15
    reference: Reference = "original"
    short: float | None = 0.0
    same_pos: bool = True
    noun_verb_exchange: bool = True
    stop_words: StopList = "function"
    score_first: bool = True
    accept: Accept = "improves"

    def english(self) -> set[str]:
        """Neighbours, a sentence encoder and, unless told otherwise, parts of speech."""
        return WordAttack.english(self) | {"neighbours", "encoder"} | ({"pos"} if self.same_pos else set())

    async def search(self, example: Example, rng: Random) -> Outcome:
        text, neighbours = example.text, load_neighbours()
        words = changeable(example, self.stop_words)
        words = [i for i in words if neighbours.neighbours(text.words[i], count=1, min_cosine=self.min_cosine)]
        if not words:
            return Outcome.failed("no word has a neighbour")
        clean, *hidden = await Score([text, *(self._hidden(text, i) for i in words)], probe=True)
        order = descending(words, [importance(clean, scores, example.label) for scores in hidden])
        similarity = Similarity(self.scale, self.threshold, self.window, self.reference, self.short)
        constraint = self.limits(SamePos(self.noun_verb_exchange) if self.same_pos else None, similarity)
        start = example.gain(clean)
        current, gain = text, start
        allowed = changes_allowed(example, self.max_changed)
        for index in order:
            if len(current.edits) >= allowed:
                return Outcome.failed(f"no success with {allowed} changed words", current)
            step = await take_step(
                example,
                current,
                index,
                self._candidates(current, index),
                constraint,
                similarity,
                score_first=self.score_first,
                must_beat=gain if self.accept == "improves" else start,
            )
            if step.winner is not None:
                return Outcome.found(step.winner)
            if step.best is not None:
                current, gain = step.best, step.gain
                await Fallback(Outcome.failed(EVERY_WORD_TRIED, current))
        return Outcome.failed(EVERY_WORD_TRIED, current)

    async def moves(self, example: Example, rng: Random) -> Moves:
        """For models without scores: any word that has a neighbour, with those that keep part of speech and meaning."""
        free = self.unlimited()
        near, text = load_neighbours(), example.text
        words = changeable(example, self.stop_words)
        similarity = Similarity(self.scale, self.threshold, self.window, self.reference, self.short)
        constraint = free.limits(SamePos(self.noun_verb_exchange) if self.same_pos else None, similarity)

        async def candidates(now: Text, index: int) -> Sequence[Text]:
            tried = free._candidates(now, index)
            return await constraint.keep(tried, now, index) if constraint is not None and tried else tried

        return Moves(
            words=[i for i in words if near.neighbours(text.words[i], count=1, min_cosine=self.min_cosine)],
            candidates=candidates,
            allowed=changes_allowed(example, self.max_changed),
            constraint=free.limits(similarity),
            repair_articles=self.repair_articles,
        )

    def _hidden(self, text: Text, index: int) -> Text:
        return text.delete(index) if self.hide == "delete" else text.replace(index, self.unknown)

    def _candidates(self, text: Text, index: int) -> Sequence[Text]:
        word = text.words[index]
        near = load_neighbours().neighbours(word, count=self.candidates, min_cosine=self.min_cosine)
        substitutes = [match_case(item.word, word) for item in near if is_single_word(item.word)]
        return self.written([text.replace(index, substitute) for substitute in substitutes], text, index)
