"""Golden runs: what version 0.1.0 found before the jobs were built anew, on a victim without floating-point surprises.

`recorded.json` was written by that version. Whatever changes in the house, the same seed gives the same rows, radii,
outcomes and trials.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from tests.golden.toy import LABELS, SENTENCES, predict

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded.json").read_text())
DATA = [(text, LABELS[label]) for text, label in SENTENCES]
OPTIONS: dict[str, Any] = {"model_options": st.ModelOptions(labels=list(LABELS))}
CERTIFIED = {
    "ranmask": (
        "ranmask:rate=0.7",
        ["ranmask-gap:most=400", "ranmask-lf:most=400", "ranmask-exact", "ranmask-legacy:most=200,selection=50"],
    ),
    "deletion": ("deletion:kept_chance=0.4", ["deletion:most=400"]),
    "position": ("partition:by=position", ["position-partition"]),
    "hash": ("partition:by=hash", ["hash-partition"]),
    "safer": ("safer", ["safer:most=300"]),
}


def plain(rows: object) -> object:
    """As JSON reads them back."""
    return json.loads(json.dumps(rows))


def test_six_attacks_find_the_same_texts_with_the_same_queries() -> None:
    attacks = ["pwws", "deepwordbug", "deepwordbug@textattack", "genetic-fast:population=8,generations=4", "list"]
    run = st.attack(predict, DATA, [*attacks, "random:draws=20"], seed=4, similarity=False, **OPTIONS)
    rows = [[r.attack, r.id, r.status, r.queries, r.rows, r.adversarial] for r in run.records()]
    assert plain(rows) == RECORDED["attack"]


def test_a_randomised_defense_makes_the_same_draws() -> None:
    defense = "ranmask:rate=0.4,copies=9"
    options = {"seed": 4, "similarity": False, "budget": 200, **OPTIONS}
    run = st.attack(predict, DATA, ["pwws", "deepwordbug"], defenses=defense, **options)
    rows = [[r.attack, r.id, r.status, r.queries, r.rows, r.adversarial, r.hit_rate] for r in run.records()]
    assert plain(rows) == RECORDED["defended"]


@pytest.mark.parametrize("name", CERTIFIED)
def test_certificates_have_the_same_radii_copies_and_seeds(name: str) -> None:
    defense, methods = CERTIFIED[name]
    run = st.certify(predict, DATA, methods, defenses=defense, seed=5, **OPTIONS)
    rows = [[c.method, c.id, c.status, c.predicted, c.radius, c.insertions, c.copies, c.seed] for c in run.records()]
    assert plain(rows) == RECORDED[f"certify-{name}"]
    assert run.verify().holds


def test_every_text_of_an_evaluation_has_the_same_outcome() -> None:
    options = {"seeds": 2, "eot_samples": 3, "budget": 150, **OPTIONS}
    evaluation = st.evaluate(predict, DATA, "pwws", ["ranmask:copies=6,combine=vote"], **options)
    rows = [[row["defense"], row["seed"], row["id"], row["outcome"]] for row in evaluation.rows()]
    assert plain(rows) == RECORDED["evaluate"]


def test_a_search_tries_the_same_options_with_the_same_worth(tmp_path: Path) -> None:
    options = {"ranges": ["rate=0.2..0.8"], "trials": 3, "limit": 8, "budget": 100, **OPTIONS}
    search = st.tune(predict, DATA, "ranmask:copies=6", "pwws", out=tmp_path / "t", **options)
    rows = [[t.number, dict(t.options), t.n, t.clean, t.robust, t.objective] for t in search.trials]
    assert plain(rows) == RECORDED["tune"]
