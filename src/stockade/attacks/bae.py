"""BAE: BERT-based adversarial examples (Garg and Ramakrishnan, EMNLP 2020).

Words are visited in order of importance (how much the model needs them: p_y falls when they are deleted). At each a
masked LM proposes words to replace it (R), or to insert left and right of it (I):

    bae-r     replace
    bae-i     insert left or right
    bae-r/i   one of these three operations per word
    bae-r+i   replace, then insert: up to two operations per word

Proposals that are pieces of words, or not similar enough to the original sentence, are dropped; replacements must
keep the part of speech. If some candidates fool the model, the one most similar to the original is the result;
otherwise the one that helps most is kept, if it helps, and the next word is visited. The order is computed once, on
the clean text.

Presets: `paper` (cosine 0.8, whole text), `authors` (their code: tf 0.8 in a window of 15 words against the text
before the edit), `textattack` (R as that package has it: the authors' number taken for a cosine, 0.936338, noun and
verb exchangeable, stop words kept).

Differences to the paper: similarity is that of Stockade's sentence encoder, not the Universal Sentence Encoder's, so
thresholds are not the same filter; a step is kept only if it improves on the current text, which the paper leaves
open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from stockade.attacks.constraints import Reference, SamePos, Similarity
from stockade.attacks.decision import Moves
from stockade.attacks.greedy import descending, take_step
from stockade.attacks.similarity import Scale
from stockade.attacks.word_attack import EVERY_WORD_TRIED, WordAttack, changeable, changes_allowed
from stockade.core.example import Example
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.core.text import Text, is_single_word, match_case
from stockade.engine.requests import Fallback, Fill, Score
from stockade.lexicon.stopwords import StopList

Mode = Literal["R", "I", "R/I", "R+I"]
Operation = Literal["replace", "insert_before", "insert_after"]
_INSERT: tuple[Operation, ...] = ("insert_before", "insert_after")
STAGES: dict[Mode, tuple[tuple[Operation, ...], ...]] = {
    "R": (("replace",),),
    "I": (_INSERT,),
    "R/I": (("replace", *_INSERT),),
    "R+I": (("replace",), _INSERT),
}
_AUTHORS = {"scale": "tf", "threshold": 0.8, "window": 15, "reference": "previous", "short": 0.1}
_TEXTATTACK = {"threshold": 0.936338, "window": 15, "noun_verb_exchange": True, "stop_words": "nltk-cased"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BAE(WordAttack):
    """Replaces words by, or inserts, what a masked LM finds likely there.

    Parameters
    ----------
    mode : {"R", "I", "R/I", "R+I"}
        Replace, insert, either per word, or both.
    proposals : int
        How many words the masked LM proposes at each place.
    scale : {"cosine", "angular", "tf"}
        The scale of `threshold` and `short`; see `similarity.py`.
    threshold : float
        The least similarity of a candidate with the reference.
    window : int, optional
        Compare only so many words around the edit; none compares whole texts.
    reference : {"original", "previous"}
        Compare with the original, or with the text before the edit.
    short : float, optional
        The threshold for texts shorter than the window; none does not compare them.
    same_pos : bool
        Replacements must keep the part of speech.
    noun_verb_exchange : bool
        Nouns and verbs may replace each other.
    stop_words : {"none", "function", "function-cased", "nltk", "nltk-cased"}
        Words that are never changed.
    score_first : bool
        Score every proposal and compare only those that matter: the same result with more queries and far fewer
        sentence vectors. Faster when the victim is cheaper than the sentence encoder.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    mode: Mode = "R"
    proposals: int = 50
    scale: Scale = "cosine"
    threshold: float = 0.8
    window: int | None = None
    reference: Reference = "original"
    short: float | None = None
    same_pos: bool = True
    noun_verb_exchange: bool = False
    stop_words: StopList = "none"
    score_first: bool = False

    def english(self) -> set[str]:
        """A masked LM, a sentence encoder and, unless told otherwise, parts of speech."""
        return WordAttack.english(self) | {"masked-lm", "encoder"} | ({"pos"} if self.same_pos else set())

    async def search(self, example: Example, rng: Random) -> Outcome:
        text = example.text
        words = changeable(example, self.stop_words)
        if not words:
            return Outcome.failed("every word is a stop word")
        clean, *without = await Score([text, *(text.delete(i) for i in words)], probe=True)
        order = descending(words, [example.score(scores) for scores in without])
        similarity = Similarity(self.scale, self.threshold, self.window, self.reference, self.short)
        constraint = self.limits(SamePos(self.noun_verb_exchange) if self.same_pos else None, similarity)
        current, gain = text, example.gain(clean)
        allowed = None if self.max_changed is None else changes_allowed(example, self.max_changed)
        for origin in order:
            for stage in STAGES[self.mode]:
                if allowed is not None and len(current.edits) >= allowed:
                    return Outcome.failed(f"no success with {allowed} operations", current)
                index = current.position_of(origin)
                if index is None:
                    continue
                candidates = await self._candidates(current, index, stage)
                step = await take_step(
                    example,
                    current,
                    index,
                    candidates,
                    constraint,
                    similarity,
                    score_first=self.score_first,
                    must_beat=gain,
                )
                if step.winner is not None:
                    return Outcome.found(step.winner)
                if step.best is not None:
                    current, gain = step.best, step.gain
                    await Fallback(Outcome.failed(EVERY_WORD_TRIED, current))
        return Outcome.failed(EVERY_WORD_TRIED, current)

    async def moves(self, example: Example, rng: Random) -> Moves:
        """For models without scores: any word, with all operations of the mode as alternatives."""
        free = self.unlimited()
        operations = tuple(operation for stage in STAGES[self.mode] for operation in stage)
        similarity = Similarity(self.scale, self.threshold, self.window, self.reference, self.short)
        constraint = free.limits(SamePos(self.noun_verb_exchange) if self.same_pos else None, similarity)

        async def candidates(now: Text, origin: int) -> Sequence[Text]:
            index = now.position_of(origin)
            tried = [] if index is None else await free._candidates(now, index, operations)
            return await constraint.keep(tried, now, index) if constraint and tried and index is not None else tried

        return Moves(
            words=changeable(example, self.stop_words),
            candidates=candidates,
            allowed=None if self.max_changed is None else changes_allowed(example, self.max_changed),
            constraint=free.limits(similarity),
            repair_articles=self.repair_articles,
        )

    async def _candidates(self, text: Text, index: int, operations: Sequence[Operation]) -> Sequence[Text]:
        """The texts that the masked LM proposes for the operations at a word; pieces of words are left out."""
        hidden = [_hide(text, index, operation) for operation in operations]
        fillings = await Fill(hidden, self.proposals)
        candidates: list[Text] = []
        for operation, (masked, place), proposals in zip(operations, hidden, fillings, strict=True):
            replaced = text.words[index] if operation == "replace" else ""
            words = [p.word for p in proposals if p.whole and p.word.isalpha() and is_single_word(p.word)]
            words = [word for word in dict.fromkeys(words) if word.lower() != replaced.lower()]
            if operation == "replace":
                candidates += [text.replace(index, match_case(word, replaced)) for word in words]
            else:
                candidates += [masked.replace(place, word) for word in words]
        return self.written(candidates, text, index)


def _hide(text: Text, index: int, operation: Operation) -> tuple[Text, int]:
    """The text with a place for the masked LM to fill; what stands there meanwhile is never read."""
    if operation == "replace":
        return text, index
    if operation == "insert_before":
        return text.insert_before(index, "_"), index
    return text.insert_after(index, "_"), index + 1


for _name, _mode in (("bae-r", "R"), ("bae-i", "I"), ("bae-r/i", "R/I"), ("bae-r+i", "R+I")):
    _presets: dict[str, dict[str, Any]] = {"paper": {"mode": _mode}, "authors": {"mode": _mode, **_AUTHORS}}
    if _mode == "R":
        _presets["textattack"] = {"mode": _mode, **_TEXTATTACK}
    published(_name, paper="Garg and Ramakrishnan 2020", presets=_presets)(BAE)
