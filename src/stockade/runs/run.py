"""A finished, running or interrupted run, as Python and the other commands see it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.core.errors import ResourceMissing, RunError
from stockade.core.files import write_json
from stockade.core.records import Record, Status
from stockade.runs import metrics
from stockade.runs.export import as_row
from stockade.runs.manifest import read_manifest
from stockade.runs.store import Store

if TYPE_CHECKING:
    import pandas

SUMMARY_NAME = "summary.json"


class Run:
    """Reads a run folder. `summary`, `examples` and `to_pandas()` are what most people want; `manifest` says what it
    was.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise RunError(f"{self.folder} is not a run folder: there is no such folder.")
        self.manifest: dict[str, Any] = read_manifest(self.folder)
        with self.store():
            pass

    def store(self) -> Store:
        """The run's results, to be closed after use."""
        return Store(self.folder)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.manifest["model"]["labels"])

    @property
    def attacks(self) -> tuple[str, ...]:
        return tuple(attack["key"] for attack in self.manifest["config"]["attacks"])

    @property
    def defenses(self) -> list[str]:
        """What stood around the model, from the outside in, with the options that matter to a reader."""
        return [_in_short(one) for one in self.manifest["model"].get("defenses", ())]

    @property
    def _votes(self) -> bool:
        return any(one["options"].get("combine") == "vote" for one in self.manifest["model"].get("defenses", ()))

    def records(self, attack: str | None = None, status: Status | None = None) -> Iterator[Record]:
        """The results one by one, without holding them all."""
        with self.store() as store:
            yield from store.records(attack, status)

    @cached_property
    def examples(self) -> tuple[Record, ...]:
        """Every result of the run."""
        return tuple(self.records())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `summary.json`, computed from the results."""
        scale = self.manifest["config"].get("similarity")
        with self.store() as store:
            attacks = {
                name: metrics.summarise_attack(store.records(name), store.effort(name), scale) for name in self.attacks
            }
            sharp = metrics.sharp_votes(store.records(self.attacks[0])) if self._votes and self.attacks else None
        warnings = metrics.warnings_for(attacks, self.labels, sharp)
        total = self.manifest["data"]["size"]
        done = min((a["n"] + a["errors"] for a in attacks.values()), default=0)
        return {
            "schema": metrics.SCHEMA,
            "run": self.name,
            "model": self.manifest["model"]["reference"],
            **({"defenses": self.defenses} if self.defenses else {}),
            "remarks": list(self.manifest["model"].get("remarks", ())),
            "data": self.manifest["data"]["reference"],
            "complete": done == total,
            "examples": total,
            "warnings": warnings,
            "attacks": attacks,
        }

    def write_summary(self) -> None:
        write_json(self.folder / SUMMARY_NAME, self.summary)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per example and attack, with the fields of an export."""
        try:
            import pandas
        except ImportError:
            raise ResourceMissing("to_pandas needs pandas. Install it with: pip install pandas") from None
        return pandas.DataFrame([as_row(record) for record in self.records()])

    def save(self, folder: str | Path) -> Run:
        """A copy of the run in another folder, for runs that were made without one."""
        target = Path(folder)
        if target.exists():
            raise RunError(f"{target} exists already. Choose another folder.")
        shutil.copytree(self.folder, target, ignore=shutil.ignore_patterns("run.lock"))
        return Run(target)

    def __repr__(self) -> str:
        rates = {name: numbers["success_rate"]["value"] for name, numbers in self.summary["attacks"].items()}
        return f"Run({str(self.folder)!r}, success_rate={json.dumps(rates)})"

    def _repr_html_(self) -> str:
        from stockade.report import render_fragment

        return render_fragment(self)


def _in_short(defense: Mapping[str, Any]) -> str:
    options = ", ".join(f"{name}={value}" for name, value in defense["options"].items() if value is not None)
    return f"{defense['name']}({options})"
