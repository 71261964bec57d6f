"""The study of attention: one word replaced by eight attacks, several models, the texts that all of them get right."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

from pydantic import BeforeValidator, Field, model_validator

from stockade.attacks.registry import attacks, make_attack, make_attacks
from stockade.core.errors import OptionError
from stockade.core.files import unreadable
from stockade.core.pairs import Sides
from stockade.core.protocols import AttentionPieces, AttentionQuery, VocabularyKind
from stockade.core.text import Text
from stockade.experiment.progress import Runtime, within
from stockade.experiment.result import Verification, Workflow
from stockade.experiment.spec import Count, Defenses
from stockade.experiment.store import ResultStore
from stockade.experiment.workspace import MANIFEST
from stockade.report.document import Document
from stockade.studies.attention.analysis import AttentionNumbers, ModelResults, analyse
from stockade.studies.attention.choices import measure_choices, read_choices
from stockade.studies.attention.claims import check_claims
from stockade.studies.attention.inputs import GREEDY_EC, LAST_LAYER, LIST, RANDOM, SHOWN, AttentionInputs, Victim
from stockade.studies.attention.inside import (
    AttentionView,
    TextChange,
    changed_texts,
    measure_inside,
    read_changes,
    read_theorem,
)
from stockade.studies.attention.rating_sheet import check_sheet, make_key, write_sheet
from stockade.studies.attention.ratings import RATINGS, Ratings, score_ratings
from stockade.studies.attention.texts import Selection
from stockade.studies.claims import Claim
from stockade.studies.frame import Option, StudyResult, StudySpec, begin_study, finished
from stockade.studies.records import Results, read_results, successes, warn_of_few
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.run import attack_examples
from stockade.workflows.attack.spec import AttackSpec

_ATTACK_OPTIONS = ("layer", "query", "pieces", "vocabulary", "exhaustive", "caution")


def _several(value: object) -> object:
    return value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


class AttentionSpec(StudySpec):
    """What decides the study attention: models, data, and the options below.

    What concerns the rating sheets is done when it is asked for, and is not recorded.
    """

    kind: ClassVar[str] = "study-attention"
    summary: ClassVar[str] = (
        "One-word attacks on several models: who is fooled, where attention goes, how far embeddings move."
    )
    several_models: ClassVar[bool] = True
    free: ClassVar[frozenset[str]] = StudySpec.free | {"rating_sheet", "compare", "ratings"}

    defenses: Annotated[Defenses, Option("--defense", "NAME[@PRESET][:OPTION=VALUE,…]")] = None
    """A defense around each model; repeat from the outside in; none: the bare models."""
    sides: Sides = "hypothesis"
    """Which sides of pairs are edited: hypothesis, premise or both."""
    layer: int = 0
    """The layer whose attention counts: 0 is the first, as in the paper, -1 the last."""
    query: AttentionQuery = "mean"
    """The query tokens whose attention counts: mean over all, or first."""
    pieces: AttentionPieces = "max"
    """The attention of a word of several pieces: max, mean, or sum, which favours long words."""
    vocabulary: VocabularyKind = "all"
    """What may be written: all entries of a model's vocabulary, or words of letters."""
    exhaustive: bool = False
    """Attacks that estimate ask about every word of the vocabulary instead."""
    caution: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """How far an estimate may be off before a word is ruled out, in leave-one-out errors; more asks more."""
    pilot: bool = True
    """Attack self-attentive models by the last layer too, as the paper's pilot study does."""
    draws: Count = 1_000
    """How often the attack random draws per text."""
    samples: Count = 10_000
    """How often the check of Theorem 1 draws per head."""
    rating_sheet: Annotated[Path | None, Option(metavar="FILE.csv"), Field(exclude=True)] = None
    """Write a blind sheet for human raters; its key is written beside it."""
    compare: Annotated[
        tuple[str, ...],
        Option(metavar="MODEL:ATTACK,MODEL:ATTACK"),
        BeforeValidator(_several),
        Field(exclude=True),
    ] = ()
    """What the rating sheet compares, as in bert:gs-ec,lstm:gs-ec; repeat for several comparisons."""
    ratings: Annotated[
        tuple[Path, ...], Option(metavar="FILE.csv"), BeforeValidator(_several), Field(exclude=True)
    ] = ()
    """A filled rating sheet, named after its rater; repeat for several raters."""

    @model_validator(mode="after")
    def _compares_on_a_sheet(self) -> AttentionSpec:
        if self.compare and self.rating_sheet is None:
            raise OptionError("--compare says what a rating sheet compares: name the sheet with --rating-sheet.")
        return self

    def attack(self, victim: Victim) -> AttackSpec:
        """What decides the attacks on one model."""
        attacks = {name: make_attack(name, **self._options(name)) for name in victim.attacks}
        if self.pilot and victim.pilot(self.layer):
            attacks[LAST_LAYER] = make_attack("asmax-ec", **{**self._options("asmax-ec"), "layer": -1})
        shared = {name: getattr(self, name) for name in StudySpec.model_fields if name not in ("models", "limit")}
        return AttackSpec.of(
            model=self.models[victim.name],
            attacks=make_attacks(attacks),
            sides=self.sides,
            **shared,
            defenses=self.defenses,
            similarity=False,
        )

    def _options(self, attack: str) -> dict[str, Any]:
        """The options of this study that an attack has."""
        names = (*_ATTACK_OPTIONS, "draws") if attack == RANDOM else _ATTACK_OPTIONS
        known = attacks()[attack].options
        return {name: getattr(self, name) for name in names if name in known}

    @property
    def view(self) -> AttentionView:
        """Whose attention counts."""
        return AttentionView(self.layer, self.query, self.pieces)


