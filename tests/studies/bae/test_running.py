"""`st.study` and `stockade study` from the first word to the last file, with language models a person can follow."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import OptionError, RunError
from stockade.studies.bae.analysis import ATTACKS
from stockade.studies.bae.study import BaeResult
from tests.studies.bae.toys import REFERENCE, ROWS, VICTIM, predict
from tests.studies.made_studies import failure, make_bae, of_each, success
from tests.toys import WeightVictim

FILES = {"summary.json", "report.md", "report.html", "run.sqlite", "manifest.json", "run"}


@pytest.fixture(scope="module")
def finished(language: None, tmp_path_factory: pytest.TempPathFactory) -> BaeResult:
    """A study of the toy; not to be written to."""
    result = st.study("bae", REFERENCE, ROWS, out=tmp_path_factory.mktemp("bae") / "made")
    assert isinstance(result, BaeResult)
    return result


@pytest.fixture
def copied(finished: BaeResult, tmp_path: Path) -> Path:
    """A copy of the study's folder."""
    return shutil.copytree(finished.folder, tmp_path / "copy")


def without_seconds(summary: Any) -> Any:
    """A summary without what differs from run to run."""
    if isinstance(summary, dict):
        left_out = ("run", "created", "seconds", "model_seconds", "model_rows")
        return {name: without_seconds(value) for name, value in summary.items() if name not in left_out}
    return [without_seconds(value) for value in summary] if isinstance(summary, list) else summary


def opened(folder: Path) -> BaeResult:
    result = st.load(folder)
    assert isinstance(result, BaeResult)
    return result


def written(folder: Path) -> Any:
    return without_seconds(json.loads((folder / "summary.json").read_text()))


def test_a_whole_study(finished: BaeResult) -> None:
    numbers = finished.numbers
    assert finished.complete
    assert {path.name for path in finished.folder.iterdir()} >= FILES
    assert list(numbers.attacks) == list(ATTACKS)
    assert {(attack.n, attack.attacked, attack.skipped) for attack in numbers.attacks.values()} == {(4, 3, 1)}
    # every text can be turned around by one inserted word, and each of them by one replacement too
    assert [numbers.attacks[mode].succeeded for mode in ATTACKS[:4]] == [3, 3, 3, 3]
    for name, attack in numbers.attacks.items():
        curve = [point["value"] or 0.0 for point in numbers.curve.attacks[name]]
        assert curve[0] == attack.clean_accuracy["value"]
        assert curve == sorted(curve, reverse=True)
        assert curve[-1] == attack.robust_accuracy["value"]
    assert numbers.fluency is not None
    assert (numbers.fluency.attacks["bae-i"].median_ratio or 0) > 1  # an insertion makes a text longer
    assert written(finished.folder) == without_seconds(json.loads(json.dumps(finished.summary)))
    page = (finished.folder / "report.html").read_text()
    assert page.count("<svg") == 3
    assert not re.search(r'(?:src|href)="https?:|@import|url\(["\']?http', page)
    assert 'class="stockade"' in finished._repr_html_()


def test_what_a_result_can_do(finished: BaeResult, tmp_path: Path) -> None:
    result = opened(finished.folder)
    assert result.summary == finished.summary
    assert len(list(result.records())) == len(list(result.rows())) == len(result.to_pandas()) == 5 * len(ROWS)
    assert result.layout.columns == result.run.layout.columns
    assert result.save(tmp_path / "kept").numbers == finished.numbers


def test_verify_asks_the_model_again_and_reads_the_summary(copied: Path) -> None:
    result = opened(copied)
    with pytest.raises(RunError, match="--trust-run"):
        result.verify()
    assert result.verify(trust=True).holds
    assert result.verify(predict).checked == len(list(result.run.records()))
    summary = json.loads((copied / "summary.json").read_text())
    summary["splits"]["attacked"] += 1
    (copied / "summary.json").write_text(json.dumps(summary))
    assert result.verify(predict).problems == ("summary.json: splits does not follow from the results",)
    flipped = WeightVictim({word: -weight for word, weight in VICTIM.weights.items()}, bias=-0.1)
    problems = result.verify(flipped).problems
    assert len(problems) > 1
    assert problems[0].startswith("run: ")


