"""The study of RanMASK: certificates, estimates of β and attacks for a model of each mask rate."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from stockade.core.files import unreadable
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet
from stockade.defenses.defended import Defended
from stockade.defenses.registry import make_defense
from stockade.experiment.export import Layout
from stockade.experiment.progress import Runtime, within
from stockade.experiment.result import Result, Verification, Workflow
from stockade.experiment.spec import Attacks
from stockade.experiment.workspace import MANIFEST, Workspace
from stockade.report.document import Document
from stockade.studies.claims import Claim
from stockade.studies.frame import Option, StudyResult, StudySpec, begin_study, finished
from stockade.studies.masking.analysis import MaskingNumbers, RateNumbers, UndefendedNumbers, analyse_rate
from stockade.studies.masking.beta import TextEstimate, estimate_betas, read_estimates
from stockade.studies.masking.claims import check_claims
from stockade.studies.masking.runs import by_rate, choose_rate, mean_texts, measure_runs, one_per_rate
from stockade.studies.masking.texts import read_texts
from stockade.studies.masking.victims import BARE, LEGACY, SOUND, MaskingInputs, Victim, in_ensemble
from stockade.studies.records import FEW_TEXTS, AttackNumbers, read_numbers
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.run import attack_examples
from stockade.workflows.attack.spec import AttackSpec
from stockade.workflows.certify.result import CertifyResult
from stockade.workflows.certify.run import certify_examples
from stockade.workflows.certify.spec import CertifySpec

CERTIFICATES = "certificates"
"""The folder of a model's certificates inside the model's, beside those of its ensembles."""
UNANIMOUS = 0.5
"""From this share of texts on which all copies vote alike, a search that follows scores mostly sees nothing."""


class MaskingSpec(StudySpec):
    """What decides the study masking: models of several mask rates, data, and the options below."""

    kind: ClassVar[str] = "study-masking"
    summary: ClassVar[str] = (
        "RanMASK at several mask rates: accuracy, what is certified, what is only claimed, robust accuracy."
    )
    several_models: ClassVar[bool] = True
    free: ClassVar[frozenset[str]] = StudySpec.free | {"published"}

    attacks: Annotated[
        Attacks, BeforeValidator(lambda value: value or ()), Option("--attack", "NAME[@PRESET][:OPTION=VALUE,…]")
    ] = ()
    """An attack on each ensemble of each model; repeat for several."""
    copies: Annotated[int, Field(ge=2, strict=True)] = 5_000
    """Masked copies per text: the most that a certificate counts, and those of the check of β."""
    published: bool = False
    """Show the paper's Tables 2 and 3 beside the numbers."""

    def certify(self, victim: Victim) -> CertifySpec:
        """What decides the certificates of a model; a fifth of the copies chooses the class, as published."""
        selection = max(1, self.copies // 5)
        methods = [f"{SOUND}:most={self.copies}", f"{LEGACY}:most={self.copies},selection={selection}"]
        return CertifySpec.of(model=self.models[victim.name], methods=methods, **self._shared("budget"))

    def attack(self, victim: Victim, ensemble: str) -> AttackSpec:
        """What decides the attacks on a model whose copies are taken together in that way."""
        model, defenses = in_ensemble(self.models[victim.name], ensemble), None
        if victim.masking is not None and not isinstance(model, Defended):
            defenses = (make_defense(dataclasses.replace(victim.masking, combine=ensemble)),)  # type: ignore[arg-type]
        return AttackSpec.of(model=model, attacks=self.attacks, defenses=defenses, similarity=False, **self._shared())

    def _shared(self, *without: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in StudySpec.model_fields if name not in ("models", *without)}


class MaskingResult(StudyResult[MaskingNumbers]):
    """The study of RanMASK: `numbers`, `claims`, and `runs` such as MODEL/certificates, MODEL/vote and MODEL/logit."""

    kind: ClassVar[str] = MaskingSpec.kind
    spec_type: ClassVar[type[StudySpec]] = MaskingSpec

    @cached_property
    def victims(self) -> tuple[Victim, ...]:
        """The models by rising mask rate."""
        try:
            return tuple(Victim.read(name, model) for name, model in self.manifest.inputs["models"].items())
        except (KeyError, TypeError, AttributeError) as error:
            raise unreadable(self.folder / MANIFEST, repr(error)) from None

    @property
    def masked(self) -> tuple[Victim, ...]:
        """The models that mask words."""
        return tuple(victim for victim in self.victims if victim.masking is not None)

    @property
    def attacks(self) -> tuple[str, ...]:
        """The attacks by the names that the runs call them."""
        return tuple(attack.key for attack in self.spec.attacks)

    def open_runs(self) -> Mapping[str, Result]:
        runs: dict[str, Result] = {}
        for victim in self.victims:
            if victim.masking is not None:
                runs[f"{victim.name}/{CERTIFICATES}"] = CertifyResult.open(self.folder / victim.name / CERTIFICATES)
            for ensemble in victim.ensembles if self.attacks else ():
                runs[f"{victim.name}/{ensemble}"] = AttackResult.open(self.folder / victim.name / ensemble)
        return runs

    def certificates(self, victim: Victim) -> CertifyResult:
        """The certificates of a model that masks words."""
        run = self.runs[f"{victim.name}/{CERTIFICATES}"]
        assert isinstance(run, CertifyResult)
        return run

    def attacked(self, victim: Victim) -> dict[str, dict[str, AttackNumbers]]:
        """What each attack does to each ensemble of a model."""
        runs = {ensemble: self.runs.get(f"{victim.name}/{ensemble}") for ensemble in victim.ensembles}
        return {
            ensemble: read_numbers(run, self.attacks) for ensemble, run in runs.items() if isinstance(run, AttackResult)
        }

    @cached_property
    def estimates(self) -> Mapping[str, Sequence[TextEstimate]]:
        """What the masked copies of each text say of β, for each model that masks words."""
        return {victim.name: read_estimates(self.store, victim.name) for victim in self.masked}

    @cached_property
    def numbers(self) -> MaskingNumbers:
        """Tables 2 and 3, Figures 2 and 3, equation 10."""
        undefended = [
            UndefendedNumbers(
                model=victim.name, reference=victim.reference, attacks=self.attacked(victim).get(BARE, {})
            )
            for victim in self.victims
            if victim.masking is None
        ]
        rates = [
            analyse_rate(victim, self.certificates(victim), self.estimates[victim.name], self.attacked(victim))
            for victim in self.masked
        ]
        shared = Counter(entry.rate for entry in rates)
        rates = [dataclasses.replace(entry, run=entry.model if shared[entry.rate] > 1 else "") for entry in rates]
        return MaskingNumbers(
            rates=tuple(rates),
            undefended=undefended[0] if undefended else None,
            runs=measure_runs(rates),
            chosen=choose_rate(rates),
        )

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper claims, held against the numbers."""
        texts = {
            victim.name: read_texts(self.certificates(victim), self._attack_runs(victim)) for victim in self.masked
        }
        rates = self.numbers.rates
        groups = [mean_texts([texts[entry.model] for entry in group]) for group in by_rate(rates)]
        return check_claims(one_per_rate(rates), groups, self.attacks)

    def _attack_runs(self, victim: Victim) -> dict[str, AttackResult]:
        """The attacks on each ensemble of a model."""
        runs = {ensemble: self.runs.get(f"{victim.name}/{ensemble}") for ensemble in victim.ensembles}
        return {ensemble: run for ensemble, run in runs.items() if isinstance(run, AttackResult)}

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before believing the numbers."""
        spec, texts = self.spec, self.manifest.inputs["data"]["size"]
        warnings: list[str] = []
        for entry in self.numbers.rates:
            warnings += _certificate_warnings(entry, bool(self.attacks))
        for victim in self.victims:
            for ensemble, attacks in self.attacked(victim).items():
                warnings += [
                    f"{victim.name}, {ensemble}: {attack} ended in an error on {numbers.errors:,} of {texts:,} texts, "
                    "which are left out."
                    for attack, numbers in attacks.items()
                    if numbers.errors
                ]
        if texts < FEW_TEXTS:
            counted = "1 text was" if texts == 1 else f"{texts} texts were"
            warnings.append(f"Only {counted} studied: read the intervals, claims and medians may be chance.")
        if self.attacks and spec.budget is not None:
            warnings.append(
                f"At most {spec.budget:,} queries per text: an attack that runs out of them leaves a text robust that "
                "it might have changed."
            )
        if len({victim.rate for victim in self.masked}) == 1:
            warnings.append("One mask rate alone shows no curve: give models of several rates before the data.")
        return warnings

    @property
    def complete(self) -> bool:
        """Whether every text is certified and attacked, and β estimated on each."""
        texts = self.manifest.inputs["data"]["size"]
        return super().complete and all(len(estimates) == texts for estimates in self.estimates.values())

    def facts(self) -> Mapping[str, object]:
        data = self.manifest.inputs["data"]
        return {
            "copies": self.spec.copies,
            "texts": data["size"],
            "total": data["rows"],
            "attacks": list(self.attacks),
            "published": self.spec.published,
        }

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """The rows of all jobs inside, certificates and attacks, under the columns of both."""
        empty = dict.fromkeys(self.layout.columns)
        return ({**empty, **row} for row in super().rows())

    @property
    def layout(self) -> Layout:
        layouts = [run.layout for run in self.runs.values()]
        columns = dict.fromkeys(column for layout in layouts for column in layout.columns)
        return Layout(
            ("run", *columns) if len(layouts) > 1 else tuple(columns),
            tuple(dict.fromkeys(column for layout in layouts for column in layout.nested)),
            lambda: {name: kind for layout in layouts for name, kind in layout.kinds().items()},
        )

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Verify every job inside, that the estimates of β fit the texts, and the written summary.

        Parameters
        ----------
        model
            The models by name, or the only one, if they are not where the study found them; they are then asked about
            fresh masked copies of every certified text as well.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """
        models = model if isinstance(model, Mapping) else dict.fromkeys([victim.name for victim in self.victims], model)
        by_run = {}
        for name in self.runs:
            victim, _, job = name.rpartition("/")
            by_run[name] = in_ensemble(models.get(victim), job) if job != CERTIFICATES else models.get(victim)
        verification = super().verify(None if model is None else by_run, trust=trust)
        problems = [f"{victim.name}: {problem}" for victim in self.masked for problem in self._wrong_estimates(victim)]
        estimates = sum(map(len, self.estimates.values()))
        return verification.with_problems(problems, checked=estimates)

    def _wrong_estimates(self, victim: Victim) -> Iterator[str]:
        """Where estimates of β are missing, or do not fit the texts that were certified."""
        assert victim.masking is not None
        estimates = {text.id: text for text in self.estimates[victim.name]}
        for certificate in self.certificates(victim).records(LEGACY):
            text, words = estimates.get(certificate.id), certificate.text.split()
            estimate = None if text is None else text.estimate
            if text is None:
                yield f"β was not estimated on example {certificate.id}"
            elif estimate is not None and (
                words[estimate.position : estimate.position + 1] != [text.word]
                or estimate.touched != victim.masking.kept_of(len(words)) / len(words)
            ):
                yield f"β was estimated on another text than example {certificate.id}, or with another masking"

    def make_document(self) -> Document:
        """The page: certificates, robust accuracy, the check of β, the risk of a rate, claims."""
        from stockade.studies.masking.page import masking_document

        return masking_document(self)


def _certificate_warnings(entry: RateNumbers, attacked: bool) -> Iterator[str]:
    certificates = entry.certificates
    if certificates.errors:
        yield f"{entry.model}: {certificates.errors:,} texts ended in an error and count as not certified."
    unanimous = certificates.votes.unanimous
    if attacked and unanimous is not None and unanimous >= UNANIMOUS:
        yield (
            f"{entry.model}: all copies vote alike on {unanimous:.0%} of the texts. Such votes starve a search that "
            "follows scores: robust accuracy by vote is no evidence of robustness, read logit and probability."
        )


def run(spec: MaskingSpec, folder: Path, runtime: Runtime, resume: bool) -> MaskingResult:
    """Certify, estimate β and attack, model by model; what is done already needs no model."""
    inputs = MaskingInputs(spec)
    with begin_study(folder, spec, inputs.describe, resume=resume) as workspace:
        runs: dict[str, Result] = {}
        for victim in MaskingResult.of(workspace).victims:
            runs |= _run_jobs(spec, workspace, victim, inputs, runtime)
        result = MaskingResult.of_runs(workspace, runs)
        result.write_summary()
    return result


def _run_jobs(
    spec: MaskingSpec, workspace: Workspace, victim: Victim, inputs: MaskingInputs, runtime: Runtime
) -> dict[str, Result]:
    """Every job of one model, in folders of the model's, and its estimates of β in the store."""
    data, folder = workspace.manifest.inputs["data"], workspace.folder / victim.name
    runs: dict[str, Result] = {}

    @cache
    def load() -> tuple[Classifier, ExampleSet]:
        return inputs.load(victim, data["fingerprint"])

    def observed(part: str) -> Runtime:
        return dataclasses.replace(runtime, observer=within(part, runtime.observer))

    if victim.masking is not None:
        certified = finished(CertifyResult, folder / CERTIFICATES)
        if certified is None:
            certified = certify_examples(
                spec.certify(victim), folder / CERTIFICATES, observed(victim.name), True, *load()
            )
        runs[f"{victim.name}/{CERTIFICATES}"] = certified
        if len(read_estimates(workspace.store, victim.name)) < data["size"]:
            estimate_betas(workspace.store, spec, victim, *load(), observed(victim.name))
    for ensemble in victim.ensembles if spec.attacks else ():
        name = f"{victim.name}/{ensemble}"
        attacked = finished(AttackResult, folder / ensemble)
        if attacked is None:
            classifier, examples = load()
            job, model = spec.attack(victim, ensemble), in_ensemble(classifier, ensemble)
            attacked = attack_examples(job, folder / ensemble, observed(name), True, model, examples)
        runs[name] = attacked
    return runs


WORKFLOW: Workflow[MaskingSpec] = Workflow(MaskingSpec, run, MaskingResult, reopens=True)
