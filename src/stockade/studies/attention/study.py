"""Runs the study: the plan, a run for each model, what is seen inside the models, the analysis, the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stockade import api
from stockade.core.errors import OptionError, RunError
from stockade.core.files import in_temporary_folder, refuse_existing
from stockade.datasets.source import DataSource
from stockade.experiment.inputs import name_models
from stockade.jobs import DataOptions
from stockade.runs.attack import Observer, Progress
from stockade.runs.finished import finished_run
from stockade.runs.run import Run
from stockade.studies.attention.analysis import analyse
from stockade.studies.attention.headline import headline
from stockade.studies.attention.html import render_body, render_page
from stockade.studies.attention.inside import look_inside
from stockade.studies.attention.markdown import render_markdown
from stockade.studies.attention.models import Models
from stockade.studies.attention.plan import FILE_NAME, Plan, check_same, make_plan, read_plan
from stockade.studies.attention.rating_sheet import check_sheet, write_sheet
from stockade.studies.attention.ratings import keep_ratings
from stockade.studies.attention.tables import shown_tables
from stockade.studies.attention.texts import ChosenTexts
from stockade.studies.attention.victims import ATTACKS, Victim
from stockade.studies.entry import Study, StudyEntry, StudyRequest
from stockade.studies.write import write_pages

NAME = "attention"
SUMMARY = "One-word attacks on several models: who is fooled, where attention goes, how far embeddings move."
OPTIONS: Mapping[str, Any] = {
    "draws": 1000,
    "samples": 10_000,
    "rating_sheet": None,
    "compare": (),
    "ratings": (),
}


def carry_out(request: StudyRequest) -> Study:
    """Without `out` the study lives in a temporary folder as long as the returned object."""
    _check(request.own)
    if request.out is not None:
        return _carry_out(request.out, request)
    if request.resume:
        raise RunError("There is nothing to resume without a folder: name it with --out.")
    return in_temporary_folder(lambda folder: _carry_out(folder, request))


def _carry_out(folder: Path, request: StudyRequest) -> Study:
    models = Models(request)
    plan, source = _plan(folder, request, models)
    sheet = Path(request.own["rating_sheet"]) if request.own["rating_sheet"] else None
    comparisons = check_sheet(sheet, plan, request.own["compare"]) if sheet else []
    keep_ratings(folder, [Path(path) for path in request.own["ratings"]])
    runs = {victim.name: _attacked(folder, victim, plan, source, request, models) for victim in plan.victims}
    inside = {
        victim.name: look_inside(runs[victim.name], victim, models.loader(victim), plan.settings.samples)
        for victim in plan.victims
    }
    numbers = analyse(folder, plan, runs, inside)
    write_pages(folder, numbers, render_markdown(numbers), render_page(plan, numbers))
    if sheet:
        write_sheet(sheet, folder, plan, runs, comparisons)
    return Study(NAME, folder, runs, numbers, lambda: render_body(plan, numbers))


def _check(own: Mapping[str, Any]) -> None:
    for name in ("draws", "samples"):
        if isinstance(own[name], bool) or not isinstance(own[name], int) or own[name] < 1:
            raise OptionError(f"--{name} is {own[name]}, expected a whole number from 1 up.")
    for name in ("compare", "ratings"):
        if isinstance(own[name], str | Path):
            raise OptionError(f"{name} is one string, expected a list of them.")
    if own["compare"] and not own["rating_sheet"]:
        raise OptionError("--compare says what a rating sheet compares: name the sheet with --rating-sheet.")


def _plan(folder: Path, request: StudyRequest, models: Models) -> tuple[Plan, DataSource | None]:
    """The plan of the folder, or a new one; the data, if they are open already."""
    names = name_models(request.models, request.names)
    if request.resume and (folder / FILE_NAME).exists():
        plan = read_plan(folder)
        if request.models:
            check_same(folder, plan, request, names)
        models.remember(plan, names)
        return plan, None
    if not request.models:
        return read_plan(folder), None  # which says what is missing
    refuse_existing(folder, FILE_NAME)
    models.name(names)
    source = request.data_options.load(request.data)
    plan = make_plan(request, models.all(), models.references, source)
    plan.write(folder)
    models.remember(plan, names)
    return plan, source


def _attacked(
    folder: Path, victim: Victim, plan: Plan, source: DataSource | None, request: StudyRequest, models: Models
) -> Run:
    """The run of one model, gone on with if it is not finished. A finished one needs neither model nor data."""
    finished = finished_run(folder / victim.name)
    if finished is not None:
        return finished
    model = models.given(victim)
    source = source or _source(folder, plan, request)
    settings = plan.settings
    return api.attack(
        model,
        ChosenTexts(source, frozenset(plan.choice.ids)),
        *(f"{attack}:draws={settings.draws}" if attack == "random" else attack for attack in victim.attacks),
        seed=settings.seed,
        budget=settings.budget,
        out=folder / victim.name,
        resume=True,
        similarity=False,
        max_words=settings.max_words,
        concurrency=request.concurrency,
        batch_tokens=request.batch_tokens,
        data_options=DataOptions(label_map=plan.data_options.label_map),
        model_options=models.options,
        observer=_named(victim.name, request.observer),
    )


def _source(folder: Path, plan: Plan, request: StudyRequest) -> DataSource:
    """The data again, which must be what they were."""
    given = request.data
    if given is None:
        if plan.needs_objects():
            raise RunError(f"{folder} was made from Python objects: resume it from Python, with the same objects.")
        given = plan.data
    source = plan.data_options.load(given)
    if source.fingerprint() != plan.data_fingerprint:
        raise RunError(f"The data of {folder} have changed since it was begun: start again with another --out.")
    return source


def _named(model: str, observer: Observer | None) -> Observer | None:
    """An observer that is told the model as well."""
    if observer is None:
        return None

    def tell(progress: Progress) -> None:
        observer(replace(progress, attack=f"{model}: {progress.attack}"))

    return tell


ENTRY = StudyEntry(NAME, SUMMARY, ATTACKS, True, OPTIONS, carry_out, headline, shown_tables)
