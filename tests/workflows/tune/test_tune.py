"""Searching options of a defense around victims whose best options are known."""

from __future__ import annotations

import json
import tempfile
import types
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.attacks.deepwordbug import DeepWordBug
from stockade.core.errors import DataError, ModelError, OptionError, RunError, StockadeError
from stockade.defenses.detector import fit_detector
from stockade.defenses.ranmask import RanMask
from stockade.experiment.progress import Runtime
from stockade.experiment.workspace import locked
from stockade.workflows.tune.run import run_trials
from stockade.workflows.tune.spec import TuneSpec
from stockade.workflows.tune.trials import Trial
from tests.toys import WeightVictim

DATA = [("a good film in all ways", "positive"), ("a bad film in all ways", "negative")] * 3
VICTIM = WeightVictim({"good": 2.0, "bad": -2.0, "film": 0.1}, bias=-0.05)
RATES = "rate=0.1..0.9"


def search(out: Path | None = None, **options: Any) -> st.TuneResult:
    settings = {"trials": 4, "limit": None, "budget": 60, "seed": 3, **options}
    defense, attacks = settings.pop("defense", "ranmask:copies=5"), settings.pop("attacks", "deepwordbug")
    return st.tune(settings.pop("model", VICTIM), settings.pop("data", DATA), defense, attacks, out=out, **settings)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> st.TuneResult:
    """A finished search over two options, which no test changes."""
    return search(tmp_path_factory.mktemp("tune") / "t", ranges=[RATES, "combine=vote|logit"])


def comparable(trials: Sequence[Trial]) -> list[Trial]:
    return [replace(trial, seconds=0.0) for trial in trials]


def test_a_search_finds_the_best_and_names_it(searched: st.TuneResult) -> None:
    trials = searched.trials
    assert [trial.number for trial in trials] == [0, 1, 2, 3]
    assert all(0.1 <= trial.options["rate"] <= 0.9 for trial in trials)  # type: ignore[operator]
    assert all(trial.objective == trial.robust and trial.n == len(DATA) for trial in trials)
    best = searched.best
    assert best is not None
    assert best.objective == max(trial.objective or 0 for trial in trials)
    chosen = f"combine={best.options['combine']},copies=5,rate={best.options['rate']}"
    assert searched.best_defense == f"ranmask:{chosen}"
    assert st.defend(VICTIM, searched.best_defense).labels == VICTIM.labels
    assert searched.complete
    assert searched.problem() is None
    opened = st.load(searched.folder)
    assert isinstance(opened, st.TuneResult)
    assert opened.trials == trials
    assert opened.best_defense == searched.best_defense
    assert json.loads((searched.folder / "summary.json").read_text()) == json.loads(json.dumps(opened.summary))
    assert [row["number"] for row in opened.rows()] == [0, 1, 2, 3]


def test_trials_depend_on_their_number_and_the_seed_alone(tmp_path: Path, searched: st.TuneResult) -> None:
    ranges = ["combine=vote|logit", RATES]
    search(tmp_path / "b", ranges=ranges, trials=2)
    parts = search(tmp_path / "b", ranges=ranges, trials=4, resume=True)
    assert comparable(parts.trials) == comparable(searched.trials)
    other = search(ranges=ranges, seed=4)
    assert [trial.options for trial in other.trials] != [trial.options for trial in searched.trials]


def test_a_defense_and_attacks_may_be_objects(searched: st.TuneResult) -> None:
    ranges = {"rate": "0.1..0.9", "combine": "vote|logit"}
    objects = search(defense=RanMask(copies=5), attacks=[DeepWordBug()], ranges=ranges)
    assert objects.best_defense == searched.best_defense
    assert comparable(objects.trials) == comparable(searched.trials)


