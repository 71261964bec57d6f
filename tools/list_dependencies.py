"""Write docs/dependencies.md: every package that Stockade needs or can use, when, which versions, which licence.

python tools/list_dependencies.py          # writes the file, from pyproject.toml and the installed packages
python tools/list_dependencies.py --check  # exit code 1 if the file does not fit pyproject.toml
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "dependencies.md"
NEEDED = "always"
FLOORS = {
    "torch": "`torch.load` reads pickles with `weights_only`, which older versions could be made to run code through",
    "transformers": "weights are read with `weights_only`, and code of a model only with `trust_remote_code`",
    "sentence-transformers": "a folder's `modules.json` imports classes of others only with `trust_remote_code`",
    "pyarrow": "extension types in files are not unpickled",
    "datasets": "data sets bring no loading scripts",
}
"""What a minimum version protects from."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LONGEST = 60
_HEAD = """# Dependencies

Made by `python tools/list_dependencies.py` from `pyproject.toml` and the metadata of the installed
packages. `when` says which extra of `pip install "stockade[…]"` brings a package. `constraints.txt` pins
everything that CI installs.

| package | versions | when | licence |
|---|---|---|---|
"""
_FLOORS_HEAD = """
## Minimum versions that protect

| package | at least | because |
|---|---|---|
"""


def requirements(project: Mapping[str, object]) -> dict[str, tuple[str, list[str]]]:
    """For each package its versions and when it is installed.

    Parameters
    ----------
    project
        The table `project` of pyproject.toml.
    """
    listed: dict[str, tuple[str, list[str]]] = {}
    extras: Mapping[str, list[str]] = project.get("optional-dependencies", {})  # type: ignore[assignment]
    needed: list[str] = project["dependencies"]  # type: ignore[assignment]
    for when, items in {NEEDED: needed, **extras}.items():
        for item in items:
            match = _NAME.match(item)
            assert match is not None, item
            versions, places = listed.setdefault(match[0], (item[match.end() :].strip(), []))
            assert versions == item[match.end() :].strip(), f"{match[0]} has different ranges in pyproject.toml"
            places.append(when)
    return dict(sorted(listed.items()))


def licence(package: str) -> str | None:
    """The licence that an installed package states; None if it is not installed.

    Parameters
    ----------
    package
        Its name on PyPI.
    """
    try:
        about = metadata(package)
    except PackageNotFoundError:
        return None
    fields = [about[name] for name in ("License-Expression", "License") if name in about]
    stated = (fields[0] if fields else "").strip()
    lines = about.get_all("Classifier") or ()
    classified = [line.rpartition(" :: ")[2] for line in lines if line.startswith("License")]
    chosen = stated if stated and "\n" not in stated and len(stated) <= _LONGEST else ", ".join(classified)
    return chosen or "not stated"


def render(project: Mapping[str, object], before: Mapping[str, str]) -> str:
    """The page.

    Parameters
    ----------
    project
        The table `project` of pyproject.toml.
    before
        Licences that the page has, for packages that are not installed here.
    """
    listed = requirements(project)
    licences = {name: licence(name) or before.get(name, "not installed here") for name in listed}
    rows = [
        f"| {name} | `{versions or 'any'}` | {', '.join(when)} | {licences[name]} |\n"
        for name, (versions, when) in listed.items()
    ]
    floors = [f"| {name} | `{listed[name][0]}` | {reason} |\n" for name, reason in FLOORS.items()]
    return _HEAD + "".join(rows) + _FLOORS_HEAD + "".join(floors)


def read_rows(page: str) -> dict[str, tuple[str, str, str]]:
    """Versions, extras and licence of each package on a page.

    Parameters
    ----------
    page
        Its Markdown.
    """
    rows = [line.strip("|").split("|") for line in page.partition("## ")[0].splitlines() if line.startswith("| ")]
    return {cells[0].strip(): (cells[1].strip(" `"), cells[2].strip(), cells[3].strip()) for cells in rows[1:]}


def project_table() -> Mapping[str, object]:
    """The table `project` of pyproject.toml."""
    table: Mapping[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def main() -> int:
    page = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    before = {name: row[2] for name, row in read_rows(page).items()} if page else {}
    made = render(project_table(), before)
    if "--check" in sys.argv:
        same = {name: row[:2] for name, row in read_rows(page).items()} == {
            name: row[:2] for name, row in read_rows(made).items()
        }
        return 0 if same else 1
    TARGET.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
