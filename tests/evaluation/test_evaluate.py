"""`st.evaluate` from the first word to the last file, with victims whose table a person can compute."""

from __future__ import annotations

import copy
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import DataError, OptionError, RunError
from stockade.core.statistics import wilson
from stockade.evaluation.about import headline
from stockade.evaluation.html import render_page
from stockade.evaluation.plots import shortened, trade_plot
from stockade.runs.attack import Progress
from stockade.runs.run import Run
from tests.evaluation.kit import ATTACK, DATA, TWO_WORDS, victim
from tests.toys import WeightVictim

RANMASK = "ranmask:copies=5"
pytestmark = pytest.mark.usefixtures("toy_defenses")


def value(measure: Any) -> float | None:
    found: float | None = measure["value"]
    return found


def test_the_table_of_the_bare_model(tmp_path: Path) -> None:
    found = st.evaluate(victim(), DATA, attacks=[ATTACK], out=tmp_path / "e")
    row = found.row()
    assert value(row["clean"]["accuracy"]) == 3 / 4
    assert value(row["clean"]["macro_f1"]) == pytest.approx((4 / 5 + 2 / 3) / 2)
    attack = row["attacks"][ATTACK]
    assert value(attack["robust_accuracy"]) == 2 / 4
    assert value(attack["success_rate"]) == 1 / 3
    assert value(row["worst"]["robust_accuracy"]) == 2 / 4
    assert row["ways"] == ["direct"]
    assert row["mcnemar"] is None
    assert found.warnings == ()
    assert {"plan.json", "evaluation.json", "evaluation.md", "evaluation.html"} <= {
        one.name for one in found.folder.iterdir()
    }
    assert json.loads((found.folder / "evaluation.json").read_text()) == json.loads(json.dumps(found.numbers))
    told = (found.folder / "evaluation.md").read_text()
    assert "| WeightVictim | none | 75.0 % (30.1–95.4) | 50.0 % (15.0–85.0) | 73.3 % |" in told


def test_a_defense_that_only_hides_is_found_out() -> None:
    found = st.evaluate(victim(), TWO_WORDS, attacks=[ATTACK], defenses=["hiding"], max_changed=0.2)
    assert value(found.row()["worst"]["robust_accuracy"]) == 0
    row = found.row("hiding")
    ways = {way: value(cell["robust_accuracy"]) for way, cell in row["attacks"][ATTACK]["ways"].items()}
    assert ways == {"direct": 1, "expectation": 1, "twin": 0, "transfer": 0}
    assert value(row["attacks"][ATTACK]["robust_accuracy"]) == value(row["worst"]["robust_accuracy"]) == 0
    assert row["votes"] == {"entropy": 0, "unanimous": 1, "same_answer": 1}
    starved, flattered = found.warnings
    assert "all copies vote alike on 100% of the clean texts (mean entropy 0.000)" in starved
    assert "leaves 100% robust the direct way, but 0% by way of twin (p = 0.008)" in flattered
    assert "flatters the defense." in flattered
    for page in (*((found.folder / f"evaluation.{kind}").read_text() for kind in ("md", "html")), found._repr_html_()):
        assert all(warning in page for warning in found.warnings)
    assert row["mcnemar"]["worst case"]["p"] == 1  # hides everything, gains nothing


def test_a_defense_that_holds_is_told_from_none() -> None:
    """All eight texts are fooled without it and none with it: an exact two-sided p of 2 / 2**8."""
    found = st.evaluate(victim(), TWO_WORDS, attacks=[ATTACK], defenses=["shielding"])
    row = found.row("shielding")
    assert row["ways"] == ["direct", "transfer"]
    assert value(row["worst"]["robust_accuracy"]) == 1
    for name in (ATTACK, "worst case"):
        test = row["mcnemar"][name]
        assert (test["texts"], test["gained"], test["lost"]) == (8, 8, 0)
        assert test["p"] == pytest.approx(2 / 2**8)
    assert found.warnings == ()


