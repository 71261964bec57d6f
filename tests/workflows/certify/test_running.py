"""Runs of certificates: kept as they are found, resumed, checked again, and never believed when tampered with."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.certificates.certificate import text_fingerprint
from stockade.core.errors import OptionError, RunError
from stockade.core.protocols import Probabilities
from stockade.defenses.defended import Defended
from stockade.report.render_terminal import standard_output
from stockade.workflows.certify.result import CertifyResult
from stockade.workflows.certify.verify import resample
from tests.certificates.kit import ROWS
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
METHODS = ["ranmask-gap", "ranmask-lf:most=300", "ranmask-exact", "ranmask-legacy:most=200,selection=50"]
LONG = [("good fun and more good fun for all of us and many more good things " * 3, "positive")]
Change = Callable[[dict[str, Any]], object]


def robust(**options: Any) -> Defended:
    defended = st.defend(VICTIM, "ranmask", **{"rate": 0.7, **options})
    assert isinstance(defended, Defended)
    return defended


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> CertifyResult:
    """Every text under every method, without an interruption; not to be written to."""
    return st.certify(robust(), ROWS + LONG, METHODS, out=tmp_path_factory.mktemp("certify") / "whole")


class Stop:
    """An observer that interrupts the job at its nth report."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, progress: st.Progress) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [1, 3, 10])
def test_an_interrupted_run_ends_as_an_unbroken_one(tmp_path: Path, whole: CertifyResult, after: int) -> None:
    folder = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        st.certify(robust(), ROWS + LONG, METHODS, out=folder, observer=Stop(after))
    broken = CertifyResult.open(folder)
    assert after <= len(broken.certificates) < len(whole.certificates)
    assert not broken.complete
    with pytest.raises(RunError, match="resume it from Python, with the same objects"):
        st.resume(folder)
    resumed = st.resume(folder, model=robust(), data=ROWS + LONG, concurrency=1)
    assert list(resumed.rows()) == list(whole.rows())
    assert resumed.complete
    assert resumed.verify().problems == ()


def test_two_jobs_do_not_share_a_folder(tmp_path: Path) -> None:
    refused = []

    def second(progress: st.Progress) -> None:
        with pytest.raises(RunError) as error:
            st.certify(robust(), ROWS, out=tmp_path / "run", resume=True)
        refused.append(str(error.value))

    st.certify(robust(), ROWS, out=tmp_path / "run", observer=second)
    assert len(refused) == len(ROWS)
    assert all(sentence.startswith("Another process is working on") for sentence in refused)


def test_concurrency_and_batches_change_nothing() -> None:
    rows = ROWS + LONG
    slow = st.certify(robust(), rows, concurrency=1, batch_tokens=7)
    assert list(slow.rows()) == list(st.certify(robust(), rows).rows())


def test_other_options_are_not_resumed(tmp_path: Path) -> None:
    st.certify(robust(), ROWS, out=tmp_path / "run")
    with pytest.raises(RunError, match="exists already"):
        st.certify(robust(), ROWS, out=tmp_path / "run")
    with pytest.raises(RunError, match=r"another configuration: .*alpha"):
        st.certify(robust(), ROWS, alpha=0.01, out=tmp_path / "run", resume=True)
    with pytest.raises(RunError, match="another configuration"):
        st.certify(robust(rate=0.5), ROWS, out=tmp_path / "run", resume=True)
    with pytest.raises(OptionError, match="A method is named twice"):
        st.certify(robust(), ROWS, ["ranmask-gap", "ranmask-gap"])


def test_a_text_that_the_model_cannot_answer_is_an_error_of_its_own() -> None:
    class Moody(WeightVictim):
        def predict_proba(self, inputs: Any) -> Probabilities:
            if any("dull" in str(item) for item in inputs):
                raise ValueError("not that word")
            return super().predict_proba(inputs)

    result = st.certify(st.defend(Moody(VICTIM.weights), "ranmask", rate=0.7), ROWS)
    statuses = {certificate.text: certificate.status for certificate in result.certificates}
    assert statuses.pop("a bad and rather dull film") == "error"
    assert "error" not in statuses.values()
    numbers = result.summary["methods"]["ranmask-gap"]
    assert (numbers["n"], numbers["errors"], numbers["answered"]["n"]) == (len(ROWS), 1, len(ROWS) - 1)


