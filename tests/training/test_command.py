"""`stockade train` as a user runs it, and `st.train`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForSequenceClassification

import stockade as st
from stockade.cli import main as command_line
from stockade.core.errors import OptionError, RunError
from stockade.training import job
from stockade.training.loop import Training
from tests.training.tiny import rows

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{text},{label}\n" for text, label in rows(60))
    (tmp_path / "data.csv").write_text("text,label\n" + lines)
    return tmp_path


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


CNN = ("--arch", "CNN-W-Random-1", "--set", "filters=8", "--set", "widths=2,3")


def test_from_a_csv_to_an_attacked_model(stockade: Command, folder: Path) -> None:
    options = ("--epochs", 30, "--lr", 0.02, "--patience", "none")
    code, out, errors = stockade("train", "data.csv", *CNN, "--out", "models/cnn", *options)
    assert (code, errors) == (0, "")
    accuracy, place, following = out.splitlines()
    assert accuracy.startswith("accuracy 1.0000 (0.6097 to 1.0000) on 6 texts, epoch ")
    assert place == "models/cnn: the model, README.md, training.html"
    assert following == "Next: stockade attack models/cnn data.csv --attack pwws --limit 100"
    record = json.loads(Path("models/cnn/training.json").read_text())
    assert record["config"]["sizes"] == {"filters": 8, "widths": [2, 3]}
    assert record["config"]["options"]["learning_rate"] == 0.02
    assert record["config"]["options"]["word_dropout"] == 0.05, "from the preset that suits the architecture"
    code, out, _ = stockade(
        "attack", "models/cnn", "data.csv", "--attack", "deepwordbug", "--limit", 6, "--no-similarity"
    )
    assert code == 0
    assert "deepwordbug" in out


@pytest.mark.parametrize(("defense", "shown"), [("ranmask:rate=0.5", " as ranmask shows them"), ("pgd", "")])
def test_the_accuracy_says_what_the_texts_were_read_as(
    defense: str, shown: str, stockade: Command, folder: Path
) -> None:
    code, out, _ = stockade("train", "data.csv", *CNN, "--epochs", 1, "--defense", defense, "--out", "models/d")
    assert code == 0
    assert f"on 6 texts{shown}, epoch 1 of 1" in out
    card = Path("models/d/README.md").read_text()
    assert f"trained with {defense.partition(':')[0]};" in card


def test_a_defense_that_is_not_kept_is_told(stockade: Command, folder: Path) -> None:
    stockade("train", "data.csv", *CNN, "--epochs", 1, "--defense", "ranmask:rate=0.5", "--out", "models/d")
    _, out, _ = stockade("train", "data.csv", "--model", "models/d", "--epochs", 1, "--out", "models/e")
    told = "models/d has a defense (ranmask), models/e has none: to keep it, train with --defense ranmask"
    assert told in out
    words = ("--model", "models/d", "--epochs", 1, "--defense", "ranmask:rate=0.5", "--out", "models/f")
    assert "has none" not in stockade("train", "data.csv", *words)[1]


def test_control_c_says_how_to_go_on(stockade: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = job.fit

    def interrupted(training: Training, state: Any, checkpoints: Any, observe: Any) -> Any:
        def press(progress: Any) -> None:
            if progress.step == 3:
                raise KeyboardInterrupt

        return real(training, state, checkpoints, press)

    train = ("train", "data.csv", *CNN, "--out", "m", "--epochs", "3", "--checkpoint-minutes", "0")
    monkeypatch.setattr(job, "fit", interrupted)
    assert stockade(*train) == (130, "", "stockade: interrupted; go on with: stockade train --resume --out m\n")
    monkeypatch.setattr(job, "fit", real)
    code, _, errors = stockade("train", "--resume", "--out", "m", "--epochs", "9")
    assert code == 2
    assert "Leave out epochs" in errors
    code, out, errors = stockade("train", "--resume", "--out", "m")
    assert code == 0, errors
    assert "epoch" in out
    assert stockade(*train, "--resume")[0] == 0, "naming everything again is fine too"


@pytest.mark.parametrize(
    ("words", "said"),
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
        (("--resume", "--out", "m"), "is not a training of Stockade"),
        (("data.csv", *CNN, "--out", "."), "exists already and is not empty"),
        (("one.csv", *CNN, "--out", "m"), "a classifier needs texts of at least two classes"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    words: tuple[str, ...], said: str, stockade: Command, folder: Path
) -> None:
    (folder / "one.csv").write_text("text,label\na film,1\nthe film,1\n")
    code, out, errors = stockade("train", *words)
    assert code == 2
    assert not out
    assert said in errors
    assert errors.startswith("stockade: ")
    assert len(errors.splitlines()) == 1
    assert not Path("m").exists()


def test_from_python(folder: Path) -> None:
    trained = st.train(
        rows(60), "CNN-W-Random-1", out="m", sizes={"filters": 8}, epochs=2, seed=4, labels=("negative", "positive")
    )
    assert trained.folder == Path("m")
    assert trained.classes == ("negative", "positive")
    assert len(trained.history) == 2
    assert AutoModelForSequenceClassification.from_pretrained("m").config.id2label == {0: "negative", 1: "positive"}
    with pytest.raises(RunError, match="made from Python objects"):
        st.train(out="m", resume=True)
    with pytest.raises(OptionError, match="no data"):
        st.train(out="n")


def test_a_language_model_needs_texts_only(stockade: Command, folder: Path) -> None:
    (folder / "texts.csv").write_text("text\n" + "".join(f"{text}\n" for text, _ in rows(20)))
    sizes = [part for size in ("projection_size=8", "words=50") for part in ("--set", size)]
    code, out, errors = stockade("train", "texts.csv", "--arch", "biLM", "--epochs", "2", "--out", "lm", *sizes)
    assert code == 0, errors
    assert out.startswith("validation loss ")
    losses = [epoch["loss"] for epoch in json.loads(Path("lm/training.json").read_text())["history"]]
    assert losses[1] < losses[0]
