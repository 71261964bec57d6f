"""The study of translators: keyword, typo, untargeted and non-overlapping attacks on each of them, and where their
attention goes under attack.

Every translator has two runs: `NAME` with the attacks that search, on a sample of the sentences, and `NAME-typos` with
the typo attack on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from stockade.attacks.registry import make_attacks
from stockade.core.errors import OptionError
from stockade.core.translation import InspectableTranslator, Translator
from stockade.datasets.parallel import ParallelSource
from stockade.experiment.inputs import describe_data, findable
from stockade.experiment.progress import Runtime, within
from stockade.experiment.result import Workflow
from stockade.experiment.spec import Count, Reference, TranslationAttacks
from stockade.experiment.store import ResultStore
from stockade.models.translation import ARCHITECTURES
from stockade.models.translation.bleu import sacrebleu_metrics
from stockade.report.document import Document
from stockade.studies.claims import Claim
from stockade.studies.frame import Option, StudyResult, StudySpec, begin_study, finished
from stockade.studies.records import warn_of_few
from stockade.studies.translation.analysis import (
    KEYWORD,
    TYPO,
    AttentionShift,
    Kind,
    TranslationNumbers,
    analyse,
    measure_shift,
)
from stockade.studies.translation.claims import check_claims
from stockade.workflows.train import train
from stockade.workflows.translation.result import TranslationResult
from stockade.workflows.translation.run import Sentences, attack_pairs, describe_translator, load_victim
from stockade.workflows.translation.spec import TranslationSpec

TYPOS = "-typos"
"""How the name of the run ends that has a translator's typos."""
SHIFTS, MAPS = "attention", "maps"
_TRAIN = "train:"
_SEARCHES = (KEYWORD, "mt-untargeted", "mt-nonoverlap")


class TranslationStudySpec(StudySpec):
    """What decides the study translation: translators, parallel sentences, and the options below."""

    kind: ClassVar[str] = "study-translation"
    summary: ClassVar[str] = (
        "Recurrent against self-attentive translators: keywords, typos, BLEU, attention; Tables 7 to 9, Figure 3."
    )
    several_models: ClassVar[bool] = True
    parallel: ClassVar[bool] = True
    free: ClassVar[frozenset[str]] = StudySpec.free | {"maps"}

    attacks: Annotated[TranslationAttacks, Option("--attack", "NAME[@PRESET][:OPTION=VALUE,…]")] = Field(
        default_factory=lambda: make_attacks(list(_SEARCHES))
    )
    """An attack that searches; repeat for several.  [default: mt-keyword, mt-untargeted, mt-nonoverlap]"""
    typos: Annotated[TranslationAttacks, Option("--typos", "mt-typo[@PRESET][:OPTION=VALUE,…]")] = Field(
        default_factory=lambda: make_attacks([TYPO])
    )
    """A typo attack; repeat for several.  [default: mt-typo]"""
    searched: Count = 200
    """How many sentences the attacks that search get; typos are made in all of them."""
    recurrent: str | None = None
    """Which model is the recurrent one, by its name in the study.  [default: what it says of itself]"""
    train_data: Annotated[Reference, Option(metavar="DATA")] = None
    """Parallel sentences to train both translators on, where no model is given."""
    train_preset: str = "study"
    """How they are trained: fast or study."""
    attention: Annotated[int, Field(ge=0)] = 200
    """On how many sentences with a typo the attention is compared with that on the original."""
    similarity: bool = True
    """Measure the similarity of changed sources to their originals."""
    maps: Annotated[int, Field(ge=0)] = 2
    """How many successes of the keyword attack are drawn for each model."""

    @classmethod
    def find_inputs(cls, models: object, data: object, options: Mapping[str, Any]) -> tuple[object, object]:
        """The models and data; with data to train on, a single name is that of the data to attack."""
        if options.get("train_data") is None:
            if models is None or data is None:
                example = "stockade study translation models/mt-lstm models/mt test.csv"
                raise OptionError(
                    f"MODEL and DATA are missing, as in: {example}; or train both, as in: stockade study translation "
                    "test.csv --train-data train.csv"
                )
            return models, data
        if data is None and isinstance(models, list) and len(models) == 1:
            data, models = models[0], None
        if data is None:
            raise OptionError(
                "DATA is missing, as in: stockade study translation test.csv --train-data train.csv --out runs/mt"
            )
        return models or {name: f"{_TRAIN}{name}" for name in reversed(ARCHITECTURES)}, data

    @field_validator("attacks")
    @classmethod
    def _with_keywords(cls, attacks: Any) -> Any:
        if KEYWORD not in {attack.name for attack in attacks}:
            raise OptionError(f"The study translation is about keywords: name {KEYWORD} among its attacks.")
        return attacks

    @field_validator("typos")
    @classmethod
    def _typos_only(cls, attacks: Any) -> Any:
        for attack in attacks:
            if attack.name != TYPO:
                raise OptionError(f"--typos {attack.key} is no typo attack, expected {TYPO}.")
        return attacks

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.recurrent is not None and self.recurrent not in self.models:
            raise OptionError(f"--recurrent {self.recurrent} is none of the models (found: {', '.join(self.models)}).")
        return self

    def job(self, model: str, *, typos: bool) -> TranslationSpec:
        """What decides one of the two runs of a translator."""
        shared = {name: getattr(self, name) for name in StudySpec.model_fields if name not in ("models", "limit")}
        limit = self.limit if typos else min(self.searched, self.limit or self.searched)
        attacks = self.typos if typos else self.attacks
        return TranslationSpec.of(
            model=self.models[model], attacks=attacks, limit=limit, similarity=self.similarity, **shared
        )


