"""The way of the data from search to store: every example under every attack, each result committed as it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

from stockade.attacks.languages import check_language, is_english
from stockade.attacks.registry import NamedAttack
from stockade.attacks.trial import Trial, attack_example
from stockade.core.errors import ModelError, ResourceMissing, RunError, unknown_name
from stockade.core.example import PREDICTED, Example, Scores
from stockade.core.protocols import ClassBoundAttack, Classifier, is_label_only
from stockade.core.records import Record
from stockade.core.seeds import derive_rng, derive_seed
from stockade.datasets.examples import ExampleSet, UnlabelledExample, UnlabelledSet, prepare_texts
from stockade.engine.batching import TokenBudget
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import clean_draw
from stockade.engine.scheduler import Finished, Scheduler, Search
from stockade.engine.scoring import Scoring
from stockade.engine.services import innermost
from stockade.experiment.inputs import describe_data, describe_model, reference_of, tuning_memory, unsteady_answers
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.progress import Runtime
from stockade.experiment.result import Workflow
from stockade.experiment.store import ResultStore
from stockade.experiment.usage import metered
from stockade.experiment.workspace import MANIFEST, begin, read_manifest
from stockade.lexicon.neighbours import Neighbours, read_neighbours, use_neighbours
from stockade.models.language import LanguageModels
from stockade.models.translation.load import is_translator
from stockade.workflows.attack.common import measure_similarities, store_searches, unfinished
from stockade.workflows.attack.result import CODEC, AttackResult
from stockade.workflows.attack.spec import AttackSpec
from stockade.workflows.attack.summary import ASKED_TWICE

_READ_FOR_SCRIPT = 50
"""How many texts are looked at for their script."""


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
    _check_language(spec, examples, neighbours)
    unsteady = _unsteady(folder, resume, classifier, examples)
    inputs = {
        "model": {**describe_model(spec.model, classifier), **({"unsteady": unsteady} if unsteady else {})},
        "data": describe_data(spec.data, examples),
        "neighbours": None if neighbours is None else neighbours.fingerprint(),
    }
    labelled = isinstance(examples, ExampleSet)
    present = [name for name in classifier.labels if not labelled or examples.label_counts[name]]
    for attack in spec.attacks:
        if isinstance(attack.attack, ClassBoundAttack):
            attack.attack.check_classes(classifier.labels, present)
    with begin(folder, spec, inputs, resume=resume) as workspace:
        result = AttackResult.of(workspace)
        try:
            with metered(folder, classifier):
                run_searches(
                    workspace.store, classifier, examples, spec, runtime, queried=queried, neighbours=neighbours
                )
            if spec.similarity:
                measure_similarities(workspace.store, spec.attacks, CODEC, spec.language)
        finally:
            result.write_summary()
    return result


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

    scoring, label_only = scoring_of(classifier), is_label_only(classifier if queried is None else queried)
    scheduler = Scheduler.for_classifier(
        scoring,
        runtime.concurrency,
        view=None if queried is None else scoring_of(queried),
        filling=filling,
        embedding=embedding,
    )
    with use_neighbours(neighbours):
        for attack in spec.attacks:

            def searches(
                finished: set[str], attack: NamedAttack = attack
            ) -> Iterator[Search[tuple[int, tuple[Example, Trial]]]]:
                for position, example in unfinished(_with_classes(examples), finished, runtime):
                    yield _search(position, example, classifier.deterministic, label_only, spec, attack)

            def encoded(
                ended: Finished[Any], outcome: tuple[Example, Trial], key: str = attack.key
            ) -> tuple[Record, Any]:
                record = make_record(key, *outcome, classifier.labels, ended.queries, ended.rows)
                return record, CODEC.encode(record)

            store_searches(store, scheduler, attack, examples.size, runtime, scoring, searches, encoded)


def _with_classes(examples: ExampleSet | UnlabelledSet) -> Iterator[Example]:
    """The examples; where there are no labels, the model's prediction will be the class."""
    if isinstance(examples, ExampleSet):
        yield from examples
    else:
        yield from (Example(item.id, item.text, PREDICTED) for item in examples)


def _search(
    position: int, example: Example, deterministic: bool, label_only: bool, spec: AttackSpec, attack: NamedAttack
) -> Search[tuple[int, tuple[Example, Trial]]]:
    async def trial() -> tuple[int, tuple[Example, Trial]]:
        outcome = await attack_example(
            attack.attack,
            example,
            derive_rng(spec.seed, example.id, attack.name),
            deterministic=deterministic,
            max_words=spec.max_words,
            clean_draw=clean_draw(spec.seed, example.id),
            label_only=label_only,
        )
        return position, (example, outcome)

    weight = len(example.text) * len(str(example.text))
    draws = derive_seed(spec.seed, example.id, attack.name, "draws")
    return Search(trial, spec.budget, weight, draws)


def make_record(
    attack: str, example: Example, trial: Trial, labels: tuple[str, ...], queries: int, rows: int
) -> Record:
    """What is stored of a trial."""

    def predicted(scores: Scores | None) -> str | None:
        return None if scores is None else labels[scores.label]

    adversarial = trial.text
    return Record(
        id=example.id,
        attack=attack,
        status=trial.status,
        reason=trial.reason,
        label=(predicted(trial.clean) or "") if example.label == PREDICTED else labels[example.label],
        original=str(example.text),
        adversarial=None if adversarial is None else str(adversarial),
        original_prediction=predicted(trial.clean),
        adversarial_prediction=predicted(trial.scores),
        original_scores=None if trial.clean is None else trial.clean.probabilities,
        adversarial_scores=None if trial.scores is None else trial.scores.probabilities,
        queries=queries,
        rows=rows,
        edits=() if adversarial is None else adversarial.edits,
        perturbed_percent=None if adversarial is None else adversarial.perturbed_percent,
        premise=example.text.premise,
        hit_rate=trial.hit_rate,
        flip_share=trial.flip_share,
        tried=trial.tried,
        failed_queries=trial.failed_queries,
        truncated_words=trial.truncated_words,
        decision_based=trial.decision_based,
    )


def _check_language(spec: AttackSpec, examples: ExampleSet | UnlabelledSet, neighbours: Neighbours | None) -> None:
    """Refuse attacks, and a measure of similarity, that need what is not there for the language of the data."""
    brought = {
        name
        for name, value in (("masked-lm", spec.mlm), ("encoder", spec.encoder), ("neighbours", neighbours))
        if value is not None
    }
    few = islice(cast("Iterable[Example | UnlabelledExample]", examples), _READ_FOR_SCRIPT)
    language = spec.data_options.language
    check_language(spec.attacks, (str(example.text) for example in few), language, brought)
    if spec.similarity and "encoder" not in brought and not is_english(language):
        raise ResourceMissing(
            f"The similarity of successes is measured by an English sentence encoder, and the data are in {language} "
            "(--language). Name one for that language with --encoder, or leave it out with --no-similarity."
        )


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
