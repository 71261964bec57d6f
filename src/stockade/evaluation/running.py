"""`st.evaluate`: the plan, the grid, the numbers, the pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stockade.attacks.constraints import Constraint
from stockade.core.errors import OptionError, RunError
from stockade.core.files import in_temporary_folder, refuse_existing, write_json, write_text
from stockade.evaluation.analysis import analyse
from stockade.evaluation.cells import Speed
from stockade.evaluation.examples import ExampleFate, example_fates
from stockade.evaluation.grid import run_grid
from stockade.evaluation.html import render_body, render_page
from stockade.evaluation.inputs import Inputs
from stockade.evaluation.markdown import render_markdown
from stockade.evaluation.outcomes import Fate
from stockade.evaluation.plan import FILE_NAME, Plan, check_same, read_plan
from stockade.evaluation.request import EvaluationRequest
from stockade.jobs import DataOptions, ModelOptions
from stockade.experiment.inputs import name_models
from stockade.runs.attack import Observer

JSON_NAME, MARKDOWN_NAME, HTML_NAME = "evaluation.json", "evaluation.md", "evaluation.html"
EXAMPLES_NAME = "examples.jsonl"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Evaluation:
    """An evaluation that was run. `numbers` is what `evaluation.json` holds; every cell of the grid is a run in
    `folder`.
    """

    folder: Path
    numbers: Mapping[str, Any] = field(repr=False)
    examples: tuple[ExampleFate, ...] = field(repr=False, default=())
    """What came of each text, as `examples.jsonl` holds it."""

    @property
    def warnings(self) -> Sequence[str]:
        return tuple(self.numbers["warnings"])

    def row(self, defense: str = "none", model: str | None = None) -> Mapping[str, Any]:
        """The numbers of one model in one chain of defenses; the first model unless one is named."""
        model = model or next(iter(self.numbers["models"]))
        for row in self.numbers["rows"]:
            if (row["model"], row["defense"]) == (model, defense):
                return dict(row)
        found = ", ".join(f"{row['model']} with {row['defense']}" for row in self.numbers["rows"])
        raise OptionError(f"The evaluation has no row of {model} with {defense} (found: {found}).")

    def fates(self, defense: str = "none", model: str | None = None, seed: int | None = None) -> dict[str, Fate]:
        """The worst case of each text by its id: robust, fooled, wrong or unknown; of the first model and seed unless
        others are named.
        """
        wanted = (self.row(defense, model)["model"], defense, self.numbers["seeds"][0] if seed is None else seed)
        return {one.id: one.fate for one in self.examples if (one.model, one.defense, one.seed) == wanted}

    def _repr_html_(self) -> str:
        return render_body(self.numbers)


def evaluate(
    models: object = None,
    data: object = None,
    *,
    attacks: Sequence[str] = (),
    defenses: Sequence[str] = (),
    premade: Sequence[object] = (),
    limit: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    expectation: int = 5,
    budget: int | None = None,
    max_changed: float | None = None,
    constraint: Constraint | str | None = None,
    preset: str | None = None,
    max_words: int = 5_000,
    mlm: str | None = None,
    encoder: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    transfer_from: object = None,
    observer: Observer | None = None,
) -> Evaluation:
    """Attack models in defenses on the same texts and return what is left of their accuracy, the worst case by text
    included; `evaluation.json`, `evaluation.md`, `evaluation.html` and `examples.jsonl` are in the folder `out`.

    `models` is what `attack` takes, a list of such, or a dictionary that names them. Each of `defenses` is a column of
    the grid, a chain is written from the outside in, as in `"five+fact"`; the bare model is always there. `premade`
    are files or data of adversarial texts. A randomised defense is attacked directly, through the mean of `expectation`
    answers, through its twin that does not vote, and with texts found on the bare model; every row, with
    `transfer_from`, also with texts found on that model. `seeds` repeats everything random. With `resume` an
    interrupted evaluation goes on; models and data may then be left out.
    """
    for name, given in (("attacks", attacks), ("defenses", defenses), ("premade", premade)):
        if isinstance(given, str | Path):
            raise OptionError(f"{name} is one string, expected a list of them.")
    speed = Speed(concurrency, batch_tokens, observer)
    request = None
    if models is not None or data is not None or not resume:
        given_models, names = _named(models)
        if not given_models or data is None:
            missing = "DATA is" if given_models else "MODEL and DATA are"
            raise OptionError(
                f"{missing} missing, as in: stockade evaluate builtin:sentiment-cnn builtin:reviews --attack pwws"
            )
        request = EvaluationRequest(
            given_models,
            names,
            data,
            tuple(attacks),
            tuple(defenses),
            tuple(premade),
            limit,
            seed,
            seeds,
            expectation,
            budget,
            max_changed,
            None if constraint is None else str(constraint),
            preset,
            max_words,
            mlm,
            encoder,
            data_options or DataOptions(),
            replace(model_options or ModelOptions(), defenses=()),
            transfer_from,
        )
        request.named_attacks()
        request.chains()
    elif attacks or defenses or premade:
        raise OptionError("Without models and data everything is taken from the plan: leave the rest out as well.")
    if out is not None:
        return _carry_out(Path(out), request, resume, speed)
    if resume or request is None:
        raise RunError("There is nothing to resume without a folder: name it with --out.")
    return in_temporary_folder(lambda folder: _carry_out(folder, request, False, speed))


def _carry_out(folder: Path, request: EvaluationRequest | None, resume: bool, speed: Speed) -> Evaluation:
    plan, inputs = _planned(folder, request, resume)
    inputs.hold_to(plan)
    rows, failures = run_grid(folder, plan, inputs, speed)
    numbers = analyse(folder.name, plan, rows, failures)
    examples = tuple(example_fates(rows, list(plan.attacks), numbers["seeds"]))
    write_json(folder / JSON_NAME, numbers)
    write_text(folder / MARKDOWN_NAME, render_markdown(numbers))
    write_text(folder / HTML_NAME, render_page(numbers))
    write_text(folder / EXAMPLES_NAME, "".join(json.dumps(one.described()) + "\n" for one in examples))
    return Evaluation(folder, numbers, examples)


def _planned(folder: Path, request: EvaluationRequest | None, resume: bool) -> tuple[Plan, Inputs]:
    """The plan of the folder, or a new one."""
    if request is None or (resume and (folder / FILE_NAME).exists()):
        plan = read_plan(folder)
        if request is None:
            return plan, Inputs(EvaluationRequest.from_description(plan.request))
        check_same(folder, plan, request)
        inputs = Inputs(request)
        inputs.hold_to(plan)
        inputs.check()
        return plan, inputs
    refuse_existing(folder, FILE_NAME)
    inputs = Inputs(request)
    plan = inputs.make_plan()
    plan.write(folder)
    return plan, inputs


def _named(models: object) -> tuple[tuple[object, ...], tuple[str, ...]]:
    """The models that were given, each with a name that can be a folder."""
    if models is None:
        return (), ()
    if isinstance(models, Mapping):
        given = tuple(models.values())
        return given, name_models(given, tuple(map(str, models)))
    given = tuple(models) if isinstance(models, list) else (models,)
    return given, name_models(given, None)
