"""`st.study("masking", …)` and `stockade study masking` from the first word to the last file."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import ModelError, OptionError, RunError
from stockade.defenses.chain import save_defenses
from stockade.defenses.registry import make_defense
from stockade.runs.attack import Progress
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.study.attention_toys import LABELS, toy_rows
from tests.study.masking_toys import ROWS, WEAK, masked, victim

SMALL: dict[str, Any] = {"copies": 300, "attacks": ["deepwordbug"]}


def models() -> dict[str, object]:
    """The higher rate first: the study sorts them."""
    return {"m70": masked(victim(), 0.7), "bare": victim(), "m20": masked(victim(), 0.2)}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> st.Study:
    """A study of two rates and the undefended model; not to be written to."""
    return st.study("masking", models(), ROWS, out=tmp_path_factory.mktemp("masking") / "made", **SMALL)


@pytest.fixture
def folder(finished: st.Study, tmp_path: Path) -> Path:
    return shutil.copytree(finished.folder, tmp_path / "made")


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than everything else; one test looks at what is drawn."""
    monkeypatch.setattr("stockade.studies.masking.study.render_page", lambda plan, numbers: "")


def by_rate(found: st.Study) -> dict[float, Any]:
    return {one["rate"]: one for one in found.numbers["rates"]}


def test_certificates_by_hand(finished: st.Study) -> None:
    """Ten words. At 0.2 eight are shown and one word touches 8/10 of the copies: nothing can change. At 0.7 three are
    shown: Δ_1 = 3/10 and Δ_2 = 1 - 56/120, so one word may change where all copies agree (1 > 2 Δ_1), and no two.
    The published test passes at one word too (1 - 0.3 > 0.5) and prints the two at which it fails.
    """
    rates = by_rate(finished)
    assert list(rates) == [0.0, 0.2, 0.7]
    assert (rates[0.0]["certificates"], rates[0.0]["check"], rates[0.0]["risk"]) == (None, None, None)
    low, high = rates[0.2]["certificates"], rates[0.7]["certificates"]
    assert (low["accuracy"]["value"], high["accuracy"]["value"]) == (1.0, 0.75)  # at 0.7 most copies hide the one word
    for found, sound, claimed in ((low, 0, 1), (high, 1, 2)):
        assert found["sound"]["median_radius"] == sound
        assert found["sound"]["median_rate"] == pytest.approx(sound / 10)
        assert found["claimed"]["median_radius"] == claimed
        assert found["claimed"]["median_rate"] == pytest.approx(claimed / 10)
        assert found["corrected"]["median_radius"] == claimed - 1
        assert found["corrected"]["median_rate"] == pytest.approx((claimed - 1) / 10)
    assert [point["share"] for point in high["sound"]["curve"]] == [0.75, 0.75]
    assert high["votes"]["unanimous"] == 0.75


def test_the_check_by_hand(finished: st.Study) -> None:
    """Of the weak text at 0.2, p is 8/10 and β of its one word 1. At 0.7 its class is the other one with 7/10; a word
    that does not matter is shown with two of nine others, so without the one that does with 7/9.
    """
    low, high = by_rate(finished)[0.2]["check"], by_rate(finished)[0.7]["check"]
    assert low["complete"] == high["complete"] == 4
    assert low["excesses"] == pytest.approx([0, 0, 0, 0.2])
    assert high["excesses"] == pytest.approx([0, 0, 0, 7 / 9 - 0.7], abs=1e-6)
    assert low["largest"]["word"] == "good"
    assert (high["claims"], high["broken_claims"]) == (3, 0)
    assert low["divergence"]["10"] == pytest.approx(0, abs=1e-15)  # all ten words: every copy meets the set
    assert by_rate(finished)[0.7]["risk"]["mean"] == pytest.approx(0.3)


def test_attacks_are_those_on_the_ensemble_itself(finished: st.Study) -> None:
    rates = by_rate(finished)
    assert [list(one["attacks"]) for one in rates.values()] == [["none"], *[["vote", "logit", "probability"]] * 2]
    for combine in ("vote", "logit"):
        run = st.attack(masked(victim(), 0.2, f",combine={combine}"), ROWS, "deepwordbug", similarity=False)
        for name in ("robust_accuracy", "mean_queries", "succeeded"):
            ours = rates[0.2]["attacks"][combine]["deepwordbug"][name]
            assert ours == run.summary["attacks"]["deepwordbug"][name], (combine, name)
    assert set(finished.runs) >= {"bare/none", "m20/vote", "m70/probability"}
    assert finished.runs["m70/logit"].manifest["model"]["defenses"][0]["options"]["combine"] == "logit"
    assert any("m70: all copies vote alike on 75%" in warning for warning in finished.numbers["warnings"])


