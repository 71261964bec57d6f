"""Runs the study: the plan, the parts of each model, the numbers, the pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockade.core.errors import OptionError, RunError
from stockade.core.files import in_temporary_folder, refuse_existing
from stockade.experiment.inputs import name_models
from stockade.studies.entry import Study, StudyEntry, StudyRequest
from stockade.studies.masking.analysis import analyse
from stockade.studies.masking.headline import headline
from stockade.studies.masking.html import render_body, render_page
from stockade.studies.masking.inputs import Inputs
from stockade.studies.masking.markdown import render_markdown
from stockade.studies.masking.parts import run_parts
from stockade.studies.masking.plan import FILE_NAME, NAME, Plan, Settings, check_own, check_same, read_plan
from stockade.studies.masking.tables import shown_tables
from stockade.studies.write import write_pages

SUMMARY = "RanMASK at several mask rates: accuracy, what is certified, what is only claimed, robust accuracy."
OPTIONS: Mapping[str, Any] = {"attacks": (), "copies": 5000, "published": False, "mlm": None, "encoder": None}


def carry_out(request: StudyRequest) -> Study:
    """Without `out` the study lives in a temporary folder as long as the returned object."""
    if isinstance(request.own["attacks"], str):
        raise OptionError("attacks is one string, expected a list of them.")
    if request.model_options.defenses:
        raise OptionError(
            "The study masking takes the mask rate of each model from its folder: leave --defense out, and train a "
            "model for each rate."
        )
    Settings.of(request)
    if request.out is not None:
        return _carry_out(request.out, request)
    if request.resume:
        raise RunError("There is nothing to resume without a folder: name it with --out.")
    return in_temporary_folder(lambda folder: _carry_out(folder, request))


def _carry_out(folder: Path, request: StudyRequest) -> Study:
    plan, inputs = _plan(folder, request)
    parts = [run_parts(folder, victim, plan, inputs, request) for victim in plan.victims]
    numbers = analyse(folder, plan, parts, bool(request.own["published"]))
    write_pages(folder, numbers, render_markdown(numbers), render_page(plan, numbers))
    runs = {f"{one.victim.name}/{ensemble}": run for one in parts for ensemble, run in one.attacks.items()}
    return Study(NAME, folder, runs, numbers, lambda: render_body(plan, numbers))


def _plan(folder: Path, request: StudyRequest) -> tuple[Plan, Inputs]:
    """The plan of the folder, or a new one."""
    names = name_models(request.models, request.names)
    if request.resume and (folder / FILE_NAME).exists():
        plan = read_plan(folder)
        if not request.models:
            check_own(folder, plan, request, OPTIONS)
            return plan, Inputs.of_plan(plan)
        check_same(folder, plan, request, names)
        return plan, Inputs.of(request, names)
    if not request.models:
        plan = read_plan(folder)  # which says what is missing
        return plan, Inputs.of_plan(plan)
    refuse_existing(folder, FILE_NAME)
    inputs = Inputs.of(request, names)
    plan = inputs.make_plan(Settings.of(request))
    plan.write(folder)
    return plan, inputs


ENTRY = StudyEntry(NAME, SUMMARY, (), True, OPTIONS, carry_out, headline, shown_tables)
