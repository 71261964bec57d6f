"""Ensembles in every command: attacked, certified, evaluated, verified, resumed; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stockade as st
from stockade.models.answers import softmax
from stockade.models.mean_logits import predict_logits
from tests.e2e.conftest import Stockade

BUILTIN = "ensemble:builtin:sentiment-cnn,builtin:sentiment-lstm"
MIXED = "ensemble:builtin:sentiment-cnn,python:victim:predict"
NAMED = ("--labels", "negative,positive")


def test_attack_verify_and_resume_from_the_command_line(stockade: Stockade, folder: Path) -> None:
    """A successful text fools the mean of both, which may not be what either says alone."""
    attack = ("attack", BUILTIN, "builtin:reviews", "--attack", "pwws", "--limit", "6", "--no-similarity")
    made = stockade(*attack, "--out", "runs/a")
    assert made.returncode == 0, made.stderr
    run = st.AttackResult.open(folder / "runs/a")
    assert run.manifest.inputs["model"]["reference"] == BUILTIN
    members = [st.load_model(f"builtin:sentiment-{name}") for name in ("cnn", "lstm")]
    successes = [record for record in run.examples if record.status == "success"]
    assert successes
    for record in successes:
        assert record.adversarial is not None
        assert record.adversarial_scores is not None
        mean = np.mean([predict_logits(member, [record.adversarial]) for member in members], axis=0)
        np.testing.assert_allclose(softmax(mean)[0], record.adversarial_scores, atol=1e-5)
    verified = stockade("verify", "runs/a")
    assert (verified.returncode, verified.stdout) == (0, f"{len(run.examples)} results checked: all hold\n")
    assert stockade("resume", "runs/a").returncode == 0


def test_certify_hides_words_behind_the_mask_of_each_member(stockade: Stockade, folder: Path) -> None:
    certify = ("certify", BUILTIN, "builtin:reviews", "--defense", "ranmask:rate=0.7", "--method")
    made = stockade(*certify, "ranmask-gap:most=200", "--limit", "3", "--out", "runs/c")
    assert made.returncode == 0, made.stderr
    assert json.loads((folder / "runs/c/summary.json").read_text())["complete"]
    assert stockade("verify", "runs/c").returncode == 0


def test_evaluate_runs_on_a_bare_and_on_a_defended_ensemble(stockade: Stockade, folder: Path) -> None:
    data = ("builtin:reviews", "--attack", "deepwordbug", "--defense", "none", "--defense", "ranmask:rate=0.5,copies=4")
    made = stockade("evaluate", BUILTIN, *data, "--limit", "3", "--budget", "30", "--out", "runs/e")
    assert made.returncode == 0, made.stderr
    manifest = json.loads((folder / "runs/e/manifest.json").read_text())
    assert list(manifest["inputs"]["models"]) == ["sentiment-cnn+sentiment-lstm"]
    assert json.loads((folder / "runs/e/summary.json").read_text())["complete"]


def test_code_inside_an_ensemble_needs_the_users_word(stockade: Stockade, folder: Path) -> None:
    attack = ("attack", MIXED, "data.jsonl", "--attack", "deepwordbug", "--no-similarity", *NAMED)
    made = stockade(*attack, "--out", "runs/a")
    assert made.returncode == 0, made.stderr
    untrusted = stockade("verify", "runs/a")
    assert untrusted.returncode == 2
    assert "runs python:victim:predict" in untrusted.stderr
    assert "--trust-run" in untrusted.stderr
    trusted = stockade("verify", "runs/a", "--trust-run")
    assert trusted.returncode == 0, trusted.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((MIXED,), "builtin:sentiment-cnn has negative, positive and python:victim:predict has 0, 1"),
        ((BUILTIN + ",./gone",), 'The member ./gone of an ensemble cannot be loaded. There is no folder "./gone"'),
        (("ensemble:builtin:sentiment-cnn,",), "has an empty member"),
        ((BUILTIN + ":temperatures=1",), "An ensemble of 2 has 1 temperatures"),
        ((BUILTIN, "--attack", "hotflip"), "This attack needs the model's gradients and vocabulary"),
        ((BUILTIN, "--attack", "asmax-ec"), "does not show"),
        ((BUILTIN, "--defense", "five"), "does not show"),
    ],
)
def test_what_cannot_be_is_one_sentence(refused: Callable[..., str], words: tuple[str, ...], problem: str) -> None:
    attack = () if "--attack" in words else ("--attack", "deepwordbug")
    assert problem in refused("attack", words[0], "builtin:reviews", *words[1:], *attack, "--limit", "2")


def test_an_ensemble_made_in_python_is_the_one_that_its_reference_names() -> None:
    rows = [("a great and moving film", "positive"), ("a dull film", "negative")]
    named = st.attack(BUILTIN, rows, "pwws", similarity=False)
    made = st.attack(st.ensemble(BUILTIN.removeprefix("ensemble:").split(",")), rows, "pwws", similarity=False)
    assert made.examples == named.examples
    assert made.manifest.inputs["model"]["fingerprint"] == named.manifest.inputs["model"]["fingerprint"]
