"""`st.study("masking", …)` and `stockade study masking` from the first word to the last file."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import ModelError, OptionError, RunError
from stockade.studies.masking.analysis import RateNumbers
from stockade.studies.masking.study import MaskingResult
from tests.studies.masking.toys import ROWS, WEAK, masked, save_data, save_model, victim

SMALL: dict[str, Any] = {"copies": 300, "attacks": ["deepwordbug"]}
TIMES = ("seconds", "model_seconds", "model_rows", "created", "run")


def models() -> dict[str, object]:
    """The higher rate first: the study sorts them."""
    return {"m70": masked(victim(), 0.7), "bare": victim(), "m20": masked(victim(), 0.2)}


def study(models: object, rows: object, **options: Any) -> MaskingResult:
    result = st.study("masking", models, rows, **options)
    assert isinstance(result, MaskingResult)
    return result


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> MaskingResult:
    """A study of two rates and the undefended model; not to be written to."""
    return study(models(), ROWS, out=tmp_path_factory.mktemp("masking") / "made", **SMALL)


@pytest.fixture
def copied(finished: MaskingResult, tmp_path: Path) -> Path:
    """A copy of the study's folder."""
    return shutil.copytree(finished.folder, tmp_path / "made")


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than everything else; one test looks at what is drawn."""
    for name in ("rate_plot", "attack_plot", "excess_plot"):
        monkeypatch.setattr(f"stockade.studies.masking.page.{name}", lambda *numbers, **options: "")


def by_rate(result: MaskingResult) -> dict[float, RateNumbers]:
    return {entry.rate: entry for entry in result.numbers.rates}


def without_times(summary: Any) -> Any:
    """A summary without what differs from run to run."""
    if isinstance(summary, dict):
        return {name: without_times(value) for name, value in summary.items() if name not in TIMES}
    return [without_times(value) for value in summary] if isinstance(summary, list | tuple) else summary


def written(folder: Path) -> Any:
    return without_times(json.loads((folder / "summary.json").read_text()))


def test_certificates_by_hand(finished: MaskingResult) -> None:
    """Ten words. At 0.2 eight are shown and one word touches 8/10 of the copies: nothing can change. At 0.7 three are
    shown: Δ_1 = 3/10 and Δ_2 = 1 - 56/120, so one word may change where all copies agree (1 > 2 Δ_1), and no two.
    The published test passes at one word too (1 - 0.3 > 0.5) and prints the two at which it fails.
    """
    rates = by_rate(finished)
    assert list(rates) == [0.2, 0.7]
    low, high = rates[0.2].certificates, rates[0.7].certificates
    assert (low.accuracy["value"], high.accuracy["value"]) == (1.0, 0.75)  # at 0.7 most copies hide the deciding word
    for certificates, sound, claimed in ((low, 0, 1), (high, 1, 2)):
        assert certificates.sound.median_radius == sound
        assert certificates.sound.median_rate == pytest.approx(sound / 10)
        assert certificates.claimed.median_radius == claimed
        assert certificates.claimed.median_rate == pytest.approx(claimed / 10)
        assert certificates.corrected.median_radius == claimed - 1
        assert certificates.corrected.median_rate == pytest.approx((claimed - 1) / 10)
    assert [point.share for point in high.sound.curve] == [0.75, 0.75]
    assert high.votes.unanimous == 0.75


def test_the_check_by_hand(finished: MaskingResult) -> None:
    """Of the weak text at 0.2, p is 8/10 and β of its one word 1. At 0.7 its class is the other one with 7/10; a word
    that does not matter is shown with two of nine others, so without the one that does with 7/9.
    """
    low, high = by_rate(finished)[0.2].check, by_rate(finished)[0.7].check
    assert low.complete == high.complete == 4
    assert low.excesses == pytest.approx([0, 0, 0, 0.2])
    assert high.excesses == pytest.approx([0, 0, 0, 7 / 9 - 0.7], abs=1e-6)
    assert low.largest is not None
    assert low.largest.word == "good"
    assert (high.claims, high.broken_claims) == (3, 0)
    assert low.divergence["10"] == pytest.approx(0, abs=1e-15)  # all ten words: every copy meets the set
    assert by_rate(finished)[0.7].risk.mean == pytest.approx(0.3)


def test_attacks_are_those_on_the_ensemble_itself(finished: MaskingResult) -> None:
    rates, undefended = by_rate(finished), finished.numbers.undefended
    assert undefended is not None
    assert (undefended.model, list(undefended.attacks)) == ("bare", ["deepwordbug"])
    assert [list(entry.attacks) for entry in rates.values()] == [["vote", "logit", "probability"]] * 2
    for combine in ("vote", "logit"):
        run = st.attack(masked(victim(), 0.2, f",combine={combine}"), ROWS, "deepwordbug", similarity=False)
        numbers = rates[0.2].attacks[combine]["deepwordbug"]
        for name in ("robust_accuracy", "mean_queries", "succeeded"):
            assert getattr(numbers, name) == run.summary["attacks"]["deepwordbug"][name], (combine, name)
    assert set(finished.runs) >= {"bare/none", "m20/vote", "m70/probability", "m20/certificates"}
    assert "bare/certificates" not in finished.runs
    defense = finished.runs["m70/logit"].manifest.inputs["model"]["defenses"][0]
    assert defense["options"]["combine"] == "logit"
    assert any("m70: all copies vote alike on 75%" in warning for warning in finished.warnings)


def test_what_is_written(finished: MaskingResult) -> None:
    folder = finished.folder
    assert json.loads((folder / "summary.json").read_text()) == json.loads(
        json.dumps(finished.summary, allow_nan=False)
    )
    page, markdown = (folder / "report.html").read_text(), (folder / "report.md").read_text()
    assert page.count("<svg") == 3
    assert not re.search(r'(?:src|href)="https?:|@import|url\(["\']?http', page)
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower()
    assert "Not a certificate" in page
    assert "Votes starve attackers" in page
    assert "AG-News, the paper" not in page
    assert (
        "| 70 % | 75.0 % (30.1–95.4) | 75.0 % (30.1–95.4) | 1 | 10.0 % | 2 | 20.0 % | 1 | 10.0 % | 0 of 4 |" in markdown
    )
    assert "That proves nothing" in markdown
    assert "half of the texts keep their class whatever becomes of 1 of their words" in markdown
    assert 'class="stockade"' in finished._repr_html_()


def test_what_a_result_can_do(finished: MaskingResult, tmp_path: Path) -> None:
    result = st.load(finished.folder)
    assert isinstance(result, MaskingResult)
    assert result.summary == finished.summary
    rows = list(result.rows())
    assert len(rows) == len(list(result.records())) == 2 * 2 * len(ROWS) + (1 + 2 * 3) * len(ROWS)
    assert all(tuple(row) == result.layout.columns for row in rows)
    assert {row["run"] for row in rows if row["radius"] is not None} == {"m20/certificates", "m70/certificates"}
    table = CliRunner().invoke(cli, ["export", str(finished.folder), "--format", "csv"])
    assert len(list(csv.DictReader(io.StringIO(table.output)))) == len(rows)
    assert result.save(tmp_path / "kept").numbers == finished.numbers


def test_verify_checks_every_job_the_estimates_and_the_summary(copied: Path) -> None:
    result = st.load(copied)
    with pytest.raises(RunError, match="was a Python object"):
        result.verify()
    verification = result.verify(models())
    assert verification.problems == ()
    assert verification.checked >= 2 * 2 * len(ROWS) + 2 * len(ROWS)
    summary = json.loads((copied / "summary.json").read_text())
    summary["rates"][0]["check"]["claims"] += 1
    (copied / "summary.json").write_text(json.dumps(summary))
    with sqlite3.connect(copied / "run.sqlite") as store:
        store.execute("UPDATE results SET document = replace(document, '\"position\": 0', '\"position\": 3')")
        store.execute("DELETE FROM results WHERE part LIKE 'm70%' AND id = '1'")
    problems = st.load(copied).verify(models()).problems
    assert "summary.json: rates does not follow from the results" in problems
    assert "m70: β was not estimated on example 1" in problems
    assert "m20: β was estimated on another text than example 3, or with another masking" in problems


def test_a_finished_study_is_analysed_again_without_a_model(copied: Path, finished: MaskingResult) -> None:
    again = st.study("masking", out=copied, resume=True, published=True)
    assert {**again.summary, "published": False} == finished.summary
    assert "AG-News, the paper" in (copied / "report.html").read_text()
    assert "| AG-News | 90 % | 91.1 % | 5 | 4 | 11.4 % |" in (copied / "report.md").read_text()


@pytest.mark.parametrize("lost", ["m20/certificates", "m70/logit", "bare/none"])
@pytest.mark.usefixtures("no_plots")
def test_a_lost_job_is_run_again(copied: Path, finished: MaskingResult, lost: str) -> None:
    shutil.rmtree(copied / lost)
    assert not st.load(copied).complete
    with pytest.raises(RunError, match="resume it from Python, with the same objects"):
        st.study("masking", out=copied, resume=True)
    study(models(), ROWS, out=copied, resume=True, **SMALL)
    assert written(copied) == written(finished.folder)


@pytest.mark.usefixtures("no_plots")
def test_lost_estimates_are_made_again(copied: Path, finished: MaskingResult) -> None:
    with sqlite3.connect(copied / "run.sqlite") as store:
        store.execute("DELETE FROM results WHERE part LIKE 'm70%' AND id IN ('1', '3')")
    assert not st.load(copied).complete
    result = st.resume(copied, models=models(), data=ROWS)
    assert result.complete
    assert written(copied) == written(finished.folder)


class Stop:
    """An observer that interrupts the job at its nth report, and remembers the parts."""

    def __init__(self, after: int) -> None:
        self.after, self.parts = after, list[str]()

    def __call__(self, progress: st.Progress) -> None:
        self.parts.append(progress.part)
        if len(self.parts) == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("after", "part"),
    [(3, "bare/none: deepwordbug"), (7, "m20: ranmask-gap"), (14, "m20: β"), (30, "m70: ranmask-gap")],
)
@pytest.mark.usefixtures("no_plots")
def test_an_interrupted_study_ends_like_an_unbroken_one(
    tmp_path: Path, finished: MaskingResult, after: int, part: str
) -> None:
    stop = Stop(after)
    with pytest.raises(KeyboardInterrupt):
        study(models(), ROWS, out=tmp_path / "made", observer=stop, **SMALL)
    assert stop.parts[-1] == part
    assert not st.load(tmp_path / "made").complete
    study(models(), ROWS, out=tmp_path / "made", resume=True, **SMALL)
    assert written(tmp_path / "made") == written(finished.folder)


@pytest.mark.usefixtures("no_plots")
def test_two_jobs_do_not_share_a_folder(tmp_path: Path) -> None:
    refused = []

    def second(progress: st.Progress) -> None:
        with pytest.raises(RunError) as error:
            study(masked(victim(), 0.7), ROWS[:1], out=tmp_path / "made", resume=True, copies=20)
        refused.append(str(error.value))

    study(masked(victim(), 0.7), ROWS[:1], out=tmp_path / "made", copies=20, observer=second)
    assert refused
    assert all(sentence.startswith("Another process is working on") for sentence in refused)
    with pytest.raises(RunError, match="exists already and is not empty"):
        study(masked(victim(), 0.7), ROWS[:1], out=tmp_path / "made", copies=20)


@pytest.mark.usefixtures("no_plots")
def test_results_do_not_depend_on_concurrency(finished: MaskingResult) -> None:
    again = study(models(), ROWS, concurrency=1, **SMALL)
    assert without_times(again.summary) == without_times(finished.summary)


def test_without_attacks(tmp_path: Path) -> None:
    result = study(masked(victim(), 0.7), ROWS, out=tmp_path / "made", copies=50)
    assert list(result.runs) == ["Defended/certificates"]
    assert "No attack was named" in (tmp_path / "made" / "report.html").read_text()
    assert any("One mask rate alone" in warning for warning in result.warnings)
    assert any("Only 4 texts were studied" in warning for warning in result.warnings)
    assert by_rate(result)[0.7].check.complete == 0  # 120 copies, 50 asked
    assert result.layout.columns == result.run.layout.columns


@pytest.mark.usefixtures("no_plots")
def test_a_text_that_is_right_but_not_certain_counts_as_right() -> None:
    """Six of ten words are shown, so six of ten copies show the one that decides: thirty are too few to be sure."""
    certificates = by_rate(study(masked(victim(), 0.4), [(WEAK, "positive")], copies=30))[0.4].certificates
    assert (certificates.claimed.abstained, certificates.sound.abstained) == (1, 1)
    assert certificates.accuracy["value"] == 1.0
    assert certificates.sound.median_radius is None


@pytest.mark.usefixtures("no_plots")
def test_texts_that_cannot_be_asked_about_count_as_not_certified() -> None:
    result = study(masked(victim(), 0.7), [*ROWS, ("good " * 12, "positive")], copies=50, max_words=10)
    entry = by_rate(result)[0.7]
    assert (entry.check.texts, entry.check.left_out, entry.certificates.errors) == (4, 1, 1)
    assert result.estimates["Defended"][-1].reason == "the text has 12 words"
    assert "Defended: 1 texts ended in an error and count as not certified." in result.warnings
    assert (entry.certificates.texts, entry.certificates.sound.n) == (5, 5)
    assert (entry.certificates.accuracy["value"] or 0) <= 4 / 5
    assert entry.certificates.sound.curve[0].share <= 4 / 5
    assert result.complete


def test_bad_input(tmp_path: Path, copied: Path) -> None:
    def refused(model: object, **options: Any) -> None:
        st.study("masking", model, ROWS, out=tmp_path / "bad", **options)

    with pytest.raises(OptionError, match=r"No model was trained with ranmask \(found: WeightVictim"):
        refused(victim(), **SMALL)
    with pytest.raises(OptionError, match=r"a and b were both trained at the mask rate 0\.5, but with other combine"):
        refused({"a": masked(victim(), 0.5), "b": masked(victim(), 0.5, ",combine=vote")})
    with pytest.raises(OptionError, match="MODEL and DATA are missing"):
        st.study("masking")
    with pytest.raises(OptionError, match=r'no attack "deepwordbag".*Did you mean "deepwordbug"'):
        refused(masked(victim(), 0.5), attacks="deepwordbag")
    with pytest.raises(OptionError, match="--copies is 1, expected a whole number from 2 up"):
        refused(masked(victim(), 0.5), copies=1)
    with pytest.raises(OptionError, match="--copies is True, expected a whole number"):
        refused(masked(victim(), 0.5), copies=True)
    with pytest.raises(OptionError, match='no option of the study masking "defenses"'):
        refused(masked(victim(), 0.5), defenses="ranmask")
    with pytest.raises(ModelError, match="no certificate holds"):
        refused(masked(victim(), 0.5, ",sampling=lm"))
    assert not (tmp_path / "bad").exists()
    with pytest.raises(RunError, match=r"copies was 300, now 400"):
        study(models(), ROWS, out=copied, resume=True, **{**SMALL, "copies": 400})
    with pytest.raises(RunError, match=r"attacks\.deepwordbug.* was .*now nothing"):
        st.study("masking", out=copied, resume=True, attacks="pwws")
    with pytest.raises(RunError, match=r"models\.bare.* was .*now nothing"):
        study({"m20": masked(victim(), 0.2)}, ROWS, out=copied, resume=True, **SMALL)
    with pytest.raises(RunError, match=r"is not a run: it has no manifest\.json"):
        st.study("masking", out=tmp_path, resume=True)


@pytest.mark.usefixtures("no_plots")
def test_the_command(tmp_path: Path) -> None:
    data = save_data(tmp_path / "data.csv", 4)
    bare = save_model(tmp_path / "bare")
    low = save_model(tmp_path / "low", "ranmask:rate=0.3,kept=2")
    high = save_model(tmp_path / "high", "ranmask:rate=0.6")
    out = tmp_path / "made"
    command = ["study", "masking", high, bare, low, data, "--attack", "deepwordbug", "--copies", "40"]
    ended = CliRunner().invoke(cli, [*command, "--budget", "20", "--out", str(out)])
    assert ended.exit_code == 0, ended.output
    printed = " ".join(ended.output.split())
    assert "At most 20 queries per text" in printed
    assert "not a certificate" in printed
    recorded = json.loads((out / "manifest.json").read_text())["inputs"]["models"]
    assert {
        name: model.get("defenses", [{"options": {}}])[0]["options"].get("rate") for name, model in recorded.items()
    } == {
        "bare": None,
        "low": 0.3,
        "high": 0.6,
    }
    manifest = json.loads((out / "low" / "vote" / "manifest.json").read_text())
    masking = manifest["inputs"]["model"]["defenses"][0]["options"]
    assert (masking["rate"], masking["kept"], masking["combine"]) == (0.3, 2, "vote")
    assert st.load(out).verify().problems == ()
    shutil.rmtree(out / "low" / "logit")
    again = CliRunner().invoke(cli, ["study", "masking", "--resume", "--out", str(out), "--published"])
    assert again.exit_code == 0, again.output
    assert (out / "low" / "logit" / "summary.json").exists()
    assert st.load(out).summary["published"]
    refused = CliRunner().invoke(cli, ["study", "masking", low, bare, data, "--defense", "none"])
    assert "No such option" in refused.output
    ignored = CliRunner().invoke(cli, ["study", "masking", "--resume", "--out", str(out), "--limit", "2"])
    assert "--limit" in str(ignored.exception)
    other = CliRunner().invoke(cli, ["study", "bae", "--resume", "--out", str(out)])
    assert "holds a job of the kind study-masking, not study-bae" in str(other.exception)


@pytest.mark.usefixtures("no_plots")
def test_a_model_that_has_changed_is_refused(tmp_path: Path) -> None:
    model = save_model(tmp_path / "m", "ranmask:rate=0.5")
    study(model, save_data(tmp_path / "data.csv", 3), out=tmp_path / "made", copies=20)
    with sqlite3.connect(tmp_path / "made" / "run.sqlite") as store:
        store.execute("DELETE FROM results WHERE id = '0'")
    save_model(tmp_path / "m", "ranmask:rate=0.4")
    with pytest.raises(RunError, match="The model m is not the one the study was begun with"):
        st.resume(tmp_path / "made")
    save_model(tmp_path / "m", "ranmask:rate=0.5")
    save_data(tmp_path / "data.csv", 4)
    with pytest.raises(RunError, match=r"data\.csv has changed since the job was begun"):
        st.resume(tmp_path / "made")
