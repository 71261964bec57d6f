"""What a study is to the rest: an entry of the list, a request with everything it is asked for, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stockade.core.errors import OptionError
from stockade.jobs import DataOptions, ModelOptions
from stockade.runs.attack import Observer
from stockade.runs.run import Run
from stockade.studies.tables import Table


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """Models, data and options as they were given; `models` and `data` may be missing when a study is resumed."""

    models: tuple[object, ...] = ()
    names: tuple[str, ...] | None = None
    """What the models shall be called; None leaves it to the study."""
    data: object = None
    limit: int | None = None
    seed: int = 0
    budget: int | None = None
    out: Path | None = None
    resume: bool = False
    max_words: int = 5_000
    concurrency: int = 64
    batch_tokens: int | None = None
    data_options: DataOptions = field(default_factory=DataOptions)
    model_options: ModelOptions = field(default_factory=ModelOptions)
    observer: Observer | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    """Every option that only this study has."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Study:
    """A study that was run. `numbers` is what `study.json` holds, `runs` every text and attack of each model."""

    name: str
    folder: Path
    runs: Mapping[str, Run]
    numbers: Mapping[str, Any]
    body: Callable[[], str] = field(repr=False)
    """Makes the page without its frame."""

    @property
    def run(self) -> Run:
        """The run of a study of one model."""
        if len(self.runs) > 1:
            raise OptionError(f"The study {self.name} has several runs: take one of runs ({', '.join(self.runs)}).")
        return next(iter(self.runs.values()))

    def _repr_html_(self) -> str:
        return self.body()


@dataclass(frozen=True, slots=True)
class StudyEntry:
    """One study of the list: its attacks, its own options with their defaults, how it is run and how it is told."""

    name: str
    summary: str
    attacks: tuple[str, ...]
    several_models: bool
    options: Mapping[str, Any]
    carry_out: Callable[[StudyRequest], Study]
    headline: Callable[[Mapping[str, Any]], list[str]]
    tables: Callable[[Mapping[str, Any]], list[tuple[str, Table]]]
    """What the terminal shows of the numbers, each table with its title."""

    def study(self) -> str:
        return self.name
