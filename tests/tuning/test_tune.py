"""Searching options of a defense around victims whose best options are known."""

from __future__ import annotations

import json
import sys
import tempfile
import types
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.cli import main as command_line
from stockade.core.errors import DataError, ModelError, OptionError, ResourceMissing, RunError, StockadeError
from stockade.defenses.detector import fit_detector
from stockade.tuning import attacking
from stockade.tuning.page import render_page, write_page
from stockade.tuning.running import Tuned, _run
from stockade.tuning.samplers import OptunaSampler, make_sampler
from stockade.tuning.space import Choices, Numbers
from stockade.tuning.trials import FILE_NAME, Goal, Trial, TrialFile, best_of, reference
from tests.toys import WeightVictim

DATA = [("a good film in all ways", "positive"), ("a bad film in all ways", "negative")] * 3
VICTIM = WeightVictim({"good": 2.0, "bad": -2.0, "film": 0.1}, bias=-0.05)


def search(out: Path, **options: Any) -> Tuned:
    settings = {"attack": "deepwordbug", "trials": 4, "limit": None, "budget": 60, "seed": 3, **options}
    return st.tune(VICTIM, DATA, settings.pop("defense", "ranmask:copies=5"), out=out, **settings)


def test_a_search_finds_the_best_and_names_it(tmp_path: Path) -> None:
    tuned = search(tmp_path / "t", ranges=["rate=0.1..0.9"])
    assert [trial.number for trial in tuned.trials] == [0, 1, 2, 3]
    assert all(0.1 <= trial.options["rate"] <= 0.9 for trial in tuned.trials)  # type: ignore[operator]
    assert all(trial.objective == trial.robust and trial.n == len(DATA) for trial in tuned.trials)
    assert tuned.best is not None
    assert tuned.best.objective == max(trial.objective or 0 for trial in tuned.trials)
    assert tuned.best_defense == f"ranmask:copies=5,rate={tuned.best.options['rate']}"


def test_trials_depend_on_their_number_and_the_seed_alone(tmp_path: Path) -> None:
    whole = search(tmp_path / "a", ranges=["rate=0.1..0.9", "combine=vote|logit"], trials=5)
    search(tmp_path / "b", ranges=["combine=vote|logit", "rate=0.1..0.9"], trials=2)
    parts = search(tmp_path / "b", ranges=["combine=vote|logit", "rate=0.1..0.9"], trials=5, resume=True)
    assert [_told(trial) for trial in parts.trials] == [_told(trial) for trial in whole.trials]
    other = search(tmp_path / "c", ranges=["rate=0.1..0.9", "combine=vote|logit"], seed=4, trials=5)
    assert [trial.options for trial in other.trials] != [trial.options for trial in whole.trials]


def _told(trial: Trial) -> tuple[Any, ...]:
    return trial.number, trial.options, trial.clean, trial.robust, trial.objective


def test_a_line_that_a_crash_cut_short_is_tried_again(tmp_path: Path) -> None:
    whole = search(tmp_path / "a", ranges=["rate=0.1..0.9"], trials=3)
    file = tmp_path / "a" / FILE_NAME
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:2]) + lines[2][:20])
    again = search(tmp_path / "a", ranges=["rate=0.1..0.9"], trials=3, resume=True)
    assert [_told(trial) for trial in again.trials] == [_told(trial) for trial in whole.trials]
    file.write_text(lines[0][:20] + "\n" + lines[1])
    with pytest.raises(RunError, match="line 1 is no trial"):
        TrialFile(tmp_path / "a").read()


def test_no_trial_is_begun_after_the_time_box(tmp_path: Path) -> None:
    tuned = search(tmp_path / "a", ranges=["rate=0.1..0.9"], seconds=1e-9)
    assert tuned.trials == ()
    assert tuned.best is None