def test_the_worst_case_is_by_text_and_not_the_worst_attack() -> None:
    """Misspelling takes away what speaks for the first text; a synonym brings what speaks against the second."""
    slow = ("slow", "boring", "tedious", "sluggish", "deadening", "drab", "leaden", "wearisome", "ho-hum", "tiresome")
    model = WeightVictim({"zzgood": 2.0, **dict.fromkeys(slow, 3.0)}, bias=-1.0)
    data = [("zzgood film", "positive"), ("dull film", "negative"), ("plain film", "negative")]
    found = st.evaluate(model, data, attacks=["pwws", ATTACK])
    row = found.row()
    assert found.fates() == {"0": "fooled", "1": "fooled", "2": "robust"}
    told = [json.loads(line) for line in (found.folder / "examples.jsonl").read_text().splitlines()]
    assert [one["fooled_by"] for one in told] == [[f"{ATTACK}, direct"], ["pwws, direct"], []]
    assert [one["fate"] for one in told] == list(found.fates().values())
    assert [value(attack["success_rate"]) for attack in row["attacks"].values()] == [1 / 3, 1 / 3]
    assert value(row["worst"]["success_rate"]) == 2 / 3
    assert value(row["worst"]["robust_accuracy"]) == 1 / 3


def test_ranmask_is_attacked_in_every_way_and_the_bare_model_in_one() -> None:
    found = st.evaluate(
        victim(),
        DATA,
        attacks=[ATTACK],
        defenses=[RANMASK, f"{RANMASK},combine=vote", f"{RANMASK},draws=fixed"],
        expectation=2,
    )
    assert found.numbers["rows"][0]["defense"] == "none"
    assert found.row(RANMASK)["ways"] == ["direct", "expectation", "transfer"]
    assert found.row(f"{RANMASK},combine=vote")["ways"] == ["direct", "expectation", "twin", "transfer"]
    assert found.row(f"{RANMASK},draws=fixed")["ways"] == ["direct", "transfer"]
    assert found.row(RANMASK)["votes"] is None


def test_several_seeds_keep_the_texts_and_change_the_draws(tmp_path: Path) -> None:
    found = st.evaluate(
        {"toy": victim()}, DATA, attacks=[ATTACK], defenses=["noisy"], limit=3, seed=4, seeds=3, out=tmp_path / "e"
    )
    assert found.numbers["seeds"] == [4, 5, 6]
    runs = [Run(tmp_path / f"e/models/toy/noisy/{ATTACK}/direct-{seed}") for seed in (4, 5, 6)]
    texts = [sorted(record.id for record in run.records()) for run in runs]
    assert texts[0] == texts[1] == texts[2]
    assert len(texts[0]) == 3
    scores = [[record.original_scores for record in run.records()] for run in runs]
    assert scores[0] != scores[1] != scores[2]
    clean = found.row("noisy", "toy")["clean"]["accuracy"]
    assert set(clean["by_seed"]) == {"4", "5", "6"}
    values = [one["value"] for one in clean["by_seed"].values()]
    assert clean["value"] == pytest.approx(sum(values) / 3)
    assert clean["over_seeds"]["low"] <= clean["value"] <= clean["over_seeds"]["high"]
    assert "The worst case by seed" in (tmp_path / "e/evaluation.md").read_text()


