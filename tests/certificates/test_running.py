"""Runs of certificates: kept as they are found, gone on with, checked again, and never believed when tampered with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.certificates.certificate import text_fingerprint
from stockade.certificates.resample import resample
from stockade.certificates.verify import recompute
from stockade.core.errors import OptionError, RunError
from stockade.core.protocols import Probabilities
from stockade.defenses.defended import Defended
from tests.certificates.kit import ROWS, tampered
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
METHODS = ("ranmask-gap", "ranmask-lf:most=300", "ranmask-exact", "ranmask-legacy:most=200,selection=50")
LONG = [("good fun and more good fun for all of us and many more good things " * 3, "positive")]


def robust(**options: Any) -> Defended:
    return st.defend(VICTIM, "ranmask", **{"rate": 0.7, **options})  # type: ignore[return-value]


def told(run: st.CertificateRun) -> list[dict[str, Any]]:
    return [{**one, "fingerprint": one["fingerprint"]} for one in run.documents()]


def test_an_interrupted_run_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop_after(progress: Any) -> None:
        if progress.done == 3:
            raise Stopped

    rows = ROWS + LONG
    whole = st.certify(robust(), rows, *METHODS, out=tmp_path / "whole")
    with pytest.raises(Stopped):
        st.certify(robust(), rows, *METHODS, out=tmp_path / "broken", observer=stop_after)
    assert 3 <= len(st.CertificateRun(tmp_path / "broken").certificates) < len(whole.certificates)
    gone_on = st.certify(robust(), rows, *METHODS, out=tmp_path / "broken", resume=True, concurrency=1)
    assert told(gone_on) == told(whole)
    assert gone_on.summary["complete"]


def test_concurrency_and_batches_change_nothing() -> None:
    rows = ROWS + LONG
    assert told(st.certify(robust(), rows, concurrency=1, batch_tokens=7)) == told(st.certify(robust(), rows))


def test_other_options_are_not_gone_on_with(tmp_path: Path) -> None:
    st.certify(robust(), ROWS, out=tmp_path / "run")
    with pytest.raises(RunError, match="exists already"):
        st.certify(robust(), ROWS, out=tmp_path / "run")
    with pytest.raises(RunError, match=r"another configuration: .*alpha"):
        st.certify(robust(), ROWS, alpha=0.01, out=tmp_path / "run", resume=True)
    with pytest.raises(RunError, match="another configuration"):
        st.certify(robust(rate=0.5), ROWS, out=tmp_path / "run", resume=True)
    with pytest.raises(OptionError, match="A method is named twice"):
        st.certify(robust(), ROWS, "ranmask-gap", "ranmask-gap")


def test_a_text_that_the_model_cannot_answer_is_an_error_of_its_own() -> None:
    class Moody(WeightVictim):
        def predict_proba(self, inputs: Any) -> Probabilities:
            if any("dull" in str(item) for item in inputs):
                raise ValueError("not that word")
            return super().predict_proba(inputs)

    run = st.certify(st.defend(Moody(VICTIM.weights), "ranmask", rate=0.7), ROWS)
    statuses = {one.text: one.status for one in run.certificates}
    assert statuses.pop("a bad and rather dull film") == "error"
    assert "error" not in statuses.values()
    numbers = run.summary["methods"]["ranmask-gap"]
    assert (numbers["n"], numbers["errors"]) == (len(ROWS) - 1, 1)


def test_the_summary_counts_radii_of_true_classes_only() -> None:
    rows = [
        ("good good good good good good", "positive"),
        ("good good good good good good", "negative"),
        ("good", "positive"),
    ]
    run = st.certify(robust(), rows, "ranmask-exact")
    numbers = run.summary["methods"]["ranmask-exact"]
    assert [one.radius for one in run.certificates] == [1, 1, 0]
    assert (numbers["certified"], numbers["wrong"], numbers["accuracy"]["value"]) == (3, 1, pytest.approx(2 / 3))
    assert [point["share"] for point in numbers["curve"]] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert numbers["median_radius"] == 0  # of {1, none, 0} at least half have 0 or more
    assert numbers["mean_copies"] == pytest.approx((15 + 15 + 1) / 3)
    assert numbers["alpha"] is None


def test_alpha_for_the_whole_set_is_divided_by_its_texts() -> None:
    run = st.certify(robust(), ROWS + LONG, "ranmask-gap:alpha=0.07", whole_set=True)
    plans = [one.evidence["plan"]["alpha"] for one in run.certificates if one.evidence is not None]
    assert plans == [pytest.approx(0.07 / 7)] * 7
    assert recompute(run).holds


def test_a_document_says_all_that_is_needed_to_check_it(tmp_path: Path) -> None:
    run = st.certify(robust(), ROWS[:1] + LONG, out=tmp_path / "run")
    exact, sampled = run.documents()
    assert exact["alpha"] is None  # all 15 copies were asked
    assert exact["statement"].startswith("The class stays positive under any change of 1 word,")
    assert sampled["alpha"] == 0.05
    assert sampled["model_fingerprint"] == run.manifest["model"]["fingerprint"]
    assert sampled["defenses"][0]["options"]["rate"] == 0.7
    assert json.loads(json.dumps(sampled)) == sampled


TAMPERINGS: list[tuple[Any, str]] = [
    (lambda told: told.update(radius=told["radius"] + 1), r"recorded radius 2, the evidence gives 1"),
    (lambda told: told.update(predicted="negative"), "the evidence is about positive"),
    (lambda told: told.update(status="abstained"), "recorded as abstained, the evidence says certified"),
    (lambda told: told.update(text="a bad and rather moving film"), "its fingerprint differs"),
    (
        lambda told: told.update(text="a b", fingerprint=text_fingerprint("a b", None)),
        "recorded 6 words, the text has 2",
    ),
    (lambda told: told["evidence"]["distribution"].update(kept=1), "copies with 1 words, the defense shows 2"),
    (lambda told: told["evidence"]["plan"].update(alpha=0.5), "read with alpha 0.5, the run allows 0.05"),
    (lambda told: told["evidence"].update(rule="majority"), "read by the rule majority, the method has gap"),
    (lambda told: told["evidence"]["plan"].update(population=None), "looked at by another plan than the run's"),
    (lambda told: told["evidence"]["plan"].update(scheme="anytime"), "looked at by another plan than the run's"),
    (
        lambda told: told["evidence"]["plan"].update(population=16, looks=[15, 16], scheme="anytime"),
        "of 16 different copies, the text has 15",
    ),
    (lambda told: told["evidence"]["tally"].update(counts=[0, 99]), "the evidence makes no sense"),
    (lambda told: told.update(evidence=None), "a certificate without evidence"),
]


@pytest.mark.parametrize(("change", "problem"), TAMPERINGS)
def test_a_changed_certificate_is_found_out(change: Any, problem: str, tmp_path: Path) -> None:
    run = st.certify(robust(), ROWS, out=tmp_path / "run")
    assert recompute(run).holds
    result = recompute(tampered(tmp_path / "run", change))
    assert any(problem in found for found in result.problems), result.problems


def test_certificates_are_checked_without_torch(tmp_path: Path) -> None:
    st.certify(robust(), ROWS, *METHODS, out=tmp_path / "run")
    program = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "from stockade.cli.verify import command\n"
        f"print(command.main([{str(tmp_path / 'run')!r}], standalone_mode=False))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "24 certificates computed again: all hold\n0\n", done.stderr


def test_fresh_copies_confirm_what_holds_and_refute_what_does_not(tmp_path: Path) -> None:
    run = st.certify(robust(), ROWS + LONG, "ranmask-gap:most=500", "ranmask-exact", out=tmp_path / "run")
    again = resample(run, robust())
    assert again.checked == sum(one.status == "certified" for one in run.certificates)
    assert again.refuted == ()
    other = st.defend(WeightVictim({"good": -4.0, "bad": 4.0}), "ranmask", rate=0.7)
    assert len(resample(run, other).refuted) >= 5