def test_other_options_are_another_search(tmp_path: Path) -> None:
    search(tmp_path / "a", ranges=["rate=0.1..0.9"], trials=1)
    with pytest.raises(RunError, match=r"ranges.rate was .*0.1\.\.0.9.*, now .*0.2\.\.0.9"):
        search(tmp_path / "a", ranges=["rate=0.2..0.9"], trials=2, resume=True)
    with pytest.raises(RunError, match="exists already"):
        search(tmp_path / "a", ranges=["rate=0.1..0.9"], trials=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ranges": ["rate=0.5..1.5"]}, "share of words between 0 and 1"),
        ({"ranges": ["copies=2..9"]}, "copies of ranmask is fixed and has a range"),
        ({"trials": 0}, "at least 1"),
        ({"workers": 2}, "name them, or use one worker"),
        ({"sampler": "lucky"}, 'no sampler "lucky"'),
        ({"attack": "pws"}, 'no attack "pws"'),
        ({"budget": 0}, "budget must be at least 1"),
        ({"expectation": 0}, "--expectation is 0, expected a whole number from 1 up"),
        ({"least_clean": 80}, "least-clean is 80, expected a share from 0 to 1"),
        ({"clean_weight": -1.0}, "clean-weight is -1.0, expected 0 or more"),
    ],
)
def test_bad_options_leave_no_folder(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        search(tmp_path / "a", **options)
    assert not (tmp_path / "a").exists()


def test_what_every_trial_would_fail_for_is_told_before_the_first(tmp_path: Path) -> None:
    """Kept as failed trials, they would count as done when the search is resumed with the mistake mended."""
    with pytest.raises(DataError, match=r'no file "absent\.csv"'):
        st.tune(VICTIM, "absent.csv", "ranmask", attack="deepwordbug", out=tmp_path / "a")
    with pytest.raises(StockadeError, match="absent-model"):
        st.tune("./absent-model", DATA, "ranmask", attack="deepwordbug", out=tmp_path / "a")
    with pytest.raises(ModelError, match="five"):
        search(tmp_path / "a", defense="five")
    assert not (tmp_path / "a").exists()


def test_a_search_goes_on_with_the_same_model_and_texts_only(tmp_path: Path) -> None:
    search(tmp_path / "a", trials=1)
    with pytest.raises(RunError, match="another search: data_fingerprint"):
        st.tune(VICTIM, DATA[1:], "ranmask:copies=5", attack="deepwordbug", trials=1, limit=None, budget=60, seed=3,
                out=tmp_path / "a", resume=True)  # fmt: skip
    with pytest.raises(RunError, match="max_words was 5000, now 9"):
        search(tmp_path / "a", trials=2, max_words=9, resume=True)
    with pytest.raises(RunError, match="expectation was 3, now 5"):
        search(tmp_path / "a", trials=2, expectation=5, resume=True)
    (tmp_path / "a" / "tune.json").write_text('{"defense": ')
    for options in ({"trials": 1}, {"trials": 2}):
        with pytest.raises(RunError, match=r"tune.json cannot be read .* start again with another --out"):
            search(tmp_path / "a", resume=True, **options)


def test_a_search_of_an_older_version_is_not_gone_on_with(tmp_path: Path) -> None:
    """Its trials attacked in one way only: new ones would lose to them."""
    search(tmp_path / "a", trials=1)
    path = tmp_path / "a" / "tune.json"
    config = json.loads(path.read_text())
    del config["expectation"]
    path.write_text(json.dumps({**config, "schema": 2}))
    with pytest.raises(RunError, match=r"another version of Stockade.*format 2, expected 3.*another --out"):
        search(tmp_path / "a", trials=2, resume=True)


def test_a_file_of_the_defense_must_not_change(tmp_path: Path) -> None:
    file, folder = tmp_path / "detector.json", tmp_path / "a"
    detector = fit_detector(VICTIM, [text for text, _ in DATA], ["a gooood film"], rate=0.4, copies=5)
    replace(detector, threshold=0.5).save(file)
    options: dict[str, Any] = {"defense": f"route:detector={file}", "ranges": ["combine=vote|logit"]}
    search(folder, **options, trials=1)
    replace(detector, threshold=0.9).save(file)
    with pytest.raises(RunError, match=r"a file that .* has changed: defense_files.detector was .* old file back"):
        search(folder, **options, trials=2, resume=True)
    replace(detector, threshold=0.5).save(file)
    assert len(search(folder, **options, trials=2, resume=True).trials) == 2


def test_a_defense_that_answers_only_with_some_options_can_be_searched_by_them(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="hull with these options only changes how a model is trained"):
        search(tmp_path / "a", defense="hull")
    with pytest.raises(ModelError, match="hull mixes the model's input vectors"):
        search(tmp_path / "a", defense="hull", ranges=["copies=4..8"])


def test_a_crash_at_the_start_of_a_resumed_search_costs_no_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(tmp_path / "a", trials=2)
    before = TrialFile(tmp_path / "a").read()

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stockade.core.files.os.fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        TrialFile(tmp_path / "a").begin()
    assert TrialFile(tmp_path / "a").read() == before


def test_a_worker_that_dies_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        st.tune("python:victim:ask", tmp_path / "data.csv", "ranmask:copies=3", attack="deepwordbug", workers=2,
                ranges=["rate=0.2..0.8"], trials=2, model_options=labels, out=tmp_path / "t")  # fmt: skip
    assert not list(scratch.glob("stockade-*"))


def test_optuna_is_asked_for_by_name_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ResourceMissing, match=r'pip install "stockade\[tune\]"'):
        make_sampler("tpe", {"rate": Numbers(0.1, 0.9)}, 0)


