"""The searches of a job: every text under every attack, in this process, each result committed as it ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, cast

from stockade.attacks.registry import NamedAttack
from stockade.attacks.trial import Trial, attack_example
from stockade.core.example import PREDICTED, Example, Scores
from stockade.core.pairs import Sides
from stockade.core.protocols import Classifier, ScanningAttack, is_label_only
from stockade.core.records import Record
from stockade.core.seeds import derive_rng
from stockade.core.text import Text
from stockade.datasets.examples import ExampleSet, UnlabelledSet
from stockade.engine.batching import TokenBudget
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import clean_draw, draw_seed
from stockade.engine.scheduler import Finished, Scheduler, Search
from stockade.engine.scoring import Scoring
from stockade.engine.services import innermost
from stockade.experiment.inputs import tuning_memory
from stockade.experiment.progress import Runtime
from stockade.experiment.store import Effort, ResultStore
from stockade.lexicon.neighbours import Neighbours, use_neighbours
from stockade.models.language import LanguageModels
from stockade.workflows.attack.common import SearchRun, unfinished
from stockade.workflows.attack.result import CODEC
from stockade.workflows.attack.spec import AttackSpec

_TEXTS_AT_ONCE = 8
"""Texts after which attacks of a group take turns: a scan fills batches by itself, and the answers to eight texts fit
into the memory for answers.
"""


class AttackEngine:
    """A model with whatever attacks on it need, ready to run searches.

    Parameters
    ----------
    classifier
        The model in its defenses.
    spec, runtime
        What decides the results, and how searches are run.
    queried
        The classifier that the searches query, if it is not the one they want to fool.
    language
        The language models; those of the spec by default.
    """

    def __init__(
        self,
        classifier: Classifier,
        spec: AttackSpec,
        runtime: Runtime,
        *,
        queried: Classifier | None = None,
        language: LanguageModels | None = None,
    ) -> None:
        self._classifier, self._spec, self._queried = classifier, spec, queried
        language = language or spec.language
        filling, embedding = FillingService(language.make_masked_lm), EmbeddingService(language.make_encoder)

        def scoring_of(model: Classifier) -> Scoring:
            budget = TokenBudget(runtime.batch_tokens, tuning_memory(innermost(model)))
            return make_scoring(model, budget, filling=filling, embedding=embedding)

        self.scoring = scoring_of(classifier)
        self.scheduler = Scheduler.for_classifier(
            self.scoring,
            runtime.concurrency,
            view=None if queried is None else scoring_of(queried),
            filling=filling,
            embedding=embedding,
        )

    def record(self, ended: Finished[Any], outcome: tuple[Example, Trial], key: str) -> Record:
        """What is stored of a search that has ended."""
        classifier = self._classifier
        randomised = not classifier.deterministic
        return make_record(key, *outcome, classifier.labels, ended.queries, ended.rows, randomised=randomised)

    def searches(
        self, attack: NamedAttack, items: Iterable[tuple[int, Example]]
    ) -> Iterator[Search[tuple[int, tuple[Example, Trial]]]]:
        """A search for each text, which ends in its position and what came out."""
        return (_search(at, text, self._classifier, self._queried, self._spec, attack) for at, text in items)

    def results(
        self, attack: NamedAttack, items: Iterable[tuple[int, Example]]
    ) -> Iterator[tuple[int, Record, Effort]]:
        """Position and record of each text as its search ends, with what this engine has computed in all.

        Parameters
        ----------
        attack
            Which attack.
        items
            Texts with their positions.
        """
        started = time.perf_counter()
        for ended in self.scheduler.run(self.searches(attack, items)):
            position, outcome = ended.result  # type: ignore[misc]
            effort = Effort(time.perf_counter() - started, self.scoring.model_seconds, self.scoring.rows)
            yield position, self.record(ended, outcome, attack.key), effort


def run_searches(
    store: ResultStore,
    classifier: Classifier,
    examples: ExampleSet | UnlabelledSet,
    spec: AttackSpec,
    runtime: Runtime,
    *,
    queried: Classifier | None = None,
    neighbours: Neighbours | None = None,
    language: LanguageModels | None = None,
) -> None:
    """Attack every example that the store has no result for yet; `language` stands in for the spec's models."""
    engine = AttackEngine(classifier, spec, runtime, queried=queried, language=language)

    def encoded(ended: Finished[Any], outcome: tuple[Example, Trial], key: str) -> tuple[Record, Any]:
        record = engine.record(ended, outcome, key)
        return record, CODEC.encode(record)

    def started(attack: NamedAttack) -> SearchRun[tuple[Example, Trial]]:
        keyed = partial(encoded, key=attack.key)
        return SearchRun(store, engine.scheduler, attack, examples.size, runtime, engine.scoring, keyed)

    with use_neighbours(neighbours):
        for group in work_order(spec.attacks, shared=classifier.deterministic):
            runs = [started(attack) for attack in group]
            at_once = None if len(group) == 1 else _TEXTS_AT_ONCE
            for first, texts in _parts(with_classes(examples, spec.sides), at_once):
                for run in runs:
                    left = unfinished(texts, run.finished, runtime, first=first, spent=run.effort.seconds)
                    run.run(engine.searches(run.attack, left))


