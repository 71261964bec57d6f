"""The study of BAE: its four modes and TextFooler as one run, then how fluent the texts are that they made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from stockade.attacks.registry import make_attacks
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet
from stockade.experiment.inputs import describe_data, describe_model
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.progress import Observer, Progress, Runtime
from stockade.experiment.result import Workflow
from stockade.experiment.spec import Defenses
from stockade.experiment.store import ResultStore
from stockade.models.language import LanguageModels
from stockade.report.document import Document
from stockade.studies.bae.analysis import ATTACKS, MODES, BaeNumbers, Perplexities, analyse, texts_to_measure
from stockade.studies.bae.claims import check_claims
from stockade.studies.claims import Claim
from stockade.studies.frame import Option, StudyResult, StudySpec, begin_study, finished
from stockade.studies.records import Results, read_numbers, read_results, warn_of_few
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.run import attack_examples
from stockade.workflows.attack.spec import AttackSpec

RUN = "run"
"""The folder of the five attacks inside the study's, and their name among its runs."""
PERPLEXITIES = "pseudo-perplexity"
"""The part of the store that holds the pseudo-perplexities: each text is measured once, whoever found it."""
_CHUNK = 64

Measure = Callable[[Sequence[str]], Sequence[float | None]]


class BaeSpec(StudySpec):
    """What decides the study bae: a model, data, and the options below."""

    kind: ClassVar[str] = "study-bae"
    summary: ClassVar[str] = (
        "BAE's four modes and TextFooler: main table, Table 5, Figure 2, the paper's claims, antonyms, fluency."
    )
    free: ClassVar[frozenset[str]] = StudySpec.free | {"fluency"}

    defenses: Annotated[Defenses, Option("--defense", "NAME[@PRESET][:OPTION=VALUE,…]")] = None
    """A defense around the model; repeat from the outside in; none: the bare model."""
    preset: str | None = None
    """Options of all five attacks as published (paper) or as in the authors' code (authors)."""
    score_first: bool = False
    """BAE asks the victim before the sentence encoder: the same texts with more queries, faster on cheap victims."""
    fluency: bool = True
    """Measure pseudo-perplexities, which cost one pass of the masked LM per piece of each text."""

    @property
    def attack(self) -> AttackSpec:
        """What decides the run of the five attacks."""
        references = [f"{name}:score_first=true" if self.score_first and name in MODES else name for name in ATTACKS]
        return AttackSpec.of(
            model=next(iter(self.models.values())),
            attacks=make_attacks(references, self.preset),
            **{name: getattr(self, name) for name in StudySpec.model_fields if name != "models"},
            defenses=self.defenses,
        )


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
    def numbers(self) -> BaeNumbers:
        """Tables 1, 2 and 5, Figure 2, antonyms and fluency."""
        language: LanguageModels = self.spec.language
        return analyse(self.results, read_numbers(self.run, ATTACKS), language.masked_lm_name, self.perplexities)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper claims, held against the numbers."""
        return check_claims(self.results, self.numbers)

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


def run(spec: BaeSpec, folder: Path, runtime: Runtime, resume: bool) -> BaeResult:
    """Attack, unless that is done, then measure and analyse."""

    @cache
    def load() -> tuple[Classifier, ExampleSet]:
        spec.language.check()
        data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed)
        models = ModelPool(spec.models, spec.model_options, language=spec.language)
        classifier = models.defended(models.names[0], spec.defenses, seed=spec.seed)
        data.check_answers(classifier)
        return classifier, data.examples(classifier.labels)

    def describe() -> dict[str, Any]:
        classifier, examples = load()
        return {"model": describe_model(spec.attack.model, classifier), "data": describe_data(spec.data, examples)}

    with begin_study(folder, spec, describe, resume=resume) as workspace:
        attacked = finished(AttackResult, folder / RUN)
        if attacked is None:
            attacked = attack_examples(spec.attack, folder / RUN, runtime, True, *load())
        result = BaeResult.of_runs(workspace, {RUN: attacked})
        if spec.fluency:
            texts = texts_to_measure(result.results)
            measure_perplexities(workspace.store, texts, _by_masked_lm(spec.language), runtime.observer)
        result.write_summary()
    return result


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


WORKFLOW: Workflow[BaeSpec] = Workflow(BaeSpec, run, BaeResult, reopens=True)
