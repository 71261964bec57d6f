"""The study of BAE on one model: its four modes and TextFooler as one run, then how fluent their texts are.

With several models, or cells of models and data, `run` makes a grid of such studies: see `grid.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.datasets.examples import ExampleSet
from stockade.experiment.inputs import describe_data, describe_model
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.progress import Observer, Progress, Runtime
from stockade.experiment.result import Result, Workflow
from stockade.experiment.store import ResultStore
from stockade.experiment.workspace import Workspace, read_manifest
from stockade.models.language import LanguageModels
from stockade.report.document import Document
from stockade.studies.bae.analysis import ATTACKS, BaeNumbers, Perplexities, analyse, texts_to_measure
from stockade.studies.bae.claims import check_claims
from stockade.studies.bae.rating_sheet import check_sheet, make_key, write_sheet
from stockade.studies.bae.ratings import PAPER_RATERS, RATINGS, Ratings, score_ratings
from stockade.studies.bae.spec import BaeSpec
from stockade.studies.claims import Claim
from stockade.studies.frame import StudyResult, StudySpec, begin_study, finished
from stockade.studies.records import Results, read_numbers, read_results, warn_of_few
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.run import attack_examples

RUN = "run"
"""The folder of the five attacks inside the study's, and their name among its runs."""
PERPLEXITIES = "pseudo-perplexity"
"""The part of the store that holds the pseudo-perplexities: each text is measured once, whoever found it."""
_CHUNK = 64

Measure = Callable[[Sequence[str]], Sequence[float | None]]