def test_success_is_one_minus_robust_over_clean_in_every_row_and_over_all_seeds() -> None:
    """A randomised defense has one clean accuracy, whoever asks: the clean pass, any attack, in any way."""
    texts = [(f"film {number}", "positive") for number in range(12)]
    found = st.evaluate(victim(), texts, attacks=[ATTACK, "pwws"], defenses=["noisy"], seeds=3)
    noisy = found.row("noisy")["clean"]["accuracy"]["by_seed"]
    assert len({noisy[seed]["value"] for seed in noisy}) > 1
    for row in found.numbers["rows"]:
        blocks = [row["worst"], *row["attacks"].values()]
        blocks += [way for attack in row["attacks"].values() for way in attack["ways"].values()]
        for block in blocks:
            assert block["clean_accuracy"] == row["clean"]["accuracy"]
            robust, success = block["robust_accuracy"]["value"], block["success_rate"]["value"]
            assert success == pytest.approx(1 - robust / row["clean"]["accuracy"]["value"])


def test_a_cell_is_the_attack_of_its_seed(tmp_path: Path) -> None:
    st.evaluate({"toy": victim()}, TWO_WORDS, attacks=[ATTACK], seeds=2, out=tmp_path / "e")
    found = []
    for seed in (0, 1):
        cell = Run(tmp_path / f"e/models/toy/none/{ATTACK}/direct-{seed}")
        alone = st.attack(victim(), TWO_WORDS, ATTACK, seed=seed, similarity=False)
        assert cell.examples == alone.examples
        found.append([record.adversarial for record in cell.examples])
    assert found[0] != found[1]


def test_an_interrupted_evaluation_ends_like_an_unbroken_one(tmp_path: Path) -> None:
    models = {"one": victim(), "two": WeightVictim({"good": 1.0, "film": -0.7})}
    given: dict[str, Any] = {"attacks": [ATTACK, "pwws"], "defenses": [RANMASK], "seeds": 2, "expectation": 2}
    whole = st.evaluate(models, DATA, out=tmp_path / "whole", **given)
    seen = 0

    def stop(progress: Progress) -> None:
        nonlocal seen
        seen += 1
        if seen % 7 == 0:
            raise KeyboardInterrupt

    interrupted = 0
    while True:
        try:
            resumed = st.evaluate(models, DATA, out=tmp_path / "broken", resume=True, observer=stop, **given)
            break
        except KeyboardInterrupt:
            interrupted += 1
    assert interrupted > 5
    assert _comparable(resumed) == _comparable(whole)
    assert _records(tmp_path / "broken") == _records(tmp_path / "whole")


def test_a_finished_evaluation_is_told_again_without_a_model(tmp_path: Path) -> None:
    first = st.evaluate(victim(), DATA, attacks=[ATTACK], defenses=["hiding"], out=tmp_path / "e")
    (tmp_path / "e/evaluation.html").unlink()
    again = st.evaluate(out=tmp_path / "e", resume=True)
    assert again.numbers == first.numbers
    assert (tmp_path / "e/evaluation.html").exists()


def test_other_data_or_models_are_refused_even_if_nothing_is_left_to_do(tmp_path: Path) -> None:
    st.evaluate({"toy": victim()}, DATA, attacks=[ATTACK], premade=[DATA[:2]], out=tmp_path / "e")
    for model, data, premade in ((victim(), DATA[1:], DATA[:2]), (victim(), DATA, DATA[:1])):
        with pytest.raises(RunError, match="has changed since the evaluation was begun"):
            st.evaluate({"toy": model}, data, attacks=[ATTACK], premade=[premade], out=tmp_path / "e", resume=True)
    again = st.evaluate({"toy": victim()}, DATA, attacks=[ATTACK], premade=[DATA[:2]], out=tmp_path / "e", resume=True)
    assert value(again.row()["worst"]["robust_accuracy"]) == 2 / 4