def test_what_is_written(finished: st.Study) -> None:
    folder = finished.folder
    assert json.loads((folder / "study.json").read_text()) == json.loads(json.dumps(finished.numbers, allow_nan=False))
    page, markdown = (folder / "study.html").read_text(), (folder / "study.md").read_text()
    assert page.count("<svg") == 3
    assert not re.search(r'(?:src|href)="https?:|@import|url\(["\']?http', page)
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower()
    assert "Not a certificate" in page
    assert "Votes starve attackers" in page
    assert "AG-News, the paper" not in page
    assert (
        "| 70 % | 75.0 % (30.1–95.4) | 75.0 % (30.1–95.4) | 1 | 10.0 % | 2 | 20.0 % | 1 | 10.0 % | 0 of 4 |" in markdown
    )
    assert "The divergence proves nothing" in markdown
    assert 'class="stockade"' in finished._repr_html_()


def test_a_finished_study_is_told_anew_without_a_model(folder: Path, finished: st.Study) -> None:
    again = st.study("masking", out=folder, resume=True, published=True)
    changed = {**again.numbers, "published": False}
    assert json.loads(json.dumps(changed)) == json.loads(json.dumps(finished.numbers))
    assert "AG-News, the paper" in (folder / "study.html").read_text()
    assert "| AG-News | 90 % | 91.1 % | 5 | 4 | 11.4 % |" in (folder / "study.md").read_text()


@pytest.mark.parametrize("lost", ["m20/certificates", "m70/copies.json", "m70/logit", "bare/none"])
@pytest.mark.usefixtures("no_page")
def test_a_lost_part_is_made_again(folder: Path, finished: st.Study, lost: str) -> None:
    part = folder / lost
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    with pytest.raises(RunError, match="was a Python object: resume the study from Python"):
        st.study("masking", out=folder, resume=True)
    again = st.study("masking", models(), ROWS, out=folder, resume=True, **SMALL)
    assert without_times(again.numbers) == without_times(finished.numbers)


@pytest.mark.parametrize("stop", [3, 14, 30])
@pytest.mark.usefixtures("no_page")
def test_an_interrupted_study_ends_like_an_unbroken_one(tmp_path: Path, finished: st.Study, stop: int) -> None:
    seen: list[Progress] = []

    def watch(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        st.study("masking", models(), ROWS, out=tmp_path / "made", observer=watch, **SMALL)
    again = st.study("masking", models(), ROWS, out=tmp_path / "made", resume=True, **SMALL)
    assert without_times(again.numbers) == without_times(finished.numbers)


def without_times(numbers: Any) -> Any:
    return {name: value for name, value in json.loads(json.dumps(numbers)).items() if name != "created"}


@pytest.mark.usefixtures("no_page")
def test_results_do_not_depend_on_concurrency(finished: st.Study) -> None:
    again = st.study("masking", models(), ROWS, concurrency=1, **SMALL)
    assert again.numbers["rates"] == finished.numbers["rates"]


def test_without_attacks(tmp_path: Path) -> None:
    found = st.study("masking", masked(victim(), 0.7), ROWS, out=tmp_path / "made", copies=50)
    assert found.runs == {}
    assert "No attack was named" in (tmp_path / "made" / "study.html").read_text()
    assert any("One mask rate alone" in warning for warning in found.numbers["warnings"])
    assert any("Only 4 texts were studied" in warning for warning in found.numbers["warnings"])
    assert by_rate(found)[0.7]["check"]["complete"] == 0  # 120 copies, 50 asked


def test_bad_input(tmp_path: Path, folder: Path) -> None:
    def run(given: object, **options: Any) -> None:
        st.study("masking", given, ROWS, out=tmp_path / "bad", **options)

    with pytest.raises(OptionError, match=r"No model was trained with ranmask \(found: WeightVictim"):
        run(victim(), **SMALL)
    with pytest.raises(OptionError, match=r"a and b were both trained at the mask rate 0\.5"):
        run({"a": masked(victim(), 0.5), "b": masked(victim(), 0.5)})
    with pytest.raises(OptionError, match="MODEL and DATA are missing"):
        st.study("masking")
    with pytest.raises(OptionError, match=r'no attack "deepwordbag".*Did you mean "deepwordbug"'):
        run(masked(victim(), 0.5), attacks=["deepwordbag"])
    with pytest.raises(OptionError, match="attacks is one string"):
        run(masked(victim(), 0.5), attacks="pwws")
    with pytest.raises(OptionError, match="--copies is 1, expected a whole number from 2 up"):
        run(masked(victim(), 0.5), copies=1)
    with pytest.raises(OptionError, match="leave --defense out"):
        run(masked(victim(), 0.5), model_options=st.ModelOptions(defenses=("ranmask",)))
    with pytest.raises(ModelError, match="no certificate holds"):
        run(masked(victim(), 0.5, ",sampling=lm"))
    with pytest.raises(OptionError, match='no option of the study masking "samples"'):
        run(masked(victim(), 0.5), samples=3)
    assert not (tmp_path / "bad").exists()
    with pytest.raises(RunError, match=r"other options: copies was 300, now 400"):
        st.study("masking", models(), ROWS, out=folder, resume=True, **{**SMALL, "copies": 400})
    with pytest.raises(RunError, match=r"other options: attacks was \[\"deepwordbug\"\], now \[\"pwws\"\]"):
        st.study("masking", out=folder, resume=True, attacks=["pwws"])
    with pytest.raises(RunError, match="a study of the models bare, m20, m70, not of m20"):
        st.study("masking", {"m20": masked(victim(), 0.2)}, ROWS, out=folder, resume=True, **SMALL)
    with pytest.raises(RunError, match=r"is no study masking: it has no plan\.json"):
        st.study("masking", out=tmp_path, resume=True)
    for content, said in (("{", "cannot be read"), ("{}", "expected a plan of the study masking")):
        (folder / "plan.json").write_text(content)
        with pytest.raises(RunError, match=said):
            st.study("masking", out=folder, resume=True)


@pytest.mark.usefixtures("no_page")
def test_a_model_that_has_changed_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in toy_rows()[:3]))
    name = _folder(tmp_path / "m", "ranmask:rate=0.5")
    st.study("masking", name, str(data), out=tmp_path / "made", copies=20)
    (tmp_path / "made" / "m" / "copies.json").unlink()
    _folder(tmp_path / "m", "ranmask:rate=0.4")
    with pytest.raises(RunError, match="The model m is not the one the study was begun with"):
        st.study("masking", out=tmp_path / "made", resume=True)


