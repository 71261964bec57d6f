"""One example under one attack, from the clean prediction to the confirmed result.

A randomised model is attacked under two rules, which are both kept:

    repeatable   the text fools the model in at least half of its answers (`repeatability.py`): the trial's status
    first flip   one wrong answer is enough, as in the papers: the search ends with the first text that it saw fool
                 the model once

What the search returns first is its first flip. If it does not repeat, the search goes on as if that text had not
fooled the model, as long as it has queries left; so both rules speak of one search, and only its first part is the
published attack.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from random import Random
from typing import Any, cast

from stockade.attacks import repeatability
from stockade.attacks.decision import DecisionBased, search_by_labels
from stockade.attacks.repeatability import Repetition, not_fooled, repeat
from stockade.attacks.watch import Watch
from stockade.core.attacked_translation import TranslationExample
from stockade.core.errors import SearchStopped, StockadeError
from stockade.core.example import PREDICTED, Example, Scores
from stockade.core.protocols import Attack
from stockade.core.records import Outcome, Status
from stockade.core.text import Text
from stockade.engine.requests import Confirm, Draw, Score, VisibleWords

NOT_CONFIRMED = "the text found did not fool the model when it was asked again"
MOST_DISMISSED = 100
"""After so many texts that fooled a randomised model and did not repeat, a search is given up: it follows noise."""
CONFIRMATION = {
    "test": "sequential",
    "not_repeatable": repeatability.NOT_REPEATABLE,
    "repeatable": repeatability.REPEATABLE,
    "error": repeatability.ERROR,
    "most_draws": repeatability.MOST_DRAWS,
    "most_dismissed": MOST_DISMISSED,
}
"""How a success against a randomised model is confirmed, as manifests record it."""


@dataclass(frozen=True, slots=True)
class FirstFlip:
    """The first text that a search saw fool a randomised model: a success as the papers count it.

    Parameters
    ----------
    text : Text
        The text.
    query : int, optional
        The number of the query that it fooled; None if it fooled the model only when it was sent to it afterwards,
        because the search had queried another one.
    queries : int
        How many queries the search had used by then.
    """

    text: Text
    query: int | None
    queries: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of attacking one example.

    Parameters
    ----------
    status : {"success", "failed", "skipped", "error"}
        `skipped` means that the model is wrong on the clean text. A success fools a randomised model repeatedly.
    reason : str, optional
        Why there is no success.
    clean : Scores, optional
        What the model says of the clean text.
    text, scores : optional
        The adversarial text, and what the model says of it.
    repetition : Repetition, optional
        For a randomised model: its answers to the adversarial text or, if there is none, to the text that was found
        and fooled it most often.
    first_flip : FirstFlip, optional
        For a randomised model: what the papers would count as a success.
    dismissed : int
        How many texts fooled a randomised model and did not repeat.
    truncated_words : int
        How many words the model read before the edits and no longer reads.
    flip_share : float, optional
        For attacks that only draw at random: the share of their draws that fool the model.
    tried : int
        How many candidates the search scored.
    failed_queries : int
        How many of its queries the model failed on.
    last_attempt : Text, optional
        What a search that failed had made of the text.
    decision_based : bool
        Whether the search followed labels alone, because the model has no scores.
    """

    status: Status
    reason: str | None = None
    clean: Scores | None = None
    _: KW_ONLY
    text: Text | None = None
    scores: Scores | None = None
    repetition: Repetition | None = None
    first_flip: FirstFlip | None = None
    dismissed: int = 0
    truncated_words: int = 0
    flip_share: float | None = None
    tried: int = 0
    failed_queries: int = 0
    last_attempt: Text | None = None
    decision_based: bool = False


