"""What comes out of an evaluation: its numbers, what became of each text, and a run for every cell of the grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from stockade.core.errors import OptionError, RunError
from stockade.core.records import Record
from stockade.experiment.export import Layout
from stockade.experiment.inputs import models_by_name
from stockade.experiment.result import Result, Verification
from stockade.experiment.spec import Spec
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.evaluate.analysis import Analysis, Row, UnmadeRow, analyse_row
from stockade.workflows.evaluate.grid import CellKey, Grid, read_cell
from stockade.workflows.evaluate.outcomes import ExampleOutcome, GridRow, Outcome, example_outcomes
from stockade.workflows.evaluate.spec import NONE, EvaluateSpec
from stockade.workflows.evaluate.views import DIRECT
from stockade.workflows.evaluate.warnings import row_warnings

if TYPE_CHECKING:
    from stockade.report.document import Document

SCHEMA = 1


class EvaluateResult(Result):
    """The results of an evaluation: `row("ranmask")` has the numbers of a row, `cell("pwws")` is one of its runs.

    `summary` is everything as plain values, `records()` what became of each text, `warnings` what makes numbers
    doubtful.
    """

    kind: ClassVar[str] = "evaluate"
    spec_type: ClassVar[type[Spec]] = EvaluateSpec

    @cached_property
    def grid(self) -> Grid:
        """The grid as the folder holds it."""
        return Grid(self.folder, self.manifest, self.store)

    @cached_property
    def grid_rows(self) -> tuple[GridRow, ...]:
        """What every row says and what became of its texts."""
        return self.grid.rows()

    @cached_property
    def analysis(self) -> Analysis:
        """The numbers, computed from the results."""
        bare = {row.model: row for row in self.grid_rows if row.defense == NONE}
        inputs = self.manifest.inputs
        rows: list[Row | UnmadeRow] = []
        for grid_row in self.grid_rows:
            labels = inputs["models"][grid_row.model]["labels"]
            row = analyse_row(grid_row, bare.get(grid_row.model), self.grid.attacks, self.grid.seeds, labels)
            if isinstance(row, Row):
                row = replace(row, warnings=row_warnings(row, inputs["data"]["size"], labels))
            rows.append(row)
        return Analysis(tuple(rows), tuple(self.grid.failures(self.grid_rows)))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `summary.json`."""
        spec, inputs, grid = self.manifest.spec, self.manifest.inputs, self.grid
        data = inputs["data"]
        return {
            "schema": SCHEMA,
            "evaluation": self.name,
            "created": self.manifest.created,
            "complete": not self.unfinished,
            "models": {name: dict(model) for name, model in inputs["models"].items()},
            "data": {**{name: data[name] for name in ("reference", "fingerprint", "size")}, "total": data["rows"]},
            "defenses": list(grid.defenses),
            "attacks": list(grid.attacks),
            "premade": {name: dict(premade) for name, premade in inputs["premade"].items()},
            "seeds": list(grid.seeds),
            **{name: spec[name] for name in ("eot_samples", "budget", "max_changed", "constraint")},
            **self.analysis.described(),
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before believing the numbers."""
        return self.analysis.warnings

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Rows and cells that are missing without a reason: the evaluation was interrupted."""
        return tuple(self.grid.unfinished(self.grid_rows))

    @property
    def complete(self) -> bool:
        """Whether every cell of the grid is there; what could not be run is tried again by a resume."""
        return not self.analysis.failures and not self.unfinished

    def problem(self) -> str | None:
        """Why no model has a usable answer to any text; None if one has."""
        if any(row.clean.accuracy.value is not None for row in self.analysis.measured):
            return None
        size = self.manifest.inputs["data"]["size"]
        return f"No model has a usable answer to any of the {size} texts; the first: {self._first_reason()}"

    def shortfall(self) -> str | None:
        """What of the grid was not measured; None if every model was asked and attacked in every defense."""
        from stockade.workflows.evaluate.page import failure_sentences

        missing = failure_sentences(self.analysis)
        if self.unfinished:
            missing.append(f"{', '.join(self.unfinished)}: not run yet; resume with: stockade resume {self.folder}")
        return f"Not everything was measured. {' '.join(missing)}" if missing else None

    def _first_reason(self) -> str:
        """Why the first part of the grid that failed did so, or the first text in the first of its runs."""
        for failure in self.analysis.failures:
            return failure.reason
        reasons = (record.reason for key in self.cells() for record in self.run_of(key).records(status="error"))
        return next((reason for reason in reasons if reason), "no reason was recorded.")

    def row(self, defense: str = NONE, model: str | None = None) -> Row:
        """The numbers of one model in one chain of defenses.

        Parameters
        ----------
        defense
            The chain by name; the bare model by default.
        model
            The model by name; the first by default.
        """
        name = model or self.grid.models[0]
        for row in self.analysis.rows:
            if (row.model, row.defense) == (name, defense):
                if isinstance(row, Row):
                    return row
                reasons = (failure.reason for failure in self.analysis.failures if failure.defense == defense)
                raise OptionError(f"{name} with {defense} has no numbers: {next(reasons, 'it was not run yet.')}")
        names = ", ".join(f"{row.model} with {row.defense}" for row in self.analysis.rows)
        raise OptionError(f"The evaluation has no row of {name} with {defense} (found: {names}).")

    def records(self) -> Iterator[ExampleOutcome]:
        """What became of each text: the worst case by model, defense and seed."""
        return example_outcomes(self.grid_rows, self.grid.attacks, self.grid.seeds)

    def outcomes(self, defense: str = NONE, model: str | None = None, seed: int | None = None) -> dict[str, Outcome]:
        """The worst case of each text by its id: robust, fooled, wrong or unknown.

        Parameters
        ----------
        defense, model, seed
            Of which row; of the bare model, the first model and the first seed by default.
        """
        wanted = (self.row(defense, model).model, defense, self.grid.seeds[0] if seed is None else seed)
        return {
            record.id: record.outcome
            for record in self.records()
            if (record.model, record.defense, record.seed) == wanted
        }

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """What became of each text, as an export writes it."""
        return (record.described() for record in self.records())

    @property
    def layout(self) -> Layout:
        return Layout.of_row(ExampleOutcome("", "", 0, "", "robust", ()).described())

    def cells(self) -> Iterator[CellKey]:
        """Every cell that has results."""
        for row in self.grid_rows:
            for attack, view, seed in row.cells:
                yield CellKey(row.model, row.defense, attack, view, seed)

    def cell(
        self,
        attack: str,
        *,
        defense: str = NONE,
        model: str | None = None,
        view: str = DIRECT,
        seed: int | None = None,
    ) -> AttackResult:
        """The run of one cell.

        Parameters
        ----------
        attack
            By the name that the evaluation calls it.
        defense, model, view, seed
            The bare model, the first model, the direct view and the first seed by default.
        """
        chosen = self.grid.seeds[0] if seed is None else seed
        key = CellKey(model or self.grid.models[0], defense, attack, view, chosen)
        if key not in self.cells():
            raise OptionError(f"The evaluation has no cell {key}.")
        return self.run_of(key)

    def cell_records(self) -> Iterator[tuple[CellKey, Record]]:
        """Every text of every cell, with its adversarial version; `records` has the worst case alone."""
        for key in self.cells():
            for record in self.run_of(key).records(key.attack):
                yield key, record

    def cell_rows(self) -> Iterator[Mapping[str, Any]]:
        """Every text of every cell as plain values, as `stockade export --cells` writes it."""
        from stockade.workflows.evaluate.texts import cell_row

        return (cell_row(key, record) for key, record in self.cell_records())

    def class_rows(self) -> Iterator[Mapping[str, Any]]:
        """Accuracy and F1 of every row on clean and pre-made texts, as `stockade export --premade` writes them."""
        from stockade.workflows.evaluate.class_table import class_records

        return class_records(self.analysis)

    def run_of(self, key: CellKey) -> AttackResult:
        """The run of a cell that has results."""
        return AttackResult.open(self.grid.cell_folder(key))

    def document(self) -> Document:
        """The report: findings, the table of accuracies, views, votes, tests."""
        from stockade.workflows.evaluate.page import evaluation_document

        return evaluation_document(self)

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Verify every cell's run, that the evaluation holds what its runs hold, and that its numbers follow from it;
        ask every row again about the pre-made texts.

        Parameters
        ----------
        model
            The models again, as `st.evaluate` takes them, if they are not where the evaluation found them.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """
        from stockade.workflows.evaluate.verify import verify_premade

        problems: list[str] = []
        models: Mapping[str, object] = {}
        self.check_trust(trust, model)
        if model is not None:
            models = dict(zip(self.grid.models, models_by_name(model).values(), strict=True))
        cells = Verification(0, ())
        for key in self.cells():
            try:
                run = self.run_of(key)
            except RunError as error:
                problems.append(f"{key}: {error}")
                continue
            if read_cell(run) != self.grid.cell(key):
                problems.append(f"{key}: what the evaluation holds does not follow from the run")
            cells = cells.with_part(key, run.verify(models.get(key.model), trust=trust))
        premade = verify_premade(self, models)
        return self.verified(
            cells.checked + premade.checked,
            (*problems, *cells.problems, *premade.problems),
            (*cells.incomplete, *premade.incomplete),
        )

    def __repr__(self) -> str:
        worst = {f"{row.model}, {row.defense}": row.worst.robust_accuracy.value for row in self.analysis.measured}
        return f"EvaluateResult({str(self.folder)!r}, worst_case={worst})"
