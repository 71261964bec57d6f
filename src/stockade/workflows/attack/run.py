"""The way of the data from search to store: every example under every attack, each result committed as it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from stockade.attacks.registry import NamedAttack
from stockade.attacks.trial import CONFIRMATION, Trial, attack_example
from stockade.core.errors import ModelError, OptionError, RunError, unknown_name
from stockade.core.example import PREDICTED, Example, Scores
from stockade.core.pairs import Sides
from stockade.core.protocols import ClassBoundAttack, Classifier, ScanningAttack
from stockade.core.records import Record
from stockade.core.seeds import derive_rng
from stockade.core.text import Text
from stockade.datasets.examples import ExampleSet, UnlabelledExample, UnlabelledSet, prepare_texts
from stockade.engine.batching import TokenBudget
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import clean_draw, draw_seed
from stockade.engine.scheduler import Finished, Scheduler, Search
from stockade.engine.scoring import Scoring
from stockade.engine.services import innermost
from stockade.experiment.inputs import describe_data, describe_model, reference_of, tuning_memory, unsteady_answers
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.progress import Runtime
from stockade.experiment.result import Workflow
from stockade.experiment.store import ResultStore
from stockade.experiment.workspace import MANIFEST, begin, read_manifest
from stockade.lexicon.neighbours import Neighbours, read_neighbours, use_neighbours
from stockade.models.language import LanguageModels
from stockade.models.translation.load import is_translator
from stockade.workflows.attack.common import SearchRun, measure_similarities, unfinished
from stockade.workflows.attack.result import CODEC, AttackResult
from stockade.workflows.attack.spec import AttackSpec
from stockade.workflows.attack.summary import ASKED_TWICE

_TEXTS_AT_ONCE = 8
"""Texts after which attacks of a group take turns: a scan fills batches by itself, and the answers to eight texts fit
into the memory for answers.
"""


def run(spec: AttackSpec, folder: Path, runtime: Runtime, resume: bool) -> AttackResult:
    """Load the model and the data, then attack."""
    if spec.view is not None:
        raise RunError(f"{folder} is a cell of an evaluation. Resume the evaluation that it is part of.")
    neighbours = None if spec.neighbours is None else read_neighbours(spec.neighbours)
    spec.language.check()
    if is_translator(spec.model):
        raise ModelError(
            f"{reference_of(spec.model)} is a translator, and {spec.attacks[0].key} attacks classifiers. Choose "
            "attacks for translators, such as mt-keyword (stockade ls attacks)."
        )
    data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed, needs_labels=not spec.unlabelled)
    models = ModelPool({"": spec.model}, spec.model_options, language=spec.language)
    classifier = models.defended("", spec.defenses, seed=spec.seed)
    data.check_answers(classifier)
    examples: ExampleSet | UnlabelledSet
    if spec.unlabelled:
        examples = prepare_texts(data.source(), limit=spec.limit, seed=spec.seed)
    else:
        examples = data.examples(classifier.labels, target=_class_index(classifier, spec.targeted))
    return attack_examples(spec, folder, runtime, resume, classifier, examples, neighbours=neighbours)


def attack_examples(
    spec: AttackSpec,
    folder: Path,
    runtime: Runtime,
    resume: bool,
    classifier: Classifier,
    examples: ExampleSet | UnlabelledSet,
    *,
    queried: Classifier | None = None,
    neighbours: Neighbours | None = None,
) -> AttackResult:
    """Attack examples that are loaded already.

    Parameters
    ----------
    spec
        What decides the results; its model and data are those that were loaded.
    folder, runtime, resume
        Where and how the job is run.
    classifier, examples
        The model in its defenses, and the texts with its classes, or without any.
    queried
        The classifier that the searches query, if it is not the one they want to fool.
    neighbours
        The table of word neighbours that attacks use; None is the one that comes with the package.
    """
    check_paired(spec.sides, (item.text for item in cast("Iterable[Example | UnlabelledExample]", examples)))
    unsteady = _unsteady(folder, resume, classifier, examples)
    inputs = {
        "model": {**describe_model(spec.model, classifier), **({"unsteady": unsteady} if unsteady else {})},
        "data": describe_data(spec.data, examples),
        "neighbours": None if neighbours is None else neighbours.fingerprint(),
        **({} if classifier.deterministic else {"confirmation": CONFIRMATION}),
    }
    labelled = isinstance(examples, ExampleSet)
    present = [name for name in classifier.labels if not labelled or examples.label_counts[name]]
    for attack in spec.attacks:
        if isinstance(attack.attack, ClassBoundAttack):
            attack.attack.check_classes(classifier.labels, present)
    with begin(folder, spec, inputs, resume=resume) as workspace:
        result = AttackResult.of(workspace)
        try:
            run_searches(workspace.store, classifier, examples, spec, runtime, queried=queried, neighbours=neighbours)
            if spec.similarity:
                measure_similarities(workspace.store, spec.attacks, CODEC, spec.language)
        finally:
            result.write_summary()
    return result


def check_paired(sides: Sides, texts: Iterable[Text]) -> None:
    """Refuse to attack a side that single texts do not have."""
    first = next(iter(texts), None)
    if sides != "hypothesis" and first is not None and first.pair is None:
        raise OptionError(
            f"--sides {sides} is for pairs, and the data are single texts. Leave it out, or name the column of the "
            "premise with --premise-column."
        )


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
    language = language or spec.language
    filling, embedding = FillingService(language.make_masked_lm), EmbeddingService(language.make_encoder)

    def scoring_of(model: Classifier) -> Scoring:
        budget = TokenBudget(runtime.batch_tokens, tuning_memory(innermost(model)))
        return make_scoring(model, budget, filling=filling, embedding=embedding)

    scoring = scoring_of(classifier)
    scheduler = Scheduler.for_classifier(
        scoring,
        runtime.concurrency,
        view=None if queried is None else scoring_of(queried),
        filling=filling,
        embedding=embedding,
    )

    def encoded(ended: Finished[Any], outcome: tuple[Example, Trial], key: str) -> tuple[Record, Any]:
        randomised = not classifier.deterministic
        record = make_record(key, *outcome, classifier.labels, ended.queries, ended.rows, randomised=randomised)
        return record, CODEC.encode(record)

    def started(attack: NamedAttack) -> SearchRun[tuple[Example, Trial]]:
        keyed = partial(encoded, key=attack.key)
        return SearchRun(store, scheduler, attack, examples.size, runtime, scoring, keyed)

    with use_neighbours(neighbours):
        for group in work_order(spec.attacks, shared=classifier.deterministic):
            runs = [started(attack) for attack in group]
            at_once = None if len(group) == 1 else _TEXTS_AT_ONCE
            for first, texts in _parts(_with_classes(examples, spec.sides), at_once):
                for run in runs:
                    left = unfinished(texts, run.finished, runtime, first=first, spent=run.effort.seconds)
                    run.run(_search(at, text, classifier, queried, spec, run.attack) for at, text in left)


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


def _with_classes(examples: ExampleSet | UnlabelledSet, sides: Sides) -> Iterator[Example]:
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


def _unsteady(folder: Path, resume: bool, classifier: Classifier, examples: ExampleSet | UnlabelledSet) -> int:
    """How many of a few texts the model does not answer alike twice; a resumed job has found that out before."""
    if resume and (folder / MANIFEST).exists():
        return int(read_manifest(folder).inputs["model"].get("unsteady", 0))
    few = islice(cast("Iterable[Example | UnlabelledExample]", examples), ASKED_TWICE)
    return unsteady_answers(innermost(classifier), [example.text.input for example in few])


def _class_index(classifier: Classifier, label: str | None) -> int | None:
    if label is None:
        return None
    if label not in classifier.labels:
        raise unknown_name("class of this model", label, classifier.labels)
    return classifier.labels.index(label)


WORKFLOW: Workflow[Any] = Workflow(AttackSpec, run, AttackResult)
