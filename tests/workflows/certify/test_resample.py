"""What the manifest says of a method is checked, and fresh copies of the model refute what is not true of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.files import write_json
from stockade.workflows.certify.result import CertifyResult
from stockade.workflows.certify.verify import recompute, resample
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
LONG = "good fun and more good fun for all of us and many more good things " * 3


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"sound": True}, "ranmask-legacy: recorded as sound, and it is not sound"),
        ({"threat": "any change of up to d words"}, 'recorded to be against "any change of up to d words"'),
    ],
)
def test_what_a_radius_means_cannot_be_recorded_otherwise(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.7)
    st.certify(robust, [(LONG, "positive")], "ranmask-legacy:most=200,selection=50", out=tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["spec"]["methods"][0].update(change)
    write_json(path, manifest)
    result = st.load(tmp_path / "run")
    assert isinstance(result, CertifyResult)
    result.write_summary()
    assert any(problem in sentence for sentence in recompute(result).problems)


def test_fresh_copies_of_another_model_refute_what_was_sampled() -> None:
    result = st.certify(st.defend(VICTIM, "ranmask", rate=0.7), [(LONG, "positive")], "ranmask-gap:most=500")
    assert result.certificates[0].status == "certified"
    assert resample(result, st.defend(VICTIM, "ranmask", rate=0.7)).refuted == ()
    other = st.defend(WeightVictim({"good": -4.0}), "ranmask", rate=0.7)
    (problem,) = resample(result, other).refuted
    assert "fresh copies show at most" in problem


def test_a_certificate_without_alpha_may_never_be_refuted() -> None:
    """Six sampled ones of which half may be wrong do not excuse one for which every copy was asked."""
    rows = [(f"{LONG} {number}", "positive") for number in range(6)] + [("a pivot film", "positive")]
    weights = {"good": 4.0, "pivot": 1.0}
    robust = st.defend(WeightVictim(weights, bias=0.1), "ranmask", rate=0.3)
    result = st.certify(robust, rows, "ranmask-gap:alpha=0.5,most=200")
    other = st.defend(WeightVictim({**weights, "pivot": -1.0}, bias=0.1), "ranmask", rate=0.3)
    resampled = resample(result, other)
    assert (len(resampled.refuted), resampled.certain) == (1, 1)
    assert resampled.allowed == 3
    assert not resampled.holds