async def attack_example(
    attack: Attack,
    example: Example,
    rng: Random,
    *,
    deterministic: bool = True,
    direct: bool = True,
    goes_on: bool = True,
    max_words: int | None = None,
    clean_draw: Draw | None = None,
    label_only: bool = False,
) -> Trial:
    """Attack one example and confirm the result.

    What the model gets wrong anyway is skipped; of a text without a label the model's own prediction is attacked. A
    success counts only when the model, asked again about that text alone, is fooled again; one that is randomised, at
    least half of the time.

    Parameters
    ----------
    attack : Attack
        The search.
    example : Example
        The text under attack.
    rng : Random
        The source of the search's random choices.
    deterministic : bool
        Whether the model answers the same text the same.
    direct : bool
        Whether the queries of the search are answered by that model, so that a flip that it sees is one of the model.
    goes_on : bool
        Whether the search goes on after a text that does not fool a randomised model repeatedly; off where it queries
        one that would always answer the same.
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

    def search() -> Coroutine[Any, Any, Outcome]:
        """The search, from its beginning each time."""
        if by_labels:
            return search_by_labels(cast(DecisionBased, attack), example, copy(rng))
        return attack.search(example, copy(rng))

    watch = Watch(search, None if deterministic else example.fooled)
    try:
        if deterministic:
            trial = await _confirmed(example, watch, clean)
        else:
            trial = await _repeated(example, watch, clean, direct=direct, goes_on=goes_on)
    except SearchStopped as stopped:
        trial = Trial("error", str(stopped), clean)
    except StockadeError:
        raise
    except Exception as error:  # a fault in one search must not cost the others
        trial = Trial("error", f"the attack raised {type(error).__name__}: {error}", clean)
    return replace(trial, tried=watch.tried, failed_queries=watch.failed, decision_based=by_labels)


async def _confirmed(example: Example, watch: Watch, clean: Scores) -> Trial:
    """What the search finds, if it fools the model once more."""
    outcome = await watch.outcome()
    trial = Trial("failed", outcome.reason, clean, flip_share=outcome.flip_share)
    if not outcome.is_found or outcome.text is None:
        return replace(trial, last_attempt=outcome.text)
    (scores,) = await Confirm(outcome.text)
    if not example.fooled(scores):
        return replace(trial, reason=NOT_CONFIRMED, last_attempt=outcome.text)
    return await _success(trial, example, outcome.text, scores)


async def _repeated(example: Example, watch: Watch, clean: Scores, *, direct: bool, goes_on: bool) -> Trial:
    """What the search finds that fools a randomised model at least half of the time; it goes on until it has that."""
    outcome = await watch.outcome()
    trial = Trial("failed", outcome.reason, clean, flip_share=outcome.flip_share, last_attempt=outcome.text)
    while outcome.is_found and outcome.text is not None and not watch.is_dismissed(outcome.text):
        repetition = await repeat(example, outcome.text)
        if not trial.dismissed:
            trial = replace(trial, first_flip=_first_flip(example, watch, repetition, direct))
        if repetition.tally.repeatable:
            flip = trial.first_flip or FirstFlip(outcome.text, None, watch.queries)
            scores = next(filter(example.fooled, repetition.answers))
            trial = replace(trial, repetition=repetition, first_flip=flip)
            return await _success(trial, example, outcome.text, scores)
        most = max(filter(None, (trial.repetition, repetition)), key=lambda each: each.hit_rate)
        trial = replace(trial, repetition=most, dismissed=trial.dismissed + 1, last_attempt=outcome.text)
        if not goes_on:
            return replace(trial, reason=NOT_CONFIRMED)
        if trial.dismissed == MOST_DISMISSED:
            return replace(trial, reason=_not_repeated(trial.dismissed, "the search was given up"))
        watch.dismiss(outcome.text, not_fooled(example, repetition))
        outcome = await watch.outcome()
    if not trial.dismissed:
        return trial
    return replace(trial, reason=_not_repeated(trial.dismissed, outcome.reason or "the search found nothing else"))


def _first_flip(example: Example, watch: Watch, repetition: Repetition, direct: bool) -> FirstFlip | None:
    """The first text that the search returns, if one wrong answer of the model is enough: an answer that the search saw
    or, if it has queried something else, the first that the model gives when the text is sent to it.
    """
    query = watch.flip(repetition.text) if direct else None
    if query is None and not example.fooled(repetition.answers[0]):
        return None
    return FirstFlip(repetition.text, query, watch.queries)


def _not_repeated(dismissed: int, reason: str) -> str:
    texts = "1 text fooled" if dismissed == 1 else f"{dismissed} texts fooled"
    return f"{texts} the model once, but not half of the time; then: {reason}"


async def _success(trial: Trial, example: Example, text: Text, scores: Scores) -> Trial:
    truncated_words = words_lost(example, text, await VisibleWords(text))
    found = replace(trial, status="success", reason=None, text=text, scores=scores, last_attempt=None)
    return replace(found, truncated_words=truncated_words)


def words_lost(example: Example | TranslationExample, text: Text, visible: Sequence[int]) -> int:
    """How many words of the original are still in the text but no longer visible to the model, as they were before."""
    visible_origins = {text.origins[at] for at in visible}
    origins = set(text.origins)
    return sum(1 for origin in example.indices if origin in origins and origin not in visible_origins)
