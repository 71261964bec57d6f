"""The study of ensembles: choose them on a transfer matrix, attack them, and show the texts to all other models.

The attack on each ensemble is a run in a folder of its own (`ensembles/A+B`); equal ensembles are attacked once,
whoever chose them. What the other models say is in the study's store, a row for each ensemble and model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field, field_validator, model_validator

from stockade.attacks.registry import NamedAttack, make_attacks
from stockade.core.errors import ModelError, OptionError, RunError, unknown_name
from stockade.core.protocols import Classifier
from stockade.core.records import Record
from stockade.core.seeds import derive_rng
from stockade.core.text import Text
from stockade.experiment.export import Layout
from stockade.experiment.inputs import describe_data, describe_model
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.progress import Progress, Runtime, within
from stockade.experiment.result import Verification, Workflow
from stockade.experiment.spec import Attacks, Count
from stockade.experiment.workspace import Workspace
from stockade.models.ensemble import combine, ensemble
from stockade.models.ensemble_reference import EnsembleReference
from stockade.report.document import Document
from stockade.studies.claims import Claim
from stockade.studies.ensemble import analysis
from stockade.studies.ensemble.analysis import METHODS, EnsembleNumbers, Selection
from stockade.studies.ensemble.claims import check_claims
from stockade.studies.ensemble.outside import Transfer, add_answer, read_answers, unanswered
from stockade.studies.ensemble.published import HUMAN, PublishedEnsemble, score_published
from stockade.studies.ensemble.selection import EnsembleSearch, GeneticOptions
from stockade.studies.frame import Option, StudyResult, StudySpec, begin_study, finished
from stockade.studies.records import read_numbers, warn_of_few
from stockade.studies.transferability.cross_scoring import LabelledText, TextScorer, predict
from stockade.studies.transferability.folder import TransferFolder, read_matrix
from stockade.studies.transferability.matrix import TransferMatrix
from stockade.studies.transferability.roster import name_pairs
from stockade.workflows.attack.result import LAYOUT, AttackResult
from stockade.workflows.attack.run import attack_examples
from stockade.workflows.attack.spec import AttackSpec

ENSEMBLES = "ensembles"
"""The folder of the attacks."""
SEARCHED = "searched"
"""The part of the store that holds the matrix and what was chosen on it."""
CLEAN = "clean"
"""What the original texts are called among the answers."""


class EnsembleSpec(StudySpec):
    """What decides the study ensemble: a transfer matrix, models, data, and the options below."""

    kind: ClassVar[str] = "study-ensemble"
    summary: ClassVar[str] = (
        "Which few models, attacked together, make texts that fool most others: searches, transfer."
    )
    several_models: ClassVar[bool] = True

    matrix: Annotated[Path | None, Option(metavar="FILE|FOLDER")] = None
    """The transfer matrix: a csv file, or the folder of a transfer study, whose models and data are the default."""
    attacks: Annotated[Attacks, Option("--attack", "NAME[@PRESET][:OPTION=VALUE,…]")] = Field(
        default_factory=lambda: make_attacks("pwws")
    )
    """The attack on the ensembles.  [default: pwws]"""
    methods: Annotated[tuple[str, ...], Option("--method", "genetic|greedy|exhaustive|human")] = METHODS
    """Who chooses the ensembles that are attacked; repeat for several.  [default: all]"""
    sizes: Annotated[tuple[Count, ...], Option("--size")] = (2, 3, 4, 5, 6, 7)
    """How many members; repeat for several.  [default: 2 to 7]"""
    stand_ins: Annotated[
        Mapping[str, str],
        BeforeValidator(lambda value: name_pairs(value, "--stand-in", "BERT=MiniLM-L6")),
        Option("--stand-in", "NAME=MODEL"),
    ] = Field(default_factory=dict)
    """A model in place of one of the paper's, such as BERT=MiniLM-L6; repeat for several."""
    sampled: Count | None = 500
    """How many adversarial texts of each ensemble are shown to the other models, a seeded sample."""
    population: Count = 100
    """Ensembles in a generation of the genetic search."""
    generations: Annotated[int, Field(ge=0, strict=True)] = 200
    """After how many generations it ends."""
    mutation: float = 0.2
    """The chance that a child has one member replaced."""
    elitism: Annotated[int, Field(ge=0, strict=True)] = 2
    """How many of the best ensembles live on unchanged."""
    search_only: bool = False
    """Choose ensembles, and attack none."""

    @classmethod
    def find_inputs(cls, models: object, data: object, options: Mapping[str, Any]) -> tuple[object, object]:
        if options.get("matrix") is None:
            raise OptionError(
                "The study ensemble needs a transfer matrix: name a csv file or the folder of a transfer study with "
                "--matrix."
            )
        study = TransferFolder.of(Path(options["matrix"]))
        if options.get("search_only") or (study is None and models is None and data is None):
            return {}, None
        if study is not None and data is None:  # a single name can only be that of the data
            named = models[0] if isinstance(models, list) and len(models) == 1 else models
            models, data = None, named if named is not None else study.data
        if study is not None and models is None:
            models = study.trusted_models(bool(options.get("trust")))
        if not models or data is None:
            raise OptionError(
                "The study ensemble takes models and data, or neither to search only: stockade study ensemble "
                "[MODEL… DATA] --matrix FILE."
            )
        return models, data

    @field_validator("models")
    @classmethod
    def _as_many_as_it_takes(cls, models: Mapping[str, object]) -> Mapping[str, object]:
        return models

    @field_validator("attacks")
    @classmethod
    def _one_attack(cls, attacks: tuple[NamedAttack, ...]) -> tuple[NamedAttack, ...]:
        if len(attacks) != 1:
            names = ", ".join(attack.key for attack in attacks) or "none"
            raise OptionError(f"The study ensemble takes one attack, that of its matrix (found: {names}).")
        return attacks

    @field_validator("methods")
    @classmethod
    def _methods_there_are(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        for method in methods:
            if method not in METHODS:
                raise unknown_name("way to choose an ensemble", method, METHODS)
        return methods

    @field_validator("sizes")
    @classmethod
    def _each_size_once(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(sizes)))

    @model_validator(mode="after")
    def _options_that_can_be(self) -> EnsembleSpec:
        self.genetic_options  # noqa: B018  # refuses what it cannot be made of
        return self

    @property
    def genetic_options(self) -> GeneticOptions:
        """Of the genetic search."""
        return GeneticOptions(self.population, self.generations, self.mutation, self.elitism)

    def attack(self, members: Sequence[str], classifier: Classifier) -> AttackSpec:
        """What decides the attack on an ensemble; `classifier` is that ensemble."""
        models = [self.models[name] for name in members]
        named = all(isinstance(model, str | Path) for model in models)
        return AttackSpec.of(
            model=str(EnsembleReference(tuple(map(str, models)))) if named else classifier,
            attacks=self.attacks,
            defenses=(),
            similarity=False,
            **{name: getattr(self, name) for name in StudySpec.model_fields if name != "models"},
        )


