"""`st.evaluate` from the first word to the last file, with victims whose table a person can compute."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.attacks.deepwordbug import DeepWordBug
from stockade.core.errors import DataError, OptionError
from stockade.report.figures import shortened
from stockade.workflows.evaluate.analysis import Analysis, Row
from stockade.workflows.evaluate.measures import share_over_seeds
from stockade.workflows.evaluate.page import findings, trade_plot
from tests.toys import WeightVictim
from tests.workflows.evaluate.kit import ATTACK, DATA, TWO_WORDS, Shielding, victim

RANMASK = "ranmask:copies=5"
pytestmark = pytest.mark.usefixtures("toy_defenses")


def test_the_table_of_the_bare_model(tmp_path: Path) -> None:
    result = st.evaluate(victim(), DATA, ATTACK, out=tmp_path / "e")
    row = result.row()
    assert row.clean.accuracy.value == 3 / 4
    assert row.clean.macro_f1.value == pytest.approx((4 / 5 + 2 / 3) / 2)
    attack = row.attacks[ATTACK]
    assert attack.robust_accuracy.value == 2 / 4
    assert attack.success_rate.value == 1 / 3
    assert row.worst.robust_accuracy.value == 2 / 4
    assert row.views == ("direct",)
    assert row.mcnemar is None
    assert result.warnings == ()
    assert result.complete
    assert result.problem() is None
    assert json.loads((result.folder / "summary.json").read_text()) == json.loads(json.dumps(result.summary))
    markdown = result.document().to_markdown()
    assert "| WeightVictim | none | 75.0 % (30.1–95.4) | 50.0 % (15.0–85.0) | 73.3 % (20.0–100.0) |" in markdown


def test_what_was_evaluated_is_there_again_when_the_folder_is_opened(tmp_path: Path) -> None:
    result = st.evaluate(victim(), DATA, ATTACK, "shielding", out=tmp_path / "e")
    opened = st.load(tmp_path / "e")
    assert isinstance(opened, st.EvaluateResult)
    assert opened.analysis == result.analysis
    assert list(opened.records()) == list(result.records())
    assert opened.document().to_html() == result.document().to_html()
    kept = result.save(tmp_path / "copy")
    assert kept.analysis == result.analysis
    assert len(result.to_pandas()) == 2 * len(DATA)


def test_attacks_and_defenses_may_be_objects() -> None:
    result = st.evaluate(victim(), DATA, [ATTACK, DeepWordBug()], [Shielding(1), "shielding"])
    assert result.grid.attacks == (ATTACK, "deepwordbug")
    assert result.grid.defenses == ("none", "shielding:label=1", "shielding")
    assert result.row("shielding:label=1").clean.accuracy.value == 2 / 4  # says positive, whatever it is asked
    assert result.row("shielding").clean.accuracy.value == 2 / 4


def test_a_defense_that_only_hides_is_found_out() -> None:
    result = st.evaluate(victim(), TWO_WORDS, ATTACK, "hiding", max_changed=0.2)
    assert result.row().worst.robust_accuracy.value == 0
    row = result.row("hiding")
    views = {view: shares.robust_accuracy.value for view, shares in row.attacks[ATTACK].views.items()}
    assert views == {"direct": 1, "eot": 1, "surrogate": 0, "transfer": 0}
    assert row.attacks[ATTACK].robust_accuracy.value == row.worst.robust_accuracy.value == 0
    assert row.votes is not None
    assert (row.votes.entropy, row.votes.unanimous, row.votes.same_answer) == (0, 1, 1)
    starved, flattered = result.warnings
    assert "all copies vote alike on 100% of the clean texts (mean entropy 0.000)" in starved
    assert "leaves 100% robust in the direct view, but 0% in the surrogate view (p = 0.008)" in flattered
    assert "flatters the defense." in flattered
    document = result.document()
    for page in (document.to_markdown(), document.to_html(), result._repr_html_()):
        assert all(warning in page for warning in result.warnings)
    assert row.mcnemar is not None
    worst = row.mcnemar["worst case"]
    assert worst is not None
    assert worst.p == 1  # hides everything, gains nothing


def test_a_defense_that_holds_differs_from_none() -> None:
    """All eight texts are fooled without it and none with it: an exact two-sided p of 2 / 2**8."""
    result = st.evaluate(victim(), TWO_WORDS, ATTACK, "shielding")
    row = result.row("shielding")
    assert row.views == ("direct", "transfer")
    assert row.worst.robust_accuracy.value == 1
    assert row.mcnemar is not None
    for name in (ATTACK, "worst case"):
        test = row.mcnemar[name]
        assert test is not None
        assert (test.texts, test.gained, test.lost) == (8, 8, 0)
        assert test.p == pytest.approx(2 / 2**8)
    assert result.warnings == ()
    assert "in its best row, shielding; 0.0 % (0.0–32.4) without a defense." in result.document().to_markdown()


def test_the_worst_case_is_by_text_and_not_the_worst_attack() -> None:
    """Misspelling takes away what speaks for the first text; a synonym brings what speaks against the second."""
    slow = ("slow", "boring", "tedious", "sluggish", "deadening", "drab", "leaden", "wearisome", "ho-hum", "tiresome")
    model = WeightVictim({"zzgood": 2.0, **dict.fromkeys(slow, 3.0)}, bias=-1.0)
    data = [("zzgood film", "positive"), ("dull film", "negative"), ("plain film", "negative")]
    result = st.evaluate(model, data, ["pwws", ATTACK])
    row = result.row()
    assert result.outcomes() == {"0": "fooled", "1": "fooled", "2": "robust"}
    exported = list(result.rows())
    assert [example["fooled_by"] for example in exported] == [[f"{ATTACK}, direct"], ["pwws, direct"], []]
    assert [example["outcome"] for example in exported] == list(result.outcomes().values())
    assert [attack.success_rate.value for attack in row.attacks.values()] == [1 / 3, 1 / 3]
    assert row.worst.success_rate.value == 2 / 3
    assert row.worst.robust_accuracy.value == 1 / 3


def test_ranmask_is_attacked_in_every_view_and_the_bare_model_in_one() -> None:
    result = st.evaluate(
        victim(), DATA, ATTACK, [RANMASK, f"{RANMASK},combine=vote", f"{RANMASK},draws=fixed"], eot_samples=2
    )
    assert result.row().views == ("direct",)
    assert result.row(RANMASK).views == ("direct", "eot", "transfer")
    assert result.row(f"{RANMASK},combine=vote").views == ("direct", "eot", "surrogate", "transfer")
    assert result.row(f"{RANMASK},draws=fixed").views == ("direct", "transfer")
    assert result.row(RANMASK).votes is None


def test_several_seeds_keep_the_texts_and_change_the_draws(tmp_path: Path) -> None:
    result = st.evaluate({"toy": victim()}, DATA, ATTACK, "noisy", limit=3, seed=4, seeds=3, out=tmp_path / "e")
    assert result.grid.seeds == (4, 5, 6)
    runs = [result.cell(ATTACK, defense="noisy", seed=seed) for seed in (4, 5, 6)]
    assert [run.folder for run in runs] == [
        tmp_path / f"e/models/toy/noisy/{ATTACK}/direct-{seed}" for seed in (4, 5, 6)
    ]
    texts = [sorted(record.id for record in run.records()) for run in runs]
    assert texts[0] == texts[1] == texts[2]
    assert len(texts[0]) == 3
    scores = [[record.original_scores for record in run.records()] for run in runs]
    assert scores[0] != scores[1] != scores[2]
    clean = result.row("noisy", "toy").clean.accuracy
    assert set(clean.by_seed) == {"4", "5", "6"}
    values = [interval.value or 0.0 for interval in clean.by_seed.values()]
    assert clean.value == pytest.approx(sum(values) / 3)
    assert clean.over_seeds is not None
    assert clean.over_seeds.value == clean.value
    assert "The worst case by seed" in result.document().to_markdown()


def test_success_is_one_minus_robust_over_clean_in_every_row_and_over_all_seeds() -> None:
    """A randomised defense has one clean accuracy, whoever asks: the clean pass, any attack, in any view."""
    texts = [(f"film {number}", "positive") for number in range(12)]
    result = st.evaluate(victim(), texts, [ATTACK, "pwws"], "noisy", seeds=3)
    noisy = result.row("noisy").clean.accuracy.by_seed
    assert len({interval.value for interval in noisy.values()}) > 1
    for row in result.analysis.measured:
        views = [view for attack in row.attacks.values() for view in attack.views.values()]
        for shares in (row.worst, *row.attacks.values(), *views):
            assert shares.clean_accuracy == row.clean.accuracy
            robust, clean = shares.robust_accuracy.value, row.clean.accuracy.value
            assert robust is not None
            assert clean
            assert shares.success_rate.value == pytest.approx(1 - robust / clean)


def test_a_cell_is_the_attack_of_its_seed() -> None:
    result = st.evaluate({"toy": victim()}, TWO_WORDS, ATTACK, seeds=2)
    texts = []
    for seed in (0, 1):
        cell = result.cell(ATTACK, seed=seed)
        alone = st.attack(victim(), TWO_WORDS, ATTACK, seed=seed, similarity=False)
        assert cell.examples == alone.examples
        assert cell.document().to_markdown()
        texts.append([record.adversarial for record in cell.examples])
    assert texts[0] != texts[1]
    with pytest.raises(OptionError, match="has no cell toy, none: pwws, direct, seed 0"):
        result.cell("pwws")


def test_what_cannot_be_run_costs_only_itself() -> None:
    """hotflip needs gradients and demanding input vectors; a function has neither."""
    result = st.evaluate(victim(), DATA, ["hotflip", ATTACK], ["demanding", "shielding"])
    with pytest.raises(OptionError, match="has no numbers: demanding needs the model's input vectors"):
        result.row("demanding")
    assert result.summary["rows"][1]["made"] is False
    row = result.row()
    assert row.attacks["hotflip"].robust_accuracy.value is None
    assert row.attacks[ATTACK].robust_accuracy.value == 2 / 4
    assert row.worst.complete is False
    reasons = {(failure.defense, failure.attack): failure.reason for failure in result.analysis.failures}
    assert "demanding needs the model's input vectors" in reasons["demanding", None]
    assert "gradients" in reasons["none", "hotflip"]
    assert not result.complete, "a resume tries again"
    assert result.summary["complete"], "but nothing was interrupted"
    markdown = result.document().to_markdown()
    assert "≤ 50.0 %" in markdown
    assert "WeightVictim, demanding, everything: demanding needs the model's input vectors" in markdown
    assert "WeightVictim, shielding, hotflip (direct, transfer): This attack needs" in markdown
    assert "Not complete" not in markdown
    shielding = result.row("shielding")
    assert shielding.mcnemar is not None
    worst = shielding.mcnemar["worst case"]
    assert worst is not None
    assert worst.attacks == (ATTACK,)  # both rows have met it, so it can be compared


def rows_with(none: tuple[int, int], shielding: tuple[int, int], complete: bool) -> Analysis:
    """Two rows of which so many texts of so many survive; the second was attacked in full or not."""
    result = st.evaluate({"toy": victim()}, TWO_WORDS, ATTACK, "shielding")
    bare, defended = result.analysis.measured
    rows = [
        replace(row, worst=replace(row.worst, robust_accuracy=share_over_seeds({0: survivors}), complete=in_full))
        for row, survivors, in_full in ((bare, none, True), (defended, shielding, complete))
    ]
    return replace(result.analysis, rows=tuple(rows))


def test_a_row_that_was_not_attacked_in_full_is_not_called_the_best() -> None:
    """With a seventh of the texts robust against a half, but against all attacks."""
    (sentence,) = findings(rows_with((1, 7), (4, 8), complete=True), ["toy"])
    assert "in its best row, shielding;" in sentence
    assert list(findings(rows_with((1, 7), (4, 8), complete=False), ["toy"])) == [
        "toy: 14.3 % (2.6–51.3) of the texts survive every attack in its best row, none."
    ]


def test_what_was_not_attacked_in_full_is_a_hollow_point() -> None:
    full, partial = (
        trade_plot(rows_with((1, 7), (4, 8), complete=complete), ["toy"], ["none", "shielding"])
        for complete in (True, False)
    )
    assert full.startswith("<svg")
    assert full != partial
    result = st.evaluate(victim(), DATA, ["hotflip", ATTACK])
    assert "Hollow: something could not be run" in result.document().to_html()


def test_a_long_name_leaves_the_plot_its_room() -> None:
    long = "route:detector=/a/folder/that/is/rather/far/away/from/" + "here/" * 20 + "detector.json"
    analysis = rows_with((1, 7), (4, 8), complete=True)
    rows = tuple(replace(row, defense=row.defense.replace("shielding", long)) for row in analysis.measured)
    plot = trade_plot(replace(analysis, rows=rows), ["toy"], ["none", long])
    assert shortened(long) in plot
    assert long not in plot


def test_a_text_the_model_cannot_take_leaves_the_shares() -> None:
    class Choking(WeightVictim):
        def predict_proba(self, inputs: Any) -> Any:
            if any("poison" in str(item) for item in inputs):
                raise ValueError("cannot digest this")
            return super().predict_proba(inputs)

    model = Choking(victim().weights, bias=0.5)
    result = st.evaluate(model, [*DATA, ("poison film", "positive")], ATTACK)
    row = result.row()
    assert row.clean.accuracy.value == 3 / 4
    assert row.worst.robust_accuracy.value == 2 / 4
    assert row.worst.unknown == 1
    assert "1 text ended in an error and is left out" in result.warnings[0]


def test_premade_texts_are_scored_by_every_row(tmp_path: Path) -> None:
    made = st.attack(victim(), DATA, ATTACK, similarity=False)
    (tmp_path / "made.jsonl").write_text(made.to_pandas().to_json(orient="records", lines=True))
    plain = [("bad film", "negative"), ("good story", "negative")]
    result = st.evaluate(victim(), DATA, ATTACK, "shielding", premade=[tmp_path / "made.jsonl", plain])
    assert {name: premade["size"] for name, premade in result.summary["premade"].items()} == {"made": 1, "pre-made": 2}
    assert _premade(result.row()) == {"made": 0, "pre-made": 1 / 2}
    assert _premade(result.row("shielding")) == {"made": 1, "pre-made": 1}
    assert "| pre-made made |" in result.document().to_markdown()


def _premade(row: Row) -> dict[str, float | None]:
    return {name: measures.accuracy.value for name, measures in row.premade.items()}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"attacks": []}, "No attack was named"),
        ({"attacks": ["pwsw"]}, 'There is no attack "pwsw"'),
        ({"defenses": ["ranmsk"]}, 'There is no defense "ranmsk"'),
        ({"defenses": ["ranmask+none"]}, 'The chain "ranmask+none" is not made of defenses'),
        ({"seeds": 0}, "--seeds is 0, expected a whole number from 1 up"),
        ({"eot_samples": 0}, "--eot-samples is 0, expected a whole number from 1 up"),
        ({"budget": 0}, "--budget is 0, expected a whole number from 1 up"),
        ({"max_changed": 20}, "--max-changed is 20, expected a share"),
        ({"max_changed": 0}, "--max-changed is 0, expected a share"),
        ({"max_changed": -0.1}, "--max-changed is -0.1, expected a share"),
        ({"models": []}, "No model was named"),
        ({"models": {"a/b": victim()}}, 'The model name "a/b" cannot be a folder'),
        ({"concurrency": 0}, "--concurrency is 0"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    arguments = {"models": victim(), "data": DATA, "attacks": [ATTACK], "out": tmp_path / "e", **options}
    with pytest.raises(OptionError) as error:
        st.evaluate(**arguments)
    assert sentence in str(error.value)
    assert not (tmp_path / "e").exists()


def test_bad_premade_files_end_it_before_it_has_begun(tmp_path: Path) -> None:
    (tmp_path / "made.csv").write_text("perturbed_text,result_type\nbad film,Failed\n")
    with pytest.raises(DataError, match="no true labels"):
        st.evaluate(victim(), DATA, ATTACK, premade=tmp_path / "made.csv", out=tmp_path / "e")
    assert not (tmp_path / "e").exists()
