"""An evaluation goes on only with what it was begun with, to the last file that a defense or an attack reads."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import stockade as st
from stockade.core.errors import RunError
from stockade.defenses.detector import fit_detector
from stockade.runs.attack import Progress
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 1.0, "nice": 1.0, "bad": -1.0, "poor": -1.0, "trick": -4.0})
DATA = [("good nice film", "positive"), ("bad poor film", "negative"), ("good nice show", "positive")]
ATTACKS = ["deepwordbug@textattack", "pwws"]


def stopped_between_two_cells(folder: Path, defense: str) -> None:
    """The first attack on the defended model is done, the second is not begun."""

    def stop(progress: Progress) -> None:
        if "route" in progress.attack and "pwws" in progress.attack:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        st.evaluate({"toy": VICTIM}, DATA, attacks=ATTACKS, defenses=[defense], out=folder, observer=stop)
    for manifest in list((folder / "models").rglob("manifest.json")):
        if not (manifest.parent / "summary.json").exists():
            shutil.rmtree(manifest.parent)


def test_a_file_that_a_defense_reads_must_not_change(tmp_path: Path) -> None:
    path, folder = tmp_path / "detector.json", tmp_path / "e"
    detector = fit_detector(VICTIM, [text for text, _ in DATA], ["good trick film"], rate=0.4, copies=20)
    replace(detector, threshold=0.5).save(path)
    defense = f"route:detector={path}"
    stopped_between_two_cells(folder, defense)
    replace(detector, threshold=2.0).save(path)
    with pytest.raises(RunError, match=r"route.* around toy is not what the evaluation was begun with"):
        st.evaluate({"toy": VICTIM}, DATA, attacks=ATTACKS, defenses=[defense], out=folder, resume=True)
    replace(detector, threshold=0.5).save(path)
    whole = st.evaluate({"toy": VICTIM}, DATA, attacks=ATTACKS, defenses=[defense], out=folder, resume=True)
    assert whole.row(defense)["worst"]["complete"]


def test_what_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    """Its fingerprint was not known when the evaluation was begun, so there is nothing to compare."""
    path, folder = tmp_path / "detector.json", tmp_path / "e"
    detector = fit_detector(VICTIM, [text for text, _ in DATA], ["good trick film"], rate=0.4, copies=20)
    path.write_text("{")
    defense = f"route:detector={path}"
    found = st.evaluate({"toy": VICTIM}, DATA, attacks=["pwws"], defenses=[defense], out=folder)
    assert not found.row(defense)["made"]
    detector.save(path)
    again = st.evaluate({"toy": VICTIM}, DATA, attacks=["pwws"], defenses=[defense], out=folder, resume=True)
    assert again.row(defense)["worst"]["complete"]


def test_what_an_attack_rests_on_must_not_change(tmp_path: Path) -> None:
    """The plan records what stands behind an attack; another version of it is told by the record."""
    folder = tmp_path / "e"
    st.evaluate({"toy": VICTIM}, DATA, attacks=["pwws"], out=folder)
    plan = json.loads((folder / "plan.json").read_text())
    plan["attacks"]["pwws"]["lexicon"] = "of last year"
    (folder / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(RunError, match="pwws is not the attack the evaluation was begun with"):
        st.evaluate({"toy": VICTIM}, DATA, attacks=["pwws"], out=folder, resume=True)
    assert st.evaluate(out=folder, resume=True).row()["worst"]["complete"]  # nothing is left to attack
