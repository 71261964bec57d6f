"""One example under one attack, from the clean prediction to the confirmed result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from stockade.core.errors import BudgetExhausted, SearchStopped, StockadeError
from stockade.core.example import Example, Scores
from stockade.core.protocols import Attack
from stockade.core.records import Outcome, Status
from stockade.core.text import Text
from stockade.engine.requests import Confirm, Draw, Score, VisibleWords

DRAWS = 20
"""How often a randomised model is asked again about a text that is said to fool it."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of attacking one example."""

    status: Status
    reason: str | None = None
    clean: Scores | None = None
    text: Text | None = None
    scores: Scores | None = None
    hit_rate: float | None = None
    truncated_words: int = 0
    """How many words the model read before the edits and no longer reads."""
    flip_share: float | None = None


async def attack_example(
    attack: Attack,
    example: Example,
    rng: Random,
    *,
    deterministic: bool = True,
    max_words: int | None = None,
    clean_draw: Draw | None = None,
) -> Trial:
    """Skip what the model gets wrong anyway, search, and believe a success only when the model, asked anew, is fooled
    again. `clean_draw` names the random choices of the answer to the clean text.
    """
    if max_words is not None and len(example.text) > max_words:
        return Trial("error", f"the text has {len(example.text):,} words, more than the limit of {max_words:,}")
    try:
        clean = (await Score([example.text], counted=False, draw=clean_draw))[0]
    except SearchStopped as stopped:
        return Trial("error", str(stopped))
    if clean.label != example.label:
        return Trial("skipped", "the model is wrong on the clean text", clean)
    if not example.text.words:
        return Trial("failed", "the text has no words", clean)
    try:
        visible = await VisibleWords(example.text)
        if not visible:
            return Trial("failed", "the model reads no word of the text", clean)
        example = example if len(visible) == len(example.text) else replace(example, visible=visible)
        outcome = await attack.search(example, rng)
        trial = await _confirmed(example, outcome, clean, 1 if deterministic else DRAWS)
        return replace(trial, flip_share=outcome.flip_share)
    except BudgetExhausted as stopped:
        return Trial("failed", str(stopped), clean)
    except SearchStopped as stopped:
        return Trial("error", str(stopped), clean)
    except StockadeError:
        raise
    except Exception as error:  # a fault in one search must not cost the others
        return Trial("error", f"the attack raised {type(error).__name__}: {error}", clean)


async def _confirmed(example: Example, outcome: Outcome, clean: Scores, draws: int) -> Trial:
    if not outcome.is_found or outcome.text is None:
        return Trial("failed", outcome.reason, clean)
    answers = await Confirm(outcome.text, draws)
    fooled = [scores for scores in answers if example.fooled(scores)]
    rate = len(fooled) / draws
    hit_rate = rate if draws > 1 else None
    if rate < 0.5 or not fooled:
        return Trial(
            "failed", "the text found did not fool the model when it was asked again", clean, hit_rate=hit_rate
        )
    truncated_words = words_lost(example, outcome.text, await VisibleWords(outcome.text))
    return Trial("success", None, clean, outcome.text, fooled[0], hit_rate, truncated_words)


def words_lost(example: Example, text: Text, visible: range) -> int:
    """How many words of the original the model read before, that are still there and that it reads no more: pushed out
    of its window by longer ones.
    """
    still = {origin for at, origin in enumerate(text.origins) if at in visible}
    there = set(text.origins)
    return sum(1 for origin in example.indices if origin in there and origin not in still)