def test_optuna_proposes_from_what_was_found() -> None:
    """With the real package: proposals lie in the space, and the same trials give the same proposals."""
    optuna = pytest.importorskip("optuna")
    space = {"rate": Numbers(0.1, 0.9), "how": Choices(("a", "b"))}
    before = [Trial(n, {"rate": 0.1 + n / 20, "how": "ab"[n % 2]}, 9, 1.0, n / 20, n / 20) for n in range(12)]
    sampler = OptunaSampler(space, 0, "TPESampler", optuna)
    chosen = sampler.choose([12, 13], before)
    assert all(0.1 <= one["rate"] <= 0.9 and one["how"] in "ab" for one in chosen)  # type: ignore[operator]
    assert sampler.choose([12, 13], before) == chosen
    assert all(len(str(one["rate"])) <= len("0.1234") for one in chosen)


def test_optuna_is_told_the_finished_trials_and_asked_in_our_terms() -> None:
    """With a stand-in: what reaches the library."""
    told: list[Any] = []

    class Study:
        def add_trial(self, trial: Any) -> None:
            told.append(trial)

        def ask(self, distributions: dict[str, Any]) -> Any:
            return types.SimpleNamespace(params={name: kind[1] for name, kind in distributions.items()})

    fake = types.SimpleNamespace(
        logging=types.SimpleNamespace(set_verbosity=lambda level: None, ERROR=0),
        samplers=types.SimpleNamespace(TPESampler=lambda seed: ("tpe", seed)),
        create_study=lambda direction, sampler: told.append((direction, sampler)) or Study(),
        trial=types.SimpleNamespace(create_trial=lambda **content: content),
        distributions=types.SimpleNamespace(
            FloatDistribution=lambda low, high, log: ("float", low, high, log),
            IntDistribution=lambda low, high, log: ("int", low, high, log),
            CategoricalDistribution=lambda values: ("choice", values[0]),
        ),
    )
    space = {
        "rate": Numbers(0.1, 0.9),
        "copies": Numbers(2, 8, whole=True, logarithmic=True),
        "how": Choices(("a", "b")),
    }
    before = [
        Trial(0, {"rate": 0.5, "copies": 4, "how": "b"}, 5, 1.0, 0.4, 0.4),
        Trial(1, {"rate": 0.2, "copies": 4, "how": "b"}, error="broken"),
    ]
    chosen = OptunaSampler(space, 1, "TPESampler", fake).choose([2, 3], before)
    assert chosen == [{"copies": 2, "how": "a", "rate": 0.1}] * 2
    assert told[0][0] == "maximize"
    assert told[0][1][0] == "tpe"
    assert [one["value"] for one in told[1:]] == [0.4]
    assert told[1]["params"] == {"rate": 0.5, "copies": 4, "how": "b"}
    assert told[1]["distributions"]["copies"] == ("int", 2, 8, True)


def test_goals() -> None:
    assert Goal().value(0.9, 0.4) == 0.4
    assert Goal(clean_weight=0.5).value(0.9, 0.4) == pytest.approx(0.85)
    strict = Goal(least_clean=0.8)
    assert strict.value(0.8, 0.1) == 0.1
    assert strict.value(0.5, 0.5) < strict.value(0.7, 0.0) < strict.value(0.8, 0.0)


def test_the_first_of_equals_is_the_best() -> None:
    trials = [Trial(2, {}, 1, 1.0, 0.5, 0.5), Trial(1, {}, 1, 1.0, 0.5, 0.5), Trial(0, {}, error="no")]
    assert best_of(trials) == trials[1]
    assert best_of(trials[2:]) is None
    assert best_of([Trial(0, {}, 1, 0.7, 0.5, Goal(least_clean=0.8).value(0.7, 0.5))]) is None
    assert best_of([Trial(0, {}, 1, 0.8, 0.5, 0.5), *trials]) == trials[1], "with more clean accuracy"


