"""`st.study("ensemble", …)` and `stockade study ensemble` from the first word to the last file."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import DataError, ModelError, OptionError, RunError
from stockade.experiment.store import ResultStore
from stockade.studies.ensemble.study import EnsembleResult
from stockade.studies.transferability.matrix import TransferMatrix
from tests.studies.ensemble.toys import (
    BERT,
    CHARACTERS,
    CNN,
    LSTM,
    NAMES,
    ROWS,
    SMALL,
    save_matrix,
    study,
    toy_matrix,
    victims,
)
from tests.toys import WeightVictim

TIMES = ("seconds", "model_seconds", "model_rows", "created", "run")
BUILTIN = ("sentiment-cnn", "sentiment-lstm", "sentiment-bert")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> EnsembleResult:
    """A study of four toys; not to be written to."""
    folder = tmp_path_factory.mktemp("ensemble")
    return study(victims(), ROWS, matrix=save_matrix(folder), out=folder / "made", **SMALL)


@pytest.fixture
def copied(finished: EnsembleResult, tmp_path: Path) -> Path:
    """A copy of the study's folder."""
    return shutil.copytree(finished.folder, tmp_path / "made")


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than everything else; one test looks at what is drawn."""
    for name in ("size_plot", "proxy_plot"):
        monkeypatch.setattr(f"stockade.studies.ensemble.page.{name}", lambda *numbers: "")


def again(folder: Path, finished: EnsembleResult, **options: Any) -> EnsembleResult:
    return study(victims(), ROWS, matrix=finished.spec.matrix, out=folder, **SMALL, **options)


def without_times(summary: Any) -> Any:
    """A summary without what differs from run to run."""
    if isinstance(summary, dict):
        return {name: without_times(value) for name, value in summary.items() if name not in TIMES}
    return [without_times(value) for value in summary] if isinstance(summary, list | tuple) else summary


def written(folder: Path) -> Any:
    return without_times(json.loads((folder / "summary.json").read_text()))


def name_of(*members: str) -> str:
    return "+".join(members)


def test_who_chooses_what(finished: EnsembleResult) -> None:
    chosen = {(entry.method, entry.size): (entry.members, entry.fitness) for entry in finished.selections}
    assert chosen == {
        ("single", 1): ((LSTM,), 0.45),
        ("genetic", 2): ((CNN, CHARACTERS), 0.725),
        ("greedy", 2): ((CNN, LSTM), 0.6),
        ("exhaustive", 2): ((CNN, CHARACTERS), 0.725),
        ("human", 2): ((LSTM, CHARACTERS), 0.575),
        ("genetic", 3): ((CNN, BERT, CHARACTERS), 0.75),
        ("greedy", 3): ((CNN, LSTM, CHARACTERS), 0.725),
        ("exhaustive", 3): ((CNN, BERT, CHARACTERS), 0.75),
    }
    assert [(bound.size, bound.upper_bound, bound.optimum) for bound in finished.numbers.bounds] == [
        (2, 0.725, 0.725),
        (3, 0.75, 0.75),
    ]
    assert finished.numbers.base_rate == pytest.approx((0.5 + 0.4 + 0.7 + 0.9) / 4)
    assert finished.numbers.pair_rate == pytest.approx((1.0 + 1.4 + 0.4 + 0.6) / 12, abs=1e-6)


def test_transfer_to_the_models_outside_by_hand(finished: EnsembleResult) -> None:
    """Misspelt, every text is negative to all but the characters, which are never fooled. A model that does not read
    the word is wrong anyway, and does not count where only texts count that it gets right before.
    """
    measured = finished.numbers.ensembles
    assert {name: (entry.transfer["value"], entry.clean_transfer["value"]) for name, entry in measured.items()} == {
        LSTM: (pytest.approx(2 / 3), pytest.approx(2 / 3)),  # CNN and BERT of three
        name_of(CNN, CHARACTERS): (1.0, 1.0),
        name_of(CNN, LSTM): (0.5, 0.5),  # BERT, not the characters
        name_of(LSTM, CHARACTERS): (1.0, 1.0),
        name_of(CNN, BERT, CHARACTERS): (1.0, 1.0),
        name_of(CNN, LSTM, CHARACTERS): (1.0, 1.0),
    }
    assert measured[LSTM].succeeded == measured[name_of(LSTM, CHARACTERS)].succeeded == 2  # neither knows "fun"
    assert measured[name_of(CNN, LSTM)].families == {"BERT": 1.0, "Character": 0.0}
    assert measured[name_of(CNN, CHARACTERS)].methods == ("genetic", "exhaustive")
    assert measured[name_of(CNN, CHARACTERS)].outside_fitness == pytest.approx((0.9 + 0.6) / 2)


def test_each_model_is_asked_once_about_texts_of_ensembles_it_is_not_in(finished: EnsembleResult) -> None:
    answers = {(row["target"], row["texts"]): row["ids"] for row in ResultStore(finished.folder).documents("answers")}
    outside = {
        (target, name) for name, members in finished.ensembles.items() for target in NAMES if target not in members
    }
    assert answers.keys() == outside | {(target, "clean") for target in NAMES}
    assert answers[LSTM, "clean"] == ["0", "1", "2"]
    assert answers[BERT, LSTM] == ["0", "1"]


def test_equal_ensembles_are_attacked_once_in_folders_of_their_own(finished: EnsembleResult) -> None:
    assert len(finished.selections) == 8
    folders = sorted(path.name for path in (finished.folder / "ensembles").iterdir())
    assert folders == sorted(finished.runs) == sorted({entry.ensemble for entry in finished.selections})
    run = st.load(finished.folder / "ensembles" / name_of(CNN, LSTM))
    assert isinstance(run, st.AttackResult)
    direct = st.attack(st.ensemble([victims()[CNN], victims()[LSTM]]), ROWS, "deepwordbug", similarity=False)
    assert run.examples == direct.examples


def test_what_is_written(finished: EnsembleResult) -> None:
    folder = finished.folder
    assert json.loads((folder / "summary.json").read_text()) == json.loads(
        json.dumps(finished.summary, allow_nan=False)
    )
    page, markdown = (folder / "report.html").read_text(), (folder / "report.md").read_text()
    assert page.count("<svg") == 2
    assert not re.search(r'(?:src|href)="https?:|@import|url\(["\']?http', page)
    assert "nan" not in re.sub(r"<svg.*?</svg>|finance", "", page, flags=re.DOTALL).lower()
    assert "The fitness is a proxy" in markdown
    assert "monotone and submodular" in markdown
    assert "| 2 |  | 0.7250 | 0.6000 | 0.7250 | 0.5750 | 0.7250 | 82.8 % |" in markdown
    assert "LSTM-WC-ELMo-1" in " ".join(finished.warnings)
    assert 'class="stockade"' in finished._repr_html_()


def test_what_a_result_can_do(finished: EnsembleResult, tmp_path: Path) -> None:
    result = st.load(finished.folder)
    assert isinstance(result, EnsembleResult)
    assert result.complete
    assert result.summary == finished.summary
    rows = list(result.rows())
    assert len(rows) == len(finished.ensembles) * len(ROWS)
    assert all(tuple(row) == result.layout.columns for row in rows)
    assert result.save(tmp_path / "kept").numbers == finished.numbers


def test_verify_checks_every_attack_the_fitness_and_the_summary(copied: Path) -> None:
    result = st.load(copied)
    assert isinstance(result, EnsembleResult)
    with pytest.raises(RunError, match="was a Python object"):
        result.verify()
    verification = result.verify(victims())
    assert verification.problems == ()
    attacked = len(list(result.records()))
    assert verification.checked == 8 + attacked
    with sqlite3.connect(copied / "run.sqlite") as store:
        store.execute("UPDATE results SET document = replace(document, '0.575', '0.576') WHERE part = 'searched'")
    problems = st.load(copied).verify(victims()).problems
    assert "human, 2 members: the fitness does not follow from the matrix" in problems
    assert "summary.json: selections does not follow from the results" in problems


@pytest.mark.usefixtures("no_plots")
def test_a_lost_attack_and_lost_answers_are_made_again(copied: Path, finished: EnsembleResult) -> None:
    shutil.rmtree(copied / "ensembles" / name_of(CNN, LSTM))
    with sqlite3.connect(copied / "run.sqlite") as store:
        store.execute("DELETE FROM results WHERE part = 'answers' AND id LIKE ?", (f"{BERT} %",))
    assert not st.load(copied).complete
    again(copied, finished, resume=True)
    assert written(copied) == written(finished.folder)


class Stop:
    """An observer that interrupts the job at its nth report, and remembers the parts."""

    def __init__(self, after: int) -> None:
        self.after, self.parts = after, list[str]()

    def __call__(self, progress: st.Progress) -> None:
        self.parts.append(progress.part)
        if len(self.parts) == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("after", "part"), [(2, f"{LSTM}: deepwordbug"), (25, "transfer"), (27, "transfer")])
@pytest.mark.usefixtures("no_plots")
def test_an_interrupted_study_ends_like_an_unbroken_one(
    tmp_path: Path, finished: EnsembleResult, after: int, part: str
) -> None:
    stop = Stop(after)
    with pytest.raises(KeyboardInterrupt):
        again(tmp_path / "made", finished, observer=stop)
    assert stop.parts[-1] == part
    assert not st.load(tmp_path / "made").complete
    result = again(tmp_path / "made", finished, resume=True)
    assert result.complete
    assert written(tmp_path / "made") == written(finished.folder)


@pytest.mark.usefixtures("no_plots")
def test_another_matrix_or_model_is_refused_on_resume(tmp_path: Path, finished: EnsembleResult) -> None:
    matrix = save_matrix(tmp_path)
    stop = Stop(2)
    with pytest.raises(KeyboardInterrupt):
        study(victims(), ROWS, matrix=matrix, out=tmp_path / "made", observer=stop, **SMALL)
    changed = TransferMatrix(NAMES, NAMES, toy_matrix().rates / 2)
    save_matrix(tmp_path, changed)
    with pytest.raises(RunError, match="another configuration: matrix was"):
        study(victims(), ROWS, matrix=matrix, out=tmp_path / "made", resume=True, **SMALL)


def test_a_matrix_alone_is_searched(tmp_path: Path) -> None:
    result = study(None, None, matrix=save_matrix(tmp_path), out=tmp_path / "made")
    assert result.complete
    assert not result.runs
    assert not result.numbers.ensembles
    assert max(entry.size for entry in result.selections) == 4
    assert "There are only 4 candidates" in " ".join(result.warnings)
    assert [claim.holds for claim in result.claims] == [None] * 5
    assert list(result.rows()) == []
    assert result.verify().holds
    assert "No ensemble was attacked" in (tmp_path / "made/report.md").read_text()
    resumed = st.resume(tmp_path / "made")
    assert resumed.summary == result.summary


def test_rates_that_were_not_measured_are_said(tmp_path: Path) -> None:
    rates = toy_matrix().rates.copy()
    np.fill_diagonal(rates, np.nan)
    matrix = save_matrix(tmp_path, TransferMatrix(NAMES, NAMES, rates))
    result = study(None, None, matrix=matrix, sizes=(2,), out=tmp_path / "made")
    assert result.numbers.base_rate is None
    assert "4 of 16 rates were not measured and count as 0." in result.warnings
    numbers = {claim.claim: claim.numbers for claim in result.claims}
    claim = "some ensembles transfer more often than a model does to another training of itself"
    assert numbers[claim] == "the matrix has no base rates"


@pytest.mark.usefixtures("no_plots")
def test_a_stand_in_takes_the_place_of_one_of_the_papers_models(tmp_path: Path) -> None:
    matrix = save_matrix(tmp_path)
    options = {**SMALL, "sizes": (3,), "methods": ("human",), "stand_ins": {"LSTM-WC-ELMo-1": BERT}}
    result = study(victims(), ROWS, matrix=matrix, out=tmp_path / "made", **options)
    assert [(entry.method, entry.members) for entry in result.selections] == [
        ("single", (LSTM,)),
        ("human", (LSTM, BERT, CHARACTERS)),
    ]
    assert result.warnings == ["Only 2 texts were attacked: read the intervals, the claims may hold or fail by chance."]


@pytest.mark.usefixtures("no_plots")
def test_few_texts_of_each_ensemble_are_sampled(tmp_path: Path) -> None:
    matrix = save_matrix(tmp_path)
    result = study(victims(), ROWS, matrix=matrix, out=tmp_path / "made", sampled=1, **SMALL)
    assert {entry.sampled for entry in result.numbers.ensembles.values()} == {1}


def save_transfer_study(folder: Path, models: dict[str, str], data: str | None) -> Path:
    """What a finished transfer study leaves behind, as far as others read it."""
    folder.mkdir()
    manifest = {
        "schema": 2,
        "kind": "study-transfer",
        "created": "",
        "versions": {},
        "platform": "",
        "spec": {"models": dict(list(models.items())[:1]), "data": data},
        "inputs": {},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    store = ResultStore(folder, writable=True)
    for position, (name, reference) in enumerate(models.items()):
        store.add("models", name, {"name": name, "reference": reference}, position=position)
    store.settle()
    store.close()
    rates = np.array([[0.6, 0.3, 0.3], [0.3, 0.6, 0.2], [0.2, 0.2, 0.3]])
    TransferMatrix(tuple(models), tuple(models), rates).write(folder / "matrix-pwws.csv")
    return folder


def test_models_and_data_are_those_of_the_transfer_study(tmp_path: Path) -> None:
    folder = save_transfer_study(
        tmp_path / "transfer", {name: f"builtin:{name}" for name in BUILTIN}, "builtin:reviews"
    )
    command = ["study", "ensemble", "--matrix", str(folder), "--limit", "3", "--size", "2", "--method", "greedy"]
    done = CliRunner().invoke(cli, [*command, "--out", str(tmp_path / "made")])
    assert done.exit_code == 0, done.output
    result = st.load(tmp_path / "made")
    assert isinstance(result, EnsembleResult)
    assert result.models == BUILTIN
    assert result.manifest.spec["data"] == "builtin:reviews"
    assert list(result.ensembles.values()) == [("sentiment-cnn",), ("sentiment-cnn", "sentiment-lstm")]
    run = result.runs["sentiment-cnn+sentiment-lstm"]
    assert run.manifest.spec["model"] == "ensemble:builtin:sentiment-cnn,builtin:sentiment-lstm"
    assert result.verify().holds


CODE = """
import math

