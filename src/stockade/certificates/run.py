"""A run of certificates, as Python and the other commands see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.certificates.certificate import Certificate
from stockade.certificates.store import CertificateStore
from stockade.certificates.summary import SCHEMA, summarise_method
from stockade.core.errors import ResourceMissing, RunError
from stockade.core.files import write_json
from stockade.runs.manifest import read_manifest
from stockade.runs.run import SUMMARY_NAME

if TYPE_CHECKING:
    import pandas


class CertificateRun:
    """Reads a run folder. `summary` and `certificates` are what most people want; `manifest` says what it was."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise RunError(f"{self.folder} is not a run folder: there is no such folder.")
        self.manifest: dict[str, Any] = read_manifest(self.folder)
        with CertificateStore(self.folder):
            pass

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.manifest["model"]["labels"])

    @property
    def labelled(self) -> bool:
        """Whether the data told the true classes."""
        return bool(self.manifest["config"].get("labelled", True))

    @property
    def methods(self) -> dict[str, Mapping[str, Any]]:
        """The methods by key, each with its options, threat and whether it is sound."""
        return {method["key"]: method for method in self.manifest["config"]["methods"]}

    def iterate(self, method: str | None = None) -> Iterator[Certificate]:
        """The certificates one by one, without holding them all."""
        with CertificateStore(self.folder) as store:
            yield from store.certificates(method)

    @cached_property
    def certificates(self) -> tuple[Certificate, ...]:
        """Every certificate of the run."""
        return tuple(self.iterate())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `summary.json`, computed from the certificates."""
        size = self.manifest["data"]["size"]
        with CertificateStore(self.folder) as store:
            methods = {
                key: summarise_method(list(store.certificates(key)), told, *store.effort(key), self.labelled)
                for key, told in self.methods.items()
            }
        done = min((one["n"] + one["errors"] for one in methods.values()), default=0)
        return {
            "schema": SCHEMA,
            "run": self.name,
            "model": self.manifest["model"]["reference"],
            "defenses": self.manifest["model"].get("defenses", []),
            "data": self.manifest["data"]["reference"],
            "complete": done == size,
            "examples": size,
            "whole_set": self.manifest["config"]["whole_set"],
            "labelled": self.labelled,
            "methods": methods,
        }

    def write_summary(self) -> None:
        write_json(self.folder / SUMMARY_NAME, self.summary)

    def documents(self, method: str | None = None) -> Iterator[dict[str, Any]]:
        """Each certificate as a document of its own, with what it needs to be understood and checked elsewhere."""
        from stockade.certificates.documents import document

        for certificate in self.iterate(method):
            yield document(certificate, self.manifest)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per text and method."""
        try:
            import pandas
        except ImportError:
            raise ResourceMissing("to_pandas needs pandas. Install it with: pip install pandas") from None
        return pandas.DataFrame(list(self.documents()))

    def __repr__(self) -> str:
        medians = {key: numbers["median_radius"] for key, numbers in self.summary["methods"].items()}
        return f"CertificateRun({str(self.folder)!r}, median_radius={medians})"

    def _repr_html_(self) -> str:
        from stockade.certificates.pages.page import render_fragment

        return render_fragment(self)