def test_references_can_be_pasted() -> None:
    assert reference("ranmask", "paper", {"copies": 5}, {"rate": 0.25}) == "ranmask:copies=5,rate=0.25"
    assert reference("ranmask", "imdb", {}, {"curriculum": None}) == "ranmask@imdb:curriculum=none"
    assert reference("ranmask", "paper", {}, {}) == "ranmask"


def test_a_trial_whose_model_fails_is_told(tmp_path: Path) -> None:
    class Broken(WeightVictim):
        def predict_proba(self, inputs: Sequence[Any]) -> Any:
            raise RuntimeError("no power")

    tuned = st.tune(Broken({}), DATA, "ranmask:copies=2", attack="deepwordbug", ranges=["rate=0.1..0.9"], trials=1,
                    out=tmp_path / "t", limit=2)  # fmt: skip
    assert tuned.best is None
    assert "no power" in str(tuned.trials[0].error)
    assert "No trial could be rated" in render_page(tuned)


def test_the_page_shows_every_trial_and_both_plots(tmp_path: Path) -> None:
    tuned = search(tmp_path / "a", ranges=["rate=0.1..0.9", "combine=vote|logit"])
    page = write_page(tuned).read_text()
    assert page.count("<svg") == 2
    assert f"--defense {tuned.best_defense}" in page
    assert all(f"rate={trial.options['rate']}" in page for trial in tuned.trials)
    assert render_page(tuned) == page
    assert "4 trials of ranmask (combine in vote|logit, rate in 0.1..0.9, copies=5)" in page
    assert "attacked by deepwordbug on 6 texts" in page
    assert "at most 60 queries per text; sampler random, seed 3. Objective: robust accuracy." in page
    assert "the mean of 3 of its answers,\nand of up to 24" in page


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _write_victim(tmp_path, monkeypatch)
    options = "--labels negative,positive --defense ranmask:copies=3 --attack deepwordbug --range rate=0.2..0.6"
    command = ["stockade", "tune", "python:victim:ask", "data.csv", *options.split(), "--trials", "2", "--out", "t"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    out, errors = capsys.readouterr()
    assert (ended.value.code, errors) == (0, "")
    assert [line.split(":")[0] for line in out.splitlines()[:2]] == ["trial 0", "trial 1"]
    assert out.splitlines()[-1].startswith("--defense ranmask:copies=3,rate=0.")
    assert json.loads(Path("t/tune.json").read_text())["ranges"] == {"rate": "0.2..0.6"}
    assert Path("t/tune.html").is_file()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--least-clean 1", "None of 1 trials keeps the clean accuracy of --least-clean; the most is 0."),
        ("--seconds -1", "--seconds is -1.0, expected more than 0."),
        ("", "MODEL and DATA are missing. A search is gone on with by the same command with --resume --out FOLDER."),
    ],
)
def test_what_the_command_cannot_do_is_one_sentence(
    more: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _write_victim(tmp_path, monkeypatch)
    (tmp_path / "data.csv").write_text("text,label\na good film,negative\na bad film,positive\ngood,positive\n")
    options = "--labels negative,positive --defense ranmask:copies=3 --attack deepwordbug --range rate=0.2..0.6"
    inputs = ["python:victim:ask", "data.csv"] if more else ["--resume"]
    command = ["stockade", "tune", *inputs, *options.split(), *more.split(), "--trials", "1", "--out", "t"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_several_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_victim(tmp_path, monkeypatch)
    data, labels = tmp_path / "data.csv", st.ModelOptions(labels=["negative", "positive"])

    def found(workers: int) -> list[tuple[Any, ...]]:
        options: dict[str, Any] = {"trials": 3, "workers": workers, "out": tmp_path / str(workers)}
        tuned = st.tune("python:victim:ask", data, "ranmask:copies=3", attack="deepwordbug", ranges=["rate=0.2..0.8"],
                        model_options=labels, **options)  # fmt: skip
        return [_told(trial) for trial in tuned.trials]

    assert found(2) == found(1)


def _write_victim(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model and data that other processes can load by name."""
    (folder / "victim.py").write_text(
        "def ask(texts):\n    return [[0.2, 0.8] if 'good' in text else [0.8, 0.2] for text in texts]\n"
    )
    lines = "".join(f"{text},{label}\n" for text, label in DATA[:2])
    (folder / "data.csv").write_text("text,label\n" + lines)
    monkeypatch.syspath_prepend(str(folder))


def test_every_trial_draws_apart_whatever_round_it_is_in() -> None:
    """Trials of one round have the options that each has alone, and no two have the same."""
    sampler = make_sampler("random", {"rate": Numbers(0.1, 0.9), "copies": Numbers(2, 90, whole=True)}, 3)
    together = sampler.choose([0, 1, 2, 3], [])
    done = [Trial(number, options, 1, 1.0, 0.5, 0.5) for number, options in enumerate(together)]
    assert [sampler.choose([number], done[:number])[0] for number in range(4)] == together
    assert sampler.choose([2, 3], done[:2]) == together[2:]
    assert len({tuple(options.values()) for options in together}) == 4


def test_an_objective_of_zero_is_better_than_one_below() -> None:
    """Options that cost too many clean texts have an objective below zero."""
    goal = Goal(least_clean=0.8)
    costly, kept = (Trial(at, {}, 9, clean, 0.0, goal.value(clean, 0.0)) for at, clean in enumerate((0.5, 0.9)))
    assert best_of([costly, kept]) == kept


def test_optunas_seed_is_of_the_search_and_the_round() -> None:
    seeds: list[int] = []

    class Study:
        def ask(self, distributions: dict[str, Any]) -> Any:
            return types.SimpleNamespace(params={})

    fake = types.SimpleNamespace(
        logging=types.SimpleNamespace(set_verbosity=lambda level: None, ERROR=0),
        samplers=types.SimpleNamespace(TPESampler=lambda seed: seeds.append(seed)),
        create_study=lambda direction, sampler: Study(),
        distributions=types.SimpleNamespace(FloatDistribution=lambda low, high, log: None),
    )
    for seed, first in ((1, 0), (1, 0), (1, 2), (2, 0)):
        OptunaSampler({"rate": Numbers(0.1, 0.9)}, seed, "TPESampler", fake).choose([first, first + 1], [])
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 3


def test_a_trial_attacks_as_the_search_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed options, seed, budget and texts are the search's; searches see the bare model, then the twin of votes."""
    seen: list[Any] = []
    attack = attacking.run_attacks

    def noting(model: Any, examples: Any, settings: Any, folder: Path, **options: Any) -> Any:
        seen.append((model, examples, settings, options["through"]))
        return attack(model, examples, settings, folder, **options)

    monkeypatch.setattr(attacking, "run_attacks", noting)
    chosen = {"defense": "ranmask:copies=5,combine=vote", "ranges": ["rate=0.1..0.9"], "expectation": 1}
    search(tmp_path / "t", **chosen, trials=1, limit=4, budget=33, max_words=70, concurrency=5, batch_tokens=900)
    (model, examples, settings, bare), (_, _, _, twin) = seen
    assert (model.seed, model.defense.copies, model.defense.combine) == (3, 5, "vote")
    assert bare is VICTIM
    assert twin.defense == replace(model.defense, combine="probability")
    assert (settings.seed, settings.budget, examples.size) == (3, 33, 4)
    assert (settings.max_words, settings.concurrency, settings.batch_tokens) == (70, 5, 900)


def test_a_gap_is_filled_with_what_was_known_then() -> None:
    """Trial 2 is there already: 0 and 1 are made as if it were not, so that a resumed search goes the same way."""
    known: list[tuple[list[int], list[int]]] = []

    class Chooser:
        def choose(self, numbers: Sequence[int], before: Sequence[Trial]) -> list[dict[str, Any]]:
            known.append((list(numbers), [trial.number for trial in before]))
            return [{} for _ in numbers]

    judge: Any = types.SimpleNamespace(try_options=Trial)
    made = list(_run(judge, Chooser(), [Trial(2, {})], 4, 1, None))
    assert [trial.number for trial in made] == [0, 1, 3]
    assert known == [([0], []), ([1], [0]), ([3], [0, 1, 2])]


def test_what_only_trains_is_not_tuned(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="freelb changes how a model is trained"):
        search(tmp_path / "a", defense="freelb")
    assert not (tmp_path / "a").exists()