class EnsembleResult(StudyResult[EnsembleNumbers]):
    """The study of ensembles: `numbers`, `claims`, and `runs` by the names of ensembles, such as `A+B`."""

    kind: ClassVar[str] = EnsembleSpec.kind
    spec_type: ClassVar[type[StudySpec]] = EnsembleSpec

    @cached_property
    def _searched(self) -> Mapping[str, Any]:
        document = self.store.get(SEARCHED, SEARCHED)
        if document is None:
            raise RunError(f"The study in {self.folder} is not complete: nothing was chosen yet.")
        return document

    @cached_property
    def matrix(self) -> TransferMatrix:
        """The transfer matrix that ensembles were chosen on."""
        stored = self._searched["matrix"]
        rates = np.array(stored["rates"], dtype=np.float64).reshape(len(stored["sources"]), len(stored["targets"]))
        return TransferMatrix(tuple(stored["sources"]), tuple(stored["targets"]), rates)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are members and targets; none if the study only searches."""
        return tuple(self.manifest.inputs["models"])

    @cached_property
    def search(self) -> EnsembleSearch:
        """The sources that ensembles were chosen among."""
        return EnsembleSearch(self.matrix, self.models or None)

    @cached_property
    def selections(self) -> tuple[Selection, ...]:
        """What each method chose."""
        return tuple(
            Selection(**{**entry, "members": tuple(entry["members"])}) for entry in self._searched["selections"]
        )

    @property
    def ensembles(self) -> dict[str, tuple[str, ...]]:
        """The members of the ensembles that are attacked, by name."""
        return {entry.ensemble: entry.members for entry in self.selections} if self.models else {}

    def open_runs(self) -> Mapping[str, AttackResult]:
        return {name: AttackResult.open(self.folder / ENSEMBLES / name) for name in self.ensembles}

    @cached_property
    def samples(self) -> dict[str, list[Record]]:
        """The adversarial texts of each ensemble that other models are shown, in the order of the data."""
        samples = {}
        for name, run in self.runs.items():
            assert isinstance(run, AttackResult)
            records = list(run.records(None, "success"))
            if self.spec.sampled is not None and len(records) > self.spec.sampled:
                chosen = derive_rng(self.spec.seed, "sample", name).sample(range(len(records)), self.spec.sampled)
                records = [records[place] for place in sorted(chosen)]
            samples[name] = records
        return samples

    @cached_property
    def published(self) -> tuple[PublishedEnsemble, ...]:
        """The paper's ensembles on this matrix."""
        return score_published(EnsembleSearch(self.matrix), self.spec.sizes, self.spec.stand_ins)

    @cached_property
    def numbers(self) -> EnsembleNumbers:
        """Fitness, bounds, Table 8, Figure 1, and differences between the ways to choose."""
        answers, seed = read_answers(self.store), self.spec.seed
        raw = Transfer.of(self.ensembles, self.models, answers, seed=seed)
        clean = Transfer.of(self.ensembles, self.models, answers, originals=CLEAN, seed=seed)
        measured = {name: self._measured(name, members, raw, clean) for name, members in self.ensembles.items()}
        base_rate, pair_rate = analysis.matrix_means(self.matrix)
        compared: dict[str, Any] = analysis.compare_methods(raw, self.selections)
        return EnsembleNumbers(
            sources=len(self.matrix.sources),
            targets=len(self.matrix.targets),
            base_rate=base_rate,
            pair_rate=pair_rate,
            selections=self.selections,
            bounds=analysis.prove_bounds(self.search, self.selections),
            published=self.published,
            ensembles=measured,
            rank_correlation=analysis.rank_correlation(measured.values()),
            **compared,
        )

    def _measured(
        self, name: str, members: tuple[str, ...], raw: Transfer, clean: Transfer
    ) -> analysis.MeasuredEnsemble:
        run = self.runs[name]
        assert isinstance(run, AttackResult)
        (attack,) = read_numbers(run, run.attacks).values()
        outside = [target for target in self.models if target not in members]
        return analysis.MeasuredEnsemble(
            members=members,
            methods=tuple(entry.method for entry in self.selections if entry.ensemble == name),
            fitness=self.search.choice(members).fitness,
            outside_fitness=analysis.outside_fitness(self.matrix, members),
            attacked=attack.attacked,
            succeeded=attack.succeeded,
            sampled=len(self.samples[name]),
            mean_queries=attack.mean_queries,
            mean_perturbed_percent=attack.mean_perturbed_percent,
            targets=len(outside),
            transfer=raw.mean(name),
            clean_transfer=clean.mean(name),
            families=analysis.family_rates(raw, name, outside),
        )

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper claims about ensembles, held against the numbers."""
        return check_claims(self.numbers)

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before believing the numbers."""
        candidates, spec, warnings = self.search.names, self.spec, []
        without = [name for name in self.matrix.sources if name not in candidates]
        if without:
            warnings.append(f"Sources of the matrix without a model, so that no ensemble has them: {few(without)}.")
        if any(size > len(candidates) for size in spec.sizes):
            warnings.append(f"There are only {len(candidates)} candidates, so larger ensembles are left out.")
        unmeasured = int(np.isnan(self.matrix.rates).sum())
        if unmeasured:
            warnings.append(f"{unmeasured:,} of {self.matrix.rates.size:,} rates were not measured and count as 0.")
        missing = sorted({name for entry in self.published if entry.selector == HUMAN for name in entry.missing})
        if missing and HUMAN in spec.methods:
            warnings.append(
                f"Members of the human's ensembles that are not in the matrix: {few(missing)}. The ensembles with them "
                "are left out; --stand-in names other models for them."
            )
        if self.ensembles:
            warnings += warn_of_few(min(map(len, self.samples.values())))
        return warnings

    @property
    def complete(self) -> bool:
        """Whether everything was searched and attacked, and all texts were shown to all other models."""
        try:
            outside = {
                target: [name for name, members in self.ensembles.items() if target not in members]
                for target in self.models
            }
        except RunError:
            return False
        return super().complete and not any(unanswered(self.store, *entry) for entry in outside.items())

    def facts(self) -> Mapping[str, object]:
        (attack,) = self.spec.attacks
        return {"matrix": str(self.spec.matrix), "attack": attack.key, "texts": self.manifest.inputs["data"]["size"]}

    @property
    def layout(self) -> Layout:
        return super().layout if self.runs else LAYOUT

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Verify every attack, that fitness follows from the matrix, and the written summary.

        Parameters
        ----------
        model
            The models by name, if they are not where the study found them.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """
        if isinstance(model, Mapping):
            model = {name: ensemble([model[member] for member in members]) for name, members in self.ensembles.items()}
        verification = super().verify(model, trust=trust)
        wrong = [
            f"{entry.method}, {entry.size} members: the fitness does not follow from the matrix"
            for entry in self.selections
            if self.search.choice(entry.members).fitness != entry.fitness
        ]
        return verification.with_problems(wrong, checked=len(self.selections))

    def make_document(self) -> Document:
        """The page: transfer against size, fitness and its bounds, the paper's lists, claims."""
        from stockade.studies.ensemble.page import ensemble_document

        return ensemble_document(self)


