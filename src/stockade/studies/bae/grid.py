"""The study of BAE as a grid: the same attacks on several models and data sets (the paper's Tables 1 and 2).

Each cell is a model on its data and a complete study of its own, in `cells/MODEL/DATA/`: it can be opened, resumed,
verified and rated by itself. The grid holds the paper's claims against all of them together, and stands beside what the
paper printed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from stockade.core.files import unreadable
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.progress import Runtime, within
from stockade.experiment.workspace import MANIFEST, check_trust
from stockade.report.document import Document
from stockade.studies.bae.grid_analysis import CellResults, GridNumbers, analyse_grid
from stockade.studies.bae.grid_claims import check_grid
from stockade.studies.bae.spec import BaeSpec
from stockade.studies.bae.study import BaeResult, describe_cell, run_one
from stockade.studies.claims import Claim
from stockade.studies.frame import StudyResult, StudySpec, begin_study
from stockade.studies.records import warn_of_few

CELLS = "cells"
"""The folder of the cells inside the grid's."""


class GridResult(StudyResult[GridNumbers]):
    """BAE on several models and data sets: `numbers`, `claims`, and `runs` with the study of each cell."""

    kind: ClassVar[str] = BaeSpec.kind
    spec_type: ClassVar[type[StudySpec]] = BaeSpec

    def open_runs(self) -> Mapping[str, BaeResult]:
        return {name: BaeResult.open(cell_folder(self.folder, name)) for name in self.recorded}

    @cached_property
    def recorded(self) -> Mapping[str, Any]:
        """What the manifest says of the model and the data of each cell."""
        cells = self.manifest.inputs.get(CELLS)
        if not isinstance(cells, Mapping) or not cells:
            raise unreadable(self.folder / MANIFEST, "it names no cells")
        return cells

    @property
    def runs(self) -> Mapping[str, BaeResult]:
        """The studies of the cells."""
        return cast("Mapping[str, BaeResult]", super().runs)

    @cached_property
    def cells(self) -> Mapping[str, CellResults]:
        """What happened in each cell."""
        spec: BaeSpec = self.spec
        return {
            name: CellResults.of(name, run.results, run.numbers, run.claims, spec.stand_ins)
            for name, run in self.runs.items()
        }

    @cached_property
    def numbers(self) -> GridNumbers:
        """Tables 1, 2, 4 and 5 and Figure 2, cell by cell, and each mode against TextFooler."""
        return analyse_grid(self.cells)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper claims, held against all cells together."""
        return check_grid(self.cells)

    @property
    def warnings(self) -> list[str]:
        """Those of the cells, each with the name of its cell."""
        attacked = [max(attack.attacked for attack in cell.numbers.attacks.values()) for cell in self.cells.values()]
        few = {sentence for texts in attacked for sentence in warn_of_few(texts)}
        warnings = [f"{name}: {text}" for name, run in self.runs.items() for text in run.warnings if text not in few]
        short = [name for name, texts in zip(self.cells, attacked, strict=True) if warn_of_few(texts)]
        if short:
            warnings.append(f"Fewer than 30 texts were attacked in {', '.join(short)}: read the intervals.")
        return warnings

    def facts(self) -> Mapping[str, object]:
        return {"models": sorted({name.partition("/")[0] for name in self.recorded}), "cells": len(self.recorded)}

    def check_trust(self, trusted: bool, model: object = None) -> None:
        vouched = () if model is None else ("model", "models", CELLS)
        check_trust(self.folder, self.spec, trusted, vouched, self.manifest.inputs)

    def make_document(self) -> Document:
        """The page: Tables 1 and 2 beside the paper's, claims over all cells and by cell, Figure 2, Tables 4 and 5."""
        from stockade.studies.bae.grid_page import grid_document

        return grid_document(self)


def cell_folder(folder: Path, name: str) -> Path:
    """Where the study of a cell is.

    Parameters
    ----------
    folder
        The grid's.
    name
        The cell, MODEL/DATA.
    """
    return folder.joinpath(CELLS, *name.split("/"))


def run_grid(spec: BaeSpec, folder: Path, runtime: Runtime, resume: bool) -> GridResult:
    """Study each cell, unless that is done, then analyse them together."""
    with begin_study(folder, spec, lambda: _describe(spec), resume=resume) as workspace:
        recorded = GridResult.of(workspace).recorded
        runs = {}
        for name in spec.grid:
            observed = dataclasses.replace(runtime, observer=within(name, runtime.observer))
            runs[name] = run_one(spec.of_cell(name), cell_folder(folder, name), observed, True, recorded.get(name))
        result = GridResult.of_runs(workspace, runs)
        result.write_summary()
    return result


def _describe(spec: BaeSpec) -> dict[str, Any]:
    """What the manifest records of every cell; a model or data that cannot be used is an error before anything runs."""
    spec.language.check()
    described: dict[str, dict[str, Any]] = {}
    for name in spec.grid:
        cell = spec.of_cell(name)
        data = DataPool(cell.data, cell.data_options, limit=cell.limit, seed=cell.seed)
        models = ModelPool(cell.models, cell.model_options, language=cell.language)
        classifier = models.defended(models.names[0], cell.defenses, seed=cell.seed)
        data.check_answers(classifier)
        described[name] = describe_cell(cell, classifier, data.examples(classifier.labels))
    references = dict.fromkeys(str(cell["data"]["reference"]) for cell in described.values())
    return {"data": {"reference": ", ".join(references)}, CELLS: described}
