"""Attacks on a defended model, from the command line."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from tests.e2e.conftest import Stockade

DEFENSE = "ranmask:rate=0.3,copies=20"
ATTACK = ("attack", "python:victim:predict", "data.jsonl", "--no-similarity", "--attack", "deepwordbug")


def test_a_defended_model_is_attacked_recorded_and_verified(stockade: Stockade, folder: Path) -> None:
    result = stockade(*ATTACK, "--defense", DEFENSE, "--out", "runs/d")
    assert result.returncode == 0, result.stderr
    (defense,) = json.loads((folder / "runs/d/manifest.json").read_text())["inputs"]["model"]["defenses"]
    assert defense["name"] == "ranmask"
    assert (defense["options"]["rate"], defense["options"]["copies"]) == (0.3, 20)
    summary = json.loads((folder / "runs/d/summary.json").read_text())
    assert summary["defenses"][0].startswith("ranmask(rate=0.3, copies=20")
    rows = [json.loads(line) for line in stockade("export", "runs/d").stdout.splitlines()]
    successes = [row for row in rows if row["status"] == "success"]
    assert successes
    assert all(row["hit_rate"] >= 0.5 for row in successes)
    assert "all hold" in stockade("verify", "runs/d", "--trust-run").stdout


def test_verify_notices_a_text_that_does_not_fool_the_defended_model(stockade: Stockade, folder: Path) -> None:
    stockade(*ATTACK, "--defense", DEFENSE, "--out", "runs/d")
    rows = [json.loads(line) for line in stockade("export", "runs/d").stdout.splitlines()]
    success = next(row for row in rows if row["status"] == "success")
    with sqlite3.connect(folder / "runs/d/run.sqlite") as store:
        (content,) = store.execute("select document from results where id = ?", (success["id"],)).fetchone()
        record = json.loads(content) | {"adversarial": success["original"], "edits": []}
        store.execute("update results set document = ? where id = ?", (json.dumps(record), success["id"]))
    result = stockade("verify", "runs/d", "--trust-run")
    assert result.returncode == 1
    assert f"example {success['id']}: fooled the model in" in result.stdout


def test_the_draws_of_a_resumed_run_are_those_of_an_unbroken_one(stockade: Stockade, folder: Path) -> None:
    stockade(*ATTACK, "--defense", DEFENSE, "--out", "runs/whole")
    stockade(*ATTACK, "--defense", DEFENSE, "--out", "runs/part", "--concurrency", "3")
    with sqlite3.connect(folder / "runs/part/run.sqlite") as store:
        store.execute("delete from results where cast(id as integer) >= 4")
    assert stockade("resume", "runs/part", "--trust-run").returncode == 0
    assert stockade("export", "runs/part").stdout == stockade("export", "runs/whole").stdout


def test_another_defense_is_another_run(stockade: Stockade, folder: Path, refused: Callable[..., str]) -> None:
    stockade(*ATTACK, "--defense", DEFENSE, "--out", "runs/d")
    message = refused(*ATTACK, "--defense", "ranmask:rate=0.5,copies=20", "--out", "runs/d", "--resume")
    assert "rate was 0.3, now 0.5" in message or "fingerprint" in message


def test_votes_that_starve_an_attack_are_warned_of(stockade: Stockade) -> None:
    voting = stockade(*ATTACK, "--defense", "ranmask:rate=0.1,copies=9,combine=vote", "--out", "runs/v")
    assert "no evidence of robustness" in " ".join(voting.stdout.split())
    mean = stockade(*ATTACK, "--defense", "ranmask:rate=0.1,copies=9", "--out", "runs/p")
    assert "no evidence of robustness" not in mean.stdout


def test_wrong_defenses_are_refused(refused: Callable[..., str]) -> None:
    assert "ranmask" in refused(*ATTACK, "--defense", "ranmsk")
    assert "rate of ranmask is 1.0" in refused(*ATTACK, "--defense", "ranmask:rate=1")
    assert "rate of ranmask is 0.0" in refused(*ATTACK, "--defense", "ranmask:rate=0")
    assert "is not of the form option=value" in refused(*ATTACK, "--defense", "ranmask:0.3")
    assert "not trained with it" in refused(*ATTACK, "--defense", "freelb")


def test_a_text_that_the_model_cannot_take_costs_only_itself(stockade: Stockade, folder: Path) -> None:
    """The first row of the file: what is asked about before the run begins."""
    rows = [("a poison film", 1), ("a great and good film", 1), ("a dull and bad film", 0)]
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    (folder / "poison.jsonl").write_text("\n".join(lines) + "\n")
    words = ("attack", "python:victim:raising", "poison.jsonl", "--attack", "deepwordbug", "--no-similarity")
    result = stockade(*words, "--defense", DEFENSE, "--out", "runs/p")
    assert result.returncode == 0, result.stderr
    found = [json.loads(line) for line in stockade("export", "runs/p").stdout.splitlines()]
    assert [row["status"] == "error" for row in found] == [True, False, False]
    assert "cannot digest this" in found[0]["reason"]
