"""Runs a study: its attacks in one run folder that can be resumed, then its analysis, then its pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade import api
from stockade.core.errors import OptionError, RunError, unknown_name
from stockade.jobs import DataOptions, ModelOptions
from stockade.runs.attack import Observer
from stockade.runs.manifest import read_manifest
from stockade.runs.run import Run
from stockade.studies import bae, orders
from stockade.studies.html import render_body
from stockade.studies.write import write_pages


@dataclass(frozen=True, slots=True)
class StudyEntry:
    """One study of the list: its attacks, and how to read a run of them."""

    name: str
    summary: str
    attacks: tuple[str, ...]
    masked_lm_attacks: tuple[str, ...]
    """Those that take `score_first` from the user."""
    check: Callable[[Path, Mapping[str, Any]], None]
    analyse: Callable[..., dict[str, Any]]


STUDIES: Mapping[str, StudyEntry] = {
    bae.NAME: StudyEntry(bae.NAME, bae.SUMMARY, bae.ATTACKS, orders.MODES, bae.check_run, bae.analyse)
}


@dataclass(frozen=True, slots=True)
class Study:
    """A study that was run. `numbers` is what `study.json` holds, `run` every text and attack."""

    name: str
    run: Run
    numbers: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        return self.run.folder

    def _repr_html_(self) -> str:
        return render_body(self.run, self.numbers)


def study(
    name: str,
    model: object = None,
    data: object = None,
    *,
    preset: str | None = None,
    score_first: bool = False,
    fluency: bool = True,
    limit: int | None = None,
    seed: int = 0,
    budget: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    max_words: int = 5_000,
    mlm: str | None = None,
    encoder: str | None = None,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> Study:
    """Run the study of that name and return it; `study.json`, `study.md` and `study.html` are in the run's folder.

    `model` and `data` are what `attack` takes. With `resume` and `out` they may be left out: an interrupted study goes
    on, and a finished one is analysed again without asking the model. `score_first` lets BAE ask the victim before the
    sentence encoder: the same texts with more queries, faster on cheap victims. `fluency=False` leaves the
    pseudo-perplexities out, which cost one pass of the masked LM per piece of each text.
    """
    entry = find_study(name)
    if model is None and data is None and resume and out is not None:
        run = _resumed(entry, Path(out), concurrency, batch_tokens, observer)
    elif model is None or data is None:
        missing = "MODEL and DATA are" if model is None else "DATA is"
        raise OptionError(f"{missing} missing, as in: stockade study {name} builtin:sentiment-cnn builtin:reviews")
    else:
        run = api.attack(
            model,
            data,
            *(_reference(entry, attack, score_first) for attack in entry.attacks),
            preset=preset,
            limit=limit,
            seed=seed,
            budget=budget,
            out=out,
            resume=resume,
            max_words=max_words,
            mlm=mlm,
            encoder=encoder,
            concurrency=concurrency,
            batch_tokens=batch_tokens,
            data_options=data_options,
            model_options=model_options,
            observer=observer,
        )
    numbers = entry.analyse(run, fluency=fluency)
    write_pages(run, numbers)
    return Study(name, run, numbers)


def find_study(name: str) -> StudyEntry:
    if name not in STUDIES:
        raise unknown_name("study", name, STUDIES)
    return STUDIES[name]


def _reference(entry: StudyEntry, attack: str, score_first: bool) -> str:
    return f"{attack}:score_first=true" if score_first and attack in entry.masked_lm_attacks else attack


def _resumed(
    entry: StudyEntry, folder: Path, concurrency: int, batch_tokens: int | None, observer: Observer | None
) -> Run:
    """The run of that folder, gone on with if it is not finished. A finished one needs neither model nor data."""
    entry.check(folder, read_manifest(folder))
    finished = _finished(folder)
    if finished is not None:
        return finished
    return api.resume(folder, concurrency=concurrency, batch_tokens=batch_tokens, observer=observer)


def _finished(folder: Path) -> Run | None:
    """The run, if nothing is left to be attacked or measured."""
    try:
        run = Run(folder)
    except RunError:  # interrupted before its first result; if it is damaged, going on will say so
        return None
    with run.store() as store:
        measured = run.manifest["config"]["similarity"] is None or not any(map(store.unmeasured, run.attacks))
    return run if measured and run.summary["complete"] else None
