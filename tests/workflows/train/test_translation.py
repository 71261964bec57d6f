"""Whole trainings of translators: what they learn, leave behind, and how they are resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import DataError, ModelError, OptionError
from stockade.experiment.progress import Progress
from stockade.workflows.train.result import TrainResult
from tests.models.translation.kit import ARCHITECTURES, SIZES, number_pairs
from tests.models.translation.test_neural import bart

pytestmark = pytest.mark.usefixtures("plain_report")
QUICK: dict[str, Any] = {"epochs": 2, "batch": 60, "learning_rate": 0.01, "warm_up_steps": 4, "average": 2, "seed": 3}


def train(out: Path, architecture: str = "transformer-mt", **changes: Any) -> TrainResult:
    arguments: dict[str, Any] = {"sizes": SIZES[architecture], **QUICK, **changes}
    return st.train(number_pairs(60), architecture, task="translation", out=out, **arguments)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_translator_learns_numbers_word_by_word(tmp_path: Path, architecture: str) -> None:
    held_out = number_pairs(40, seed=9, longest=2)
    larger = {"width": 32, "vocabulary": 290, **({"hidden_size": 32} if architecture == "bilstm-mt" else {})}
    trained = st.train(
        number_pairs(300, seed=1, longest=2),
        architecture,
        out=tmp_path / "m",
        validation=held_out,
        sizes={**SIZES[architecture], **larger},
        epochs=10,
        batch=30,
        learning_rate=0.01 if architecture == "bilstm-mt" else 0.005,
        warm_up_steps=30,
        label_smoothing=0.0,
        dropout=0.0,
        validate="loss",  # sentences of two words have no n-grams for BLEU
    )
    assert trained.history[-1].validation.loss < trained.history[0].validation.loss / 3
    translator = trained.load_translator(device="cpu")
    for beam in (1, 3):
        translations = translator.translate([source for source, _ in held_out], beam=beam)
        right = sum(made == target for made, (_, target) in zip(translations, held_out, strict=True))
        assert right > 0.7 * len(held_out)
    assert trained.bleu is trained.summary["bleu"] is None
    assert trained.verify().problems == ()
    card = (tmp_path / "m" / "README.md").read_text()
    assert "A translator, trained by Stockade." in card
    assert "st.load_translator(" in card
    assert "validation BLEU" in trained.document().to_markdown()
    with pytest.raises(OptionError, match=r"load_translator\(\)"):
        trained.load()


def same_weights(first: Path, second: Path) -> bool:
    one, two = load_file(first / "model.safetensors"), load_file(second / "model.safetensors")
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


class Crash(Exception):
    pass


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_training_that_crashed_ends_with_the_weights_of_an_unbroken_one(tmp_path: Path, architecture: str) -> None:
    whole = train(tmp_path / "whole", architecture, epochs=3)
    steps = whole.history[0].steps

    def crash(progress: Progress) -> None:
        if progress.done == 2 * steps + 1:  # in the third epoch: two epochs' weights are averaged by then
            raise Crash

    with pytest.raises(Crash):
        train(tmp_path / "broken", architecture, epochs=3, checkpoint_minutes=0.0, observer=crash)
    resumed = train(tmp_path / "broken", architecture, epochs=3, checkpoint_minutes=0.0, resume=True)
    assert same_weights(tmp_path / "whole", tmp_path / "broken")
    assert [epoch.validation for epoch in resumed.history] == [epoch.validation for epoch in whole.history]


@pytest.mark.slow
def test_killed_training_is_resumed_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text(
        "".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in number_pairs(300))
    )
    sizes = [f"--set={name}={value}" for name, value in SIZES["bilstm-mt"].items()]
    options = ["--epochs", "6", "--batch", "60", "--option", "average=3", "--checkpoint-minutes", "0", *sizes]
    command = [sys.executable, "-m", "stockade", "train", "pairs.jsonl", "--task", "translation", "--arch", "bilstm-mt"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    subprocess.run([*command, *options, "--out", "whole"], cwd=tmp_path, env=environment, check=True)
    process = subprocess.Popen([*command, *options, "--out", "killed"], cwd=tmp_path, env=environment)
    checkpoint, end = tmp_path / "killed" / "checkpoint" / "state.safetensors", time.monotonic() + 120
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resume = [sys.executable, "-m", "stockade", "resume", "killed"]
    subprocess.run(resume, cwd=tmp_path, env=environment, check=True)
    assert same_weights(tmp_path / "whole", tmp_path / "killed")


def test_model_of_transformers_is_trained_further(tmp_path: Path) -> None:
    model, tokenizer = bart()
    pairs = [(source, source) for source, _ in number_pairs(30)]
    trained = st.train(
        pairs, task="translation", model=(model, tokenizer), out=tmp_path / "m", **{**QUICK, "epochs": 1}
    )
    assert trained.history[0].validation.bleu is not None
    assert (tmp_path / "m" / "model.safetensors").exists()
    assert trained.load_translator().translate(["one"])


def test_command_trains_from_a_file_and_says_how_good_it_is(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("de,note,en\n" + "".join(f"{target},x,{source}\n" for source, target in number_pairs(40)))
    sizes = [f"--set={name}={value}" for name, value in SIZES["transformer-mt"].items()]
    out = str(tmp_path / "m")
    arguments = ["train", str(path), "--arch", "transformer-mt", "--preset", "fast", "--source-column", "en"]
    result = CliRunner().invoke(cli, [*arguments, "--epochs", "1", "--batch", "100", *sizes, "--out", out])
    assert result.exit_code == 0, result.output
    assert "BLEU" in result.output
    assert "stockade attack" not in result.output
    recorded = json.loads((tmp_path / "m" / "manifest.json").read_text())["spec"]
    assert recorded["task"] == "translation"
    assert recorded["options"]["label_smoothing"] == 0.1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"task": "summarisation"}, "task"),
        ({"task": "translation", "architecture": "CNN-W-GloVe-1"}, "architecture of a translator"),
        ({"task": "classification", "architecture": "transformer-mt"}, "no model"),
        ({"defenses": "ranmask"}, "A translator cannot be trained with defenses"),
        ({"labels": ["a", "b"]}, "A translator cannot be trained with class names"),
        ({"preset": "zoo-word"}, "training preset of a translator"),
        ({"word_dropout": 0.1}, "word_dropout has no effect on a translator"),
        ({"beam": 4}, "training option"),
    ],
)
def test_what_does_not_fit_a_translator_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    arguments = {"architecture": "transformer-mt", **changes}
    with pytest.raises(OptionError, match=problem):
        st.train(number_pairs(20), out=tmp_path / "m", **arguments)
    assert not (tmp_path / "m").exists()


def test_broken_parallel_data_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("en,de\na dog,ein Hund\na cat,\n")
    with pytest.raises(DataError, match=r'pairs.csv row 1 \(line 3\) has no text in column "de"'):
        st.train(path, "bilstm-mt", out=tmp_path / "m")
    with pytest.raises(ModelError, match="has no weights to train"):
        st.train(number_pairs(9), task="translation", model=str.upper, out=tmp_path / "m")
    assert not (tmp_path / "m").exists()