def test_a_text_without_a_certificate_is_not_certified_whatever_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Five of eight texts are over the limit: three of eight are certified, not three of three."""
    rows = [("good good good good", "positive")] * 3 + [("good " * 9, "positive")] * 5
    result = st.certify(robust(), rows, "ranmask-exact", max_words=8)
    numbers = result.summary["methods"]["ranmask-exact"]
    assert (numbers["n"], numbers["errors"], numbers["certified"]) == (8, 5, 3)
    assert numbers["accuracy"]["value"] == numbers["curve"][0]["share"] == 3 / 8
    assert numbers["median_radius"] is None
    answered = numbers["answered"]
    assert (answered["n"], answered["accuracy"]["value"], answered["curve"][0]["share"]) == (3, 1.0, 1.0)
    assert answered["median_radius"] is not None
    assert numbers["mean_radius"] == pytest.approx(answered["mean_radius"] * 3 / 8)
    markdown = result.document().to_markdown()
    assert "proves the true class of 37.5 % of the texts (n = 8)" in markdown
    assert "5 texts ended in an error and count as not certified; of the 3 answered it is 100.0 %." in markdown
    assert "| ranmask-exact | 8 (5 errors) | 37.5 %" in markdown
    assert "| ranmask-exact, of the 3 answered | 3 | 100.0 %" in markdown
    assert markdown.count("| ranmask-exact, of the 3 answered |") == 2  # the numbers, and the share at each radius
    result.document().brief().to_terminal(standard_output())
    assert "37.5 %" in capsys.readouterr().out
    assert result.problem() is None


def test_a_run_of_errors_alone_has_a_problem() -> None:
    result = st.certify(robust(), [("good " * 9, "positive")] * 2, "ranmask-exact", max_words=8)
    assert result.complete
    assert result.problem() == (
        "ranmask-exact: all 2 texts ended in an error; the first: the text has more than 8 words"
    )
    assert "no text has an answer: all 2 ended in an error" in result.document().to_markdown()


def test_the_summary_counts_radii_of_true_classes_only() -> None:
    rows = [
        ("good good good good good good", "positive"),
        ("good good good good good good", "negative"),
        ("good", "positive"),
    ]
    result = st.certify(robust(), rows, "ranmask-exact")
    numbers = result.summary["methods"]["ranmask-exact"]
    assert [certificate.radius for certificate in result.certificates] == [1, 1, 0]
    assert (numbers["certified"], numbers["wrong"]) == (3, 1)
    assert numbers["accuracy"]["value"] == pytest.approx(2 / 3)
    assert [point["share"] for point in numbers["curve"]] == pytest.approx([2 / 3, 1 / 3])
    assert numbers["median_radius"] == 0  # of {1, none, 0} at least half have 0 or more
    assert numbers["mean_copies"] == pytest.approx((15 + 15 + 1) / 3)
    assert numbers["alpha"] is None


def test_a_familywise_alpha_is_divided_by_the_number_of_texts() -> None:
    result = st.certify(robust(), ROWS + LONG, "ranmask-gap:alpha=0.07", familywise=True)
    alphas = [certificate.evidence["plan"]["alpha"] for certificate in result.certificates if certificate.evidence]
    assert alphas == pytest.approx([0.07 / 7] * 7)
    assert result.verify().holds


def test_a_row_says_all_that_is_needed_to_check_it(tmp_path: Path) -> None:
    result = st.certify(robust(), ROWS[:1] + LONG, out=tmp_path / "run")
    exact, sampled = result.rows()
    assert exact["alpha"] is None  # all 15 copies were asked
    assert exact["statement"].startswith("The class stays positive under any change of 1 word,")
    assert sampled["alpha"] == 0.05
    assert sampled["model_fingerprint"] == result.manifest.inputs["model"]["fingerprint"]
    assert sampled["defenses"][0]["options"]["rate"] == 0.7
    assert json.loads(json.dumps(sampled)) == sampled


TAMPERINGS: list[tuple[Change, str]] = [
    (lambda entry: entry.update(radius=entry["radius"] + 1), r"recorded radius 2, the evidence gives 1"),
    (lambda entry: entry.update(predicted="negative"), "the evidence is about positive"),
    (lambda entry: entry.update(status="abstained"), "recorded as abstained, the evidence says certified"),
    (lambda entry: entry.update(text="a bad and rather moving film"), "its fingerprint differs"),
    (
        lambda entry: entry.update(text="a b", fingerprint=text_fingerprint("a b", None)),
        "recorded 6 words, the text has 2",
    ),
    (lambda entry: entry["evidence"]["distribution"].update(kept=1), "copies with 1 words, the defense shows 2"),
    (lambda entry: entry["evidence"]["plan"].update(alpha=0.5), "read with alpha 0.5, the run allows 0.05"),
    (lambda entry: entry["evidence"].update(rule="majority"), "read by the rule majority, the method has gap"),
    (lambda entry: entry["evidence"]["plan"].update(population=None), "looked at by another plan than the run's"),
    (lambda entry: entry["evidence"]["plan"].update(scheme="anytime"), "looked at by another plan than the run's"),
    (
        lambda entry: entry["evidence"]["plan"].update(population=16, looks=[15, 16], scheme="anytime"),
        "of 16 different copies, the text has 15",
    ),
    (lambda entry: entry["evidence"]["tally"].update(counts=[0, 99]), "the evidence makes no sense"),
    (lambda entry: entry.update(evidence=None), "a certificate without evidence"),
    (lambda entry: entry.update(id="99"), "the rows are not about the texts that the run committed to"),
]


def tampered(folder: Path, change: Change) -> CertifyResult:
    """The run with its first certificate changed in the file."""
    with sqlite3.connect(folder / "run.sqlite") as store:
        rowid, text = store.execute("SELECT rowid, document FROM results ORDER BY rowid").fetchone()
        entry = json.loads(text)
        change(entry)
        store.execute("UPDATE results SET document = ? WHERE rowid = ?", (json.dumps(entry), rowid))
    return CertifyResult.open(folder)


@pytest.mark.parametrize(("change", "problem"), TAMPERINGS)
def test_a_changed_certificate_is_noticed(change: Change, problem: str, tmp_path: Path) -> None:
    result = st.certify(robust(), ROWS, limit=len(ROWS) - 1, out=tmp_path / "run")
    assert result.certificates[0].id == "0"
    assert result.verify().holds
    problems = tampered(tmp_path / "run", change).verify().problems
    assert any(problem in sentence for sentence in problems), problems


def test_a_summary_that_does_not_follow_is_noticed(tmp_path: Path) -> None:
    st.certify(robust(), ROWS, out=tmp_path / "run")
    path = tmp_path / "run" / "summary.json"
    summary = json.loads(path.read_text())
    summary["methods"]["ranmask-gap"]["median_radius"] += 1
    path.write_text(json.dumps(summary))
    problems = CertifyResult.open(tmp_path / "run").verify().problems
    assert problems == ("summary.json: methods does not follow from the results",)


def test_certificates_are_checked_without_torch(whole: CertifyResult) -> None:
    program = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "from stockade.cli.verify import command\n"
        f"print(command.main([{str(whole.folder)!r}], standalone_mode=False))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "28 results checked: all hold\n0\n", done.stderr


def test_fresh_copies_confirm_what_holds_and_refute_what_does_not(tmp_path: Path) -> None:
    result = st.certify(robust(), ROWS + LONG, ["ranmask-gap:most=500", "ranmask-exact"], out=tmp_path / "run")
    resampled = resample(result, robust())
    assert resampled.checked == sum(certificate.status == "certified" for certificate in result.certificates)
    assert resampled.refuted == ()
    assert result.verify(robust()).problems == ()
    other = st.defend(WeightVictim({"good": -4.0, "bad": 4.0}), "ranmask", rate=0.7)
    assert len(resample(result, other).refuted) >= 5