class AttentionResult(StudyResult[AttentionNumbers]):
    """The study of attention: `numbers`, `claims`, and `runs` with every text and attack of each model."""

    kind: ClassVar[str] = AttentionSpec.kind
    spec_type: ClassVar[type[StudySpec]] = AttentionSpec

    @cached_property
    def victims(self) -> Mapping[str, Victim]:
        """The models by name."""
        try:
            return {name: Victim.read(name, model) for name, model in self.manifest.inputs["models"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise unreadable(self.folder / MANIFEST, repr(error)) from None

    @cached_property
    def selection(self) -> Selection:
        """The texts."""
        try:
            return Selection.read(self.manifest.inputs["data"])
        except (KeyError, TypeError) as error:
            raise unreadable(self.folder / MANIFEST, repr(error)) from None

    def open_runs(self) -> Mapping[str, AttackResult]:
        return {name: AttackResult.open(self.folder / name) for name in self.victims}

    @property
    def runs(self) -> Mapping[str, AttackResult]:
        """The attacks on each model."""
        return cast("Mapping[str, AttackResult]", super().runs)

    @cached_property
    def results(self) -> Mapping[str, Results]:
        """What each attack did to each text of each model."""
        return {name: read_results(run, run.attacks) for name, run in self.runs.items()}

    @cached_property
    def changes(self) -> Mapping[str, Mapping[str, TextChange]]:
        """What the successes of gs-ec change inside each model, by text."""
        return {name: read_changes(self.store, name) for name in self.victims}

    @cached_property
    def ratings(self) -> Ratings | None:
        """What human raters said; None before anybody has."""
        return RATINGS.get(self.store)

    @cached_property
    def numbers(self) -> AttentionNumbers:
        """Tables 1 and 3 to 5, Figures 1, 2 and 4, Theorem 1."""
        models = [
            ModelResults(
                victim=victim,
                summaries=self.runs[name].summary["attacks"],
                results=self.results[name],
                changes=list(self.changes[name].values()),
                theorem=read_theorem(self.store, name),
                choices=list(read_choices(self.store, name).values()),
                shown={attack: read_changes(self.store, name, attack) for attack in SHOWN},
            )
            for name, victim in self.victims.items()
        ]
        return analyse(self.selection, models, None if self.ratings is None else score_ratings(self.ratings))

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper claims, held against the numbers."""
        return check_claims(self.numbers, self.results, self.changes)

    @property
    def warnings(self) -> list[str]:
        """Those of the runs, and what this study adds."""
        warnings = [f"{name}: {warning}" for name, run in self.runs.items() for warning in run.summary["warnings"]]
        chosen, spec = len(self.selection.ids), self.spec
        if spec.limit is not None and chosen < spec.limit:
            warnings.append(f"Only {chosen} of the {spec.limit} texts asked for are right with all models.")
        warnings += warn_of_few(chosen)
        if spec.budget is not None:
            warnings.append(
                f"At most {spec.budget:,} queries per text do not reach the whole vocabulary: success rates may be "
                "lower than without a limit, and the word of gs-ec need not be the nearest."
            )
        if len(self.victims) == 1:
            warnings.append("One model alone is compared with nothing: name several before the data.")
        return warnings

    @property
    def complete(self) -> bool:
        """Whether every text was attacked, and every success measured."""
        return super().complete and not any(self._not_measured(name) for name in self.victims)

    def facts(self) -> Mapping[str, object]:
        names = ("sides", *_ATTACK_OPTIONS, "draws", "samples")
        return {name: getattr(self.spec, name) for name in names}

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Verify the attacks on every model, that what was measured inside fits them, and the written summary.

        Parameters
        ----------
        model
            The models by name, if they are not where the study found them.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """
        verification = super().verify(model, trust=trust)
        problems = [f"{name}: {problem}" for name in self.victims for problem in self._not_measured(name)]
        return verification.with_problems(problems)

    def make_document(self) -> Document:
        """The page: models, success rates, claims, examples, attention, embeddings, Theorem 1, raters."""
        from stockade.studies.attention.page import attention_document

        return attention_document(self)

    def _not_measured(self, name: str) -> list[str]:
        """What is missing of the measurements inside a model, or does not fit its attacks."""
        problems: list[str] = []
        for attack in (GREEDY_EC, *(SHOWN if self._measures_choices else ())):
            stored = self.changes[name] if attack == GREEDY_EC else read_changes(self.store, name, attack)
            for change, *_ in changed_texts(successes(self.results[name].get(attack, {})), self.spec.sides):
                measured = stored.get(change.id)
                if measured is None:
                    problems.append(f"example {change.id} was not measured inside the model")
                elif measured.unmeasured != change:
                    problems.append(f"example {change.id} was measured with another text than {attack} made")
        if self.victims[name].without_self_attention is None and read_theorem(self.store, name) is None:
            problems.append("Theorem 1 was not checked")
        return problems

    @property
    def _measures_choices(self) -> bool:
        """Whether the study was begun by a version that shows which words attention chooses."""
        return "pieces" in self.manifest.spec


def run(spec: AttentionSpec, folder: Path, runtime: Runtime, resume: bool) -> AttentionResult:
    """Attack each model, look inside it, analyse; read and write what raters need."""
    inputs = AttentionInputs(spec)
    with begin_study(folder, spec, inputs.describe, resume=resume) as workspace:
        begun, store = AttentionResult.of(workspace), workspace.store
        victims = list(begun.victims.values())
        comparisons = check_sheet(spec.rating_sheet, victims, spec.compare) if spec.rating_sheet else []
        if spec.ratings:
            RATINGS.keep_ratings(store, folder, spec.ratings)
        runs = {}
        for victim in victims:
            observed = dataclasses.replace(runtime, observer=within(victim.name, runtime.observer))
            attacked = runs[victim.name] = _attack(spec, begun, victim, inputs, observed)
            if attacked.complete:  # else something is left for a resume, and texts may still be missing
                _look_inside(store, inputs, victim, attacked, spec, runtime)
        result = AttentionResult.of_runs(workspace, runs)
        result.write_summary()
        if spec.rating_sheet:
            key = make_key(
                comparisons,
                result.results,
                study=folder.name,
                created=workspace.manifest.created,
                seed=spec.seed,
                labels=victims[0].labels,
            )
            write_sheet(spec.rating_sheet, key)
            RATINGS.keep_key(store, key)
            result.write_summary()  # it vouches for what the store holds
    return result


def _attack(
    spec: AttentionSpec, begun: AttentionResult, victim: Victim, inputs: AttentionInputs, runtime: Runtime
) -> AttackResult:
    """The attacks on a model; those that are finished need neither model nor data."""
    folder = begun.folder / victim.name
    attacked = finished(AttackResult, folder)
    if attacked is not None:
        return attacked
    model = inputs.model(victim)
    examples = inputs.examples(model, begun.selection, begun.manifest.inputs["data"]["fingerprint"])
    return attack_examples(spec.attack(victim), folder, runtime, True, model, examples)


def _look_inside(
    store: ResultStore,
    inputs: AttentionInputs,
    victim: Victim,
    attacked: AttackResult,
    spec: AttentionSpec,
    runtime: Runtime,
) -> None:
    texts = {record.id: Text.of(record.original_input, spec.sides) for record in attacked.records(LIST)}
    measured = [attack for attack in (GREEDY_EC, *SHOWN) if attack not in victim.missing]
    measure_inside(
        store,
        victim,
        lambda: inputs.model(victim),
        successes={attack: list(attacked.records(attack, "success")) for attack in measured},
        texts=list(texts.values()),
        samples=spec.samples,
        view=spec.view,
        sides=spec.sides,
        observer=runtime.observer,
    )
    measure_choices(store, victim, lambda: inputs.model(victim), texts, spec.view)


WORKFLOW: Workflow[AttentionSpec] = Workflow(AttentionSpec, run, AttentionResult, reopens=True)