def test_every_attack_counts() -> None:
    """Only misspelling fools this victim, whose word has no synonyms; with both a text must survive both."""
    victim = WeightVictim({"zzgood": 2.0}, bias=-1.0)
    data = [
        (f"we saw a zzgood film in the {place} town hall", "positive") for place in ("old", "new", "large", "small")
    ]
    options: dict[str, Any] = {
        "model": victim,
        "data": data,
        "defense": "ranmask:copies=20",
        "ranges": "rate=0.1|0.1",
        "trials": 1,
    }
    (alone,) = search(attacks="pwws", **options).trials
    both = search(attacks=["pwws", "deepwordbug"], **options, budget=None)
    assert both.summary["attacks"] == ["pwws", "deepwordbug"]
    assert (alone.clean, alone.robust) == (1.0, 1.0)
    assert (both.trials[0].clean, both.trials[0].robust) == (1.0, 0.0)


def test_an_interrupted_search_ends_like_an_unbroken_one(tmp_path: Path, searched: st.TuneResult) -> None:
    def stop(progress: st.Progress) -> None:
        assert (progress.unit, progress.total) == ("trials", 4)
        if progress.done == 2:
            raise KeyboardInterrupt

    ranges = [RATES, "combine=vote|logit"]
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "t", ranges=ranges, observer=stop)
    broken = st.load(tmp_path / "t")
    assert len(list(broken.records())) == 2
    assert not broken.complete
    assert "Not complete. Resume it with" in broken.document().to_markdown()
    with pytest.raises(RunError, match=r"made from Python objects \(data, model\)"):
        st.resume(tmp_path / "t")
    resumed = st.resume(tmp_path / "t", model=VICTIM, data=DATA)
    assert comparable(resumed.trials) == comparable(searched.trials)
    assert resumed.complete


def test_a_finished_search_is_opened_without_its_model(searched: st.TuneResult) -> None:
    assert st.resume(searched.folder).trials == searched.trials


def test_a_resumed_search_may_have_more_trials_and_then_wants_as_many(tmp_path: Path) -> None:
    search(tmp_path / "t", ranges=RATES, trials=1)
    search(tmp_path / "t", ranges=RATES, trials=3, resume=True, seconds=1e-9)
    opened = st.load(tmp_path / "t")
    assert not opened.complete, "the manifest says that three are wanted"
    assert len(st.resume(tmp_path / "t", model=VICTIM, data=DATA).trials) == 3


