"""The list of studies, and the one function that runs any of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockade.core.errors import OptionError, unknown_name
from stockade.jobs import DataOptions, ModelOptions
from stockade.runs.attack import Observer
from stockade.studies.attention.study import ENTRY as ATTENTION
from stockade.studies.entry import Study, StudyEntry, StudyRequest
from stockade.studies.masking.study import ENTRY as MASKING

__all__ = ["STUDIES", "Study", "StudyEntry", "find_study", "study"]

STUDIES: Mapping[str, StudyEntry] = {entry.name: entry for entry in (ATTENTION, MASKING)}


def study(
    name: str,
    model: object = None,
    data: object = None,
    *,
    limit: int | None = None,
    seed: int = 0,
    budget: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    max_words: int = 5_000,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
    **own: Any,
) -> Study:
    """Run the study of that name and return it; `study.json`, `study.md` and `study.html` are in its folder.

    `model` and `data` are what `attack` takes; a study of several models takes a list of them, or a dictionary that
    names them. With `resume` and `out` they may be left out: an interrupted study goes on, and a finished one is
    analysed again without asking a model. `own` are options that only this study has.

    bae: `preset`, `mlm`, `encoder`, `score_first` (BAE asks the victim before the sentence encoder: the same texts with
    more queries, faster on cheap victims), `fluency=False` (leaves out the pseudo-perplexities, which cost one pass of
    the masked LM per piece of each text).

    attention: `draws` (of the attack `random` per text), `samples` (of the check of Theorem 1), `rating_sheet` (a csv
    to write for human raters), `compare` (what the sheet compares), `ratings` (filled sheets to read).

    masking: `attacks` (on each ensemble of each model), `copies` (masked copies per text), `published` (the paper's
    numbers beside), `mlm`, `encoder`. Each model is one that was trained with ranmask, at a rate of its own.
    """
    entry = find_study(name)
    _check_own(entry, own)
    models, names = _models(entry, model)
    request = StudyRequest(
        models,
        names,
        data,
        limit,
        seed,
        budget,
        None if out is None else Path(out),
        resume,
        max_words,
        concurrency,
        batch_tokens,
        data_options or DataOptions(),
        model_options or ModelOptions(),
        observer,
        {**entry.options, **own},
    )
    nothing_given = not models and data is None
    if not (nothing_given and resume and out is not None) and (not models or data is None):
        missing = "MODEL and DATA are" if not models else "DATA is"
        raise OptionError(f"{missing} missing, as in: stockade study {name} builtin:sentiment-cnn builtin:reviews")
    return entry.carry_out(request)


def find_study(name: str) -> StudyEntry:
    if name not in STUDIES:
        raise unknown_name("study", name, STUDIES)
    return STUDIES[name]


def _check_own(entry: StudyEntry, own: Mapping[str, Any]) -> None:
    for option in own:
        if option not in entry.options:
            names = [name.replace("_", "-") for name in entry.options]
            raise unknown_name(f"option of the study {entry.name}", option.replace("_", "-"), names)


def _models(entry: StudyEntry, model: object) -> tuple[tuple[object, ...], tuple[str, ...] | None]:
    """The models that were given, and their names if they came with any."""
    if model is None:
        return (), None
    if isinstance(model, Mapping):
        models, names = tuple(model.values()), tuple(map(str, model))
    else:
        models, names = tuple(model) if isinstance(model, list) else (model,), None
    if len(models) > 1 and not entry.several_models:
        raise OptionError(f"The study {entry.name} is of one model (found: {len(models)}). Name one, then the data.")
    return models, names
