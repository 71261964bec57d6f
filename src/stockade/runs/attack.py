"""Runs attacks over examples into a run folder: the way of the data from search to store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade.attacks.registry import NamedAttack
from stockade.attacks.trial import Trial, attack_example
from stockade.core.errors import ModelError, OptionError
from stockade.core.example import Example, Scores
from stockade.core.protocols import Classifier, Fingerprinted
from stockade.core.records import Record
from stockade.core.seeds import derive_rng, derive_seed
from stockade.core.text import TextInput
from stockade.datasets.examples import ExampleSet
from stockade.defenses.defended import defenses_of, remarks_on
from stockade.engine.batching import TokenBudget, TuningMemory
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import clean_draw
from stockade.engine.scheduler import Scheduler, Search, innermost
from stockade.engine.scoring import Scoring
from stockade.lexicon.neighbours import Neighbours, use_neighbours
from stockade.models.language import LanguageModels
from stockade.runs.store import Effort, Store

DEFAULT_LANGUAGE = LanguageModels()


@dataclass(frozen=True, slots=True)
class AttackSettings:
    """How to attack; every field but the last three decides the results and is recorded in the manifest."""

    attacks: tuple[NamedAttack, ...]
    seed: int = 0
    budget: int | None = None
    max_words: int = 5_000
    concurrency: int = 64
    batch_tokens: int | None = None
    seconds: float | None = None
    """A time box for each attack: no search is started after it."""

    def __post_init__(self) -> None:
        if not self.attacks:
            raise OptionError("No attack was named. List them with: stockade ls attacks")
        keys = [named.key for named in self.attacks]
        if len(set(keys)) < len(keys):
            raise OptionError(
                f"An attack is named twice: {', '.join(keys)}. Write presets with the name, as in pwws@textattack."
            )
        for name in ("budget", "concurrency", "max_words", "batch_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"{name.replace('_', '-')} must be at least 1, not {value}.")


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands, for whoever watches it: the attack (or method) at work, and what came of its last text."""

    attack: str
    status: str
    done: int
    total: int


Observer = Callable[[Progress], None]


def check_answers(classifier: Classifier, item: TextInput) -> None:
    """Ask the model about one text of the data, so that a model of the wrong shape ends the command and not every
    single example.

    A model that does not know its classes yet learns them here, from a text of the right kind.
    """
    try:
        answer = classifier.predict_proba([item])
    except ModelError:
        raise
    except Exception:  # one text the model cannot take is recorded with that text, by the engine
        return
    if answer.shape != (1, len(classifier.labels)):
        raise ModelError(
            f"The model answered one text with an array of shape {answer.shape}; expected one row with "
            f"a probability for each of {', '.join(classifier.labels)}."
        )


def run_attacks(
    classifier: Classifier,
    examples: ExampleSet,
    settings: AttackSettings,
    folder: Path,
    observer: Observer | None = None,
    language: LanguageModels = DEFAULT_LANGUAGE,
    neighbours: Neighbours | None = None,
    through: Classifier | None = None,
) -> None:
    """Attack every example that the run has no result for yet; each result is committed as it is found.

    `through` is the classifier that the searches see, if it is not the one they want to fool. `neighbours` is the table
    of word neighbours that attacks find; None is the one that comes with the package.
    """
    filling, embedding = FillingService(language.make_masked_lm), EmbeddingService(language.make_encoder)

    def scoring_with(model: Classifier) -> Scoring:
        budget = TokenBudget(settings.batch_tokens, tuning_memory(innermost(model)))
        return make_scoring(model, budget, filling=filling, embedding=embedding)

    scoring = scoring_with(classifier)
    seen = None if through is None else scoring_with(through)
    scheduler = Scheduler.for_classifier(
        scoring, settings.concurrency, through=seen, filling=filling, embedding=embedding
    )
    with Store(folder, writable=True) as store, use_neighbours(neighbours):
        part = store.next_part()
        for named in settings.attacks:
            finished = store.finished_ids(named.key)
            watch = _Watch(scoring)
            searches = _searches(classifier, examples, settings, named, finished)
            done = len(finished)
            for ended in scheduler.run(searches):
                position, example, trial = ended.result  # type: ignore[misc]
                record = make_record(named.key, example, trial, classifier.labels, ended.queries, ended.rows)
                store.add(record, position, part, watch.effort())
                done += 1
                if observer is not None:
                    observer(Progress(named.key, record.status, done, examples.size))


