"""The study of rules: mine them with some models, apply them to the texts of all, hold them against baselines.

Mining jobs are in `rules/`, with a file for each rule set; the attacks on each target are a run in `targets/NAME`, and
what they did is a row of the study's store. Rules of smaller ensembles follow from the largest without asking a model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from stockade.core.errors import InputError, ModelError, RunError
from stockade.datasets.examples import prepare_texts
from stockade.experiment.inputs import describe_data, reference_of, unique_names
from stockade.experiment.pool import DataPool
from stockade.experiment.progress import Runtime, within
from stockade.experiment.result import Verification, Workflow
from stockade.experiment.workspace import Workspace
from stockade.lexicon.rules import load_rules, rules_hash, write_rules
from stockade.report.document import Document
from stockade.studies.claims import Claim
from stockade.studies.frame import StudyResult, StudySpec, begin_study, finished
from stockade.studies.records import warn_of_few
from stockade.studies.rules.analysis import RulesNumbers, analyse
from stockade.studies.rules.claims import check_claims
from stockade.studies.rules.outcomes import OUTCOMES, Outcomes, outcomes_of
from stockade.studies.rules.spec import SET_CODEC, AppliedSet, RulesSpec
from stockade.studies.transferability.roster import Roster, marking, recorded_failures
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.run import attack_examples
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
        return verification.with_problems(problems)

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
