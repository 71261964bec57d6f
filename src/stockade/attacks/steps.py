"""One step of an attack that also watches the meaning: which candidates at a word count, and which is taken.

Constraints that need no model come first. The victim and the sentence encoder are asked in the order the recipe says.
Filter first: only similar candidates are scored (BAE). Score first: all candidates are scored, and only those that
could be taken are compared (TextFooler's code). Similarity is measured once, by the attack's own rule (its window and
reference): what passes by it is also ranked by it. Where it compares nothing, because the text is shorter than the
window, the candidate with the most gain wins. Both take the same candidate; they differ in queries and in the number
of sentence vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stockade.attacks.constraints import Constraint
from stockade.attacks.similarity import Similarity
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
    similarity: Similarity,
    *,
    score_first: bool,
    must_beat: float,
) -> Step:
    """Of the candidates that hold the constraint the one that fools the model and is most similar; otherwise the one
    with the most gain, if it beats `must_beat`.
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
