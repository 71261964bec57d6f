"""Greedy attacks on models that only name classes: the decision-based variant.

Without scores nobody can tell which word matters or whether a change has brought the model nearer to an error. What is
left is the label (Maheshwary et al. 2021, Generating Natural Language Attacks in a Hard Label Black Box Setting, AAAI,
§3.1 and §3.2):

    walk      visit the words in a random order; ask about all that the attack would try at the word; if a candidate
              fools the model, the walk ends, otherwise one of them, drawn at random, is kept
    reduce    undo the changes one by one, from the last word to the first; what the model stays fooled without stays
              undone; again, until no single change can be undone

Words, candidates and constraints are those of the attack; so are its limits, which the reduced text must keep.
`--attack pwws` means this variant wherever a model has declared that it has no scores.

Differences to the paper: the candidates are the attack's own and all are asked about at each word, where the paper
draws one of 50 neighbours; a change is undone from right to left instead of by similarity; the genetic search that the
paper starts from the reduced text is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol, runtime_checkable

from stockade.attacks.constraints import Constraint
from stockade.attacks.greedy import Candidates
from stockade.attacks.word_attack import EVERY_WORD_TRIED, NOT_EVEN_ONE, repaired
from stockade.core.example import Example
from stockade.core.records import Outcome
from stockade.core.text import Text
from stockade.engine.requests import Fallback, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What an attack may do to a text.

    Parameters
    ----------
    words
        The words it may change, by their index in the original.
    candidates
        The texts to try, from the current text and such an index; they hold the attack's constraints.
    allowed
        How many words may differ from the original in the end; None for any number.
    constraint
        What a text must still hold after a change was undone.
    repair_articles
        Whether articles are put right.
    """

    words: Sequence[int]
    candidates: Candidates
    allowed: int | None = None
    constraint: Constraint | None = None
    repair_articles: bool = False


@runtime_checkable
class DecisionBased(Protocol):
    """An attack that has a decision-based variant."""

    async def moves(self, example: Example, rng: Random) -> Moves:
        """What the attack may do to a text; every random choice comes from `rng`."""


async def search_by_labels(attack: DecisionBased, example: Example, rng: Random) -> Outcome:
    """Look for an adversarial text by the model's labels alone.

    Parameters
    ----------
    attack
        Says what may be changed, and how.
    example
        The text under attack.
    rng
        The source of all random choices.
    """
    moves = await attack.moves(example, rng)
    if moves.allowed == 0:
        return Outcome.failed(NOT_EVEN_ONE)
    order = list(moves.words)
    rng.shuffle(order)
    current = example.text
    for word in order:
        tried = await moves.candidates(current, word)
        if not tried:
            continue
        scores = await Score(tried)
        fooling = next((text for text, score in zip(tried, scores, strict=True) if example.fooled(score)), None)
        if fooling is not None:
            return await _reduced(example, fooling, moves)
        answered = [text for text, score in zip(tried, scores, strict=True) if score.answered]
        current = rng.choice(answered) if answered else current
    return Outcome.failed(EVERY_WORD_TRIED, current)


async def _reduced(example: Example, text: Text, moves: Moves) -> Outcome:
    """A text that fools the model with changes that it cannot do without."""
    await _fall_back_on(text, moves)
    progress = True
    while progress and len(text.edits) > 1:
        progress = False
        for place in _edited(text, moves.repair_articles):
            restored = _undone(text, place, moves.repair_articles)
            if moves.constraint is not None and not await moves.constraint.keep([restored], text, place):
                continue
            if restored.edits and example.fooled((await Score([restored]))[0]):
                text, progress = restored, True
                await _fall_back_on(text, moves)
    if not _within(text, moves):
        return Outcome.failed(f"no success with {moves.allowed} changed words", text)
    return Outcome.found(text)


async def _fall_back_on(text: Text, moves: Moves) -> None:
    """If the query budget ends here, this text is the result, unless too many of its words are changed."""
    if _within(text, moves):
        await Fallback(Outcome.found(text))


def _within(text: Text, moves: Moves) -> bool:
    return moves.allowed is None or len(text.edits) <= moves.allowed


def _edited(text: Text, repair_articles: bool) -> Iterator[int]:
    """Where words were replaced or inserted, from right to left; an article goes with the word behind it."""
    for place in reversed(range(len(text))):
        origin = text.origins[place]
        before = "" if origin is None else text.original.words[origin]
        articles = {before.lower(), text.words[place].lower()} <= {"a", "an"}
        if text.words[place] != before and not (repair_articles and articles):
            yield place


def _undone(text: Text, place: int, repair_articles: bool) -> Text:
    origin = text.origins[place]
    if origin is None:
        return text.delete(place)
    restored = text.replace(place, text.original.words[origin])
    return repaired(restored, text, place) if repair_articles else restored
