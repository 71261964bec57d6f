"""What decides the study of BAE: one model and its data, or a grid of cells, each a model on its data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from stockade.attacks.registry import make_attacks
from stockade.core.errors import OptionError, unknown_name
from stockade.experiment.inputs import is_lost_object, name_models
from stockade.experiment.spec import Count, Defenses, Reference
from stockade.studies.bae.analysis import ATTACKS, MODES
from stockade.studies.bae.published import MODELS, published_cell, published_data, published_model
from stockade.studies.frame import Option, StudySpec
from stockade.studies.transferability.roster import name_pairs
from stockade.workflows.attack.spec import AttackSpec

_NAME = r"[\w.+-]+"
_WRITTEN = re.compile(rf"(?:(?P<name>{_NAME}/{_NAME})=)?(?P<model>.+)@(?P<data>.+)", re.DOTALL)
_EXAMPLE = "word-cnn/mr=models/cnn-mr@mr.csv"


class Cell(NamedTuple):
    """A model and its data, each a reference or the object itself."""

    model: Reference
    data: Reference


def _several(value: object) -> object:
    return value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _cells(value: object) -> object:
    """Cells by name, from `NAME=MODEL@DATA` or from a mapping of pairs."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {_checked_name(str(name)): _pair(name, pair) for name, pair in value.items()}
    cells: dict[str, Cell] = {}
    for item in [value] if isinstance(value, str) else list(_several(value)):  # type: ignore[call-overload]
        written = _WRITTEN.fullmatch(item) if isinstance(item, str) else None
        if written is None:
            raise OptionError(
                f"--cell {item} is not of the form MODEL@DATA or NAME/DATA-NAME=MODEL@DATA, such as {_EXAMPLE}."
            )
        cell = Cell(written["model"].strip(), written["data"].strip())
        name = _checked_name(written["name"] or cell_name(*cell))
        if name in cells:
            raise OptionError(f"Two cells are called {name}: name them, such as --cell {_EXAMPLE}.")
        cells[name] = cell
    return cells


def _pair(name: object, pair: object) -> Cell:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise OptionError(f"The cell {name} is {pair!r:.60}, expected a pair of a model and its data.")
    return Cell(*pair)


def _checked_name(name: str) -> str:
    parts = name.split("/")
    if len(parts) != 2 or any(not re.fullmatch(_NAME, part) or part in (".", "..") for part in parts):
        raise OptionError(
            f'The cell name "{name}" cannot be a folder, expected MODEL/DATA of letters, digits, ".", "_", "+", "-", '
            "such as word-cnn/mr."
        )
    return name


def cell_name(model: object, data: object) -> str:
    """What a cell is called whose model and data have no names.

    Parameters
    ----------
    model, data
        The two; of a file the name without its endings.
    """
    return f"{name_models((model,), None)[0]}/{data_name(data)}"


def data_name(data: object) -> str:
    """A short name of data."""
    (name,) = name_models((data if isinstance(data, str | Path) else "data",), None)
    return name.split(".")[0] or name