def run(spec: EnsembleSpec, folder: Path, runtime: Runtime, resume: bool) -> EnsembleResult:
    """Search, attack the ensembles, then show their texts to one model after the other."""
    models = ModelPool(spec.models, spec.model_options, language=spec.language)
    data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed)
    with begin_study(folder, spec, lambda: _describe(spec, models, data), resume=resume) as workspace:
        inputs = workspace.manifest.inputs
        models.hold_to({name: model["fingerprint"] for name, model in inputs["models"].items()})
        _search(workspace, spec)
        runs = {}
        for name, members in EnsembleResult.of(workspace).ensembles.items():
            place = folder / ENSEMBLES / name
            runs[name] = finished(AttackResult, place) or _attack(spec, members, place, runtime, inputs, data)
        result = EnsembleResult.of_runs(workspace, runs)
        for done, target in enumerate(result.models, 1):
            _ask(result, target, models, data, runtime)
            if runtime.observer is not None:
                runtime.observer(Progress(part="transfer", done=done, total=len(result.models), unit="models"))
        result.write_summary()
    return result


def _describe(spec: EnsembleSpec, models: ModelPool, data: DataPool) -> dict[str, Any]:
    """Look at the matrix, every model and all data once, and say what the manifest records of them."""
    matrix, fingerprint = _matrix(spec)
    candidates = [name for name in matrix.sources if not spec.models or name in spec.models]
    if len(candidates) < 2:
        raise OptionError(
            f"An ensemble needs at least two models that are sources of {spec.matrix} ({few(matrix.sources)}), found: "
            f"{few(tuple(spec.models))}. Give the models the names of the sources."
        )
    described: dict[str, dict[str, Any]] = {}
    about_data: dict[str, Any] = {"reference": None, "size": 0}
    for name in spec.models:
        classifier = models.bare(name)
        data.check_answers(classifier)
        described[name] = describe_model(spec.models[name], classifier)
        about_data = describe_data(spec.data, data.examples(classifier.labels))
        first = next((other for other in candidates if other in described), name)
        if name in candidates and sorted(described[first]["labels"]) != sorted(classifier.labels):
            raise ModelError(
                f"The members of an ensemble need the same classes, but {first} has "
                f"{', '.join(described[first]['labels'])} and {name} has {', '.join(classifier.labels)}: leave one out."
            )
    return {"matrix": fingerprint, "models": described, "data": about_data}


