"""Defenses that act in training: each trial trains a model, an interrupted one goes on, the best one is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import DataError, ModelError, OptionError
from stockade.defenses.chain import load_defenses
from stockade.experiment.progress import Progress
from tests.toys import WeightVictim
from tests.training.tiny import OPTIONS, rows, tiny_origin, train_tiny, without_plots

SMALL: dict[str, Any] = {"epochs": 1, "batch": 16, "learning_rate": 0.01}
FACT = "fact:similarity=off,match_pos=false,total_alternatives=2"
SEARCH: dict[str, Any] = {"ranges": "perturb_words=1|2", "trials": 2, "limit": None, "train_options": SMALL}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("start") / "m"
    with pytest.MonkeyPatch.context() as patched:
        without_plots(patched)
        train_tiny(
            out, rows(120), origin=tiny_origin(dropout=0.0), options=OPTIONS.changed(epochs=4, learning_rate=0.02)
        )
    return out


@pytest.fixture(autouse=True)
def plain_report(monkeypatch: pytest.MonkeyPatch) -> None:
    without_plots(monkeypatch)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"train": rows(48, seed=1), "dev": rows(20, seed=2), "made": rows(10, seed=3)}
    for name, lines in texts.items():
        (tmp_path / f"{name}.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in lines))
    return {name: tmp_path / f"{name}.csv" for name in texts}


def test_each_trial_trains_and_the_best_model_is_kept(model: Path, files: dict[str, Path], tmp_path: Path) -> None:
    result = st.tune(
        model, files["dev"], FACT, premade=files["made"], train_data=files["train"], out=tmp_path / "t", **SEARCH
    )
    assert [trial.error for trial in result.trials] == [None, None]
    best = result.best_model
    assert best is not None
    assert [path.name for path in (tmp_path / "t/trials").iterdir()] == [best.name]
    (defense,) = load_defenses(best)
    assert result.best is not None
    assert (defense.name, defense.options["perturb_words"]) == ("fact", result.best.options["perturb_words"])
    evaluated = st.evaluate(best, files["dev"], premade=files["made"]).row()
    assert evaluated.clean.accuracy.value == result.best.clean
    assert evaluated.premade["made"].accuracy.value == result.best.premade
    assert result.summary["best_model"] == f"trials/{best.name}"
    assert str(best) in result.document().to_markdown()
    assert result.verify().sentence == "2 results checked: all hold"
    best.rename(tmp_path / "gone")
    assert "their model is not in" in result.verify().incomplete[0]


def test_a_search_that_is_stopped_in_a_training_ends_as_an_unbroken_one(
    model: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    options: dict[str, Any] = {**SEARCH, "premade": files["made"], "train_data": files["train"]}
    options["train_options"] = {**SMALL, "epochs": 2}
    whole = st.tune(model, files["dev"], FACT, **options, out=tmp_path / "whole")

    def stop(progress: Progress) -> None:
        if progress.part.startswith("trial 1: ") and "epoch 2" in (progress.note or ""):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        st.tune(model, files["dev"], FACT, **options, out=tmp_path / "stopped", observer=stop)
    assert [trial.number for trial in st.load(tmp_path / "stopped").records()] == [0]
    assert (tmp_path / "stopped/trials/1/checkpoint").is_dir()
    resumed = st.resume(tmp_path / "stopped")
    for before, after in zip(whole.trials, resumed.trials, strict=True):
        assert (before.options, before.clean, before.premade) == (after.options, after.clean, after.premade)


def test_attacks_also_bring_what_fools_the_model_before_it_was_trained(
    model: Path, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stockade.workflows.tune.objective import Attacker

    seen: list[tuple[str, ...]] = []
    views = Attacker._views

    def noted(self: Attacker, classifier: Any) -> Any:
        queried = views(self, classifier)
        seen.append(tuple(queried))
        return queried

    monkeypatch.setattr(Attacker, "_views", noted)
    options: dict[str, Any] = {**SEARCH, "trials": 1, "limit": 4}
    st.tune(model, files["dev"], FACT, "deepwordbug", train_data=files["train"], **options)
    assert seen == [("source", "direct")]


def test_what_no_training_could_do_without_is_an_error_before_the_first(
    model: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    def tune(victim: object, defense: str, **options: Any) -> None:
        every: dict[str, Any] = {**SEARCH, "premade": files["made"], "train_data": files["train"], **options}
        st.tune(victim, files["dev"], defense, **every, out=tmp_path / "t")

    with pytest.raises(OptionError, match="only changes how a model is trained, so each trial must train one"):
        tune(model, FACT, train_data=None, train_options=None)
    with pytest.raises(OptionError, match="five does not change how a model is trained: leave out --train-data"):
        tune(model, "five", ranges="samples=3|4")
    with pytest.raises(ModelError, match="has no weights to train"):
        tune(WeightVictim({"good": 1.0, "bad": -1.0}), FACT)
    with pytest.raises(DataError, match=r'There is no file "absent\.csv"'):
        tune(model, FACT, train_data="absent.csv")
    with pytest.raises(OptionError, match="training option"):
        tune(model, FACT, train_options={"epoch": 1})
    other = tmp_path / "other.csv"
    other.write_text("text,label\na,up\nb,down\n")
    with pytest.raises(DataError, match="up"):
        tune(model, FACT, train_data=other)
    other.write_text("text,label\na good film,positive\nb,positive\n")
    with pytest.raises(DataError, match="a classifier needs texts of at least two classes"):
        tune(model, FACT, train_data=other)
    assert not (tmp_path / "t").exists()
