"""A detector fitted from the command line on an attack, and the route that uses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import stockade as st
from stockade.core.errors import OptionError
from stockade.defenses.detector import load_detector
from tests.e2e.conftest import Stockade

ATTACK = ("attack", "python:victim:predict", "data.jsonl", "--no-similarity", "--attack", "deepwordbug")
FIT = ("detector", "python:victim:predict", "runs/dev", "--copies", "9")
FEATURES = ("--feature", "disagreement", "--feature", "fall", "--feature", "masked-margin")


def test_a_detector_is_fitted_on_a_run_and_routes(stockade: Stockade, folder: Path) -> None:
    with (folder / "data.jsonl").open("a") as stream:  # the model is wrong on it, so it is not attacked
        stream.write(json.dumps({"text": "a great mistake", "label": 0}) + "\n")
    assert stockade(*ATTACK, "--out", "runs/dev").returncode == 0
    rows = [json.loads(line) for line in stockade("export", "runs/dev").stdout.splitlines()]
    clean = {row["original"] for row in rows if row["status"] in ("success", "failed")}
    attacked = {row["adversarial"] for row in rows if row["status"] == "success"}
    assert len(attacked) < len(clean) < len(rows)

    result = stockade(*FIT, *FEATURES, "--rate", "0.4", "--false-positives", "0.2", "--out", "detector.json")
    assert result.returncode == 0, result.stderr
    assert f"fitted on {len(clean)} clean and {len(attacked)} attacked texts" in result.stdout
    detector = load_detector(str(folder / "detector.json"))
    assert (detector.features, detector.copies, detector.rate) == (("disagreement", "fall", "masked-margin"), 9, 0.4)
    assert detector.fitted is not None
    assert detector.fitted.false_alarms <= 0.2 * len(clean)
    assert detector.counts["great"] == sum(text.split().count("great") for text in clean)

    defense = result.stdout.splitlines()[-1]
    routed = stockade(*ATTACK, *defense.split(), "--out", "runs/r")
    assert routed.returncode == 0, routed.stderr
    (described,) = json.loads((folder / "runs/r/manifest.json").read_text())["spec"]["defenses"]
    assert (described["name"], described["options"]["detector"]) == ("route", "detector.json")


def test_texts_of_several_runs_count_once(stockade: Stockade, folder: Path) -> None:
    stockade(*ATTACK, "--out", "runs/dev")
    fitted = [stockade(*FIT, *more, *FEATURES, "--out", "d.json").stdout for more in ((), ("runs/dev",))]
    assert fitted[0] == fitted[1]


def test_what_no_detector_can_be_fitted_on_is_refused(
    stockade: Stockade, refused: Callable[..., str], folder: Path
) -> None:
    stockade(*ATTACK, "--out", "runs/dev")
    out = ("--out", "d.json")
    assert "Missing argument 'RUN…'" in refused("detector", "python:victim:predict", *out)
    assert "there is no such folder" in refused("detector", "python:victim:predict", "runs/no", *out)
    assert "runs is a folder; name a file" in refused(*FIT, "--out", "runs")
    assert "There is no folder" in refused(*FIT, "--out", "no/d.json")
    assert 'no feature of texts "luck"' in refused(*FIT, "--feature", "luck", *out)
    assert "0 copies" in refused(*FIT, "--copies", "0", *out)
    assert "false-positive rate is 5.0" in refused(*FIT, "--false-positives", "5", *out)
    assert "has the classes bad, good" in refused(*FIT, "--labels", "bad,good", *out)
    stockade(*ATTACK, "--budget", "1", "--out", "runs/weak")
    assert "0 attacked texts" in refused("detector", "python:victim:predict", "runs/weak", *out)
    (folder / "runs/c").mkdir()
    manifest = json.loads((folder / "runs/dev/manifest.json").read_text())
    (folder / "runs/c/manifest.json").write_text(json.dumps(manifest | {"kind": "certify"}))
    assert "holds a job of the kind certify, expected attack" in refused(
        "detector", "python:victim:predict", "runs/c", *out
    )
    assert not (folder / "d.json").exists()


def test_from_python(tmp_path: Path) -> None:
    pairs = [("a premise", "a great film"), ("a premise", "a dull film")]

    def predict(inputs: list[tuple[str, str]]) -> list[list[float]]:
        return [[0.1, 0.9] if "great" in hypothesis else [0.9, 0.1] for _, hypothesis in inputs]

    data = [{"premise": premise, "hypothesis": text, "label": int("great" in text)} for premise, text in pairs]
    run = st.attack(predict, data, "deepwordbug", similarity=False)
    steps: list[tuple[int, int]] = []
    detector = st.fit_detector(
        predict,
        run,
        features=["disagreement"],
        copies=5,
        observer=lambda progress: steps.append((progress.done, progress.total)),
    )
    assert steps == [(1, 3), (2, 3), (3, 3)], "two clean texts, and the one that fooled the function"
    detector.save(tmp_path / "d.json")
    assert load_detector(str(tmp_path / "d.json")) == detector
    assert st.fit_detector(predict, [run, run.folder], features=["disagreement"], copies=5) == detector
    with pytest.raises(OptionError, match="No run was named"):
        st.fit_detector(predict, [])