def test_what_cannot_be_run_costs_only_itself() -> None:
    """hotflip needs gradients and demanding input vectors; a function has neither."""
    found = st.evaluate(victim(), DATA, attacks=["hotflip", ATTACK], defenses=["demanding", "shielding"])
    assert found.row("demanding")["made"] is False
    row = found.row()
    assert value(row["attacks"]["hotflip"]["robust_accuracy"]) is None
    assert value(row["attacks"][ATTACK]["robust_accuracy"]) == 2 / 4
    assert row["worst"]["complete"] is False
    reasons = {(one["defense"], one["attack"]): one["reason"] for one in found.numbers["failures"]}
    assert "demanding needs the model's input vectors" in reasons["demanding", None]
    assert "gradients" in reasons["none", "hotflip"]
    text = (found.folder / "evaluation.md").read_text()
    assert "≤ 50.0 %" in text
    assert "WeightVictim, demanding, everything: demanding needs the model's input vectors" in text
    assert "WeightVictim, shielding, hotflip (direct, transfer): This attack needs" in text
    worst = found.row("shielding")["mcnemar"]["worst case"]
    assert worst["attacks"] == [ATTACK]  # both rows have met it, so it can be compared


def test_a_row_that_was_not_attacked_in_full_is_not_called_the_best() -> None:
    """With a seventh of the texts robust against a half, but against all attacks."""
    found = st.evaluate(victim(), TWO_WORDS, attacks=[ATTACK], defenses=["shielding"])
    numbers = copy.deepcopy(dict(found.numbers))
    none, shielding = numbers["rows"]
    none["worst"]["robust_accuracy"] = wilson(1, 7)
    shielding["worst"]["robust_accuracy"] = wilson(4, 8)
    assert "in its best row, shielding;" in headline(numbers)[0]
    whole = render_page(numbers)
    shielding["worst"]["complete"] = False
    assert headline(numbers) == [
        "WeightVictim: 14.3 % (2.6–51.3) of the texts survive every attack in its best row, none."
    ]
    assert "Hollow: something could not be run" in render_page(numbers)
    assert "Hollow" not in whole
    in_full = {**shielding, "worst": {**shielding["worst"], "complete": True}}
    assert trade_plot(numbers) != trade_plot({**numbers, "rows": [none, in_full]})


def test_a_long_name_leaves_the_plot_its_room() -> None:
    long = "route:detector=/a/folder/that/is/rather/far/away/from/" + "here/" * 20 + "detector.json"
    assert len(shortened(long)) == 48
    assert shortened(long).startswith("route:detector=/a/folder")
    assert shortened(long).endswith("detector.json")
    assert shortened("five+fact") == "five+fact"
    found = st.evaluate(victim(), TWO_WORDS, attacks=[ATTACK], defenses=["shielding"])
    rows = [{**row, "defense": row["defense"].replace("shielding", long)} for row in found.numbers["rows"]]
    assert "<svg" in trade_plot({**found.numbers, "rows": rows, "defenses": ["none", long]})


def test_a_text_the_model_cannot_take_leaves_the_shares() -> None:
    class Choking(WeightVictim):
        def predict_proba(self, inputs: Any) -> Any:
            if any("poison" in str(item) for item in inputs):
                raise ValueError("cannot digest this")
            return super().predict_proba(inputs)

    model = Choking(victim().weights, bias=0.5)
    found = st.evaluate(model, [*DATA, ("poison film", "positive")], attacks=[ATTACK])
    row = found.row()
    assert value(row["clean"]["accuracy"]) == 3 / 4
    assert value(row["worst"]["robust_accuracy"]) == 2 / 4
    assert row["worst"]["unknown"] == 1
    assert "1 text ended in an error and is left out" in found.warnings[0]