def test_two_searches_cannot_share_a_folder(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with locked(tmp_path / "t"), pytest.raises(RunError, match="Another process is working on"):
        search(tmp_path / "t", trials=1)


def test_no_trial_is_begun_after_the_time_limit(tmp_path: Path) -> None:
    tuned = search(tmp_path / "a", ranges=RATES, seconds=1e-9)
    assert tuned.trials == ()
    assert tuned.best is None
    assert tuned.problem() == "No trial could be rated; the first: there was no time for one"


def test_other_options_are_another_search(tmp_path: Path) -> None:
    search(tmp_path / "a", ranges=RATES, trials=1)
    with pytest.raises(RunError, match=r"ranges.rate was .*0.1\.\.0.9.*, now .*0.2\.\.0.9"):
        search(tmp_path / "a", ranges="rate=0.2..0.9", trials=2, resume=True)
    with pytest.raises(RunError, match="exists already"):
        search(tmp_path / "a", ranges=RATES, trials=2)
    with pytest.raises(RunError, match=r"data\.fingerprint was"):
        search(tmp_path / "a", ranges=RATES, data=DATA[1:], resume=True)
    with pytest.raises(RunError, match="max_words was 5000, now 9"):
        search(tmp_path / "a", ranges=RATES, max_words=9, resume=True)
    with pytest.raises(RunError, match="eot_samples was 3, now 5"):
        search(tmp_path / "a", ranges=RATES, eot_samples=5, resume=True)
    (tmp_path / "a/manifest.json").write_text('{"defense": ')
    with pytest.raises(RunError, match=r"manifest.json cannot be read .* start again with another folder"):
        search(tmp_path / "a", ranges=RATES, resume=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ranges": ["rate=0.5..1.5"]}, "share of words between 0 and 1"),
        ({"ranges": ["copies=2..9"]}, "copies of ranmask is fixed and has a range"),
        ({"ranges": [3]}, "expected texts such as rate=0.1..0.9"),
        ({"trials": 0}, "--trials is 0, expected a whole number from 1 up"),
        ({"workers": 0}, "--workers is 0, expected a whole number from 1 up"),
        ({"workers": 2}, "name them, or use one worker"),
        ({"sampler": "lucky"}, 'no sampler "lucky"'),
        ({"attacks": "pws"}, 'no attack "pws"'),
        ({"attacks": []}, "No attack was named"),
        ({"budget": 0}, "--budget is 0, expected a whole number from 1 up"),
        ({"eot_samples": 0}, "--eot-samples is 0, expected a whole number from 1 up"),
        ({"least_clean": 80}, "least-clean is 80.*, expected a share from 0 to 1"),
        ({"clean_weight": -1.0}, "clean-weight is -1.0, expected 0 or more"),
        ({"seconds": -1}, "--seconds is -1, expected more than 0"),
        (
            {"defense": "freelb"},
            "freelb with these options only changes how a model is trained, so each trial",
        ),
        ({"defense": "hull"}, "hull with these options only changes how a model is trained"),
    ],
)
def test_bad_options_leave_no_folder(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        search(tmp_path / "a", **options)
    assert not (tmp_path / "a").exists()


def test_what_every_trial_would_fail_for_is_an_error_before_the_first(tmp_path: Path) -> None:
    """Stored as failed trials, they would count as done when the search is resumed with the mistake mended."""
    with pytest.raises(DataError, match=r'no file "absent\.csv"'):
        search(tmp_path / "a", data="absent.csv")
    with pytest.raises(StockadeError, match="absent_module"):
        search(tmp_path / "a", model="python:absent_module:ask")
    with pytest.raises(ModelError, match="five"):
        search(tmp_path / "a", defense="five")
    with pytest.raises(ModelError, match="hull mixes the model's input vectors"):
        search(tmp_path / "a", defense="hull", ranges=["copies=4..8"])
    assert not (tmp_path / "a").exists()


def test_a_file_of_the_defense_must_not_change(tmp_path: Path) -> None:
    file, folder = tmp_path / "detector.json", tmp_path / "a"
    detector = fit_detector(VICTIM, [text for text, _ in DATA], ["a gooood film"], features=("disagreement",), copies=5)
    replace(detector, threshold=0.5).save(file)
    options: dict[str, Any] = {"defense": f"route:detector={file}", "ranges": ["combine=vote|logit"]}
    search(folder, **options, trials=1)
    replace(detector, threshold=0.9).save(file)
    with pytest.raises(RunError, match=r"another configuration: defense_files\.detector was"):
        search(folder, **options, trials=2, resume=True)
    replace(detector, threshold=0.5).save(file)
    assert len(search(folder, **options, trials=2, resume=True).trials) == 2


def test_a_spec_comes_back_from_its_manifest() -> None:
    spec = TuneSpec.of(
        model="builtin:sentiment-cnn", data="builtin:reviews", defense=RanMask(copies=7), attacks=["pwws", "list"],
        ranges=["rate=0.1234567..0.9", "curriculum=0.1|none"], least_clean=0.8,
    )  # fmt: skip
    assert spec.defense.fixed_options == {"copies": 7}
    again = TuneSpec.read(json.loads(json.dumps(spec.described())), Path("manifest.json"))
    assert again == spec


def test_a_gap_is_filled_with_what_was_known_then() -> None:
    """Trial 2 is there already: 0 and 1 are made as if it were not, so that a resumed search goes the same way."""
    rounds: list[tuple[list[int], list[int]]] = []

    class Chooser:
        def choose(self, numbers: Sequence[int], before: Sequence[Trial]) -> list[dict[str, Any]]:
            rounds.append((list(numbers), [trial.number for trial in before]))
            return [{} for _ in numbers]

    objective: Any = types.SimpleNamespace(rate=Trial, runtime=Runtime())
    made = list(run_trials(objective, Chooser(), [Trial(2, {})], 4))
    assert [trial.number for trial in made] == [0, 1, 3]
    assert rounds == [([0], []), ([1], [0]), ([3], [0, 1, 2])]


def test_a_trial_whose_model_fails_says_why() -> None:
    class Broken(WeightVictim):
        def predict_proba(self, inputs: Sequence[Any]) -> Any:
            raise RuntimeError("no power")

    tuned = search(model=Broken({}), trials=1, ranges=RATES)
    assert tuned.best is None
    assert "no power" in str(tuned.trials[0].error)
    assert "No trial could be rated; the first: " in str(tuned.problem())
    document = tuned.document().to_markdown()
    assert "No trial could be rated" in document
    assert "no power" in document


def test_clean_accuracy_that_no_trial_keeps() -> None:
    tuned = search(data=[*DATA, ("a good film", "negative")], ranges=RATES, trials=1, least_clean=1.0)
    assert tuned.best is None
    assert "None of 1 trials keeps the clean accuracy of --least-clean; the most is 0.857" in str(tuned.problem())


def test_the_report_shows_every_trial_and_both_plots(searched: st.TuneResult) -> None:
    page = searched.document().to_html()
    assert page.count("<svg") == 2
    assert f"--defense {searched.best_defense}" in page
    assert all(f"rate={trial.options['rate']}" in page for trial in searched.trials)
    markdown = searched.document().to_markdown()
    assert "4 trials of ranmask (combine in vote|logit, rate in 0.1..0.9, copies=5)" in markdown.replace("\\", "")
    assert "attacked by deepwordbug on 6 texts" in markdown
    assert "at most 60 queries per text; sampler random, seed 3. Objective: robust accuracy." in markdown
    assert "the mean of 3 of its answers, and of up to 24" in markdown


def test_verify_rates_the_best_again_and_notices_what_was_changed(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in DATA))
    tuned = search(tmp_path / "t", data=data, ranges=RATES, trials=2)
    verification = tuned.verify(VICTIM)
    assert verification.holds
    assert verification.checked == 2
    worse = WeightVictim({"good": 2.0, "bad": 2.0, "film": 0.1})  # wrong on every second text
    (clean, *_) = st.load(tmp_path / "t").verify(worse).problems
    assert clean.startswith(f"trial {tuned.best.number}: clean accuracy was 1.000, now 0.5")  # type: ignore[union-attr]
    changed = {**next(iter(tuned.rows())), "objective": 2.0}
    tuned.store.replace("trials", [("0", changed)])
    problems = st.load(tmp_path / "t").verify(VICTIM).problems
    assert "trial 0: the objective does not follow from the accuracies" in problems
    assert "summary.json: trials does not follow from the results" in problems