def _search(workspace: Workspace, spec: EnsembleSpec) -> None:
    """Choose the ensembles, unless that is done."""
    if workspace.store.ids(SEARCHED):
        return
    matrix, fingerprint = _matrix(spec)
    if fingerprint != workspace.manifest.inputs["matrix"]:
        raise RunError(f"{spec.matrix} has changed since the study was begun: start again with another --out.")
    search = EnsembleSearch(matrix, spec.models or None)
    published = score_published(EnsembleSearch(matrix), spec.sizes, spec.stand_ins)
    selections = analysis.select(search, spec.sizes, spec.methods, spec.genetic_options, published, spec.seed)
    rates = [[None if np.isnan(rate) else rate for rate in row] for row in matrix.rates.tolist()]
    document = {
        "matrix": {"sources": matrix.sources, "targets": matrix.targets, "rates": rates},
        "selections": [asdict(entry) for entry in selections],
    }
    workspace.store.add(SEARCHED, SEARCHED, document)


def _attack(
    spec: EnsembleSpec,
    members: Sequence[str],
    folder: Path,
    runtime: Runtime,
    inputs: Mapping[str, Any],
    data: DataPool,
) -> AttackResult:
    """Attack one ensemble, whose members must be those that the study was begun with."""
    pool = ModelPool({name: spec.models[name] for name in members}, spec.model_options, held=None)
    pool.hold_to({name: inputs["models"][name]["fingerprint"] for name in members})
    data.hold_to(inputs["data"]["fingerprint"])
    classifier = combine([pool.bare(name) for name in members], names=members)
    observed = replace(runtime, observer=within(folder.name, runtime.observer))
    job = spec.attack(members, classifier)
    return attack_examples(job, folder, observed, True, classifier, data.examples(classifier.labels))


