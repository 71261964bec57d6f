"""Studies: jobs of one paper on the same texts, and what can be learned from them together.

`st.study(NAME, models, data)` runs one; `stockade ls studies` lists them.

How to add a study NAME: a package here, of four files as a rule, and a line in `stockade/kinds.py`
(`"study-NAME": "stockade.studies.NAME.study"`). Nothing else has to know it: `st.study`, `st.load`, `st.resume`,
`stockade study NAME` with its options, `stockade resume` and `stockade ls` find it there.

    study.py      `NameSpec(StudySpec)` with `kind = "study-NAME"`, a `summary` line, and its options as fields; the
                  docstring below a field is its help on the command line. `run(spec, folder, runtime, resume)` does
                  the work inside `begin_study`: other workflows in folders of their own (`finished` says which are
                  done), measurements as rows of the workspace's store, then `result.write_summary()`.
                  `NameResult(StudyResult[NameNumbers])` opens the runs and has `numbers`, `claims`, `warnings`,
                  `make_document`. The file ends in `WORKFLOW = Workflow(NameSpec, run, NameResult, reopens=True)`.
    analysis.py   pure functions from results into frozen dataclasses; `records.py` here has what studies share
    page.py       a document, made with `study_document`
    claims.py     what the paper says, as `Claim`s, where a paper is held against the numbers

`translation` is the smallest example. A study that measures much has more files beside these (`transfer`), all in its
package; what `transfer`, `ensemble` and `rules` share is in `transferability`, the sheets for human raters of
`attention` and `bae` are in `rating_sheet`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stockade.experiment.inputs import DataOptions, ModelOptions
    from stockade.experiment.progress import Observer
    from stockade.experiment.result import Workflow
    from stockade.studies.frame import StudyResult, StudySpec

__all__ = ["find_study", "study", "study_names", "study_specs"]


def study(
    name: str,
    models: object = None,
    data: object = None,
    *,
    limit: int | None = None,
    seed: int = 0,
    budget: int | None = None,
    max_words: int = 5_000,
    mlm: str | None = None,
    encoder: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    trust: bool = False,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    seconds: float | None = None,
    workers: int = 1,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
    **options: Any,
) -> StudyResult[Any]:
    """Run a study and return its result; `summary.json`, `report.html` and `report.md` are in its folder.

    Parameters
    ----------
    name
        A name as `stockade ls studies` shows it, such as `"bae"`.
    models
        A model as `st.attack` takes it, a list of them, or a dictionary that names them.
    data
        Data as `st.attack` takes them.
    limit
        Study a seeded sample of this many rows; all by default.
    seed
        Decides the sample and every random choice.
    budget
        The most queries per text.
    max_words
        Longer texts are recorded as errors.
    mlm, encoder
        Another masked LM or sentence encoder: a folder or hub name.
    out
        The folder of the study; without one it lives in a temporary folder as long as the returned object, and
        `result.save(folder)` keeps it.
    resume
        Go on with the study in `out`. Models and data may then be left out: an interrupted study goes on with those
        that it was begun with, and a finished one is analysed again without asking a model.
    trust
        Whether code that a folder names, such as a `python:` model, may be run: that of a resumed study, or of another
        one whose models it takes.
    concurrency
        The most searches in flight; changes the speed, not the results.
    batch_tokens
        Tokens per batch; tuned by default.
    seconds
        A time limit for each attack: no search is started after it.
    workers
        Processes that work at the same time, in studies that can use several: `transfer` attacks and asks a model in
        each. Models and data must then be named, not given as objects.
    data_options, model_options
        How the data are read and the models are loaded.
    observer
        Called with a `Progress` after each text.
    **options
        What only this study has: `stockade study NAME --help` lists them. Those that only concern its analysis may
        change on a resume.
    """
    from stockade.core.errors import unknown_name
    from stockade.experiment.progress import Runtime

    shared = {
        "limit": limit,
        "seed": seed,
        "budget": budget,
        "max_words": max_words,
        "mlm": mlm,
        "encoder": encoder,
        **({} if data_options is None else {"data_options": data_options}),
        **({} if model_options is None else {"model_options": model_options}),
    }
    workflow = find_study(name)
    for option in options:
        if option not in workflow.spec.options():
            raise unknown_name(f"option of the study {name}", option, workflow.spec.options())
    runtime = Runtime(
        concurrency=concurrency, batch_tokens=batch_tokens, seconds=seconds, workers=workers, observer=observer
    )
    result: StudyResult[Any]
    if resume and models is None and out is not None:
        fields = workflow.spec.model_fields
        differing = {option: value for option, value in shared.items() if value != fields[option].default}
        result = _resume(workflow, Path(out), runtime, trust, data, {**differing, **options})
        return result
    models, data = workflow.spec.find_inputs(models, data, {**options, "trust": trust})
    result = workflow.start(
        workflow.spec.of(models=models, data=data, **shared, **options), out, runtime, resume=resume
    )
    return result


def study_names() -> list[str]:
    """The names of all studies."""
    from stockade.kinds import WORKFLOWS
    from stockade.studies.frame import KIND

    return [kind.removeprefix(KIND) for kind in WORKFLOWS if kind.startswith(KIND)]


def study_specs() -> list[type[StudySpec]]:
    """What decides each study: its name, what it is about, and its options."""
    return [find_study(name).spec for name in study_names()]


def find_study(name: str) -> Workflow[StudySpec]:
    """The study of that name."""
    import importlib

    from stockade.core.errors import unknown_name
    from stockade.kinds import WORKFLOWS
    from stockade.studies.frame import KIND

    if name not in study_names():
        raise unknown_name("study", name, study_names())
    workflow: Workflow[StudySpec] = importlib.import_module(WORKFLOWS[f"{KIND}{name}"]).WORKFLOW
    return workflow


def _resume(
    workflow: Workflow[StudySpec], folder: Path, runtime: Any, trust: bool, data: object, options: dict[str, Any]
) -> Any:
    """Go on with what the folder's manifest records, as `st.resume` does, under options that may have changed."""
    from stockade.core.errors import RunError
    from stockade.experiment.workspace import read_manifest

    kind = read_manifest(folder).kind
    if kind != workflow.spec.kind:
        raise RunError(
            f"{folder} holds a job of the kind {kind}, not {workflow.spec.kind}. Name its folder with --out."
        )
    return workflow.resume(folder, runtime, trust=trust, data=data, options=options)
