"""`st.study("transfer", …)` and `stockade study transfer` from the first word to the last file, on models by hand."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import DataError, ModelError, OptionError, RunError
from stockade.studies.transfer.study import TransferResult
from stockade.studies.transferability.matrix import TransferMatrix
from tests.studies.transfer.toys import (
    CLEAN_RATES,
    MODULE,
    RATES,
    REFERENCES,
    ROWS,
    SECOND,
    Mortal,
    models,
    use_few_synonyms,
    victim,
)
from tests.toys import RandomVictim, WeightVictim

TIMES = ("seconds", "model_seconds", "created", "run")


@pytest.fixture(scope="module", autouse=True)
def _few_synonyms() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_few_synonyms(patch)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> TransferResult:
    """A study of the toys; not to be written to."""
    return study(models(), second={"a": victim("a2")}, out=tmp_path_factory.mktemp("transfer") / "made")


@pytest.fixture
def copied(finished: TransferResult, tmp_path: Path) -> Path:
    return shutil.copytree(finished.folder, tmp_path / "copy")


def study(models: object, rows: object = ROWS, **options: Any) -> TransferResult:
    result = st.study("transfer", models, rows, **options)
    assert isinstance(result, TransferResult)
    return result


def opened(folder: Path) -> TransferResult:
    result = st.load(folder)
    assert isinstance(result, TransferResult)
    return result


def without_times(value: Any, *more: str) -> Any:
    if isinstance(value, dict):
        return {name: without_times(item, *more) for name, item in value.items() if name not in (*TIMES, *more)}
    return [without_times(item, *more) for item in value] if isinstance(value, list) else value


def written(folder: Path, *more: str) -> Any:
    return without_times(json.loads((folder / "summary.json").read_text()), *more)


def rates_of(path: Path) -> list[list[float | None]]:
    rows = TransferMatrix.read(path).rates.tolist()
    return [[None if math.isnan(rate) else rate for rate in row] for row in rows]


def close(rates: list[list[Any]]) -> list[list[Any]]:
    return [[None if rate is None else pytest.approx(rate, abs=1e-4) for rate in row] for row in rates]


def test_every_rate_is_what_it_is_by_hand(finished: TransferResult) -> None:
    transfer = finished.numbers.attacks["pwws"]
    assert finished.complete
    assert transfer.models == ("a", "b", "c")
    assert [list(row) for row in transfer.rates] == close(RATES)
    assert [list(row) for row in transfer.clean_rates] == close(CLEAN_RATES)
    assert transfer.counts == ((3, 3, 3), (2, 0, 2), (2, 2, 0))
    assert rates_of(finished.folder / "matrix.csv") == close(RATES)
    assert rates_of(finished.folder / "matrix-clean.csv") == close(CLEAN_RATES)
    assert {name: (s.attacked, s.succeeded, s.sampled) for name, s in transfer.sources.items()} == {
        "a": (4, 3, 3),
        "b": (3, 2, 2),
        "c": (4, 2, 2),
    }
    assert transfer.own["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert transfer.others["value"] == pytest.approx((2 / 3 + 1 / 3 + 1 + 0 + 1 / 2 + 1 / 2) / 6, abs=1e-6)
    accuracies = {name: model.clean_accuracy["value"] for name, model in finished.numbers.models.items()}
    assert accuracies == {"a": 1.0, "b": 0.75, "c": 1.0}
    assert finished.numbers.models["a"].second_accuracy["value"] == 1.0
    assert finished.numbers.models["b"].second_accuracy["value"] is None


def test_asymmetry_and_universal_texts_by_hand(finished: TransferResult) -> None:
    transfer = finished.numbers.attacks["pwws"]
    assert transfer.asymmetry.pairs == 3
    assert transfer.asymmetry.mean_difference["value"] == pytest.approx((1 / 3 + 1 / 6 + 1 / 2) / 3, abs=1e-6)
    largest = transfer.asymmetry.largest[0]
    assert (largest.source, largest.target, largest.rate, largest.reverse) == ("c", "b", 0.5, 0.0)
    universal = transfer.universal
    assert universal.texts == 4
    assert dict(universal.all_but) == {0: 0, 1: 4}
    assert {(text.adversarial, text.right, text.fooled) for text in universal.examples} == {
        ("grand film", 3, 2),
        ("fine film", 3, 2),
        ("slow film", 3, 2),
        ("bad film", 2, 1),
    }


def test_words_by_hand(finished: TransferResult) -> None:
    numbers = finished.numbers
    assert numbers.spread is not None
    assert numbers.spread.texts == 4
    assert {name: spread["value"] for name, spread in numbers.spread.models.items()} == dict.fromkeys("abc", 0.0)
    assert numbers.maps == ()  # no text has six words
    result = study(models(), map_text="a great dull film", importance=0)
    assert result.numbers.spread is None
    (entry,) = result.numbers.maps
    assert (entry.words, entry.replaced) == (("a", "great", "dull", "film"), 2)
    # All models weigh the two words alike, so they say negative; without "dull" they would not.
    assert entry.label == "0"
    assert entry.substitutes == ("slow",)
    by_model = dict(zip(entry.models, entry.drops, strict=True))
    assert (by_model["a"][0] or 0) > 0
    assert by_model["c"][0] == pytest.approx(0.0, abs=1e-6)


def test_the_page_shows_the_matrix_with_hover_values_and_the_claims(finished: TransferResult) -> None:
    page = (finished.folder / "report.html").read_text()
    assert 'title="a → b: 66.7 % (20.8–93.9), 3 texts"' in page
    assert 'title="b → b: not measured"' in page
    assert "Only 4 texts were attacked" in page
    assert "the study has no attack genetic" in page
    assert "fools 2 of 3" in page
    markdown = (finished.folder / "report.md").read_text()
    assert "| a | 67 | 67 | 33 |" in markdown
    assert "AG-News, PWWS" not in markdown  # the models are not of the zoo: there are no factors
    assert 'class="stockade"' in finished._repr_html_()


def test_what_a_result_can_do(finished: TransferResult, tmp_path: Path) -> None:
    result = opened(finished.folder)
    assert result.summary == finished.summary
    assert written(finished.folder) == without_times(json.loads(json.dumps(finished.summary)))
    rows = list(result.rows())
    assert len(rows) == 3 * len(ROWS)
    assert {row["run"] for row in rows} == {"a", "b", "c"}
    table = CliRunner().invoke(cli, ["export", str(finished.folder), "--format", "csv"])
    assert len(list(csv.DictReader(io.StringIO(table.output)))) == len(rows)
    assert result.save(tmp_path / "kept").numbers == finished.numbers


def test_verify_asks_the_sources_again_and_compares_texts(copied: Path) -> None:
    verification = opened(copied).verify(models())
    assert verification.problems == ()
    attacked = sum(len(list(run.records())) for run in opened(copied).runs.values())
    assert verification.checked == attacked + 3 * 3 + 2  # texts, cells of three targets and a second training
    with sqlite3.connect(copied / "run.sqlite") as store:
        store.execute("""UPDATE results SET document = replace(document, '"ids": ["0", "2"]', '"ids": ["0", "1"]')""")
    problems = opened(copied).verify(models()).problems
    assert "a: what it said of pwws/b is not about the texts of that run" in problems


class Stop:
    """An observer that interrupts the job at its nth report."""

    def __init__(self, after: int) -> None:
        self.after, self.parts = after, list[str]()

    def __call__(self, progress: st.Progress) -> None:
        self.parts.append(progress.part)
        if len(self.parts) == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("after", "part"),
    [(2, "a: pwws"), (7, "b: pwws"), (13, "a: scoring"), (14, "a: scoring"), (17, "a (second training): scoring")],
)
def test_an_interrupted_study_ends_like_an_unbroken_one(tmp_path: Path, after: int, part: str) -> None:
    unbroken = study(REFERENCES, second=SECOND, out=tmp_path / "whole", concurrency=1)
    stop = Stop(after)
    with pytest.raises(KeyboardInterrupt):
        study(REFERENCES, second=SECOND, out=tmp_path / "made", concurrency=1, observer=stop)
    assert stop.parts[-1] == part
    assert not opened(tmp_path / "made").complete
    with pytest.raises(RunError, match="--trust-run"):
        st.resume(tmp_path / "made", data=ROWS)
    result = st.resume(tmp_path / "made", data=ROWS, trust=True)
    assert result.complete
    assert written(tmp_path / "made", "model_rows") == written(unbroken.folder, "model_rows")
    assert rates_of(tmp_path / "made" / "matrix.csv") == close(RATES)


def test_an_attack_that_was_killed_before_its_summary_gets_one(tmp_path: Path) -> None:
    result = study(REFERENCES, out=tmp_path / "made")
    (result.folder / "runs" / "b" / "summary.json").unlink()
    assert opened(result.folder).verify(trust=True).problems == (
        "b: summary.json is missing: the job was interrupted before its end",
    )
    again = study(REFERENCES, out=tmp_path / "made", resume=True)
    assert again.verify(trust=True).problems == ()


def test_a_target_that_fails_half_way_is_marked_and_the_rest_finishes(tmp_path: Path) -> None:
    mortal = Mortal("c", "slow")  # it survives its own attack and the texts of a, of which only one has the word
    entered = {"a": victim("a"), "c": mortal, "b": WeightVictim({**victim("b").weights, "grand": 1})}
    # From b only "slow film" is adversarial now: all that c is asked about is what kills it.
    result = study(entered, out=tmp_path / "made")
    assert result.failures == {"c": "the model raised RuntimeError: out of luck"}
    assert result.complete
    transfer = result.numbers.attacks["pwws"]
    matrix = transfer.matrix()
    assert math.isnan(matrix.rate("b", "c"))
    assert matrix.rate("a", "c") == pytest.approx(1 / 2)  # of the two texts that it answered
    assert matrix.rate("c", "a") == pytest.approx(1 / 2)
    page = (tmp_path / "made" / "report.html").read_text()
    assert "c could not be used to the end: the model raised RuntimeError: out of luck" in page
    assert "c had no answer to 1 texts" in page
    mortal.mortal = False
    again = study(entered, out=tmp_path / "made", resume=True)
    assert again.failures == {}
    assert again.numbers.attacks["pwws"].matrix().rate("b", "c") == 0.0
    assert again.numbers.attacks["pwws"].matrix().rate("a", "c") == pytest.approx(1 / 3)


def test_a_model_that_is_gone_is_marked_on_a_resume_and_an_error_in_a_new_study(tmp_path: Path) -> None:
    gone = {**REFERENCES, "gone": f"{MODULE}:predict_gone"}
    with pytest.raises(ModelError, match="predict_gone"):
        study(gone, out=tmp_path / "made")
    assert not (tmp_path / "made").exists()
    study(REFERENCES, out=tmp_path / "made")
    result = study(gone, out=tmp_path / "made", resume=True)
    assert "predict_gone" in result.failures["gone"]
    assert result.complete
    assert result.models == ("a", "b", "c")
    assert "To try those again" in " ".join(result.warnings)


def test_models_that_disagree_on_the_classes(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"disagree on the classes: a has negative, positive, r has 0, 1, 2\."):
        study({"a": victim("a"), "r": RandomVictim()}, out=tmp_path / "made")
    assert not (tmp_path / "made").exists()
    study(models("ab"), out=tmp_path / "made")
    result = study({**models("ab"), "r": RandomVictim()}, out=tmp_path / "made", resume=True)
    assert "disagree on the classes" in result.failures["r"]
    assert result.complete


def test_classes_in_another_order_are_matched_by_name_or_warned_of() -> None:
    class Turned(WeightVictim):
        labels = ("positive", "negative")

        def predict_proba(self, inputs: Any) -> Any:
            return super().predict_proba(inputs)[:, ::-1]

    turned = Turned(victim("b").weights, labels=("positive", "negative"))
    rows = [(text, ("negative", "positive")[label]) for text, label in ROWS]
    transfer = study({"a": victim("a"), "b": turned, "c": victim("c")}, rows).numbers.attacks["pwws"]
    assert [list(row) for row in transfer.rates] == close([[None, *RATES[0][1:]], *RATES[1:]])
    contrary = WeightVictim({word: -weight for word, weight in victim("a").weights.items()})
    many = [(f"{text} {number}", label) for number in range(5) for text, label in ROWS]
    result = study({"a": victim("a"), "z": contrary}, many)
    assert any(warning.startswith("z is right on 0 of 20 texts") for warning in result.warnings)
    assert "pwws fooled z on no text: it is no source." in result.warnings


def test_a_model_that_is_added_costs_only_its_own_texts(tmp_path: Path) -> None:
    before = models("ab")
    study(before, out=tmp_path / "made", importance=0)
    asked = {name: len(model.asked) for name, model in before.items() if isinstance(model, WeightVictim)}
    added = victim("c")
    result = study({**before, "c": added}, out=tmp_path / "made", resume=True, importance=0)
    transfer = result.numbers.attacks["pwws"]
    assert [list(row) for row in transfer.rates] == close([[None, *RATES[0][1:]], *RATES[1:]])
    for model, name in ((before["a"], "a"), (before["b"], "b")):
        assert isinstance(model, WeightVictim)
        # The two texts of the new source, and one to see that the model answers.
        assert sorted(map(str, model.asked[asked[name] :])) == ["bad film", "fine film", "great film"]
    assert result.numbers.models["c"].model_rows == 4 + 3  # the originals, and three texts that a and b found
    manifest = json.loads((tmp_path / "made" / "manifest.json").read_text())
    assert list(manifest["spec"]["models"]) == ["a", "b", "c"]


def test_a_model_can_be_added_alone_by_its_name(tmp_path: Path) -> None:
    study({name: REFERENCES[name] for name in "ab"}, out=tmp_path / "made")
    result = study({"c": REFERENCES["c"]}, out=tmp_path / "made", resume=True)
    assert result.models == ("a", "b", "c")
    assert [list(row) for row in result.numbers.attacks["pwws"].rates] == close([[None, *RATES[0][1:]], *RATES[1:]])
    with pytest.raises(OptionError, match=rf"The model a of this study is {MODULE}:predict_a, not {MODULE}:predict_b"):
        study({"a": REFERENCES["b"]}, out=tmp_path / "made", resume=True)
    with_base = study(REFERENCES, second=SECOND, out=tmp_path / "made", resume=True)
    assert rates_of(with_base.folder / "matrix.csv") == close(RATES)


def test_a_model_that_has_changed_under_its_name_is_marked(tmp_path: Path) -> None:
    class Named(WeightVictim):
        def fingerprint(self) -> str:
            return str(sorted(self.weights.items()))

    study({"a": victim("a"), "b": Named(victim("b").weights)}, out=tmp_path / "made")
    other = {"a": victim("a"), "b": Named(victim("c").weights), "c": victim("c")}
    result = study(other, out=tmp_path / "made", resume=True)
    assert "b is not the one that the study was begun with" in result.failures["b"]
    assert result.numbers.attacks["pwws"].matrix().rate("a", "b") == pytest.approx(2 / 3)


def test_several_attacks_have_a_matrix_each(tmp_path: Path) -> None:
    result = study(models(), attacks={"pwws": "pwws", "timid": "pwws:max_changed=0.1"}, out=tmp_path / "made")
    assert [file.name for file in result.matrix_files()] == [
        "matrix-pwws.csv",
        "matrix-pwws-clean.csv",
        "matrix-timid.csv",
        "matrix-timid-clean.csv",
    ]
    assert all(file.exists() for file in result.matrix_files())
    nothing = result.numbers.attacks["timid"]
    assert nothing.others["value"] is None
    assert (
        "timid: No adversarial text of one model was scored by another."
        in (tmp_path / "made" / "report.md").read_text()
    )
    assert "pwws: " in result.claims[0].claim


def test_a_sample_of_the_successes_is_shared_by_sources_that_are_fooled_alike() -> None:
    rows = [(f"{text} {number}", label) for number in range(20) for text, label in ROWS]
    result = study({"a": victim("a"), "twin": victim("a")}, rows, attacked=60, sampled=10, importance=0, maps=0)
    samples = result.samples["pwws"]
    assert [record.id for record in samples["a"]] == [record.id for record in samples["twin"]]
    assert len(samples["a"]) == 10
    assert result.numbers.texts == 60
    assert result.numbers.attacks["pwws"].matrix().rate("a", "twin") == 1.0
    limited = study({"a": victim("a"), "twin": victim("a")}, rows, limit=8, importance=0, maps=0)
    assert limited.numbers.texts == 8


def test_results_do_not_depend_on_concurrency(finished: TransferResult) -> None:
    again = study(models(), second={"a": victim("a2")}, concurrency=1)
    assert without_times(json.loads(json.dumps(again.summary))) == written(finished.folder)


def test_a_finished_study_is_analysed_again_without_models(copied: Path, finished: TransferResult) -> None:
    for file in ("summary.json", "matrix.csv", "report.html"):
        (copied / file).unlink()
    st.resume(copied)
    assert written(copied) == written(finished.folder)
    assert rates_of(copied / "matrix.csv") == close(RATES)


def test_bad_input(tmp_path: Path, copied: Path) -> None:
    def refused(model: object = None, rows: object = ROWS, **options: Any) -> None:
        st.study("transfer", models("ab") if model is None else model, rows, out=tmp_path / "bad", **options)

    with pytest.raises(OptionError, match=r'no pool of models "defualt".*Did you mean "default"'):
        refused(pool="defualt", train_data=ROWS)
    with pytest.raises(OptionError, match="--pool default needs data to train on: name them with --train-data DATA"):
        refused(pool="default")
    with pytest.raises(OptionError, match=r'no model in this study "d" \(found: a, b\)'):
        refused(second={"d": victim("c")})
    with pytest.raises(OptionError, match="--second a is not of the form NAME=VALUE, such as --second NAME=MODEL"):
        refused(second=["a"])
    with pytest.raises(OptionError, match=r"--second is \[1\], expected NAME=VALUE, or a mapping in Python"):
        refused(second=[1])
    with pytest.raises(OptionError, match=r'no kind of word vectors "glov" \(found: fasttext, glove, word2vec\)'):
        refused(pool="default", train_data=ROWS, vectors=["glov=vectors.txt"])
    with pytest.raises(OptionError, match=r'no transformer in the pool "BRT" \(found: ALBERT, BERT, .*RoBERTa\)'):
        refused(pool="full", train_data=ROWS, checkpoints=["BRT=folder"])
    with pytest.raises(DataError, match=r"nowhere\.csv"):
        refused(pool="default", train_data=str(tmp_path / "nowhere.csv"))
    with pytest.raises(OptionError, match="needs models before the data, or a --pool"):
        refused({})
    with pytest.raises(OptionError, match="MODEL and DATA are missing"):
        st.study("transfer")
    with pytest.raises(OptionError, match=r"DATA is missing, as in: stockade study transfer test\.csv --pool default"):
        st.study("transfer", pool="default")
    with pytest.raises(OptionError, match="--sampled is 0, expected a whole number from 1 up"):
        refused(sampled=0)
    with pytest.raises(OptionError, match="--maps is -1, expected a whole number from 0 up"):
        refused(maps=-1)
    assert not (tmp_path / "bad").exists()
    with pytest.raises(RunError, match="sampled was 500, now 400"):
        study(models(), out=copied, resume=True, sampled=400)


def test_every_model_that_fails_is_an_error_of_the_command(tmp_path: Path) -> None:
    result = study({"a": Mortal("a", "film"), "b": Mortal("b", "film")}, out=tmp_path / "made")
    assert result.problem() is not None
    assert "out of luck" in str(result.problem())


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    out = tmp_path / "made"
    words = ["study", "transfer", REFERENCES["a"], REFERENCES["b"], str(tmp_path / "data.csv"), "--out", str(out)]
    second = ["--second", f"predict_a={SECOND['a']}", "--maps", "0", "--importance", "2"]
    ended = CliRunner().invoke(cli, [*words, *second], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert "An adversarial text of one model fools another in 83.3 %" in " ".join(ended.output.split())
    added = ["study", "transfer", REFERENCES["c"], str(tmp_path / "data.csv"), "--resume", "--out", str(out)]
    ended = CliRunner().invoke(cli, added, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert rates_of(out / "matrix.csv") == close(RATES)
    again = CliRunner().invoke(cli, ["resume", str(out)], catch_exceptions=False)
    assert again.exit_code == 0, again.output
    shown = CliRunner().invoke(cli, ["study", "transfer", "--help"]).output
    for option in ("--pool", "--train-data", "--second NAME=MODEL", "--attacked", "--map-text"):
        assert option in shown