def _ask(result: EnsembleResult, target: str, models: ModelPool, data: DataPool, runtime: Runtime) -> None:
    """Show a model the texts of every ensemble that it is not in, and their originals, unless that is done."""
    outside = [name for name, members in result.ensembles.items() if target not in members]
    if not unanswered(result.store, target, outside):
        return
    data.hold_to(result.manifest.inputs["data"]["fingerprint"])
    classifier = models.bare(target)
    examples = {example.id: example for example in data.examples(classifier.labels)}
    originals = {record.id: examples[record.id].text for records in result.samples.values() for record in records}
    texts = {CLEAN: originals}  # first, so that whoever has answered about the last ensemble has answered about all
    for name in outside:
        records = result.samples[name]
        texts[name] = {record.id: Text.of(record.adversarial_input or "") for record in records}
    scorer = TextScorer(classifier, runtime, seed=result.spec.seed)
    for name in unanswered(result.store, target, texts):
        labelled = [LabelledText(id, text, examples[id].label) for id, text in texts[name].items()]
        add_answer(result.store, target, name, predict(scorer, labelled, name))


def _matrix(spec: EnsembleSpec) -> tuple[TransferMatrix, str]:
    if spec.matrix is None:
        raise OptionError("The study ensemble needs a transfer matrix: name it with --matrix.")
    return read_matrix(spec.matrix, spec.attacks[0].name)


def few(names: Sequence[object], most: int = 8) -> str:
    """The first names of a list, and how many more there are."""
    shown = ", ".join(map(str, names[:most])) or "none"
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


WORKFLOW: Workflow[EnsembleSpec] = Workflow(EnsembleSpec, run, EnsembleResult, reopens=True)
