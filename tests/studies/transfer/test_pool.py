"""A study of a pool: what is missing is trained, twice each; members that cannot be used are marked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.models.zoo import names
from stockade.studies.transfer.study import TransferResult
from stockade.workflows.train import pool
from tests.studies.transfer.toys import use_few_synonyms

ENDS = ("film", "story", "play", "scene", "plot", "cast", "end", "start", "score", "joke")
TEXTS = [
    (f"{word} {end} of {number} minutes", label)
    for number in range(4)
    for end in ENDS
    for word, label in (("great", 1), ("dull", 0))
]
MEMBERS = ("CNN-W-Random-1", "LSTM-W-Random-1", "BERT")
SMALL: dict[str, Any] = {"pool": "tiny", "train_data": TEXTS, "attacked": 12, "importance": 2, "maps": 1}


@pytest.fixture(autouse=True)
def _tiny_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    use_few_synonyms(monkeypatch)
    monkeypatch.setitem(names.POOLS, "tiny", MEMBERS)
    monkeypatch.setattr(pool, "_EPOCHS", {"W": 1})
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


def study(*models: object, **options: Any) -> TransferResult:
    result = st.study("transfer", list(models) or None, TEXTS[:20], **{**SMALL, **options})
    assert isinstance(result, TransferResult)
    return result


def test_a_pool_is_trained_attacked_and_has_base_rates(tmp_path: Path) -> None:
    parts: list[str] = []
    result = study(out=tmp_path / "made", observer=lambda progress: parts.append(progress.part))
    assert result.complete
    assert result.models == ("LSTM-W-Random-1", "CNN-W-Random-1")
    assert result.failures["BERT"].startswith("no checkpoint was given")
    assert {name: model.failure is None for name, model in result.numbers.models.items()} == {
        "CNN-W-Random-1": True,
        "LSTM-W-Random-1": True,
        "BERT": False,
    }
    for name in result.models:
        assert result.numbers.models[name].second_accuracy["value"] is not None
        assert (tmp_path / "made" / "models" / name / "config.json").exists()
    assert parts[0] == "training the pool"
    assert "BERT could not be used to the end: no checkpoint was given" in (tmp_path / "made" / "report.md").read_text()
    trained = {path: path.stat().st_mtime_ns for path in (tmp_path / "made" / "models").glob("*/model.safetensors")}
    assert len(trained) == 4
    # A model that is added finds the pool trained and attacked already.
    extra = shutil.copytree(tmp_path / "made" / "models" / "CNN-W-Random-1", tmp_path / "mine")
    shutil.rmtree(tmp_path / "made" / "models" / "LSTM-W-Random-1")
    grown = study(str(extra), out=tmp_path / "made", resume=True)
    assert grown.models == ("LSTM-W-Random-1", "CNN-W-Random-1", "mine")
    assert grown.complete
    rates = grown.numbers.attacks["pwws"].matrix()
    successes = grown.numbers.attacks["pwws"].sources["mine"].succeeded
    assert rates.rate("mine", "CNN-W-Random-1") == 1.0 or not successes
    # The member whose folder was gone has been trained again, to the same weights.
    assert set(grown.failures) == {"BERT", "BERT (second training)"}
    again = {path: path.stat().st_mtime_ns for path in trained}
    assert [path.parent.name for path in trained if again[path] != trained[path]] == ["LSTM-W-Random-1"]


def test_a_pool_of_other_data_is_marked_and_given_models_go_on(tmp_path: Path) -> None:
    first = study(out=tmp_path / "first", pool_folder=str(tmp_path / "pool"))
    assert not (tmp_path / "first" / "models").exists()
    model = str(tmp_path / "pool" / "CNN-W-Random-1")
    other = study(model, out=tmp_path / "made", pool_folder=str(tmp_path / "pool"), train_data=TEXTS[:40])
    assert "was trained on other data" in other.failures["LSTM-W-Random-1"]
    assert other.models == ("CNN-W-Random-1",)  # a model that was named takes the place of the member
    assert first.complete
    assert other.complete


def test_the_command_takes_the_data_alone(tmp_path: Path) -> None:
    for name, rows in (("train.csv", TEXTS), ("test.csv", TEXTS[:20])):
        (tmp_path / name).write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    words = ["study", "transfer", str(tmp_path / "test.csv"), "--pool", "tiny", "--out", str(tmp_path / "made")]
    refused = CliRunner().invoke(cli, words)
    assert "--pool tiny needs data to train on" in str(refused.exception)
    small = ["--train-data", str(tmp_path / "train.csv"), "--attacked", "8", "--importance", "0", "--maps", "0"]
    ended = CliRunner().invoke(cli, [*words, *small], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert (tmp_path / "made" / "matrix.csv").read_text().startswith("source,LSTM-W-Random-1,CNN-W-Random-1\n")