class TranslationStudyResult(StudyResult[TranslationNumbers]):
    """The study of translators: `numbers`, `claims`, and the runs of each model."""

    kind: ClassVar[str] = TranslationStudySpec.kind
    spec_type: ClassVar[type[StudySpec]] = TranslationStudySpec

    @property
    def models(self) -> tuple[str, ...]:
        """The translators by name."""
        return tuple(self.manifest.spec["models"])

    def open_runs(self) -> Mapping[str, TranslationResult]:
        names = [f"{name}{ending}" for name in self.models for ending in ("", TYPOS)]
        return {name: TranslationResult.open(self.folder / name) for name in names}

    def searches(self, model: str) -> TranslationResult:
        """The run of a translator with the attacks that search."""
        run = self.runs[model]
        assert isinstance(run, TranslationResult)
        return run

    def typos(self, model: str) -> TranslationResult:
        """The run of a translator with typos."""
        run = self.runs[f"{model}{TYPOS}"]
        assert isinstance(run, TranslationResult)
        return run

    def kinds(self) -> Mapping[str, Kind | None]:
        """Whether each translator is recurrent or self-attentive; None if nobody knows."""
        recurrent = self.spec.recurrent
        stored = {str(document["model"]): document["kind"] for document in self.store.documents("kinds")}
        if recurrent is None:
            return {name: stored.get(name) for name in self.models}
        return {name: "recurrent" if name == recurrent else "self-attentive" for name in self.models}

    def shifts(self, model: str) -> list[AttentionShift]:
        """How far the attention of a translator moved, sentence by sentence."""
        return [AttentionShift(**document) for document in self.store.documents(f"{SHIFTS} {model}")]

    def drawn(self, model: str) -> list[AttentionShift]:
        """The successes of the keyword attack whose attention is drawn."""
        return [AttentionShift(**document) for document in self.store.documents(f"{MAPS} {model}")]

    @cached_property
    def numbers(self) -> TranslationNumbers:
        """Tables 7 and 8, attention, and the comparison of both kinds."""
        return analyse(
            {name: (self.searches(name), self.typos(name)) for name in self.models},
            self.kinds(),
            {name: self.shifts(name) for name in self.models},
        )

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper claims, held against the numbers."""
        return check_claims(self.numbers)

    @property
    def warnings(self) -> list[str]:
        """Those of the runs, and what this study adds."""
        inner = [f"{name}: {warning}" for name, run in self.runs.items() for warning in run.summary["warnings"]]
        fewest = min(model.keyword.attacked for model in self.numbers.models.values())
        return [*inner, *warn_of_few(fewest)]

    def make_document(self) -> Document:
        """The page: Tables 7 to 9, claims, all attacks, attention."""
        from stockade.studies.translation.page import translation_document

        return translation_document(self)


def run(spec: TranslationStudySpec, folder: Path, runtime: Runtime, resume: bool) -> TranslationStudyResult:
    """Train what has to be trained, attack every translator, then look at its attention."""
    sacrebleu_metrics()
    loaded: dict[str, Translator] = {}

    def source() -> ParallelSource:
        return spec.data_options.load_parallel(findable(spec.data, "The data"))

    def load(name: str) -> Translator:
        """One at a time: two large models need not fit."""
        if name not in loaded:
            loaded.clear()
            loaded[name] = load_victim(
                findable(_trained(spec, name, folder, runtime), f"The model {name}"), spec.model_options
            )
        return loaded[name]

    def describe() -> dict[str, Any]:
        chosen = Sentences.of(source(), limit=spec.limit, seed=spec.seed).chosen
        described = {
            name: {"reference": str(model)} if _to_train(model) else describe_translator(model, load(name))
            for name, model in spec.models.items()
        }
        return {"models": described, "data": describe_data(spec.data, chosen)}

    with begin_study(folder, spec, describe, resume=resume) as workspace:
        runs: dict[str, TranslationResult] = {}
        for name in spec.models:
            loader = partial(load, name)
            for ending in ("", TYPOS):
                job = spec.job(name, typos=bool(ending))
                runs[f"{name}{ending}"] = _attacked(job, folder / f"{name}{ending}", runtime, loader, source)
            _look_inside(workspace.store, spec, name, runs, loader)
        result = TranslationStudyResult.of_runs(workspace, runs)
        result.write_summary()
    return result


def _attacked(
    spec: TranslationSpec,
    folder: Path,
    runtime: Runtime,
    load: Callable[[], Translator],
    source: Callable[[], ParallelSource],
) -> TranslationResult:
    done = finished(TranslationResult, folder)
    if done is not None:
        return done
    observed_runtime = Runtime(
        concurrency=runtime.concurrency, seconds=runtime.seconds, observer=within(folder.name, runtime.observer)
    )
    return attack_pairs(spec, folder, observed_runtime, True, load(), source())


def _look_inside(
    store: ResultStore,
    spec: TranslationStudySpec,
    name: str,
    runs: Mapping[str, TranslationResult],
    load: Callable[[], Translator],
) -> None:
    """Store the kind of a translator, and its attention before and after: the same typos for all models, and some
    successes of the keyword attack to draw.
    """
    keyword = next(attack.key for attack in spec.attacks if attack.name == KEYWORD)
    changed = [record for record in runs[f"{name}{TYPOS}"].records(spec.typos[0].key) if record.adversarial is not None]
    successes = list(runs[name].records(keyword, "success"))
    for part, records in ((SHIFTS, changed[: spec.attention]), (MAPS, successes[: spec.maps])):
        stored = store.ids(f"{part} {name}")
        for position, record in enumerate(records):
            if record.id in stored:
                continue
            translator = load()
            if not isinstance(translator, InspectableTranslator):
                break
            shift = measure_shift(translator, record, matrices=part == MAPS)
            if shift is not None:
                store.add(f"{part} {name}", record.id, shift.described(), position=position)
    if store.get("kinds", name) is None:
        store.add("kinds", name, {"model": name, "kind": _kind(load())})


def _kind(translator: Translator) -> Kind | None:
    """Whether a translator is recurrent or self-attentive, by what its network is called."""
    config = getattr(getattr(translator, "model", None), "config", None)
    name = str(getattr(config, "model_type", getattr(translator, "architecture", "")))
    if not name:
        return None
    return (
        "recurrent" if any(word in name.lower() for word in ("lstm", "rnn", "gru", "recurrent")) else "self-attentive"
    )


def _to_train(model: object) -> bool:
    return isinstance(model, str) and model.startswith(_TRAIN)


def _trained(spec: TranslationStudySpec, name: str, folder: Path, runtime: Runtime) -> object:
    """The model, trained first if it is one of the study's own."""
    model = spec.models[name]
    if not isinstance(model, str) or not _to_train(model):
        return model
    target = folder / "models" / name
    train(
        findable(spec.train_data, "The training data"),
        model.removeprefix(_TRAIN),
        task="translation",
        preset=spec.train_preset,
        seed=spec.seed,
        out=target,
        resume=target.exists(),
        data_options=spec.data_options,
        observer=within(f"training {name}", runtime.observer),
    )
    return target


WORKFLOW: Workflow[TranslationStudySpec] = Workflow(TranslationStudySpec, run, TranslationStudyResult, reopens=True)
