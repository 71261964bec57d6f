"""The parts of the study for one model: certificates, copies, and attacks on each ensemble. Each is a folder or file of
its own that is gone on with if it is not finished, and read if it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stockade import api
from stockade.certificates.run import CertificateRun
from stockade.certificates.running import certify
from stockade.core.errors import RunError
from stockade.runs.attack import Observer, Progress
from stockade.runs.finished import finished_run
from stockade.runs.run import Run
from stockade.studies.entry import StudyRequest
from stockade.studies.masking.inputs import Inputs
from stockade.studies.masking.looking import Seen, look_at_copies, read_looks
from stockade.studies.masking.plan import Plan
from stockade.studies.masking.victims import Victim, in_ensemble, masking_of

CERTIFICATES = "certificates"


@dataclass(frozen=True, slots=True)
class Parts:
    """What was found of one model; a model that masks nothing has no certificates and no looks."""

    victim: Victim
    certificates: CertificateRun | None
    looks: list[Seen] | None
    attacks: Mapping[str, Run]
    """The attacks by ensemble."""


def run_parts(folder: Path, victim: Victim, plan: Plan, inputs: Inputs, request: StudyRequest) -> Parts:
    """Every part of one model."""
    own = folder / victim.name
    certificates = looks = None
    if victim.masks:
        certificates = _certificates(own / CERTIFICATES, victim, plan, inputs, request)
        looks = read_looks(own)
        if looks is None:
            looks = _looks(own, victim, plan, inputs, request)
    ensembles = victim.ensembles if plan.settings.attacks else ()
    runs = {ensemble: _attacked(own / ensemble, victim, ensemble, plan, inputs, request) for ensemble in ensembles}
    return Parts(victim, certificates, looks, runs)


def _certificates(folder: Path, victim: Victim, plan: Plan, inputs: Inputs, request: StudyRequest) -> CertificateRun:
    finished = _finished(folder)
    if finished is not None:
        return finished
    inputs.examples(victim, plan)
    settings = plan.settings
    return certify(
        inputs.given(victim),
        inputs.data(),
        *settings.methods,
        limit=settings.limit,
        seed=settings.seed,
        max_words=settings.max_words,
        out=folder,
        resume=True,
        concurrency=request.concurrency,
        batch_tokens=request.batch_tokens,
        data_options=inputs.data_options,
        model_options=inputs.model_options,
        observer=_named(victim.name, request.observer),
    )


def _finished(folder: Path) -> CertificateRun | None:
    try:
        run = CertificateRun(folder)
    except RunError:  # not begun, or interrupted before its first certificate; if it is damaged, going on will say so
        return None
    return run if run.summary["complete"] else None


def _looks(folder: Path, victim: Victim, plan: Plan, inputs: Inputs, request: StudyRequest) -> list[Seen]:
    masking = masking_of(victim.name, inputs.given(victim))
    assert masking is not None
    return look_at_copies(
        folder,
        inputs.model(victim, plan),
        masking,
        inputs.examples(victim, plan),
        plan.settings,
        request.concurrency,
        request.batch_tokens,
        _named(victim.name, request.observer),
    )


def _attacked(folder: Path, victim: Victim, ensemble: str, plan: Plan, inputs: Inputs, request: StudyRequest) -> Run:
    finished = finished_run(folder)
    if finished is not None:
        return finished
    inputs.examples(victim, plan)
    settings = plan.settings
    model, options = in_ensemble(victim.name, inputs.given(victim), ensemble, inputs.model_options)
    return api.attack(
        model,
        inputs.data(),
        *settings.attacks,
        limit=settings.limit,
        seed=settings.seed,
        budget=settings.budget,
        out=folder,
        resume=True,
        similarity=False,
        max_words=settings.max_words,
        mlm=settings.mlm,
        encoder=settings.encoder,
        concurrency=request.concurrency,
        batch_tokens=request.batch_tokens,
        data_options=inputs.data_options,
        model_options=options,
        observer=_named(f"{victim.name}, {ensemble}", request.observer),
    )


def _named(name: str, observer: Observer | None) -> Observer | None:
    """An observer that is told the model as well."""
    if observer is None:
        return None

    def tell(progress: Progress) -> None:
        observer(replace(progress, attack=f"{name}: {progress.attack}"))

    return tell
