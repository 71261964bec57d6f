"""The study of rules: mine them with some models, apply them to the texts of all, hold them against baselines.

Mining jobs are in `rules/`, with a file for each rule set; the attacks on each target are a run in `targets/NAME`, and
what they did is a row of the study's store. Rules of smaller ensembles follow from the largest without asking a model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from stockade.attacks.random_synonyms import RandomSynonyms
from stockade.attacks.registry import NamedAttack, make_attacks
from stockade.attacks.rules import Judge, Rules
from stockade.core.errors import InputError, ModelError, OptionError, RunError, unknown_name
from stockade.datasets.examples import prepare_texts
from stockade.experiment.inputs import describe_data, reference_of, unique_names
from stockade.experiment.pool import DataPool
from stockade.experiment.progress import Runtime, within
from stockade.experiment.result import Verification, Workflow
from stockade.experiment.spec import Count, Reference
from stockade.experiment.store import Codec
from stockade.experiment.workspace import Workspace
from stockade.lexicon.rules import load_rules, rules_hash, write_rules
from stockade.report.document import Document
from stockade.studies.claims import Claim
from stockade.studies.frame import Option, StudyResult, StudySpec, begin_study, finished
from stockade.studies.published_ensembles import HUMAN, PUBLISHED
from stockade.studies.records import warn_of_few
from stockade.studies.roster import Roster, marking, name_pairs, recorded_failures
from stockade.studies.rules.analysis import FINAL, OUTCOMES, Outcomes, RulesNumbers, analyse, outcomes_of
from stockade.studies.rules.claims import check_claims
from stockade.studies.transfer_folder import TransferFolder
from stockade.studies.transferability import BERT_FAMILY, traits_of
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.run import attack_examples
from stockade.workflows.attack.spec import AttackSpec
from stockade.workflows.mine.result import MineResult
from stockade.workflows.mine.run import run as mine
from stockade.workflows.mine.spec import MineSpec

TARGETS, RULES = "targets", "rules"
"""Folders: the attacks on each target, and the rules with the jobs that mined them."""
SETS, OUTCOME = "rule sets", "outcomes"
"""Parts of the store: the rule sets, and what they did to each target."""
RANDOM = "random"
COUNTED = ("pmi", "pmi-smoothed")
MAIN_SIZE = 6
"""Table 5 is about rules mined with six models."""
BUDGETS = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30)


def _several(value: object) -> object:
    return value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


@dataclass(frozen=True, slots=True)
class AppliedSet:
    """A rule set of the study.

    Parameters
    ----------
    key
        What it is called.
    file
        Its file; none for random synonyms.
    sha256
        Of the file.
    rules
        How many there are of positive salience.
    models
        What they were mined with, as far as that is recorded.
    size
        How many models that are, for a part of the mined ensemble; 0 for others.
    """

    key: str
    file: str | None
    sha256: str | None
    rules: int
    models: tuple[str, ...] = ()
    size: int = 0


SET_CODEC: Codec[AppliedSet] = Codec(
    dataclasses.asdict, lambda document: AppliedSet(**{**document, "models": tuple(document["models"])})
)


class RulesSpec(StudySpec):
    """What decides the study rules: models, data, and the options below."""

    kind: ClassVar[str] = "study-rules"
    summary: ClassVar[str] = (
        "Word replacement rules mined with some models, on all of them: by family, ensemble size, budget; baselines."
    )
    several_models: ClassVar[bool] = True

    train_data: Annotated[Reference, Option(metavar="DATA")] = None
    """What rules are mined from, and words are counted in; best what the models were trained on."""
    sources: Annotated[tuple[str, ...], Option("--source", "MODEL"), BeforeValidator(_several)] = ()
    """A model to mine with, by its name among MODEL…; repeat in the order in which the ensemble grows.  [default: those
    of the transfer paper's human expert]"""
    stand_ins: Annotated[
        Mapping[str, str],
        BeforeValidator(lambda value: name_pairs(value, "--stand-in", "BERT=MiniLM-L6")),
        Option("--stand-in", "NAME=MODEL"),
    ] = Field(default_factory=dict)
    """A model in place of one of the expert's, such as BERT=MiniLM-L6; repeat for several.  [default: for BERT the
    first of its family]"""
    rules: Annotated[tuple[Path, ...], Option("--rules", "FILE"), BeforeValidator(_several)] = ()
    """Rules to apply in place of mining; repeat for several."""
    max_changed: float = 0.3
    """The largest share of the words that may change."""
    mine_limit: Count | None = 5_000
    """Mine a seeded sample of so many training texts."""
    min_count: Count = 2
    """Leave out rules with fewer places in the training texts."""
    max_count: Count = 3
    """Score a rule at a seeded sample of so many places."""
    transfer: Annotated[Path | None, Option(metavar="FOLDER")] = None
    """The folder of a transfer study, whose models and data are the default."""

    @classmethod
    def find_inputs(cls, models: object, data: object, options: Mapping[str, Any]) -> tuple[object, object]:
        """The models and data; those of a transfer study if it is named, where a single name is that of the data."""
        if options.get("transfer") is None:
            return super().find_inputs(models, data, options)
        study = TransferFolder.of(Path(options["transfer"]))
        if study is None:
            raise OptionError(f"{options['transfer']} is not the folder of a transfer study: name one, or MODEL… DATA.")
        if data is None and isinstance(models, list) and len(models) == 1:
            data, models = models[0], None
        named = models if models else dict(study.models) or None
        return super().find_inputs(named, data if data is not None else study.data, options)

    @field_validator("max_changed")
    @classmethod
    def _a_share(cls, share: float) -> float:
        if not 0 < share <= 1:
            raise OptionError(f"--max-changed is {share:g}, expected a share of the words above 0, at most 1.")
        return share

    @model_validator(mode="after")
    def _something_to_apply(self) -> Self:
        for name in (*self.sources, *self.stand_ins.values()):
            if name not in self.models:
                raise unknown_name("model in this study", name, self.models)
        if len(set(self.sources)) < len(self.sources):
            raise OptionError(f"--source names a model twice: {', '.join(self.sources)}.")
        if self.train_data is None and not self.rules:
            raise OptionError(
                "The study rules needs texts to mine from: name them with --train-data DATA, or rules with --rules."
            )
        if not self.rules and not self.mined_with:
            raise OptionError(
                f"None of the models that the paper mined with ({', '.join(PUBLISHED[HUMAN][7])}) is among "
                f"{', '.join(self.models)}. Name those to mine with: --source {next(iter(self.models))}."
            )
        return self

    @property
    def mined_with(self) -> tuple[str, ...]:
        """The models to mine with, in the order in which the ensemble grows."""
        if self.sources or self.rules:
            return self.sources
        family = (name for name in self.models if traits_of(name).architecture == BERT_FAMILY)
        stand_ins = {"BERT": next(family, "BERT"), **self.stand_ins}
        listed = [name if name in self.models else stand_ins.get(name, name) for name in PUBLISHED[HUMAN][7]]
        return tuple(name for name in dict.fromkeys(listed) if name in self.models)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many models rules are mined with: two and more, or the only one."""
        return tuple(range(min(2, len(self.mined_with)), len(self.mined_with) + 1)) if self.mined_with else ()

    @property
    def budgets(self) -> tuple[float, ...]:
        """The shares of words of Table 10 that the attack allows."""
        return tuple(budget for budget in BUDGETS if budget < self.max_changed) + (self.max_changed,)

    def mining(self, method: str) -> MineSpec:
        """What decides a mining job."""
        models = {name: self.models[name] for name in self.mined_with} if method == "uawr" else {}
        shared = {name: getattr(self, name) for name in ("seed", "max_words", "mlm", "encoder")}
        return MineSpec.of(
            models=models,
            data=self.train_data,
            method=method,
            min_count=self.min_count,
            max_count=self.max_count,
            limit=self.mine_limit,
            data_options=self.data_options,
            model_options=self.model_options,
            **shared,
        )

    def attack(self, model: object, sets: Sequence[AppliedSet], main: str) -> AttackSpec:
        """What decides the attacks on one target: every rule set judged after each replacement; the main one and the
        baselines by the last text too.
        """
        attacks: dict[str, NamedAttack | Rules | RandomSynonyms] = {}
        for entry in sets:
            attacks[entry.key] = self._attack(entry, "any-prefix")
            if entry.key == main or not entry.size:
                attacks[entry.key + FINAL] = self._attack(entry, "final")
        shared = {name: getattr(self, name) for name in StudySpec.model_fields if name != "models"}
        return AttackSpec.of(model=model, attacks=make_attacks(attacks), similarity=False, **shared)

    def _attack(self, entry: AppliedSet, judge: Judge) -> Rules | RandomSynonyms:
        if entry.file is None:
            return RandomSynonyms(budget=self.max_changed, judge=judge)
        return Rules(file=entry.file, budget=self.max_changed, judge=judge)


class RulesResult(StudyResult[RulesNumbers]):
    """The study of rules: `numbers`, `claims`, `mining` with the rules, and `runs` with the attacks on each target."""

    kind: ClassVar[str] = RulesSpec.kind
    spec_type: ClassVar[type[StudySpec]] = RulesSpec

    @cached_property
    def sets(self) -> tuple[AppliedSet, ...]:
        """The rule sets, in the order in which they are applied."""
        return tuple(map(SET_CODEC.read, self.store.documents(SETS)))

    @property
    def main(self) -> str:
        """The rule set that the study is about: that of six models, or as many as there are; else the first file."""
        if not self.sets:
            raise RunError(f"The study in {self.folder} is not complete: there are no rules yet.")
        sizes = {entry.size: entry.key for entry in self.sets if entry.size}
        return sizes[min(MAIN_SIZE, max(sizes))] if sizes else self.sets[0].key

    @property
    def mining(self) -> MineResult | None:
        """The job that mined the rules; None if they were given."""
        return None if self.spec.rules else finished(MineResult, self.folder / RULES / "uawr")

    @cached_property
    def failures(self) -> Mapping[str, str]:
        """Why targets could not be attacked."""
        return recorded_failures(self.store)

    def open_runs(self) -> Mapping[str, AttackResult]:
        names = [name for name in self.spec.models if name in self.store.ids(OUTCOME)]
        return {name: AttackResult.open(self.folder / TARGETS / name) for name in names}

    @property
    def runs(self) -> Mapping[str, AttackResult]:
        """The attacks on each target."""
        return cast("Mapping[str, AttackResult]", super().runs)

    @cached_property
    def outcomes(self) -> Outcomes:
        """What every rule set did to every text of every target."""
        stored = {entry.target: entry for entry in map(OUTCOMES.read, self.store.documents(OUTCOME))}
        targets = [stored[name] for name in self.spec.models if name in stored]
        sources = {model for entry in self.sets for model in entry.models}
        return Outcomes(targets, (*self.spec.mined_with, *sources), self.spec.seed)

    @cached_property
    def numbers(self) -> RulesNumbers:
        """Tables 5, 9 and 10, and mined rules against their baselines."""
        return analyse(
            self.outcomes,
            main=self.main,
            by_size={entry.size: entry.key for entry in self.sets if entry.size},
            baselines=[entry.key for entry in self.sets if not entry.size and entry.key != self.main],
            rule_sets={entry.key: entry.rules for entry in self.sets},
            budgets=self.spec.budgets,
        )

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper claims, held against the numbers."""
        return check_claims(self.numbers)

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before believing the numbers."""
        warnings = [f"{name} was left out: {reason}" for name, reason in self.failures.items()]
        if self.manifest.inputs["train"] == self.manifest.inputs["data"]["fingerprint"]:
            warnings.append("Rules were mined from the texts that they are applied to: they fit these texts too well.")
        if not any(target.held_out for target in self.numbers.targets.values()):
            warnings.append("Every target was mined with, so nothing is said about models that nobody asked.")
        mining = self.mining
        if mining is not None:
            warnings += mining.summary["warnings"]
        attacked = [target.attacked for target in self.numbers.targets.values()]
        return [*warnings, *warn_of_few(min(attacked, default=0))]

    @property
    def complete(self) -> bool:
        """Whether every rule set was applied to every target, but for those that are marked with a reason."""
        done = self.store.ids(OUTCOME)
        return bool(self.sets) and all(name in done or name in self.failures for name in self.spec.models)

    def problem(self) -> str | None:
        """The first failure, if there is no target."""
        if self.store.ids(OUTCOME):
            return None
        return next((f"{name}: {reason}" for name, reason in self.failures.items()), None)

    def facts(self) -> Mapping[str, object]:
        return {
            "train_data": None if self.spec.train_data is None else reference_of(self.spec.train_data),
            "mined_with": list(self.spec.mined_with),
            "max_changed": self.spec.max_changed,
            "texts": len(self.outcomes.ids),
            "sets": [SET_CODEC.encode(entry) for entry in self.sets],
        }

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Verify the attacks on every target, that what is kept of them and of the rules fits, and the summary.

        Parameters
        ----------
        model
            The models by name, if they are not where the study found them.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """
        verification = super().verify(model, trust=trust)
        problems = [
            f"{name}: what is kept of the attacks is not what they did"
            for name, run in self.runs.items()
            if self.store.get(OUTCOME, name) != OUTCOMES.encode(_kept(name, run))
        ]
        for entry in self.sets:
            if entry.file is not None and not _is_same(entry):
                problems.append(f"{entry.key}: {entry.file} is not the file that was applied")
        return Verification(verification.checked, (*verification.problems, *problems))

    def make_document(self) -> Document:
        """The page: families, held-out models, claims, sizes, budgets, universal texts, rules."""
        from stockade.studies.rules.page import rules_document

        return rules_document(self)


def run(spec: RulesSpec, folder: Path, runtime: Runtime, resume: bool) -> RulesResult:
    """Mine, attack every target, analyse; what is done already is not done again."""
    data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed)

    def describe() -> dict[str, Any]:
        spec.language.check()
        for file in spec.rules:
            load_rules(file)
        Roster(spec.models, data, spec.model_options, spec.language, spec.seed).check()
        texts = prepare_texts(data.source(), limit=spec.limit, seed=spec.seed)
        train = None if spec.train_data is None else spec.data_options.load(spec.train_data).fingerprint()
        return {"data": describe_data(spec.data, texts), "train": train}

    with begin_study(folder, spec, describe, resume=resume) as workspace:
        data.hold_to(workspace.manifest.inputs["data"]["fingerprint"])
        if not workspace.store.ids(SETS):
            _collect_rules(spec, workspace, runtime)
        begun = RulesResult.of(workspace)
        runs: dict[str, AttackResult] = {}
        if begun.sets:
            roster = Roster(spec.models, data, spec.model_options, spec.language, spec.seed)
            for name in spec.models:
                _apply(spec, begun, roster, name, runtime, runs)
        result = RulesResult.of_runs(workspace, runs)
        if result.sets:
            result.write_summary()
    return result