class BaeResult(StudyResult[BaeNumbers]):
    """The study of BAE on one model: `numbers`, `claims`, and `run` with every text and attack."""

    kind: ClassVar[str] = BaeSpec.kind
    spec_type: ClassVar[type[StudySpec]] = BaeSpec

    def open_runs(self) -> Mapping[str, AttackResult]:
        return {RUN: AttackResult.open(self.folder / RUN)}

    @property
    def run(self) -> AttackResult:
        """The run of the five attacks."""
        run = self.runs[RUN]
        assert isinstance(run, AttackResult)
        return run

    @cached_property
    def results(self) -> Results:
        """What each attack did to each text."""
        return read_results(self.run, ATTACKS)

    @cached_property
    def perplexities(self) -> Perplexities | None:
        """The pseudo-perplexities of the successes and their originals; None if some are not measured."""
        stored = {document["text"]: document["value"] for document in self.store.documents(PERPLEXITIES)}
        keys = {text: _key(text) for text in texts_to_measure(self.results)}
        if (not keys and not self.spec.fluency) or not stored.keys() >= set(keys.values()):
            return None
        return {text: stored[key] for text, key in keys.items()}

    @cached_property
    def ratings(self) -> Ratings | None:
        """What human raters said; None before anybody has."""
        return RATINGS.get(self.store)

    @cached_property
    def numbers(self) -> BaeNumbers:
        """Tables 1, 2, 4 and 5, Figure 2, antonyms and fluency."""
        language: LanguageModels = self.spec.language
        rated = None if self.ratings is None else score_ratings(self.ratings)
        attacks = read_numbers(self.run, ATTACKS)
        return analyse(self.results, attacks, language.masked_lm_name, self.perplexities, rated)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper claims, held against the numbers."""
        return check_claims(self.results, self.numbers, self.ratings)

    @property
    def warnings(self) -> list[str]:
        """Those of the run, and what this study adds."""
        model = self.run.manifest.inputs["model"]
        randomised = "The model is randomised: the curve over the allowed perturbation is only an estimate."
        attacked = max(attack.attacked for attack in self.numbers.attacks.values())
        return [
            *self.run.summary["warnings"],
            *warn_of_few(attacked),
            *([] if model["deterministic"] else [randomised]),
            *self._few_raters(),
        ]

    def _few_raters(self) -> list[str]:
        raters = 0 if self.ratings is None else len(self.ratings.raters)
        if not 0 < raters < PAPER_RATERS:
            return []
        return [
            f"{'1 rater' if raters == 1 else f'{raters} raters'} filled in the sheet; the paper had {PAPER_RATERS}."
        ]

    @property
    def complete(self) -> bool:
        """Whether every text was attacked and, if wanted, measured."""
        return super().complete and (not self.spec.fluency or self.perplexities is not None)

    def facts(self) -> Mapping[str, object]:
        language: LanguageModels = self.spec.language
        return {
            "model": self.run.summary["model"],
            "examples": self.run.summary["examples"],
            "encoder": language.encoder_name,
            "similarity_scale": self.run.spec.similarity_scale,
            "masked_lm": language.masked_lm_name,
        }

    def make_document(self) -> Document:
        """The page: attacks, claims, curve, splits, antonyms, fluency, texts to look at."""
        from stockade.studies.bae.page import bae_document

        return bae_document(self)


class BaeResults:
    """Opens the folder of a study of BAE, whether it is of one model or a grid."""

    kind: ClassVar[str] = BaeSpec.kind

    @staticmethod
    def open(folder: str | Path) -> Result:
        """The result in a folder."""
        from stockade.studies.bae.grid import GridResult

        spec = read_manifest(Path(folder)).spec
        is_grid = bool(spec.get("cells")) or len(spec.get("models") or ()) > 1
        return GridResult.open(folder) if is_grid else BaeResult.open(folder)


def run(spec: BaeSpec, folder: Path, runtime: Runtime, resume: bool) -> StudyResult[Any]:
    """The study of one model, or a grid of such studies."""
    if spec.grid:
        from stockade.studies.bae.grid import run_grid

        return run_grid(spec, folder, runtime, resume)
    return run_one(spec, folder, runtime, resume)


def run_one(
    spec: BaeSpec, folder: Path, runtime: Runtime, resume: bool, inputs: Mapping[str, Any] | None = None
) -> BaeResult:
    """Attack one model, unless that is done, then measure and analyse; read and write what raters need.

    Parameters
    ----------
    spec, folder, runtime, resume
        As for every workflow.
    inputs
        What the manifest of a grid records of the model and the data, which must be the same now; None for none.
    """

    @cache
    def data() -> DataPool:
        pool = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed)
        if inputs is not None:
            pool.hold_to(inputs["data"]["fingerprint"])
        return pool

    @cache
    def load() -> tuple[Classifier, ExampleSet]:
        spec.language.check()
        models = ModelPool(spec.models, spec.model_options, language=spec.language)
        if inputs is not None and not inputs["model"].get("defenses"):
            models.hold_to({models.names[0]: inputs["model"]["fingerprint"]})
        classifier = models.defended(models.names[0], spec.defenses, seed=spec.seed)
        data().check_answers(classifier)
        return classifier, data().examples(classifier.labels)

    with begin_study(folder, spec, lambda: describe_cell(spec, *load()), resume=resume) as workspace:
        if spec.rating_sheet is not None:
            check_sheet(spec.rating_sheet)
        if spec.ratings:
            RATINGS.keep_ratings(workspace.store, folder, spec.ratings)
        attacked = finished(AttackResult, folder / RUN)
        if attacked is None:
            attacked = attack_examples(spec.attack, folder / RUN, runtime, True, *load())
        result = BaeResult.of_runs(workspace, {RUN: attacked})
        if spec.fluency:
            texts = texts_to_measure(result.results)
            measure_perplexities(workspace.store, texts, _by_masked_lm(spec.language), runtime.observer)
        result.write_summary()
        if spec.rating_sheet is not None:
            _write_sheet(spec, spec.rating_sheet, workspace, result)
    return result


def describe_cell(spec: BaeSpec, classifier: Classifier, examples: ExampleSet) -> dict[str, Any]:
    """What a manifest records of a model and its data."""
    return {"model": describe_model(spec.attack.model, classifier), "data": describe_data(spec.data, examples)}


def _write_sheet(spec: BaeSpec, path: Path, workspace: Workspace, result: BaeResult) -> None:
    """Write a rating sheet and keep its key; the summary is written again because it vouches for what is kept."""
    labels = tuple(result.run.manifest.inputs["model"]["labels"])
    key = make_key(
        result.results,
        texts=spec.rated_texts,
        study=workspace.folder.name,
        created=workspace.manifest.created,
        seed=spec.seed,
        labels=labels,
    )
    write_sheet(path, key, _references(spec, result, key.texts, labels))
    RATINGS.keep_key(workspace.store, key)
    result.write_summary()


def _references(spec: BaeSpec, result: BaeResult, rated: Sequence[str], labels: Sequence[str]) -> list[Text]:
    """Originals that are not rated: of the data beyond the study's sample, then of the study."""
    if not spec.reference_texts:
        return []
    studied, recorded = result.results[ATTACKS[0]], result.manifest.inputs["data"]
    rng = Random(f"reference texts {spec.seed}")
    others: list[Text] = []
    if recorded["rows"] > recorded["size"]:
        pool = DataPool(spec.data, spec.data_options)
        pool.hold_to(recorded["fingerprint"])
        outside = [example.text for example in pool.examples(labels) if example.id not in studied]
        others = rng.sample(outside, min(spec.reference_texts, len(outside)))
    unrated = [Text.parse(record.original, record.premise) for text, record in studied.items() if text not in rated]
    return others + rng.sample(unrated, min(spec.reference_texts - len(others), len(unrated)))


def measure_perplexities(
    store: ResultStore, texts: Sequence[str], measure: Measure, observer: Observer | None = None
) -> None:
    """Measure the texts that the store has no pseudo-perplexity of, short ones first, and keep each value.

    Parameters
    ----------
    store
        Where they are kept.
    texts
        What to measure.
    measure
        Measures a few at a time.
    observer
        Called after each few.
    """
    stored, keys = store.ids(PERPLEXITIES), {text: _key(text) for text in texts}
    missing = sorted((text for text, key in keys.items() if key not in stored), key=len)
    for start in range(0, len(missing), _CHUNK):
        chunk = missing[start : start + _CHUNK]
        for text, value in zip(chunk, measure(chunk), strict=True):
            store.add(PERPLEXITIES, keys[text], {"text": keys[text], "value": value})
        if observer is not None:
            done = len(keys) - len(missing) + start + len(chunk)
            observer(Progress(part=PERPLEXITIES, done=done, total=len(keys)))


def _by_masked_lm(language: LanguageModels) -> Measure:
    """Pseudo-perplexities by the masked LM of the study, which is loaded for the first text."""

    def measure(texts: Sequence[str]) -> Sequence[float | None]:
        from stockade.models.pseudo_perplexity import pseudo_perplexities

        model: Any = language.make_masked_lm()
        return pseudo_perplexities(model, texts)

    return measure


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


WORKFLOW: Workflow[BaeSpec] = Workflow(BaeSpec, run, BaeResults, reopens=True)