def says(words):
    def predict(texts):
        odds = [3 * sum(word in words for word in text.split()) - 1 for text in texts]
        return [[1 - 1 / (1 + math.exp(-value)), 1 / (1 + math.exp(-value))] for value in odds]
    predict.labels = ["negative", "positive"]
    return predict

a, b, c = says(["good", "great", "fun"]), says(["good", "great"]), says(["good"])
"""


@pytest.mark.usefixtures("no_plots")
def test_a_transfer_study_that_was_run_is_read_and_its_code_needs_the_users_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "readers.py").write_text(CODE)
    (tmp_path / "data.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    monkeypatch.chdir(tmp_path)
    models = {name: f"python:readers:{name}" for name in "abc"}
    st.study("transfer", models, "data.csv", attacks="deepwordbug", importance=0, maps=0, out="transfer")
    options: dict[str, Any] = {**SMALL, "sizes": (2,), "methods": ("greedy",)}
    with pytest.raises(RunError, match=r"transfer names the model python:readers:a: that is code named by the folder"):
        study(None, None, matrix="transfer", out="made", **options)
    with pytest.raises(KeyboardInterrupt):
        study(None, None, matrix="transfer", trust=True, out="made", observer=Stop(2), **options)
    with pytest.raises(RunError, match=r"made runs python:readers:a: .*--trust-run"):
        st.resume("made")
    result = st.resume("made", trust=True)
    assert result.complete
    assert result.models == ("a", "b", "c")
    assert {len(members) for members in result.ensembles.values()} == {1, 2}
    with pytest.raises(RunError, match="runs python:readers"):
        st.load(Path("made", "ensembles", list(result.ensembles)[-1])).verify()


def test_the_data_alone_may_be_named_beside_a_transfer_study(tmp_path: Path) -> None:
    folder = save_transfer_study(tmp_path / "transfer", {name: f"builtin:{name}" for name in BUILTIN}, None)
    find = EnsembleResult.spec_type.find_inputs
    models = {name: f"builtin:{name}" for name in BUILTIN}
    assert find(["reviews.csv"], None, {"matrix": folder}) == (models, "reviews.csv")
    assert find(None, "reviews.csv", {"matrix": folder / "matrix-pwws.csv"}) == (models, "reviews.csv")
    assert find(["m"], "reviews.csv", {"matrix": folder}) == (["m"], "reviews.csv")
    assert find(None, None, {"matrix": folder, "search_only": True}) == ({}, None)
    with pytest.raises(OptionError, match="takes models and data, or neither to search only"):
        find(None, None, {"matrix": folder})  # its data were a Python object


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"matrix": None}, OptionError, "needs a transfer matrix: name a csv file or the folder of a transfer study"),
        ({"matrix": "gone.csv"}, DataError, "There is no transfer matrix gone.csv, expected a csv file"),
        ({"methods": ("guessing",)}, OptionError, 'There is no way to choose an ensemble "guessing"'),
        ({"stand_ins": ["BERT"]}, OptionError, "--stand-in BERT is not of the form NAME=VALUE"),
        (
            {"attacks": ["pwws", "deepwordbug"]},
            OptionError,
            r"takes one attack, that of its matrix \(found: pwws, deep",
        ),
        ({"mutation": 2.0}, OptionError, "--mutation is 2.0, expected a probability"),
        ({"elitism": 10}, OptionError, "--elitism is 10, expected fewer than the population of 10"),
        ({"sizes": (0,)}, OptionError, "--sizes"),
        ({"attack": "pwws"}, OptionError, 'There is no option of the study ensemble "attack"'),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], error: type[Exception], problem: str, tmp_path: Path) -> None:
    values = {"matrix": save_matrix(tmp_path), **SMALL, **options}
    with pytest.raises(error, match=problem) as raised:
        study(victims(), ROWS, out=tmp_path / "made", **values)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "made").exists()


def test_models_that_do_not_fit_the_matrix_or_each_other(tmp_path: Path) -> None:
    matrix = save_matrix(tmp_path)
    with pytest.raises(
        OptionError, match=r"at least two models that are sources of .* \(CNN-W-Random-1, .*found: a, b"
    ):
        study({"a": victims()[CNN], "b": victims()[LSTM]}, ROWS, matrix=matrix, **SMALL)
    other = WeightVictim({}, labels=("bad", "good"))
    numbered = [(text, int(label == "positive")) for text, label in ROWS]  # which fits the classes of both
    with pytest.raises(ModelError, match="CNN-W-Random-1 has negative, positive and BERT has bad, good"):
        study({**victims(), BERT: other}, numbered, matrix=matrix, **SMALL)
    with pytest.raises(OptionError, match="takes models and data"):
        study(victims(), None, matrix=matrix, **SMALL)


def test_a_transfer_study_that_is_not_finished_has_no_matrix(tmp_path: Path) -> None:
    folder = save_transfer_study(
        tmp_path / "transfer", {name: f"builtin:{name}" for name in BUILTIN}, "builtin:reviews"
    )
    (folder / "matrix-pwws.csv").unlink()
    with pytest.raises(DataError, match=r"has no matrix\.csv or matrix-pwws\.csv: finish the transfer study in it"):
        study(None, None, matrix=folder, limit=2)