def _collect_rules(spec: RulesSpec, workspace: Workspace, runtime: Runtime) -> None:
    """Mine or read all rule sets and record them; nothing is recorded if a time limit ends the mining."""
    folder = workspace.folder / RULES
    sets: list[AppliedSet] = []
    if spec.rules:
        names = unique_names(path.stem for path in spec.rules)
        sets += [_described(name, path.resolve()) for name, path in zip(names, spec.rules, strict=True)]
    else:
        mined = _mined(spec.mining("uawr"), folder / "uawr", runtime)
        if mined is None:
            return
        for size in spec.sizes:
            members = spec.mined_with[:size]
            file = folder / f"uawr-{size}.jsonl"
            write_rules(file, mined.rules(members))
            sets.append(dataclasses.replace(_described(file.stem, file.resolve()), models=members, size=size))
    for method in COUNTED if spec.train_data is not None else ():
        counted = _mined(spec.mining(method), folder / method, runtime)
        if counted is None:
            return
        sets.append(_described(method, counted.path.resolve()))
    sets.append(AppliedSet(RANDOM, None, None, 0))
    for place, entry in enumerate(sets):
        workspace.store.add(SETS, entry.key, SET_CODEC.encode(entry), position=place)


def _mined(spec: MineSpec, folder: Path, runtime: Runtime) -> MineResult | None:
    """A mining job, which is not run again; None if something is left to do."""
    observed = dataclasses.replace(runtime, observer=within(spec.method, runtime.observer))
    result = finished(MineResult, folder) or mine(spec, folder, observed, True)
    problem = result.problem()
    if problem is not None:
        raise RunError(f"{spec.method}: {problem}")
    return result if result.complete else None


