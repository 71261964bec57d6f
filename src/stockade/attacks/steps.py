"""One step of an attack that also watches the meaning: which candidates at a word count, and which is taken.

Constraints that need no model come first. The victim and the sentence encoder are asked in the order the recipe says.
Filter first: only similar candidates are scored (BAE). Score first: all candidates are scored, and only those that
could be taken are compared (TextFooler's code). Both take the same candidate; they differ in queries and in the number
of sentence vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stockade.attacks.constraints import Constraint
from stockade.attacks.similarity import cosines_to_original
from stockade.core.example import Example
from stockade.core.text import Text
from stockade.engine.requests import Score


@dataclass(frozen=True, slots=True)
class Step:
    """What came of a step: a text that fools the model, or the best one that helps, or neither."""

    winner: Text | None = None
    best: Text | None = None
    gain: float = 0.0


async def take_step(
    example: Example,
    current: Text,
    index: int,
    candidates: Sequence[Text],
    constraint: Constraint | None,
    *,
    score_first: bool,
    must_beat: float,
) -> Step:
    """Of the candidates that hold the constraint the most similar one that fools the model; otherwise the one with the
    most gain, if it beats `must_beat`.
    """
    early, late = constraint, None
    if constraint is not None and score_first:
        early, late = constraint.cheap_part, constraint.costly_part
    if early is not None:
        candidates = await early.keep(candidates, current, index)
    if not candidates:
        return Step()
    scores = await Score(candidates, partial=True)
    scored = list(zip(candidates, scores, strict=False))
    winners = [candidate for candidate, score in scored if example.fooled(score)]
    if late is not None and winners:
        winners = await late.keep(winners, current, index)
    if winners:
        return Step(winner=await most_similar(winners))
    ranked = sorted(((example.gain(score), candidate) for candidate, score in scored), key=lambda pair: -pair[0])
    for gain, candidate in ranked:
        if gain <= must_beat:
            break
        if late is None or await late.keep([candidate], current, index):
            return Step(best=candidate, gain=gain)
    return Step()


async def most_similar(texts: Sequence[Text]) -> Text:
    """The text with the largest cosine to the original; the first of equals."""
    if len(texts) == 1:
        return texts[0]
    cosines = [round(cosine, 5) for cosine in await cosines_to_original(texts)]
    return texts[cosines.index(max(cosines))]