class BaeSpec(StudySpec):
    """What decides the study bae: a model, data, and the options below.

    What concerns the rating sheets is done when it is asked for, and is not recorded.
    """

    kind: ClassVar[str] = "study-bae"
    summary: ClassVar[str] = (
        "BAE's four modes and TextFooler on a model, or on a grid of models and data sets: Tables 1, 2, 4 and 5, "
        "Figure 2, the paper's claims."
    )
    several_models: ClassVar[bool] = True
    free: ClassVar[frozenset[str]] = StudySpec.free | {
        *("fluency", "published", "stand_ins"),
        *("rating_sheet", "rated_texts", "reference_texts", "ratings"),
    }

    cells: Annotated[
        Mapping[str, tuple[Reference, Reference]],
        BeforeValidator(_cells),
        Option("--cell", "[MODEL/DATA=]MODEL@DATA"),
    ] = Field(default_factory=dict)
    """A model on its own data, as a cell of a grid; repeat for several. The name says in which row and column."""
    defenses: Annotated[Defenses, Option("--defense", "NAME[@PRESET][:OPTION=VALUE,…]")] = None
    """A defense around each model; repeat from the outside in; none: the bare model."""
    preset: str | None = None
    """Options of all five attacks as published (paper) or as in the authors' code (authors)."""
    score_first: bool = False
    """BAE asks the victim before the sentence encoder: the same texts with more queries, faster on cheap victims."""
    fluency: bool = True
    """Measure pseudo-perplexities, which cost one pass of the masked LM per piece of each text."""
    published: Annotated[str | None, Option(metavar="MODEL/DATA")] = None
    """The paper's numbers to show beside, such as wordCNN/mr; in a grid the names of the cells say which."""
    stand_ins: Annotated[
        Mapping[str, str],
        BeforeValidator(lambda value: name_pairs(value, "--stand-in", "BERT=minilm")),
        Option("--stand-in", "NAME=MODEL"),
    ] = Field(default_factory=dict)
    """A model of the grid in place of one of the paper's (wordLSTM, wordCNN, BERT), such as BERT=minilm; repeat."""
    rating_sheet: Annotated[Path | None, Option(metavar="FILE.csv"), Field(exclude=True)] = None
    """Write a blind sheet for human raters; its key and the reference texts are written beside it."""
    rated_texts: Annotated[Count, Field(exclude=True)] = 100
    """How many texts the rating sheet is about."""
    reference_texts: Annotated[int, Field(ge=0, strict=True, exclude=True)] = 50
    """How many other originals raters read first."""
    ratings: Annotated[
        tuple[Path, ...], Option(metavar="FILE.csv"), BeforeValidator(_several), Field(exclude=True)
    ] = ()
    """A filled rating sheet, named after its rater; repeat for several raters."""

    @classmethod
    def find_inputs(cls, models: object, data: object, options: Mapping[str, Any]) -> tuple[object, object]:
        """The model and data, which may both be left out where there are cells."""
        if models is None and data is None and options.get("cells"):
            return {}, None
        return super().find_inputs(models, data, options)

    @field_validator("models")
    @classmethod
    def _as_many_as_it_takes(cls, models: Mapping[str, object]) -> Mapping[str, object]:
        return models  # none at all is only an error without cells, see below

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.models and not self.cells:
            raise OptionError("The study bae needs a model before the data, or cells, each with --cell MODEL@DATA.")
        twice = {f"{name}/{data_name(self.data)}" for name in self.models} & self.cells.keys()
        if twice:
            raise OptionError(f"Two cells are called {min(twice)}: name them, such as --cell {_EXAMPLE}.")
        if self.published is not None:
            if self.grid:
                raise OptionError("--published is for one model; in a grid name the cells, such as --cell " + _EXAMPLE)
            published_cell(self.published)
        models = {cell.partition("/")[0] for cell in self.grid} or set(self.models)
        for paper, model in self.stand_ins.items():
            if paper not in MODELS:
                raise unknown_name("model in the paper", paper, MODELS)
            if model not in models:
                raise unknown_name("model in this study", model, sorted(models))
        if self.grid and (self.rating_sheet is not None or self.ratings):
            raise OptionError(
                "Each cell of a grid has a rating sheet of its own: name the folder of a cell, cells/MODEL/DATA in "
                "that of the grid, with --out, and --resume."
            )
        return self

    @property
    def grid(self) -> Mapping[str, Cell]:
        """The cells by name, MODEL/DATA; none in the study of one model."""
        on_data = {f"{name}/{data_name(self.data)}": Cell(model, self.data) for name, model in self.models.items()}
        if len(on_data) == 1 and not self.cells:
            return {}
        return {**on_data, **{name: Cell(*pair) for name, pair in self.cells.items()}}

    def of_cell(self, name: str) -> BaeSpec:
        """What decides the study of one cell."""
        cell, (model, _, data) = self.grid[name], name.partition("/")
        shared = {field: getattr(self, field) for field in BaeSpec.model_fields}
        paper = published_model(model, self.stand_ins), published_data(data)
        return BaeSpec.of(
            **{
                **shared,
                "models": {model: cell.model},
                "data": cell.data,
                "cells": {},
                "stand_ins": {},
                "published": None if None in paper else "/".join(map(str, paper)),
            }
        )

    def lost_objects(self) -> list[str]:
        """Names of the fields that were Python objects when the study was begun and have to be given again."""
        lost = any(is_lost_object(reference) for cell in self.cells.values() for reference in cell)
        return [*super().lost_objects(), *(["cells"] if lost else [])]

    def references(self) -> list[object]:
        """Every model and all data."""
        pairs = [reference for cell in self.cells.values() for reference in cell]
        return [*self.models.values(), *([self.data] if self.models else []), *pairs]

    @property
    def attack(self) -> AttackSpec:
        """What decides the run of the five attacks on the only model."""
        references = [f"{name}:score_first=true" if self.score_first and name in MODES else name for name in ATTACKS]
        return AttackSpec.of(
            model=next(iter(self.models.values())),
            attacks=make_attacks(references, self.preset),
            **{name: getattr(self, name) for name in StudySpec.model_fields if name != "models"},
            defenses=self.defenses,
        )