def _write_victim(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model and data that other processes can load by name."""
    (folder / "victim.py").write_text(
        "def ask(texts):\n    return [[0.2, 0.8] if 'good' in text else [0.8, 0.2] for text in texts]\n"
    )
    lines = "".join(f"{text},{label}\n" for text, label in DATA[:2])
    (folder / "data.csv").write_text("text,label\n" + lines)
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.slow
def test_several_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_victim(tmp_path, monkeypatch)
    labels = st.ModelOptions(labels=["negative", "positive"])
    trials = [
        search(model="python:victim:ask", data=tmp_path / "data.csv", ranges=RATES, trials=3, model_options=labels,
               workers=workers).trials
        for workers in (1, 2)
    ]  # fmt: skip
    assert comparable(trials[0]) == comparable(trials[1])


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_search_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_victim(tmp_path, monkeypatch)
    (tmp_path / "victim.py").write_text(
        "import multiprocessing, os\n"
        "def ask(texts):\n"
        "    if multiprocessing.parent_process() is not None:\n        os._exit(9)\n"
        "    return [[0.2, 0.8] for _ in texts]\n"
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    labels = st.ModelOptions(labels=["negative", "positive"])
    with pytest.raises(RunError, match=r"A worker process ended .* fewer --workers"):
        search(tmp_path / "t", model="python:victim:ask", data=tmp_path / "data.csv", ranges=RATES, trials=2,
               model_options=labels, workers=2)  # fmt: skip
    assert not list(scratch.glob("stockade-*"))
