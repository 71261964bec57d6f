"""What greedy attacks share: how much the model needs a word, and which candidate a step takes.

`greedy` walks the words in a fixed order and keeps a change that helps. `take_step` is one step of an attack that also
watches the meaning. Constraints that need no model come first; then the victim and the sentence encoder are asked in
the order the recipe says. Filter first: only similar candidates are scored (BAE). Score first: all candidates are
scored, and only those that could be taken are compared (TextFooler's code). Similarity is measured once, by the
attack's rule (its window and reference): what passes by it is also ranked by it. Where it compares nothing, because the
text is shorter than the window, the candidate with the most gain wins. Both orders take the same candidate; they differ
in queries and in the number of sentence vectors.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from stockade.attacks.constraints import Constraint, Similarity
from stockade.attacks.word_attack import EVERY_WORD_TRIED
from stockade.core.example import Example, Scores
from stockade.core.records import Outcome
from stockade.core.text import Text
from stockade.engine.requests import Fallback, Score

Candidates = Callable[[Text, int], Awaitable[Sequence[Text]]]


def importance(clean: Scores, hidden: Scores, label: int) -> float:
    """How much the model needs a word, by TextFooler's formula.

    The fall of the true class when the word is hidden, and the rise of the class the model turns to, if any. A word
    without an answer comes last.
    """
    if not (clean.answered and hidden.answered):
        return -math.inf
    fall = clean.probabilities[label] - hidden.probabilities[label]
    turned_to = hidden.label
    if turned_to == label:
        return fall
    return fall + hidden.probabilities[turned_to] - clean.probabilities[turned_to]


def descending(indices: Sequence[int], values: Sequence[float]) -> list[int]:
    """The indices by falling value; equal values (up to 1e-6) in text order, so that every machine walks alike."""
    return [index for _, index in sorted(zip((-round(value, 6) for value in values), indices, strict=True))]


def best_of(example: Example, scores: Sequence[Scores]) -> int:
    """The index of the best candidate: one that fools the model before any that does not, then by gain.

    With more than two classes the true class can fall lower without losing its lead.
    """
    ranks = [(example.fooled(score), example.gain(score)) for score in scores]
    return ranks.index(max(ranks))


async def greedy(
    example: Example, clean: Scores, order: Iterable[int], candidates: Candidates, allowed: int
) -> Outcome:
    """Replace words in a fixed order by the candidate that helps most, until the model is fooled.

    Parameters
    ----------
    example : Example
        The text under attack.
    clean : Scores
        What the model says of it.
    order : iterable of int
        The words by their index in the original.
    candidates : callable
        The texts to try, from the current text and an index.
    allowed : int
        How many words may change.
    """
    current, gain = example.text, example.gain(clean)
    for index in order:
        if len(current.edits) >= allowed:
            return Outcome.failed(f"no success with {allowed} changed words", current)
        tried = await candidates(current, index)
        if not tried:
            continue
        scores = await Score(tried)
        best = best_of(example, scores)
        if example.fooled(scores[best]):
            return Outcome.found(tried[best])
        if example.gain(scores[best]) > gain:
            current, gain = tried[best], example.gain(scores[best])
            await Fallback(Outcome.failed(EVERY_WORD_TRIED, current))
    return Outcome.failed(EVERY_WORD_TRIED, current)


@dataclass(frozen=True, slots=True)
class Step:
    """What came of a step: a text that fools the model, or the best that helps, or neither."""

    winner: Text | None = None
    best: Text | None = None
    gain: float = 0.0


async def take_step(
    example: Example,
    current: Text,
    index: int,
    candidates: Sequence[Text],
    constraint: Constraint | None,
    similarity: Similarity,
    *,
    score_first: bool,
    must_beat: float,
) -> Step:
    """Take the candidate that fools the model and is most similar; otherwise the one with the most gain.

    Parameters
    ----------
    example : Example
        The text under attack.
    current : Text
        The text before the step.
    index : int
        The word that the candidates edit.
    candidates : sequence of Text
        What may be taken.
    constraint : Constraint, optional
        What a candidate must hold.
    similarity : Similarity
        Ranks candidates that fool the model.
    score_first : bool
        Ask the victim before the sentence encoder.
    must_beat : float
        The gain that a candidate must exceed if none fools the model.
    """
    early, late = constraint, None
    if constraint is not None and score_first:
        early, late = constraint.cheap_part, constraint.costly_part
    if early is not None:
        candidates = await early.keep(candidates, current, index)
    if not candidates:
        return Step()
    scored = list(zip(candidates, await Score(candidates), strict=True))
    ranked = sorted(((example.gain(score), candidate) for candidate, score in scored), key=lambda pair: -pair[0])
    fooling = {id(candidate) for candidate, score in scored if example.fooled(score)}
    winners = [candidate for _, candidate in ranked if id(candidate) in fooling]
    if late is not None and winners:
        winners = await late.keep(winners, current, index)
    if winners:
        cosines = await similarity.cosines(winners, current, index)
        return Step(winner=winners[0] if cosines is None else most_similar(winners, cosines))
    for gain, candidate in ranked:
        if gain <= must_beat:
            break
        if late is None or await late.keep([candidate], current, index):
            return Step(best=candidate, gain=gain)
    return Step()


def most_similar(texts: Sequence[Text], cosines: Sequence[float]) -> Text:
    """The text with the largest cosine; the first of equals."""
    rounded = [round(cosine, 5) for cosine in cosines]
    return texts[rounded.index(max(rounded))]
