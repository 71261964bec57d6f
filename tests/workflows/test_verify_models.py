"""Verify when the model cannot be found or asked: exit code 2 and one sentence; live objects are given again."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import stockade as st
from stockade.cli.main import main
from stockade.core.errors import RunError
from stockade.experiment.result import Result
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 3.0, "bad": -3.0}, bias=0.1)
DATA = [("a good film", "positive"), ("a bad film", "negative"), ("so good and nice", "positive")]
MODULE = """
from tests.workflows.test_verify_models import VICTIM

def working(texts):
    return VICTIM.predict_proba(texts)

def raising(texts):
    raise RuntimeError("no power")

def leaving(texts):
    raise SystemExit(0)

def wrong(texts):
    return [[0.5, 0.5, 0.5] for _ in texts]

for function in (working, raising, leaving, wrong):
    function.labels = ["negative", "positive"]
"""
KINDS = ("attack", "certify", "evaluate", "tune", "rules")


def make(kind: str, folder: Path) -> Result:
    """A small job of a live Python object."""
    model = importlib.import_module("toy_models").working
    data = folder.parent / "data.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in DATA))
    if kind == "attack":
        return st.attack(model, data, "deepwordbug", similarity=False, out=folder)
    if kind == "certify":
        return st.certify(st.defend(model, "ranmask", rate=0.5), data, out=folder)
    if kind == "evaluate":
        return st.evaluate(model, data, "deepwordbug", out=folder)
    if kind == "rules":
        return st.mine_rules({"toy": model}, data, min_count=1, out=folder)
    return st.tune(model, data, "ranmask:copies=4", "deepwordbug", ranges=["rate=0.2..0.8"], trials=1, out=folder)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_models.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "toy_models", raising=False)


def verify(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str, *options: str
) -> tuple[object, str]:
    """The exit code of the command, and what it said."""
    asking = ("--resample",) if kind == "certify" else ()
    monkeypatch.setattr(sys, "argv", ["stockade", "verify", "run", *asking, *options])
    with pytest.raises(SystemExit) as left:
        main()
    written = capsys.readouterr()
    return left.value.code, written.out + written.err


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("kind", KINDS)
def test_a_live_object_is_given_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = make(kind, tmp_path / "run")
    code, said = verify(monkeypatch, capsys, kind)
    if kind == "tune":
        assert (code, said.splitlines()[-1]) == (3, "1 result checked: incomplete")
        assert "the best options were not rated again: the model was a Python object" in said
    else:
        assert code == 2
        assert said.startswith("stockade: The model")
        assert "result.verify(model)" in said
        assert "--model" in said
        assert len(said.splitlines()) == 1
    model = importlib.import_module("toy_models").working
    assert result.verify({"toy": model} if kind == "rules" else model).holds
    if kind != "rules":  # which has several models, by name
        assert verify(monkeypatch, capsys, kind, "--model", "python:toy_models:working")[0] == 0


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("name", ["raising", "leaving", "wrong", "missing"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "rules"])
def test_a_model_that_cannot_be_asked_is_an_error_of_one_sentence(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make(kind, tmp_path / "run")
    code, said = verify(monkeypatch, capsys, kind, "--model", f"python:toy_models:{name}")
    assert code == 2, said
    assert said.startswith("stockade: ")
    assert "Traceback" not in said


@pytest.mark.usefixtures("module")
def test_models_of_rules_that_raise_do_not_hold(tmp_path: Path) -> None:
    result = make("rules", tmp_path / "run")
    assert not result.verify({"toy": importlib.import_module("toy_models").raising}).holds
    with pytest.raises(RunError, match="was a Python object"):
        result.verify()