def work_order(attacks: Sequence[NamedAttack], *, shared: bool) -> list[list[NamedAttack]]:
    """The attacks in groups: one after the other, but those of a group take turns, some texts at a time.

    Attacks that scan a vocabulary at the same place of a text ask about the same texts. Taking turns, they find each
    other's answers before those have to make room for others. The results, and the order in which they are reported,
    do not depend on it.

    Parameters
    ----------
    attacks
        The attacks as they are reported.
    shared
        Whether answers are kept at all: those of a randomised model are not.
    """
    scans = [attack for attack in attacks if shared and isinstance(attack.attack, ScanningAttack)]
    scans.sort(key=lambda attack: cast("ScanningAttack", attack.attack).scan_order)
    groups = [[attack] for attack in attacks if attack not in scans]
    return [*groups, scans] if scans else groups


def _parts(examples: Iterator[Example], size: int | None) -> Iterator[tuple[int, Iterable[Example]]]:
    """The examples, `size` at a time or all in one go, each part with the position of its first."""
    if size is None:
        yield 0, examples
        return
    first = 0
    while part := list(islice(examples, size)):
        yield first, part
        first += len(part)


def with_classes(examples: ExampleSet | UnlabelledSet, sides: Sides) -> Iterator[Example]:
    """The examples with the words of the sides that are attacked; where there are no labels, the model's prediction
    will be the class.
    """
    if isinstance(examples, ExampleSet):
        yield from (replace(example, text=example.text.with_sides(sides)) for example in examples)
    else:
        yield from (Example(item.id, item.text.with_sides(sides), PREDICTED) for item in examples)


def _search(
    position: int,
    example: Example,
    classifier: Classifier,
    queried: Classifier | None,
    spec: AttackSpec,
    attack: NamedAttack,
) -> Search[tuple[int, tuple[Example, Trial]]]:
    async def trial() -> tuple[int, tuple[Example, Trial]]:
        outcome = await attack_example(
            attack.attack,
            example,
            derive_rng(spec.seed, example.id, attack.name),
            deterministic=classifier.deterministic,
            direct=queried is None,
            goes_on=not (queried or classifier).deterministic,
            max_words=spec.max_words,
            clean_draw=clean_draw(spec.seed, example.id),
            label_only=is_label_only(queried or classifier),
        )
        return position, (example, outcome)

    weight = len(example.text) * len(str(example.text))
    return Search(trial, spec.budget, weight, draw_seed(spec.seed, example.id, attack.name))


def make_record(
    attack: str,
    example: Example,
    trial: Trial,
    labels: tuple[str, ...],
    queries: int,
    rows: int,
    *,
    randomised: bool = False,
) -> Record:
    """What is stored of a trial.

    Parameters
    ----------
    attack, example, trial
        The name of the attack in the run, the text, and what came of it.
    labels
        The classes of the model.
    queries, rows
        What the search used.
    randomised
        Whether the model is: then both rules of success are recorded.
    """

    def predicted(scores: Scores | None) -> str | None:
        return None if scores is None else labels[scores.label]

    adversarial, premise = trial.text, example.text.premise
    attempt = trial.last_attempt if trial.last_attempt is not None and trial.last_attempt.edits else None
    return Record(
        id=example.id,
        attack=attack,
        status=trial.status,
        reason=trial.reason,
        label=(predicted(trial.clean) or "") if example.label == PREDICTED else labels[example.label],
        original=example.text.hypothesis,
        adversarial=None if adversarial is None else adversarial.hypothesis,
        original_prediction=predicted(trial.clean),
        adversarial_prediction=predicted(trial.scores),
        original_scores=None if trial.clean is None else trial.clean.probabilities,
        adversarial_scores=None if trial.scores is None else trial.scores.probabilities,
        queries=queries,
        rows=rows,
        edits=() if adversarial is None else adversarial.edits,
        perturbed_percent=None if adversarial is None else adversarial.perturbed_percent,
        premise=premise,
        hit_rate=None if trial.repetition is None else trial.repetition.hit_rate,
        flip_share=trial.flip_share,
        tried=trial.tried,
        failed_queries=trial.failed_queries,
        truncated_words=trial.truncated_words,
        adversarial_premise=_edited_premise(adversarial, premise),
        last_attempt=None if attempt is None else attempt.hypothesis,
        last_attempt_premise=_edited_premise(attempt, premise),
        decision_based=trial.decision_based,
        **(_both_rules(trial, queries, premise) if randomised and trial.status in ("success", "failed") else {}),
    )


def _edited_premise(text: Text | None, premise: str | None) -> str | None:
    return None if text is None or text.premise == premise else text.premise


def _both_rules(trial: Trial, queries: int, premise: str | None) -> dict[str, Any]:
    """What is stored of a text that a randomised model was attacked on: draws and hits, and the first flip."""
    tally, flip = trial.repetition and trial.repetition.tally, trial.first_flip
    return {
        "hits": tally and tally.hits,
        "draws": tally and tally.draws,
        "dismissed": trial.dismissed,
        "first_flip": flip is not None,
        "first_flip_text": flip and flip.text.hypothesis,
        "first_flip_premise": flip and _edited_premise(flip.text, premise),
        "first_flip_query": flip and flip.query,
        "first_flip_queries": flip.queries if flip else queries,
    }