class Stop:
    """An observer that interrupts the job at its nth report."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, progress: st.Progress) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [1, 7, 20, 21])
def test_an_interrupted_study_ends_in_the_same_numbers(finished: BaeResult, tmp_path: Path, after: int) -> None:
    """After one text, in the second attack, behind the last text, and in the pseudo-perplexities."""
    folder = tmp_path / "a"
    with pytest.raises(KeyboardInterrupt):
        st.study("bae", REFERENCE, ROWS, out=folder, concurrency=1, observer=Stop(after))
    assert not st.load(folder).complete
    assert not (folder / "summary.json").exists()
    verification = st.load(folder).verify(predict)
    assert verification.exit_code == 3
    assert verification.incomplete[-1] == "summary.json is missing: the job was interrupted before its end"
    with pytest.raises(RunError, match="resume it from Python, with the same objects"):
        st.resume(folder, trust=True)
    result = st.resume(folder, data=ROWS, trust=True)
    assert result.complete
    assert written(folder) == written(finished.folder)


def test_two_jobs_do_not_share_a_folder(language: None, tmp_path: Path) -> None:
    refused = []

    def second(progress: st.Progress) -> None:
        with pytest.raises(RunError) as error:
            st.study("bae", REFERENCE, ROWS, out=tmp_path / "a", resume=True)
        refused.append(str(error.value))

    st.study("bae", REFERENCE, ROWS[:1], out=tmp_path / "a", observer=second)
    assert refused
    assert all(sentence.startswith("Another process is working on") for sentence in refused)
    with pytest.raises(RunError, match="exists already and is not empty"):
        st.study("bae", REFERENCE, ROWS[:1], out=tmp_path / "a")
    with pytest.raises(RunError, match=r"data\.fingerprint was"):
        st.resume(tmp_path / "a", data=ROWS, trust=True)


def test_a_finished_study_is_analysed_again_without_its_model(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    make_bae(folder, of_each(lambda name: [success(0, name, ("one", "x")), failure(1, name)]))
    for file in ("summary.json", "report.html", "report.md"):
        (folder / file).unlink()
    result = st.resume(folder)
    assert result.numbers.fluency is None
    assert result.numbers.attacks["bae-r"].succeeded == 1
    assert {"summary.json", "report.md", "report.html"} <= {path.name for path in folder.iterdir()}
    assert "Not measured." in (folder / "report.html").read_text()


def test_only_what_concerns_the_analysis_may_change_on_a_resume(language: None, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    make_bae(folder, of_each(lambda name: [success(0, name, ("one", "x"))]))
    with pytest.raises(RunError, match='preset was nothing, now "authors"'):
        st.study("bae", out=folder, resume=True, preset="authors")
    with pytest.raises(RunError, match="limit was nothing, now 3"):
        st.study("bae", out=folder, resume=True, limit=3)
    assert st.study("bae", out=folder, resume=True, fluency=True).numbers.fluency is not None
    assert json.loads((folder / "manifest.json").read_text())["spec"]["fluency"] is True
    fluency = opened(folder).numbers.fluency
    assert fluency is not None
    assert fluency.attacks["bae-r"].median_ratio == pytest.approx(50 / 48)


@pytest.mark.parametrize("state", ["no store", "not complete", "not measured"])
def test_a_run_that_is_not_finished_needs_its_model(tmp_path: Path, state: str) -> None:
    similarity = None if state == "not measured" else 0.9
    records = of_each(lambda name: [success(0, name, ("one", "x"), similarity=similarity)])
    result = make_bae(tmp_path / "a", records, size=2 if state == "not complete" else 1)
    if state == "no store":
        shutil.rmtree(result.folder / "run")
        with pytest.raises(RunError, match=r"is not complete: .*/run is not a run: there is no such folder"):
            st.load(result.folder).document()
    assert not st.load(result.folder).complete
    with pytest.raises(st.StockadeError, match="toy"):
        st.resume(result.folder)


def test_the_command_and_its_resumption(language: None, finished: BaeResult, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    folder = tmp_path / "a"
    words = [
        "study",
        "bae",
        REFERENCE,
        str(tmp_path / "data.csv"),
        "--limit",
        "3",
        "--no-fluency",
        "--out",
        str(folder),
    ]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "bae-r+i succeeds at least as often as bae-r/i" in result.output
    assert f"report: {folder / 'report.html'}" in result.output.replace("\n", "")
    assert opened(folder).numbers.fluency is None
    with sqlite3.connect(folder / "run" / "run.sqlite") as connection:
        connection.execute("DELETE FROM results WHERE part = 'textfooler'")
    for words in (
        ["study", "bae", "--resume", "--fluency", "--trust-run", "--out", str(folder)],
        ["resume", str(folder)],
    ):
        result = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert st.load(folder).complete
        assert opened(folder).numbers.fluency is not None


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    def refusal(*words: str) -> str:
        result = CliRunner().invoke(cli, ["study", *words], standalone_mode=False)
        if isinstance(result.exception, click.UsageError):
            return result.exception.format_message()
        assert isinstance(result.exception, OptionError), result.output
        return str(result.exception)

    assert 'Did you mean "transfer"?' in refusal("tranfer", "builtin:sentiment-cnn", "data.csv")
    assert "MODEL and DATA are missing" in refusal("bae")
    assert "DATA is missing" in refusal("bae", "builtin:sentiment-cnn")
    assert "--resume needs the job's folder" in refusal("bae", "--resume")
    assert "--limit has no effect" in refusal("bae", "--resume", "--limit", "3", "--out", str(tmp_path))
    assert "--label-map spam" in refusal("bae", "builtin:sentiment-cnn", "data.csv", "--label-map", "spam")
    assert "Did you mean one of: '--fluency'" in refusal("bae", "builtin:sentiment-cnn", "data.csv", "--flency")


def test_options_of_a_study_are_the_fields_of_its_spec() -> None:
    shown = CliRunner().invoke(cli, ["study", "bae", "--help"]).output
    for option in ("--preset", "--score-first", "--fluency / --no-fluency", "--defense", "--limit", "--trust-run"):
        assert option in shown
    assert "pseudo-perplexities" in shown


def test_the_name_in_the_package_is_the_function_however_often_it_is_asked_for() -> None:
    import stockade.studies

    assert st.study is stockade.studies.study
    assert st.study is stockade.studies.study


def test_help_answers_without_torch() -> None:
    code = (
        "import sys; sys.argv = ['stockade', 'study', '--help']\n"
        "import atexit; atexit.register(lambda: print('TORCH', 'torch' in sys.modules))\n"
        "from stockade.cli.main import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "TORCH False" in result.stdout
