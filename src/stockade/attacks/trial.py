"""One example under one attack, from the clean prediction to the confirmed result."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from random import Random
from typing import cast

from stockade.attacks.decision import DecisionBased, search_by_labels
from stockade.attacks.watch import Watch
from stockade.core.attacked_translation import TranslationExample
from stockade.core.errors import SearchStopped, StockadeError
from stockade.core.example import PREDICTED, Example, Scores
from stockade.core.protocols import Attack
from stockade.core.records import Outcome, Status
from stockade.core.text import Text
from stockade.engine.requests import Confirm, Draw, Score, VisibleWords

DRAWS = 20
"""How often a randomised model is asked again about a text that a search returns."""
NOT_CONFIRMED = "the text found did not fool the model when it was asked again"
HIT_RATE = 0.5
"""The share of those answers that must be fooled for a success."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of attacking one example.

    Parameters
    ----------
    status : {"success", "failed", "skipped", "error"}
        `skipped` means that the model is wrong on the clean text.
    reason : str, optional
        Why there is no success.
    clean : Scores, optional
        What the model says of the clean text.
    text, scores : optional
        The adversarial text, and what the model says of it.
    hit_rate : float, optional
        For a randomised model: the share of answers to the adversarial text that are fooled.
    truncated_words : int
        How many words the model read before the edits and no longer reads.
    flip_share : float, optional
        For attacks that only draw at random: the share of their draws that fool the model.
    tried : int
        How many candidates the search scored.
    failed_queries : int
        How many of its queries the model failed on.
    decision_based : bool
        Whether the search followed labels alone, because the model has no scores.
    """

    status: Status
    reason: str | None = None
    clean: Scores | None = None
    _: KW_ONLY
    text: Text | None = None
    scores: Scores | None = None
    hit_rate: float | None = None
    truncated_words: int = 0
    flip_share: float | None = None
    tried: int = 0
    failed_queries: int = 0
    decision_based: bool = False


async def attack_example(
    attack: Attack,
    example: Example,
    rng: Random,
    *,
    deterministic: bool = True,
    max_words: int | None = None,
    clean_draw: Draw | None = None,
    label_only: bool = False,
) -> Trial:
    """Attack one example and confirm the result.

    What the model gets wrong anyway is skipped; of a text without a label the model's own prediction is attacked. A
    success counts only when the model, asked again about that text alone, is fooled again.

    Parameters
    ----------
    attack : Attack
        The search.
    example : Example
        The text under attack.
    rng : Random
        The source of the search's random choices.
    deterministic : bool
        Whether the model answers the same text the same; if not, it is asked 20 times for the confirmation.
    max_words : int, optional
        Texts of more words are recorded as errors.
    clean_draw : Draw, optional
        Names the random choices of the answer to the clean text.
    label_only : bool
        Whether the model has no scores: an attack that has a decision-based variant then uses it.
    """
    if max_words is not None and len(example.text) > max_words:
        return Trial("error", f"the text has {len(example.text):,} words, more than the limit of {max_words:,}")
    try:
        clean = (await Score([example.text], counted=False, draw=clean_draw))[0]
    except SearchStopped as stopped:
        return Trial("error", str(stopped))
    if example.label == PREDICTED:
        example = replace(example, label=clean.label)
    if clean.label != example.label:
        return Trial("skipped", "the model is wrong on the clean text", clean)
    if not example.text.words:
        return Trial("failed", "the text has no words", clean)
    try:
        visible = await VisibleWords(example.text)
    except SearchStopped as stopped:
        return Trial("error", str(stopped), clean)
    if not visible:
        return Trial("failed", "the model reads no word of the text", clean)
    example = example if len(visible) == len(example.text) else replace(example, visible=visible)
    by_labels = label_only and isinstance(attack, DecisionBased)
    search = (
        attack.search(example, rng) if not by_labels else search_by_labels(cast(DecisionBased, attack), example, rng)
    )
    watch = Watch(search)
    trial = await _searched(example, watch, clean, 1 if deterministic else DRAWS)
    return replace(trial, tried=watch.tried, failed_queries=watch.failed, decision_based=by_labels)


async def _searched(example: Example, watch: Watch, clean: Scores, draws: int) -> Trial:
    try:
        outcome = await watch.outcome()
        trial = await _confirmed(example, outcome, clean, draws)
        return replace(trial, flip_share=outcome.flip_share)
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
    if rate < HIT_RATE or not fooled:
        return Trial("failed", NOT_CONFIRMED, clean, hit_rate=hit_rate)
    truncated_words = words_lost(example, outcome.text, await VisibleWords(outcome.text))
    return Trial(
        "success",
        clean=clean,
        text=outcome.text,
        scores=fooled[0],
        hit_rate=hit_rate,
        truncated_words=truncated_words,
    )


def words_lost(example: Example | TranslationExample, text: Text, visible: range) -> int:
    """How many words of the original are still in the text but no longer visible to the model, as they were before."""
    visible_origins = {origin for at, origin in enumerate(text.origins) if at in visible}
    origins = set(text.origins)
    return sum(1 for origin in example.indices if origin in origins and origin not in visible_origins)
