"""Trials on pre-made adversarial texts: every number by hand, with an attack beside them and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import DataError, OptionError, RunError
from stockade.workflows.tune.trials import Goal
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 2.0, "fine": 2.0, "bad": -2.0})
DATA = [("good film", "positive"), ("bad film", "negative"), ("fine film", "positive"), ("bad good film", "positive")]
MADE = [("good bda film", "negative"), ("fine film", "positive")]
SEARCH: dict[str, Any] = {"ranges": "rate=0.1|0.2", "trials": 2, "limit": None}


def tune(**options: Any) -> st.TuneResult:
    return st.tune(VICTIM, DATA, "ranmask:copies=200,draws=fixed", **{**SEARCH, **options})


def test_pre_made_texts_alone_decide_without_any_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the pre-made texts are right, and three of four clean ones; a tie goes to the wrong class."""

    def refuse(*_: object) -> None:
        raise AssertionError("nothing is attacked")

    monkeypatch.setattr("stockade.workflows.tune.objective.run_searches", refuse)
    result = tune(premade=[MADE])
    for trial in result.trials:
        assert (trial.n, trial.robust, trial.premade) == (4, None, 1 / 2)
        assert trial.clean in (3 / 4, 1)
        assert trial.objective == 1 / 2
    assert result.problem() is None
    page = result.document().to_markdown()
    assert "| trial | options | n | clean | pre-made | objective | seconds |" in page
    assert "accuracy on pre-made texts 0.5" in page
    assert "asked about 4 texts of" in page
    assert "and 2 pre-made texts of" in page
    assert result.verify(VICTIM).incomplete, "the data were Python objects"


def test_beside_an_attack_both_count() -> None:
    alone = tune(attacks="deepwordbug")
    both = tune(attacks="deepwordbug", premade=[MADE], premade_weight=0.5, clean_weight=0.1)
    for first, second in zip(alone.trials, both.trials, strict=True):
        assert (first.clean, first.robust) == (second.clean, second.robust)
        assert second.clean is not None
        assert second.robust is not None
        assert second.objective == pytest.approx(second.robust + 0.5 * 0.5 + 0.1 * second.clean)


def test_of_several_sets_the_mean_counts() -> None:
    result = tune(premade={"first": MADE, "second": [("good film", "positive")]})
    assert {trial.premade for trial in result.trials} == {(1 / 2 + 1) / 2}
    assert list(result.summary["premade"]) == ["first", "second"]


def test_the_sets_are_recorded_and_must_stay_the_same(tmp_path: Path) -> None:
    made, data = tmp_path / "made.csv", tmp_path / "data.csv"
    made.write_text("text,label\ngood bda film,negative\nfine film,positive\n")
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in DATA))
    options: dict[str, Any] = {**SEARCH, "premade": made, "out": tmp_path / "t"}
    result = st.tune(VICTIM, data, "ranmask:copies=200", **options)
    assert result.manifest.inputs["premade"]["made"]["size"] == 2
    assert result.verify(VICTIM).sentence == "2 results checked: all hold"
    assert st.load(tmp_path / "t").summary == result.summary
    made.write_text("text,label\nfine film,positive\n")
    with pytest.raises(RunError, match=r"premade\.made"):
        st.tune(VICTIM, data, "ranmask:copies=200", **{**options, "trials": 3}, resume=True)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({}, OptionError, "No attack was named, and no adversarial texts with --premade"),
        ({"premade": [MADE], "premade_weight": 0.0}, OptionError, "--premade-weight is 0.0, expected more than 0"),
        ({"premade": "absent.csv"}, DataError, 'There is no file "absent.csv"'),
        ({"premade": [[("good film", "sideways")]]}, DataError, "sideways"),
        ({"premade": [MADE], "train_preset": "fact"}, OptionError, "no texts to train on"),
    ],
)
def test_bad_options_leave_no_folder(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        tune(**options, out=tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_an_old_search_can_still_be_resumed(tmp_path: Path) -> None:
    """A manifest of before there were pre-made texts says nothing of them."""
    from stockade.workflows.tune.spec import TuneSpec

    spec = TuneSpec.of(model="m", data="d", defense="ranmask", attacks="pwws").described()
    old = {name: value for name, value in spec.items() if name not in ("premade", "premade_weight", "train_data")}
    assert TuneSpec.decisive(old) == TuneSpec.decisive(spec)


def test_what_was_not_measured_counts_for_nothing() -> None:
    goal = Goal(clean_weight=0.5, premade_weight=2.0)
    assert goal.value(0.8, None, 0.25) == pytest.approx(2 * 0.25 + 0.5 * 0.8)
    assert goal.value(0.8, 0.3) == pytest.approx(0.3 + 0.5 * 0.8)
