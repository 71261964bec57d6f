"""Certify texts: a coroutine for each, all their copies in shared batches, each certificate stored as it ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from stockade.certificates.certificate import Certificate, Status, seed_of_text, text_fingerprint
from stockade.certificates.method import CertificationInput, MethodResult, check_repeats
from stockade.certificates.registry import NamedMethod, default_method
from stockade.core.errors import SearchStopped
from stockade.core.example import Example
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet, UnlabelledExample, UnlabelledSet, prepare_examples, prepare_texts
from stockade.datasets.source import DataSource
from stockade.engine.batching import TokenBudget
from stockade.engine.requests import VisibleWords
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.engine.services import innermost
from stockade.experiment.inputs import check_answers, describe_data, describe_model, tuning_memory
from stockade.experiment.pool import ModelPool
from stockade.experiment.progress import Runtime, SearchProgress
from stockade.experiment.result import Workflow
from stockade.experiment.store import Effort, ResultStore
from stockade.experiment.usage import metered
from stockade.experiment.workspace import begin
from stockade.workflows.certify.result import CODEC, CertifyResult
from stockade.workflows.certify.spec import CertifySpec

Text = Example | UnlabelledExample
Ended = tuple[int, Text, MethodResult | str, bool]
"""Position, text, what the method found or why it could not, and whether the model reads only a part of the text."""


def run(spec: CertifySpec, folder: Path, runtime: Runtime, resume: bool) -> CertifyResult:
    """Load the model and the data, then certify."""
    models = ModelPool({"": spec.model}, spec.model_options, language=spec.language)
    classifier = models.defended("", spec.defenses, seed=spec.seed)
    spec = spec.with_methods(spec.methods or (default_method(classifier),))
    for named in spec.methods:
        named.method.check(classifier)
    source = spec.data_options.load(spec.data, needs_labels=not spec.unlabelled)
    for row in islice(source.rows(), 1):
        check_answers(innermost(classifier), row.input)
        check_repeats(innermost(classifier), row.input)
    examples = _examples(spec, source, classifier.labels)
    return certify_examples(spec, folder, runtime, resume, classifier, examples)


def certify_examples(
    spec: CertifySpec,
    folder: Path,
    runtime: Runtime,
    resume: bool,
    classifier: Classifier,
    examples: ExampleSet | UnlabelledSet,
) -> CertifyResult:
    """Certify texts that are loaded already.

    Parameters
    ----------
    spec
        What decides the results; its model and data are those that were loaded.
    folder, runtime, resume
        Where and how the job is run.
    classifier, examples
        The model in its defense, and the texts.
    """
    inputs = {"model": describe_model(spec.model, classifier), "data": describe_data(spec.data, examples)}
    with begin(folder, spec, inputs, resume=resume) as workspace:
        result = CertifyResult.of(workspace)
        try:
            with metered(folder, classifier):
                certify_texts(workspace.store, classifier, examples, spec, runtime)
        finally:
            result.write_summary()
    return result


def certify_texts(
    store: ResultStore,
    classifier: Classifier,
    examples: ExampleSet | UnlabelledSet,
    spec: CertifySpec,
    runtime: Runtime,
) -> None:
    """Certify every text that the store has no certificate for yet."""
    base = innermost(classifier)
    scoring = ScoringService(base, TokenBudget(runtime.batch_tokens, tuning_memory(base)))
    scheduler = Scheduler.for_classifier(scoring, runtime.concurrency)
    for key, named in spec.methods_per_text(examples.size).items():
        finished = store.ids(key)
        started, rows, seconds = time.perf_counter(), scoring.rows, scoring.model_seconds
        progress = SearchProgress(key, examples.size, len(finished), runtime.observer)
        for ended in scheduler.run(_searches(classifier, examples, spec, named, finished), progress.after_round):
            if isinstance(ended.result, SearchStopped):
                raise ended.result
            position, certificate = _certificate(ended.result, named, spec.seed, classifier.labels)
            effort = Effort(time.perf_counter() - started, scoring.model_seconds - seconds, scoring.rows - rows)
            store.add(
                key,
                certificate.id,
                CODEC.encode(certificate),
                position=position,
                status=certificate.status,
                effort=effort,
            )
            progress.ended(certificate.status, scheduler.usage)


def _examples(spec: CertifySpec, source: DataSource, labels: Sequence[str]) -> ExampleSet | UnlabelledSet:
    """The texts to certify, every row of the data checked."""
    if spec.unlabelled:
        return prepare_texts(source, limit=spec.limit, seed=spec.seed)
    label_map = spec.data_options.label_map
    return prepare_examples(source, labels, limit=spec.limit, seed=spec.seed, label_map=label_map)


def _searches(
    classifier: Classifier, examples: Iterable[Text], spec: CertifySpec, named: NamedMethod, finished: set[str]
) -> Iterator[Search[Ended]]:
    for position, example in enumerate(examples):
        if example.id not in finished:
            yield _search(classifier, position, example, spec, named)


def _search(
    classifier: Classifier, position: int, example: Text, spec: CertifySpec, named: NamedMethod
) -> Search[Ended]:
    async def certified() -> Ended:
        if len(str(example.text).split()) > spec.max_words:
            return position, example, f"the text has more than {spec.max_words} words", False
        try:
            visible = await VisibleWords(example.text)
            text = CertificationInput(example.text, example.label, seed_of_text(spec.seed, named.name, example.id))
            outcome: MethodResult | str = await named.method.certify(text, classifier)
        except SearchStopped as reason:
            return position, example, str(reason), False
        return position, example, outcome, len(visible) < len(example.text)

    return Search(certified, weight=len(str(example.text)) * 1000)


def _certificate(ended: Ended, named: NamedMethod, seed: int, labels: Sequence[str]) -> tuple[int, Certificate]:
    position, example, outcome, truncated = ended
    text, premise = str(example.text), example.text.premise
    result = outcome if isinstance(outcome, MethodResult) else MethodResult(None, reason=outcome)
    evidence = result.evidence
    radius = None if evidence is None else evidence.radius()
    certificate = Certificate(
        method=named.key,
        id=example.id,
        status="error" if isinstance(outcome, str) else _status(radius, named.method.sound),
        reason=result.reason if result.reason or radius is not None else "no class wins by enough",
        label=None if example.label is None else labels[example.label],
        predicted=None if evidence is None else labels[evidence.chosen],
        radius=radius,
        insertions=None if evidence is None else evidence.insertions(),
        words=len(text.split()),
        truncated=truncated,
        selection=result.selection,
        evidence=None if evidence is None else evidence.described(),
        copies=0 if evidence is None else result.drawn + evidence.copies,
        seed=seed_of_text(seed, named.name, example.id),
        text=text,
        premise=premise,
        fingerprint=text_fingerprint(text, premise),
    )
    return position, certificate


def _status(radius: int | None, sound: bool) -> Status:
    if radius is None:
        return "abstained"
    return "certified" if sound else "claimed"


WORKFLOW: Workflow[Any] = Workflow(CertifySpec, run, CertifyResult)