def test_the_command(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in toy_rows()[:4]))
    bare = _folder(tmp_path / "bare")
    low, high = _folder(tmp_path / "low", "ranmask:rate=0.3,kept=2"), _folder(tmp_path / "high", "ranmask:rate=0.6")
    out = tmp_path / "made"
    command = ["study", "masking", high, bare, low, str(data), "--attack", "deepwordbug", "--copies", "40"]
    result = CliRunner().invoke(cli, [*command, "--budget", "20", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "Certificates, 4 texts:" in result.output
    assert "At most 20 queries per text" in result.output
    assert "not a certificate" in " ".join(result.output.split())
    plan = json.loads((out / "plan.json").read_text())
    assert [(one["name"], one["rate"], one["kept"]) for one in plan["victims"]] == [
        ("bare", 0.0, 1),
        ("low", 0.3, 2),
        ("high", 0.6, 1),
    ]
    manifest = json.loads((out / "low" / "vote" / "manifest.json").read_text())
    masking = manifest["model"]["defenses"][0]["options"]
    assert (masking["rate"], masking["kept"], masking["combine"]) == (0.3, 2, "vote")
    shutil.rmtree(out / "low" / "logit")
    again = CliRunner().invoke(cli, ["study", "masking", "--resume", "--out", str(out), "--published"])
    assert again.exit_code == 0, again.output
    assert (out / "low" / "logit" / "summary.json").exists()
    refused = CliRunner().invoke(cli, ["study", "masking", low, bare, str(data), "--defense", "none"])
    assert isinstance(refused.exception, OptionError)
    ignored = CliRunner().invoke(cli, ["study", "masking", "--resume", "--out", str(out), "--limit", "2"])
    assert "--limit has no effect on what is resumed" in str(ignored.exception)
    other = CliRunner().invoke(cli, ["evaluate", "--resume", "--out", str(out)])
    assert f"is a study: go on with stockade study masking --resume --out {out}" in str(other.exception)
    shutil.copytree(out, tmp_path / "other")
    (tmp_path / "other" / "plan.json").write_text('{"schema": 1, "request": {}}')
    strange = CliRunner().invoke(cli, ["study", "masking", "--resume", "--out", str(tmp_path / "other")])
    assert "expected a plan of the study masking" in str(strange.exception)


def _folder(path: Path, defense: str | None = None) -> str:
    options = {"id2label": dict(enumerate(LABELS)), "label2id": {name: at for at, name in enumerate(LABELS)}}
    tiny_bert(**options).save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    if defense is not None:
        save_defenses(path, [make_defense(defense)])
    return str(path)


@pytest.mark.usefixtures("no_page")
def test_a_text_that_is_right_but_not_certain_counts_as_right() -> None:
    """Six of ten words are shown, so six of ten copies show the one that decides: thirty are too few to be sure."""
    found = st.study("masking", masked(victim(), 0.4), [(WEAK, "positive")], copies=30)
    numbers = by_rate(found)[0.4]["certificates"]
    assert (numbers["claimed"]["abstained"], numbers["sound"]["abstained"]) == (1, 1)
    assert numbers["accuracy"]["value"] == 1.0
    assert numbers["sound"]["median_radius"] is None