def _searches(
    classifier: Classifier, examples: ExampleSet, settings: AttackSettings, named: NamedAttack, finished: set[str]
) -> Iterator[Search[tuple[int, Example, Trial]]]:
    started = time.monotonic()
    for position, example in enumerate(examples):
        if settings.seconds is not None and time.monotonic() - started > settings.seconds:
            return
        if example.id not in finished:
            yield _search(position, example, classifier.deterministic, settings, named)


def _search(
    position: int, example: Example, deterministic: bool, settings: AttackSettings, named: NamedAttack
) -> Search[tuple[int, Example, Trial]]:
    async def trial() -> tuple[int, Example, Trial]:
        rng = derive_rng(settings.seed, example.id, named.name)
        result = await attack_example(
            named.attack,
            example,
            rng,
            deterministic=deterministic,
            max_words=settings.max_words,
            clean_draw=clean_draw(settings.seed, example.id),
        )
        return position, example, result

    weight = len(example.text) * len(str(example.text))
    draws = derive_seed(settings.seed, example.id, named.name, "draws")
    return Search(trial, settings.budget, weight, draws)


def make_record(
    attack: str, example: Example, trial: Trial, labels: tuple[str, ...], queries: int, rows: int
) -> Record:
    """What is kept of a trial."""

    def name(scores: Scores | None) -> str | None:
        return None if scores is None else labels[scores.label]

    adversarial = trial.text
    return Record(
        id=example.id,
        attack=attack,
        status=trial.status,
        reason=trial.reason,
        label=labels[example.label],
        original=str(example.text),
        adversarial=None if adversarial is None else str(adversarial),
        original_prediction=name(trial.clean),
        adversarial_prediction=name(trial.scores),
        original_scores=None if trial.clean is None else trial.clean.probabilities,
        adversarial_scores=None if trial.scores is None else trial.scores.probabilities,
        queries=queries,
        rows=rows,
        edits=() if adversarial is None else adversarial.edits,
        perturbed_percent=None if adversarial is None else adversarial.perturbed_percent,
        premise=example.text.premise,
        hit_rate=trial.hit_rate,
        flip_share=trial.flip_share,
        truncated_words=trial.truncated_words,
    )


def tuning_memory(classifier: Classifier) -> TuningMemory | None:
    """Where the best batch size of this model on this device is remembered."""
    if not isinstance(classifier, Fingerprinted):
        return None
    return TuningMemory(f"{classifier.fingerprint()}|{getattr(classifier, 'device', 'cpu')}")


def describe_model(reference: str, classifier: Classifier) -> dict[str, Any]:
    """What the manifest says of the model."""
    fingerprint = classifier.fingerprint() if isinstance(classifier, Fingerprinted) else None
    described = {
        "reference": reference,
        "labels": list(classifier.labels),
        "deterministic": classifier.deterministic,
        "fingerprint": fingerprint,
    }
    defenses, remarks = defenses_of(classifier), remarks_on(classifier)
    return {
        **described,
        **({"defenses": defenses} if defenses else {}),
        **({"remarks": remarks} if remarks else {}),
    }


class _Watch:
    """What one attack has cost since it began."""

    def __init__(self, scoring: Scoring) -> None:
        self._scoring, self._started = scoring, time.perf_counter()
        self._model_seconds, self._rows = scoring.model_seconds, scoring.rows

    def effort(self) -> Effort:
        return Effort(
            time.perf_counter() - self._started,
            self._scoring.model_seconds - self._model_seconds,
            self._scoring.rows - self._rows,
        )
