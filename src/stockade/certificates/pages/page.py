"""The page of certificates: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stockade.certificates.pages.headline import headline, threats
from stockade.certificates.pages.plots import curve_plot
from stockade.certificates.pages.shown import TEXTS_PER_METHOD, shown_certificates
from stockade.certificates.pages.tables import COLUMNS, all_methods, number_rows, radius_rows, shown_radii
from stockade.certificates.run import CertificateRun
from stockade.report.frame import fill, shown_manifest

_PACKAGE = "stockade.certificates.pages"
_IN_A_NOTEBOOK = 3


def render_page(runs: Sequence[CertificateRun]) -> str:
    """The whole page."""
    names = dict.fromkeys(key for run in runs for key in run.methods)
    content = {
        **_numbers(runs),
        "differing": len({threat for run in runs for threat in threats(run)}) > 1,
        "title": ", ".join(run.name for run in runs),
        "method_names": list(names),
        "first_method": next(iter(names)),
        "manifests": [(run.name, shown_manifest(run.manifest)) for run in runs],
        "runs": [_section(run, TEXTS_PER_METHOD) for run in runs],
    }
    return fill("page_of_certificates.html", content, _PACKAGE)


def render_fragment(run: CertificateRun) -> str:
    """What a notebook shows of a run: its numbers, the plot and a few texts."""
    content = {**_numbers([run]), "runs": [_section(run, _IN_A_NOTEBOOK)]}
    return fill("notebook_of_certificates.html", content, _PACKAGE)


def _numbers(runs: Sequence[CertificateRun]) -> dict[str, Any]:
    methods = all_methods(runs)
    radii = shown_radii(methods)
    return {
        "columns": COLUMNS,
        "rows": number_rows(methods),
        "radius_columns": ("method", *(f"d ≥ {radius}" for radius in radii)),
        "radius_rows": radius_rows(methods),
        "plot": curve_plot(methods),
    }


def _section(run: CertificateRun, most: int) -> dict[str, Any]:
    groups = []
    for key in run.methods:
        shown, left_out = shown_certificates(run, key, most)
        groups.append({"method": key, "shown": shown, "left_out": left_out})
    return {
        "name": run.name,
        "summary": run.summary,
        "created": run.manifest["created"],
        "headline": headline(run),
        "defenses": [_defense(one) for one in run.summary["defenses"]],
        "done": min((one["n"] + one["errors"] for one in run.summary["methods"].values()), default=0),
        "truncated": max((one["truncated"] for one in run.summary["methods"].values()), default=0),
        "groups": groups,
    }


def _defense(told: dict[str, Any]) -> str:
    options = ", ".join(f"{name}={value}" for name, value in told["options"].items() if value is not None)
    return f"{told['name']}({options})"
