"""Certifies texts: a coroutine for each, all their copies in shared batches, each certificate kept as it is found."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from stockade.certificates.certificate import Certificate, Status, seed_of_text, text_fingerprint
from stockade.certificates.job import CertificationJob
from stockade.certificates.method import CertificationInput, MethodResult, check_repeats
from stockade.certificates.registry import NamedMethod, default_method, make_method
from stockade.certificates.run import CertificateRun
from stockade.certificates.store import FILE_NAME as STORE_NAME
from stockade.certificates.store import CertificateStore
from stockade.core.errors import OptionError, RunError, SearchStopped
from stockade.core.example import Example
from stockade.core.files import in_temporary_folder, refuse_existing
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet, UnlabelledExample, UnlabelledSet
from stockade.engine.batching import TokenBudget
from stockade.engine.requests import VisibleWords
from stockade.engine.scheduler import Scheduler, Search, innermost
from stockade.engine.scoring import ScoringService
from stockade.jobs import DataOptions, ModelOptions
from stockade.runs.attack import Observer, Progress, check_answers, tuning_memory
from stockade.runs.manifest import FILE_NAME, begin_run, read_manifest

Found = tuple[int, Example | UnlabelledExample, MethodResult | str, bool]


def certify(
    model: object,
    data: object,
    *methods: str,
    alpha: float | None = None,
    limit: int | None = None,
    seed: int = 0,
    whole_set: bool = False,
    max_words: int = 5_000,
    labelled: bool = True,
    out: str | Path | None = None,
    resume: bool = False,
    concurrency: int = 32,
    batch_tokens: int | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> CertificateRun:
    """Certify the texts of `data` for a model inside a defense that certificates are about.

    `model` is a folder that was trained with such a defense, or what `st.defend` returns. `methods` are names as
    `stockade ls certificates` shows them, with a preset or options if you like: `"ranmask-gap:alpha=0.001"`; without
    one it is the method for the model's defense. `alpha` is the chance that a certificate may be wrong, for each
    text, or with `whole_set` for all texts together. Data without labels are certified with `labelled=False`: for the
    class that the model gives, right or wrong. Without `out` the run lives in a temporary folder as long as the
    returned object.
    """
    named = [make_method(reference) for reference in methods]
    data_options, model_options = data_options or DataOptions(), model_options or ModelOptions()
    if resume and out is None:
        raise RunError("There is nothing to resume without a run folder: name it with --out.")
    if out is not None and not resume:
        refuse_existing(Path(out), FILE_NAME)
    speed = _Speed(concurrency, batch_tokens)
    classifier = model_options.load(model, seed=seed)
    job = CertificationJob(
        model,
        data,
        tuple(_with_alpha(one, alpha) for one in named or [default_method(classifier)]),
        seed,
        whole_set,
        max_words,
        labelled,
        data_options if limit is None else replace(data_options, limit=limit),
        model_options,
    )
    if out is not None:
        return _execute(job, classifier, speed, Path(out), resume, observer)
    return in_temporary_folder(lambda folder: _execute(job, classifier, speed, folder, False, observer))


def resume_certification(
    folder: str | Path, *, concurrency: int = 32, batch_tokens: int | None = None, observer: Observer | None = None
) -> CertificateRun:
    """Go on with an interrupted run; its manifest says with what."""
    path = Path(folder)
    job = CertificationJob.from_manifest(path, read_manifest(path))
    classifier = job.model_options.load(job.model, seed=job.seed)
    return _execute(job, classifier, _Speed(concurrency, batch_tokens), path, True, observer)


@dataclass(frozen=True, slots=True)
class _Speed:
    """What changes how fast a run is, never its results."""

    concurrency: int
    batch_tokens: int | None

    def __post_init__(self) -> None:
        for name in ("concurrency", "batch_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"{name.replace('_', '-')} must be at least 1, not {value}.")


def _with_alpha(named: NamedMethod, alpha: float | None) -> NamedMethod:
    """The method with another alpha, where it has one."""
    if alpha is None or not hasattr(named.method, "alpha"):
        return named
    return replace(named, method=replace(named.method, alpha=alpha))


def _execute(
    job: CertificationJob,
    classifier: Classifier,
    speed: _Speed,
    folder: Path,
    resume: bool,
    observer: Observer | None,
) -> CertificateRun:
    for named in job.methods:
        named.method.check(classifier)
    source = job.source()
    for row in islice(source.rows(), 1):
        check_answers(innermost(classifier), row.input)
        check_repeats(innermost(classifier), row.input)
    examples = job.examples(source, classifier.labels)
    begin_run(folder, job.manifest(classifier, examples), resume)
    try:
        run_certification(classifier, examples, job, folder, speed.concurrency, speed.batch_tokens, observer)
    finally:
        if (folder / STORE_NAME).exists():
            CertificateRun(folder).write_summary()
    return CertificateRun(folder)


def run_certification(
    classifier: Classifier,
    examples: ExampleSet | UnlabelledSet,
    job: CertificationJob,
    folder: Path,
    concurrency: int = 32,
    batch_tokens: int | None = None,
    observer: Observer | None = None,
) -> None:
    """Certify every text that the run has no certificate for yet."""
    base = innermost(classifier)
    scoring = ScoringService(base, TokenBudget(batch_tokens, tuning_memory(base)))
    scheduler = Scheduler.for_classifier(scoring, concurrency)
    with CertificateStore(folder, writable=True) as store:
        part = store.next_part()
        for named in job.prepared(examples.size):
            finished = store.finished_ids(named.key)
            started, before = time.perf_counter(), scoring.rows
            done = len(finished)
            searches = _searches(classifier, examples, job, named, finished)
            for ended in scheduler.run(searches):
                position, certificate = _certificate(ended.result, named, job.seed, classifier.labels)
                seconds, rows = time.perf_counter() - started, scoring.rows - before
                store.add(certificate, position, part, seconds, rows)
                done += 1
                if observer is not None:
                    observer(Progress(named.key, certificate.status, done, examples.size))


def _searches(
    classifier: Classifier,
    examples: Iterable[Example | UnlabelledExample],
    job: CertificationJob,
    named: NamedMethod,
    finished: set[str],
) -> Iterator[Search[Found]]:
    for position, example in enumerate(examples):
        if example.id not in finished:
            yield _search(classifier, position, example, job, named)


def _search(
    classifier: Classifier,
    position: int,
    example: Example | UnlabelledExample,
    job: CertificationJob,
    named: NamedMethod,
) -> Search[Found]:
    async def found() -> Found:
        if len(str(example.text).split()) > job.max_words:
            return position, example, f"the text has more than {job.max_words} words", False
        try:
            visible = await VisibleWords(example.text)
            inputs = CertificationInput(example.text, example.label, seed_of_text(job.seed, named.name, example.id))
            finding: MethodResult | str = await named.method.certify(inputs, classifier)
        except SearchStopped as reason:
            return position, example, str(reason), False
        return position, example, finding, len(visible) < len(example.text)

    return Search(found, weight=len(str(example.text)) * 1000)


def _certificate(
    found: Found | SearchStopped, named: NamedMethod, seed: int, labels: Sequence[str]
) -> tuple[int, Certificate]:
    if isinstance(found, SearchStopped):
        raise found
    position, example, finding, truncated = found
    text, premise = str(example.text), example.text.premise
    failed = isinstance(finding, str)
    evidence = None if isinstance(finding, str) else finding.evidence
    selection = None if isinstance(finding, str) else finding.selection
    radius = None if evidence is None else evidence.radius()
    certificate = Certificate(
        method=named.key,
        id=example.id,
        status="error" if failed else _status(radius, named.method.sound),
        reason=finding if isinstance(finding, str) else _reason(finding, radius),
        label=None if example.label is None else labels[example.label],
        predicted=None if evidence is None else labels[evidence.chosen],
        radius=radius,
        insertions=None if evidence is None else evidence.insertions(),
        words=len(text.split()),
        truncated=truncated,
        selection=selection,
        evidence=None if evidence is None else evidence.described(),
        copies=0 if isinstance(finding, str) or evidence is None else finding.drawn + evidence.copies,
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


def _reason(finding: MethodResult, radius: int | None) -> str | None:
    if finding.reason is not None or radius is not None:
        return finding.reason
    return "no class wins by enough"
