"""An evaluation goes on only with what it was begun with, and ends as if it had never been interrupted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import OptionError, RunError
from stockade.defenses.detector import fit_detector
from stockade.experiment.workspace import locked
from stockade.workflows.attack.result import AttackResult
from tests.toys import WeightVictim
from tests.workflows.evaluate.kit import ATTACK, victim
from tests.workflows.evaluate.kit import DATA as TABLE

VICTIM = WeightVictim({"good": 1.0, "nice": 1.0, "bad": -1.0, "poor": -1.0, "trick": -4.0})
DATA = [("good nice film", "positive"), ("bad poor film", "negative"), ("good nice show", "positive")]
ATTACKS = ["deepwordbug@textattack", "pwws"]


def interrupt_every(texts: int) -> Callable[[st.Progress], None]:
    """An observer that interrupts the job after each so many texts."""
    count = 0

    def stop(_: st.Progress) -> None:
        nonlocal count
        count += 1
        if count % texts == 0:
            raise KeyboardInterrupt

    return stop


def test_an_interrupted_evaluation_ends_like_an_unbroken_one(tmp_path: Path) -> None:
    models = {"first": victim(), "second": WeightVictim({"good": 1.0, "film": -0.7})}
    options: dict[str, Any] = {"attacks": ATTACK, "defenses": "ranmask:copies=5", "seeds": 2, "eot_samples": 2}
    whole = st.evaluate(models, TABLE, out=tmp_path / "whole", **options)
    stop, interrupted = interrupt_every(11), 0
    while True:
        try:
            resumed = st.evaluate(models, TABLE, out=tmp_path / "broken", resume=True, observer=stop, **options)
            break
        except KeyboardInterrupt:
            interrupted += 1
            opened = st.load(tmp_path / "broken")
            assert not opened.complete
            assert "Not complete. Resume it with" in opened.document().to_markdown()
    assert interrupted > 3
    assert resumed.analysis == whole.analysis
    assert list(resumed.records()) == list(whole.records())
    for key in whole.cells():
        cells = [AttackResult.open(result.grid.cell_folder(key)).examples for result in (whole, resumed)]
        assert cells[0] == cells[1]


def test_st_resume_goes_on_with_the_objects_given_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        st.evaluate({"toy": VICTIM}, DATA, ATTACKS, out=tmp_path / "e", observer=interrupt_every(2))
    with pytest.raises(RunError, match=r"made from Python objects \(data, models\)"):
        st.resume(tmp_path / "e")
    resumed = st.resume(tmp_path / "e", models={"toy": VICTIM}, data=DATA)
    assert resumed.complete
    assert resumed.analysis == st.evaluate({"toy": VICTIM}, DATA, ATTACKS).analysis


def test_a_finished_evaluation_needs_neither_models_nor_data(tmp_path: Path) -> None:
    first = st.evaluate(VICTIM, DATA, ATTACK, "ranmask:copies=3", out=tmp_path / "e")
    (tmp_path / "e/summary.json").unlink()
    again = st.resume(tmp_path / "e")
    assert again.analysis == first.analysis
    assert json.loads((tmp_path / "e/summary.json").read_text()) == json.loads(json.dumps(first.summary))


def test_a_cell_that_was_removed_is_made_again(tmp_path: Path) -> None:
    first = st.evaluate({"toy": VICTIM}, DATA, ATTACKS, out=tmp_path / "e")
    shutil.rmtree(first.cell("pwws").folder)
    opened = st.load(tmp_path / "e")
    assert not opened.complete
    again = st.resume(tmp_path / "e", models={"toy": VICTIM}, data=DATA)
    assert again.complete
    assert again.cell("pwws").examples


def test_a_time_limit_leaves_the_rest_for_a_resume(tmp_path: Path) -> None:
    short = st.evaluate({"toy": VICTIM}, DATA, ATTACKS, out=tmp_path / "e", seconds=1e-6)
    assert not short.complete
    assert short.problem() is not None
    assert st.evaluate({"toy": VICTIM}, DATA, ATTACKS, out=tmp_path / "e", resume=True).complete


def test_two_jobs_cannot_share_a_folder(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    with locked(tmp_path / "e"), pytest.raises(RunError, match="Another process is working on"):
        st.evaluate(VICTIM, DATA, ATTACK, out=tmp_path / "e")
    assert not (tmp_path / "e/manifest.json").exists()


def test_other_data_or_models_are_refused_even_if_nothing_is_left_to_do(tmp_path: Path) -> None:
    def evaluate(data: object = TABLE, premade: object = (TABLE[:2],), **options: Any) -> st.EvaluateResult:
        return st.evaluate({"toy": victim()}, data, ATTACK, premade=premade, out=tmp_path / "e", **options)

    evaluate()
    with pytest.raises(RunError, match=r"another configuration: data\.fingerprint was"):
        evaluate(TABLE[1:], resume=True)
    with pytest.raises(RunError, match=r"another configuration: premade\.pre-made\.fingerprint was"):
        evaluate(premade=[TABLE[:1]], resume=True)
    assert evaluate(resume=True).row().worst.robust_accuracy.value == 2 / 4


def test_folders_of_others_and_other_options_are_refused(tmp_path: Path) -> None:
    st.evaluate(victim(), TABLE, ATTACK, out=tmp_path / "e")
    with pytest.raises(RunError, match="Resume it with --resume"):
        st.evaluate(victim(), TABLE, ATTACK, out=tmp_path / "e")
    with pytest.raises(RunError, match="seeds was 1, now 2"):
        st.evaluate(victim(), TABLE, ATTACK, seeds=2, out=tmp_path / "e", resume=True)
    with pytest.raises(RunError, match=r"defenses\.ranmask"):
        st.evaluate(victim(), TABLE, ATTACK, "ranmask", out=tmp_path / "e", resume=True)
    with pytest.raises(RunError, match=r"models\.other"):
        st.evaluate({"other": victim()}, TABLE, ATTACK, out=tmp_path / "e", resume=True)
    with pytest.raises(OptionError, match="no option --model"):
        st.resume(tmp_path / "e", model=victim())
    with pytest.raises(RunError, match="is not a run"):
        st.resume(tmp_path / "nothing")
    with pytest.raises(RunError, match="nothing to resume without a folder"):
        st.evaluate(victim(), TABLE, ATTACK, resume=True)
    cell = next((tmp_path / "e/models").rglob("manifest.json")).parent
    with pytest.raises(RunError, match=r"is a cell of an evaluation\. Resume the evaluation"):
        st.resume(cell, model=victim(), data=TABLE)


@pytest.fixture
def route(tmp_path: Path) -> tuple[Path, Callable[[float], str]]:
    """A file with a detector, and what writes it with another threshold and returns the defense that reads it."""
    path = tmp_path / "detector.json"
    detector = fit_detector(
        VICTIM, [text for text, _ in DATA], ["good trick film"], features=("disagreement",), copies=20
    )

    def write(threshold: float) -> str:
        replace(detector, threshold=threshold).save(path)
        return f"route:detector={path}"

    return path, write


def test_a_file_that_a_defense_reads_must_not_change(
    tmp_path: Path, route: tuple[Path, Callable[[float], str]]
) -> None:
    _, write = route
    defense = write(0.5)

    def stop(progress: st.Progress) -> None:
        if "route" in progress.part and "pwws" in progress.part:
            raise KeyboardInterrupt

    def evaluate(**options: Any) -> st.EvaluateResult:
        return st.evaluate({"toy": VICTIM}, DATA, ATTACKS, defense, out=tmp_path / "e", **options)

    with pytest.raises(KeyboardInterrupt):
        evaluate(observer=stop)
    for manifest in list((tmp_path / "e/models").rglob("manifest.json")):
        if not AttackResult.open(manifest.parent).complete:
            shutil.rmtree(manifest.parent)  # the next attack is not begun at all
    write(2.0)
    with pytest.raises(RunError, match=r"route.* around toy is not what the evaluation was begun with"):
        evaluate(resume=True)
    write(0.5)
    assert evaluate(resume=True).row(defense).worst.complete


def test_what_could_not_be_made_is_tried_again(tmp_path: Path, route: tuple[Path, Callable[[float], str]]) -> None:
    """Its fingerprint was not known when the evaluation was begun, so there is nothing to compare."""
    path, write = route
    defense = write(0.5)
    path.write_text("{")
    result = st.evaluate({"toy": VICTIM}, DATA, "pwws", defense, out=tmp_path / "e")
    assert [failure.defense for failure in result.analysis.failures] == [defense]
    write(0.5)
    again = st.resume(tmp_path / "e", models={"toy": VICTIM}, data=DATA)
    assert again.row(defense).worst.complete
    assert again.complete


def test_what_an_attack_rests_on_must_not_change(tmp_path: Path) -> None:
    """The manifest records what stands behind an attack; another version of it is known by the record."""
    st.evaluate({"toy": VICTIM}, DATA, "pwws", out=tmp_path / "e")
    path = tmp_path / "e/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["inputs"]["attacks"]["pwws"]["lexicon"] = "of last year"
    path.write_text(json.dumps(manifest))
    with pytest.raises(RunError, match=r"attacks\.pwws\.lexicon was .of last year."):
        st.evaluate({"toy": VICTIM}, DATA, "pwws", out=tmp_path / "e", resume=True)
    assert st.resume(tmp_path / "e").row().worst.complete  # nothing is left to attack


def test_verify_asks_the_models_again_and_notices_what_was_changed(tmp_path: Path) -> None:
    result = st.evaluate({"toy": VICTIM}, DATA, ATTACK, "ranmask:copies=3", out=tmp_path / "e")
    verification = result.verify({"toy": VICTIM})
    assert verification.holds
    records = [record for key in result.cells() for record in result.run_of(key).records()]
    assert verification.checked == len(records) > 0
    summary = json.loads((tmp_path / "e/summary.json").read_text())
    summary["rows"][0]["worst"]["robust_accuracy"]["value"] = 1.0
    (tmp_path / "e/summary.json").write_text(json.dumps(summary))
    (problem,) = st.load(tmp_path / "e").verify({"toy": VICTIM}).problems
    assert problem == "summary.json: rows does not follow from the results"
    result.write_summary()
    key = next(iter(result.cells()))
    cell = result.grid.cell(key)
    assert cell is not None
    result.grid.add_cell(key, replace(cell, statuses=dict.fromkeys(cell.statuses, "failed")))
    problems = st.load(tmp_path / "e").verify({"toy": VICTIM}).problems
    assert f"{key}: what the evaluation holds does not follow from the run" in problems
    shutil.rmtree(result.grid.cell_folder(key))
    assert any(f"{key}: " in problem for problem in st.load(tmp_path / "e").verify({"toy": VICTIM}).problems)
