"""Runs the study: its attacks in one run folder that can be resumed, then the analysis, then the pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockade import api
from stockade.runs.finished import finished_run
from stockade.runs.manifest import read_manifest
from stockade.runs.run import Run
from stockade.studies.bae import tables
from stockade.studies.bae.analysis import ATTACKS, NAME, SUMMARY, analyse, check_run
from stockade.studies.bae.headline import headline
from stockade.studies.bae.html import render_body, render_page
from stockade.studies.bae.markdown import render_markdown
from stockade.studies.bae.orders import MODES
from stockade.studies.entry import Study, StudyEntry, StudyRequest
from stockade.studies.tables import Table
from stockade.studies.write import write_pages

OPTIONS: Mapping[str, Any] = {
    "preset": None,
    "score_first": False,
    "fluency": True,
    "mlm": None,
    "encoder": None,
}


def carry_out(request: StudyRequest) -> Study:
    run = _attacked(request) if request.models else _resumed(request)
    numbers = analyse(run, fluency=request.own["fluency"])
    write_study(run, numbers)
    return Study(NAME, run.folder, {run.name: run}, numbers, lambda: render_body(run, numbers))


def write_study(run: Run, numbers: Mapping[str, Any]) -> Path:
    """Write the pages into the run's folder; the path of `study.html`."""
    return write_pages(run.folder, numbers, render_markdown(numbers), render_page(run, numbers))


def _attacked(request: StudyRequest) -> Run:
    own = request.own
    return api.attack(
        request.models[0],
        request.data,
        *(_reference(attack, own["score_first"]) for attack in ATTACKS),
        preset=own["preset"],
        limit=request.limit,
        seed=request.seed,
        budget=request.budget,
        out=request.out,
        resume=request.resume,
        max_words=request.max_words,
        mlm=own["mlm"],
        encoder=own["encoder"],
        concurrency=request.concurrency,
        batch_tokens=request.batch_tokens,
        data_options=request.data_options,
        model_options=request.model_options,
        observer=request.observer,
    )


def _reference(attack: str, score_first: bool) -> str:
    return f"{attack}:score_first=true" if score_first and attack in MODES else attack


def _resumed(request: StudyRequest) -> Run:
    """The run of that folder, gone on with if it is not finished. A finished one needs neither model nor data."""
    assert request.out is not None
    check_run(request.out, read_manifest(request.out))
    finished = finished_run(request.out)
    if finished is not None:
        return finished
    return api.resume(
        request.out, concurrency=request.concurrency, batch_tokens=request.batch_tokens, observer=request.observer
    )


def _tables(numbers: Mapping[str, Any]) -> list[tuple[str, Table]]:
    splits = f"Table 5, {numbers['splits']['attacked']:,} attacked texts:"
    return [("", tables.main_table(numbers)), (splits, tables.split_table(numbers))]


ENTRY = StudyEntry(NAME, SUMMARY, ATTACKS, False, OPTIONS, carry_out, headline, _tables)
