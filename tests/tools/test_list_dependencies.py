"""The list of packages fits pyproject.toml, and so do the versions that the protections need."""

from __future__ import annotations

from pathlib import Path

import pytest

from list_dependencies import FLOORS, TARGET, licence, project_table, read_rows, render, requirements

ROOT = Path(__file__).parents[2]


def test_the_list_is_current() -> None:
    written = read_rows(TARGET.read_text())
    listed = requirements(project_table())
    assert {name: row[:2] for name, row in written.items()} == {
        name: (versions or "any", ", ".join(when)) for name, (versions, when) in listed.items()
    }
    assert all(row[2] for row in written.values())


def test_what_is_not_installed_keeps_the_licence_that_the_page_has() -> None:
    project = {"dependencies": ["click>=8", "no-such-package==1"], "optional-dependencies": {}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("list_dependencies.FLOORS", {})
        rows = read_rows(render(project, {"no-such-package": "MIT"}))
    assert rows["no-such-package"] == ("==1", "always", "MIT")
    assert rows["click"][2] == licence("click")
    assert licence("no-such-package") is None


@pytest.mark.parametrize(
    ("package", "least"), [("torch", (2, 6)), ("sentence-transformers", (6, 0)), ("pyarrow", (14, 0))]
)
def test_the_protections_have_the_versions_they_need(package: str, least: tuple[int, int]) -> None:
    versions, _ = requirements(project_table())[package]
    numbers = tuple(int(part) for part in versions.removeprefix(">=").split("."))
    assert numbers >= least
    assert package in FLOORS


def test_the_threat_model_names_tests_and_pages_that_exist() -> None:
    import re

    text = (ROOT / "SECURITY.md").read_text()
    paths = {*re.findall(r"`(tests/[\w/.]+)`", text), *re.findall(r"\]\((docs/[\w/.]+)\)", text)}
    assert len(paths) >= 6
    assert all((ROOT / path).is_file() for path in paths)