def test_premade_texts_are_scored_by_every_row(tmp_path: Path) -> None:
    made = st.attack(victim(), DATA, ATTACK, similarity=False)
    lines = made.to_pandas().to_json(orient="records", lines=True)
    (tmp_path / "made.jsonl").write_text(lines)
    plain = [("bad film", "negative"), ("good story", "negative")]
    found = st.evaluate(
        victim(), DATA, attacks=[ATTACK], defenses=["shielding"], premade=[tmp_path / "made.jsonl", plain]
    )
    assert {name: one["size"] for name, one in found.numbers["premade"].items()} == {"made": 1, "pre-made": 2}
    assert {name: value(one) for name, one in found.row()["premade"].items()} == {"made": 0, "pre-made": 1 / 2}
    assert {name: value(one) for name, one in found.row("shielding")["premade"].items()} == {"made": 1, "pre-made": 1}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"attacks": []}, "No attack was named"),
        ({"attacks": ["pwsw"]}, 'There is no attack "pwsw"'),
        ({"defenses": ["ranmsk"]}, 'There is no defense "ranmsk"'),
        ({"defenses": ["ranmask+none"]}, 'The chain "ranmask+none" is not made of defenses'),
        ({"defenses": "ranmask"}, "defenses is one string"),
        ({"seeds": 0}, "--seeds is 0"),
        ({"expectation": 0}, "--expectation is 0"),
        ({"budget": 0}, "budget must be at least 1"),
        ({"max_changed": 20}, "--max-changed is 20, expected a share"),
        ({"max_changed": 0}, "--max-changed is 0, expected a share"),
        ({"max_changed": -0.1}, "--max-changed is -0.1, expected a share"),
        ({"data": None}, "DATA is missing"),
        ({"models": None}, "MODEL and DATA are missing"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    given = {"models": victim(), "data": DATA, "attacks": [ATTACK], "out": tmp_path / "e", **options}
    with pytest.raises(OptionError) as error:
        st.evaluate(**given)
    assert sentence in str(error.value)
    assert not (tmp_path / "e").exists()


def test_bad_premade_files_end_it_before_it_has_begun(tmp_path: Path) -> None:
    (tmp_path / "made.csv").write_text("perturbed_text,result_type\nbad film,Failed\n")
    with pytest.raises(DataError, match="no true labels"):
        st.evaluate(victim(), DATA, attacks=[ATTACK], premade=[tmp_path / "made.csv"], out=tmp_path / "e")
    assert not (tmp_path / "e").exists()


def test_folders_of_others_and_other_options_are_refused(tmp_path: Path) -> None:
    st.evaluate(victim(), DATA, attacks=[ATTACK], out=tmp_path / "e")
    with pytest.raises(RunError, match="Continue it with --resume"):
        st.evaluate(victim(), DATA, attacks=[ATTACK], out=tmp_path / "e")
    with pytest.raises(RunError, match="seeds was 1, now 2"):
        st.evaluate(victim(), DATA, attacks=[ATTACK], seeds=2, out=tmp_path / "e", resume=True)
    with pytest.raises(RunError, match="has changed since the evaluation was begun"):
        st.evaluate(victim(), DATA[:2], attacks=[ATTACK], defenses=[], out=_unfinished(tmp_path / "e"), resume=True)
    with pytest.raises(RunError, match="made from Python objects"):
        st.evaluate(out=tmp_path / "e", resume=True)
    with pytest.raises(RunError, match="is no evaluation"):
        st.evaluate(out=tmp_path / "nothing", resume=True)
    with pytest.raises(OptionError, match="everything is taken from the plan"):
        st.evaluate(attacks=[ATTACK], out=tmp_path / "e", resume=True)
    with pytest.raises(RunError, match="nothing to resume without a folder"):
        st.evaluate(resume=True)


def _unfinished(folder: Path) -> Path:
    """The folder without its only answers, so that model and data are needed again."""
    for path in folder.glob("models/*/none/answers-0.json"):
        path.unlink()
    return folder


def _comparable(found: st.Evaluation) -> Any:
    return {name: one for name, one in found.numbers.items() if name not in ("created", "evaluation")}


def _records(folder: Path) -> dict[str, Any]:
    found = {}
    for path in folder.rglob("run.sqlite"):
        with sqlite3.connect(path) as connection:
            rows = connection.execute("SELECT attack, id, record FROM results ORDER BY attack, id").fetchall()
        found[str(path.relative_to(folder))] = rows
    return found
