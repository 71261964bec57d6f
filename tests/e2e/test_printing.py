"""What the terminal shows: every name and text as the user wrote it, brackets and colons included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.report.document import Document, Note
from stockade.report.render_terminal import standard_output
from tests.toys import WeightVictim

STUDIES = ["attention", "bae", "ensemble", "firebert", "masking", "rules", "transfer", "translation"]
LABELS = ("[bold]no", "[/yes]")
"""Were it markup, a tag that nothing closes and one that nothing has opened."""


def shown(*words: str) -> str:
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("[red]runs") / "a"
    rows = [("a bad film", "[bold]no"), ("a good [/i] film :bug:", "[/yes]")]
    victim = WeightVictim({"good": 2.0, "bad": -2.0}, 0.5, LABELS)
    st.attack(victim, rows, "deepwordbug", out=folder, similarity=False)
    return folder


def test_labels_and_texts_with_brackets_are_shown_as_they_are(run: Path) -> None:
    output = shown("show", str(run), "--status", "all")
    assert "[bold]no 0.82 → [/yes] 0.62" in output
    assert "[/i] film :bug:" in output


def test_warnings_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    document = Document(title="[red]", blocks=(Note("the classes are [bold]no, [/yes]", kind="warning"),))
    document.to_terminal(standard_output())
    assert "warning: the classes are [bold]no, [/yes]" in capsys.readouterr().out


def test_studies_are_listed() -> None:
    assert [entry["name"] for entry in json.loads(shown("ls", "studies", "--json"))] == STUDIES
    assert all(name in shown("ls", "studies") for name in STUDIES)
    assert set(json.loads(shown("ls", "--json"))) == {
        "attacks",
        "defenses",
        "certificates",
        "models",
        "data",
        "studies",
    }
