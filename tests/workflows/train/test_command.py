"""`stockade train` as a user runs it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stockade.cli import main as command_line
from stockade.cli.train import next_command
from stockade.training.loop import fit
from stockade.workflows.train import run as workflow
from tests.training.tiny import rows

Command = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("csv_folder")
CNN = ("--arch", "CNN-W-Random-1", "--set", "filters=8", "--set", "widths=2,3")


@pytest.fixture
def stockade(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command in this process: (exit code, standard output, standard error)."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["stockade", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        out, errors = capsys.readouterr()
        return int(ended.value.code or 0), out, errors

    return run


def test_from_a_csv_to_an_attacked_model(stockade: Command) -> None:
    options = ("--epochs", 6, "--batch", 8, "--lr", 0.02)
    code, out, errors = stockade("train", "data.csv", *CNN, "--out", "models/cnn", *options)
    assert (code, errors) == (0, "")
    assert "Right on 100.0 % (61.0–100.0) of 6 validation texts after epoch " in out
    assert "models/cnn" in out
    assert out.splitlines()[-1].startswith("Next: stockade attack models/cnn TEST-DATA --attack pwws --limit 100")
    spec = json.loads(Path("models/cnn/manifest.json").read_text())["spec"]
    assert spec["sizes"] == {"filters": 8, "widths": [2, 3]}
    assert spec["options"]["learning_rate"] == 0.02
    assert spec["options"]["word_dropout"] == 0.05, "from the preset that suits the architecture"
    attack = ("attack", "models/cnn", "data.csv", "--attack", "deepwordbug", "--limit", 6, "--no-similarity")
    code, out, _ = stockade(*attack)
    assert code == 0
    assert "deepwordbug" in out


def test_what_to_do_next_has_the_columns_and_attacks_what_was_not_trained_on(stockade: Command) -> None:
    plain = {"validation": None, "label_map": (), "skip_bad_rows": False}
    plain |= dict.fromkeys(("text_column", "label_column", "premise_column", "encoding", "delimiter"))
    line = next_command(Path("m"), "builtin:reviews:train", plain)
    assert line == "Next: stockade attack m builtin:reviews:test --attack pwws --limit 100"
    given = {**plain, "text_column": "the review", "label_map": ("1=pos",), "delimiter": ";", "validation": "dev.csv"}
    words = shlex.split(next_command(Path("m"), "train.csv", given).removeprefix("Next: "))
    assert words[:4] == ["stockade", "attack", "m", "dev.csv"]
    assert words[4:10] == ["--text-column", "the review", "--delimiter", ";", "--label-map", "1=pos"]
    assert "train.csv" not in words
    assert "# TEST-DATA: texts like those of train.csv" in next_command(Path("m"), "train.csv", plain)
    Path("dev.tsv").write_text("said\tmeant\nfine film\tpositive\nbad film\tnegative\n")
    Path("named.tsv").write_text("said\tmeant\n" + "fine film\tpositive\nbad film\tnegative\n" * 4)
    options = ("--text-column", "said", "--label-column", "meant", "--validation", "dev.tsv", "--epochs", 1)
    code, out, _ = stockade("train", "named.tsv", *CNN, *options, "--out", "models/n")
    assert code == 0
    printed = shlex.split(out.splitlines()[-1].removeprefix("Next: stockade "))
    assert stockade(*printed, "--no-similarity", "--out", "runs/n")[0] == 0, "the printed command works"


@pytest.mark.usefixtures("plain_report")
@pytest.mark.parametrize(
    ("defense", "shown"),
    [("ranmask:rate=0.5", " validation texts as ranmask shows them after"), ("pgd", "texts after")],
)
def test_the_accuracy_says_what_the_texts_were_read_as(defense: str, shown: str, stockade: Command) -> None:
    code, out, _ = stockade("train", "data.csv", *CNN, "--epochs", 1, "--defense", defense, "--out", "models/d")
    assert code == 0
    assert f"{shown} epoch 1, the best of 1" in " ".join(out.split())
    assert f"trained with {defense.partition(':')[0]};" in Path("models/d/README.md").read_text()


@pytest.mark.usefixtures("plain_report")
def test_a_defense_that_is_lost_is_pointed_out(stockade: Command) -> None:
    stockade("train", "data.csv", *CNN, "--epochs", 1, "--defense", "ranmask:rate=0.5", "--out", "models/d")
    _, out, _ = stockade("train", "data.csv", "--model", "models/d", "--epochs", 1, "--out", "models/e")
    assert "models/d has a defense (ranmask), models/e has none: to keep it, train with --defense ranmask" in out
    words = ("--model", "models/d", "--epochs", 1, "--defense", "ranmask:rate=0.5", "--out", "models/f")
    assert "has none" not in stockade("train", "data.csv", *words)[1]


@pytest.mark.usefixtures("plain_report")
def test_control_c_says_how_to_resume(stockade: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(training: Any, state: Any, checkpoints: Any, observe: Any) -> Any:
        def press(progress: Any) -> None:
            if progress.step == 3:
                raise KeyboardInterrupt

        return fit(training, state, checkpoints, press)

    train = ("train", "data.csv", *CNN, "--out", "m", "--epochs", "3", "--checkpoint-minutes", "0")
    monkeypatch.setattr(workflow, "fit", interrupted)
    assert stockade(*train) == (130, "", "stockade: interrupted; resume with: stockade resume m\n")
    monkeypatch.setattr(workflow, "fit", fit)
    code, _, errors = stockade("train", "--resume", "--out", "m", "--epochs", "9")
    assert code == 2
    assert "epochs" in errors
    code, out, errors = stockade("resume", "m")
    assert code == 0, errors
    assert "epoch" in out
    assert stockade(*train, "--resume")[0] == 0, "naming everything again is fine too"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("data.csv", "--out", "m"), "name one of --arch and --model"),
        (("data.csv", "--arch", "CNN-W-Random-1"), "name it with --out"),
        (("--arch", "CNN-W-Random-1", "--out", "m"), "There is no data to train on"),
        (("data.csv", "--arch", "CNN-X-1", "--out", "m"), "There is no model"),
        (("data.csv", *CNN, "--out", "m", "--epochs", "0"), "epochs is 0"),
        (("data.csv", *CNN, "--out", "m", "--class-weights", "1"), "There are 1 class weights for 2 classes"),
        (("data.csv", *CNN, "--out", "m", "--option", "dropout"), "is not of the form KEY=VALUE"),
        (("data.csv", *CNN, "--out", "m", "--option", "word_drop=1"), 'Did you mean "word_dropout"'),
        (("data.csv", *CNN, "--out", "m", "--preset", "ranmusk"), 'Did you mean "ranmask"'),
        (("data.csv", *CNN, "--out", "m", "--label-column", "class"), "has no column"),
        (("none.csv", *CNN, "--out", "m"), "none.csv"),
        (("data.csv", "--model", "nowhere/at/all", "--out", "m"), "There is no folder"),
        (("--resume", "--out", "m"), "m is not a run"),
        (("data.csv", *CNN, "--out", "."), "exists already and is not empty"),
        (("one.csv", *CNN, "--out", "m"), "a classifier needs texts of at least two classes"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    words: tuple[str, ...], message: str, stockade: Command, csv_folder: Path
) -> None:
    (csv_folder / "one.csv").write_text("text,label\na film,1\nthe film,1\n")
    code, out, errors = stockade("train", *words)
    assert code == 2
    assert not out
    assert message in errors
    assert errors.startswith("stockade: ")
    assert len(errors.splitlines()) == 1
    assert not Path("m").exists()


@pytest.mark.usefixtures("plain_report")
def test_a_language_model_needs_texts_only(stockade: Command, csv_folder: Path) -> None:
    (csv_folder / "texts.csv").write_text("text\n" + "".join(f"{text}\n" for text, _ in rows(20)))
    sizes = [part for size in ("projection_size=8", "words=50") for part in ("--set", size)]
    code, out, errors = stockade("train", "texts.csv", "--arch", "biLM", "--epochs", "2", "--out", "lm", *sizes)
    assert code == 0, errors
    assert "Validation loss " in out
    assert "stockade attack" not in out, "there is no classifier to attack"
    summary = json.loads(Path("lm/summary.json").read_text())
    assert summary["history"][1]["loss"] < summary["history"][0]["loss"]
