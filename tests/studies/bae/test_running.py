"""`st.study` and `stockade study` from the first word to the last file."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import stockade as st
from stockade import api
from stockade.cli.main import cli
from stockade.core.errors import OptionError
from stockade.studies.bae import ATTACKS
from tests.e2e.conftest import ROWS
from tests.study.made_runs import failure, make_run, success

FILES = {"study.json", "study.md", "study.html", "run.sqlite", "manifest.json", "summary.json"}
FOUND = ("splits", "curve", "orders", "antonyms", "fluency")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is run: a folder with data, and a cache of its own."""
    (tmp_path / "data.csv").write_text("text,label\n" + "\n".join(f'"{text}",{label}' for text, label in ROWS) + "\n")
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_of_the_built_in_cnn_and_its_resumption(folder: Path) -> None:
    words = ["study", "bae", "builtin:sentiment-cnn", "data.csv", "--limit", "4", "--score-first", "--out", "runs/a"]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "bae-r+i succeeds at least as often as bae-r/i" in result.output
    made = folder / "runs/a"
    assert {path.name for path in made.iterdir()} >= FILES
    numbers = json.loads((made / "study.json").read_text())
    assert list(numbers["attacks"]) == list(ATTACKS)
    assert {found["n"] for found in numbers["attacks"].values()} == {4}
    assert numbers["attacks"]["bae-r+i"]["succeeded"] > 0
    assert numbers["fluency"]["attacks"]["bae-r+i"]["median_ratio"] > 0
    for name, found in numbers["attacks"].items():
        curve = [point["value"] for point in numbers["curve"]["attacks"][name]]
        assert curve[0] == found["clean_accuracy"]["value"]
        assert curve == sorted(curve, reverse=True)
        assert curve[-1] >= found["robust_accuracy"]["value"]
    page = (made / "study.html").read_text()
    assert page.count("<svg") == 3
    assert not re.search(r'(?:src|href)="https?:|@import|url\(["\']?http', page)

    # as after an interruption in the fourth attack
    with sqlite3.connect(made / "run.sqlite") as connection:
        connection.execute("DELETE FROM results WHERE attack = 'textfooler'")
        connection.execute("DELETE FROM results WHERE attack = 'bae-r+i' AND position > 1")
    again = st.study("bae", out="runs/a", resume=True).numbers
    assert json.loads(json.dumps([again[part] for part in FOUND])) == [numbers[part] for part in FOUND]


def test_a_finished_study_is_analysed_again_without_its_model(tmp_path: Path) -> None:
    records = {name: [success(0, name, ("one", "x")), failure(1, name)] for name in ATTACKS}
    make_run(tmp_path / "a", records)
    found = st.study("bae", out=tmp_path / "a", resume=True, fluency=False)
    assert found.numbers["fluency"] is None
    assert found.numbers["attacks"]["bae-r"]["succeeded"] == 1
    assert {"study.json", "study.md", "study.html"} <= {path.name for path in found.folder.iterdir()}
    assert "Not measured." in (tmp_path / "a/study.html").read_text()
    assert 'class="stockade"' in found._repr_html_()


@pytest.mark.parametrize("state", ["no store", "not complete", "not measured"])
def test_what_is_not_finished_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    similarity = None if state == "not measured" else 0.9
    records = {name: [success(0, name, ("one", "x"), similarity=similarity)] for name in ATTACKS}
    made = make_run(tmp_path / "a", records, size=2 if state == "not complete" else 1)
    if state == "no store":
        (made.folder / "run.sqlite").unlink()
    gone_on = []

    def resume(folder: Path, **_: object) -> st.Run:
        gone_on.append(folder)
        return make_run(tmp_path / "b", {name: [failure(0, name)] for name in ATTACKS})

    monkeypatch.setattr(api, "resume", resume)
    assert st.study("bae", out=made.folder, resume=True).folder == tmp_path / "b"
    assert gone_on == [made.folder]


def test_the_name_in_the_package_is_the_function_however_often_it_is_asked_for() -> None:
    import stockade.studies

    assert st.study is stockade.studies.study
    assert st.study is stockade.studies.study


def test_the_command_says_what_is_missing(folder: Path) -> None:
    def refusal(*words: str) -> str:
        result = CliRunner().invoke(cli, ["study", *words])
        assert isinstance(result.exception, OptionError), result.output
        return str(result.exception)

    assert "(found: attention, bae, masking)" in refusal("tranfer", "builtin:sentiment-cnn", "data.csv")
    assert "MODEL and DATA are missing" in refusal("bae")
    assert "--resume needs the run's folder" in refusal("bae", "--resume")
    assert "--label-map spam" in refusal("bae", "builtin:sentiment-cnn", "data.csv", "--label-map", "spam")


def test_help_answers_without_torch() -> None:
    code = (
        "import sys; sys.argv = ['stockade', 'study', '--help']\n"
        "import atexit; atexit.register(lambda: print('TORCH', 'torch' in sys.modules))\n"
        "from stockade.cli.main import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "TORCH False" in result.stdout