def _described(key: str, file: Path) -> AppliedSet:
    ruleset = load_rules(file)
    models = ruleset.provenance.get("models", ())
    named = tuple(map(str, models)) if isinstance(models, list | tuple) else ()
    return AppliedSet(key, str(file), rules_hash(file), sum(rule.salience > 0 for rule in ruleset.rules), named)


def _apply(
    spec: RulesSpec, begun: RulesResult, roster: Roster, name: str, runtime: Runtime, runs: dict[str, AttackResult]
) -> None:
    """Attack one target with all rule sets; one that cannot be used is marked, and the others go on."""
    folder = begun.folder / TARGETS / name
    result = finished(AttackResult, folder)
    if result is None:
        with marking(begun.store, name, "attack"):
            classifier, examples = roster.load(name, begun.store)
            observed = dataclasses.replace(runtime, observer=within(name, runtime.observer))
            job = spec.attack(roster.reference(name), begun.sets, begun.main)
            result = attack_examples(job, folder, observed, True, classifier, examples)
            problem = result.problem()
            if problem is not None:
                raise ModelError(problem)
    if result is not None and result.complete and result.problem() is None:
        runs[name] = result
        if name not in begun.store.ids(OUTCOME):
            begun.store.add(OUTCOME, name, OUTCOMES.encode(_kept(name, result)))


def _kept(name: str, run: AttackResult) -> Any:
    return outcomes_of(name, {key: run.records(key) for key in run.attacks})


def _is_same(entry: AppliedSet) -> bool:
    try:
        return entry.file is not None and rules_hash(entry.file) == entry.sha256
    except InputError:  # gone, or no rules any more
        return False


WORKFLOW: Workflow[RulesSpec] = Workflow(RulesSpec, run, RulesResult, reopens=True)
