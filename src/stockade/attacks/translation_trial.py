"""One sentence under one attack on a translator, from the clean translation to the confirmed result."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from random import Random

from stockade.attacks.trial import words_lost
from stockade.core.attacked_translation import Goal, TranslationAttack, TranslationExample
from stockade.core.errors import BudgetExhausted, SearchStopped, StockadeError
from stockade.core.records import Outcome, Status
from stockade.core.text import Text
from stockade.core.translation import ZeroableSource
from stockade.engine.requests import VisibleWords
from stockade.engine.translation_requests import Retranslate, Translate

DRAWS = 20
"""How often a randomised translator is asked again about a source that a search returns."""
HIT_RATE = 0.5
"""The share of those translations that must reach the goal for a success."""


@dataclass(frozen=True, slots=True)
class TranslationTrial:
    """What came of attacking one sentence.

    Parameters
    ----------
    status : {"success", "failed", "skipped", "error"}
        `skipped` means that the unchanged source reaches the goal already, or that there is none.
    reason : str, optional
        Why there is no success.
    translation : str, optional
        The translation of the unchanged source.
    goal : Goal, optional
        What was wanted.
    text, adversarial_translation : optional
        The source that the attack ends with, if it is another, and its translation.
    hit_rate : float, optional
        For a randomised translator: the share of fresh translations that reach the goal.
    truncated_words : int
        How many words the model read before the edits and no longer reads.
    """

    status: Status
    reason: str | None = None
    translation: str | None = None
    _: KW_ONLY
    goal: Goal | None = None
    text: Text | None = None
    adversarial_translation: str | None = None
    hit_rate: float | None = None
    truncated_words: int = 0


async def attack_translation(
    attack: TranslationAttack,
    example: TranslationExample,
    rng: Random,
    *,
    deterministic: bool = True,
    max_words: int | None = None,
) -> TranslationTrial:
    """Attack one sentence and confirm the result: a success counts only when the model, given that source alone,
    translates it as the attacker wants.

    Parameters
    ----------
    attack : TranslationAttack
        The search.
    example : TranslationExample
        The sentence under attack.
    rng : Random
        The source of the search's random choices.
    deterministic : bool
        Whether the model translates the same source the same; if not, it is asked 20 times for the confirmation.
    max_words : int, optional
        Sources of more words are recorded as errors.
    """
    if max_words is not None and len(example.text) > max_words:
        return TranslationTrial(
            "error", f"the source has {len(example.text):,} words, more than the limit of {max_words:,}"
        )
    try:
        (translation,) = await Translate([ZeroableSource(example.text)], counted=False)
    except SearchStopped as stopped:
        return TranslationTrial("error", str(stopped))
    if not example.text.words:
        return TranslationTrial("failed", "the source has no words", translation)
    goal: Goal | None = None
    try:
        visible = await VisibleWords(example.text)
        if not visible:
            return TranslationTrial("failed", "the model reads no word of the source", translation)
        example = replace(
            example, translation=translation, visible=None if len(visible) == len(example.text) else visible
        )
        goal = attack.goal_for(example, rng)
        if goal is None:
            return TranslationTrial("skipped", "no keyword could be drawn for it", translation)
        if goal.reached(translation):
            return TranslationTrial("skipped", goal.unchanged, translation, goal=goal)
        example = replace(example, goal=goal)
        outcome = await attack.search(example, rng)
        return await _confirmed(example, goal, outcome, 1 if deterministic else DRAWS)
    except BudgetExhausted as stopped:
        return TranslationTrial("failed", str(stopped), translation, goal=goal)
    except SearchStopped as stopped:
        return TranslationTrial("error", str(stopped), translation, goal=goal)
    except StockadeError:
        raise
    except Exception as error:  # a fault in one search must not cost the others
        return TranslationTrial("error", f"the attack raised {type(error).__name__}: {error}", translation, goal=goal)


async def _confirmed(example: TranslationExample, goal: Goal, outcome: Outcome, draws: int) -> TranslationTrial:
    if outcome.text is None or outcome.text == example.text:
        return TranslationTrial("failed", outcome.reason, example.translation, goal=goal)
    translations = await Retranslate(outcome.text, draws)
    reached = [translation for translation in translations if goal.reached(translation)]
    rate = len(reached) / draws
    succeeded = bool(reached) and rate >= HIT_RATE
    reason = outcome.reason or "the translation is not as wanted when the model is asked again"
    return TranslationTrial(
        "success" if succeeded else "failed",
        None if succeeded else reason,
        example.translation,
        goal=goal,
        text=outcome.text,
        adversarial_translation=reached[0] if succeeded else translations[0],
        hit_rate=rate if draws > 1 else None,
        truncated_words=words_lost(example, outcome.text, await VisibleWords(outcome.text)),
    )
