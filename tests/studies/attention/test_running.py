"""`st.study("attention", …)` and `stockade study attention` from the first word to the last file."""

from __future__ import annotations

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
from stockade.core.errors import OptionError, RunError
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.report.examples import Words
from stockade.studies.attention.examples_page import compared_texts
from stockade.studies.attention.inputs import ATTACKS, BY_ATTENTION
from stockade.studies.attention.page import findings
from stockade.studies.attention.study import AttentionResult
from tests.studies.attention.conftest import SMALL
from tests.studies.attention.toys import LABELS, balanced, toy_bert, toy_lstm, toy_rows

FILES = {"summary.json", "report.md", "report.html", "run.sqlite", "manifest.json", "bert", "lstm"}
BLACK_BOX = "python:tests.studies.attention.test_running:says"
BLACK_BOX_OPTIONS = st.ModelOptions(labels=LABELS)


def says(texts: list[str]) -> list[list[float]]:
    """A black box: texts with "great" in them are positive."""
    return [[0.1, 0.9] if "great" in text else [0.9, 0.1] for text in texts]


def study(models: object, data: object, **options: Any) -> AttentionResult:
    result = st.study("attention", models, data, **{**SMALL, **options})
    assert isinstance(result, AttentionResult)
    return result


def of_toys(toys: Path, **options: Any) -> AttentionResult:
    return study([str(toys / "bert"), str(toys / "lstm")], str(toys / "data.csv"), **options)


def opened(folder: Path) -> AttentionResult:
    result = st.load(folder)
    assert isinstance(result, AttentionResult)
    return result


def without_seconds(summary: Any) -> Any:
    """A summary without what differs from run to run."""
    if isinstance(summary, dict):
        left_out = ("run", "created", "seconds", "model_seconds", "model_rows", "mean_rows", "cache_hits")
        return {name: without_seconds(value) for name, value in summary.items() if name not in left_out}
    return [without_seconds(value) for value in summary] if isinstance(summary, list) else summary


def written(folder: Path) -> Any:
    return without_seconds(json.loads((folder / "summary.json").read_text()))


def test_a_whole_study(finished: AttentionResult) -> None:
    folder, numbers = finished.folder, finished.numbers
    assert finished.complete
    assert {path.name for path in folder.iterdir()} >= FILES
    assert written(folder) == without_seconds(json.loads(json.dumps(finished.summary, allow_nan=False)))
    assert (numbers.texts.chosen, numbers.texts.classified, numbers.texts.total) == (6, 10, 10)
    for name, model in numbers.models.items():
        assert list(model.attacks) == [*ATTACKS, *(["asmax-ec-last"] if name == "bert" else [])]
        assert {attack.attacked for attack in model.attacks.values()} == {6}, name
        assert model.attention is not None
        assert model.attention.texts == model.attacks["gs-ec"].succeeded > 0
        assert (model.relative_embedding_change.mean["value"] or 0) > 0
        assert model.embedding_change is not None
        assert (model.embedding_change.layers[0][10] or 0) > 0
        assert model.embedding_change.layers[0][9] in (0.0, None), "the input of a word does not depend on the next"
    bert, lstm = numbers.models["bert"], numbers.models["lstm"]
    assert (bert.kind, lstm.kind) == ("self-attentive", "recurrent")
    assert bert.theorem is not None
    assert len(bert.theorem.heads) == 4
    assert bert.theorem.real_vectors > 0
    assert (lstm.theorem, lstm.without_theorem) == (None, "it has no layer of self-attention")
    assert len(finished.claims) == 2 * 6 + 1 + len(ATTACKS) + 2
    assert list(finished.runs) == ["bert", "lstm"]
    with pytest.raises(OptionError, match=r"several runs: choose one of runs \(bert, lstm\)"):
        _ = finished.run
    assert 'class="stockade"' in finished._repr_html_()


def test_what_a_result_can_do(finished: AttentionResult, tmp_path: Path) -> None:
    result = opened(finished.folder)
    assert result.summary == finished.summary
    assert len(list(result.records())) == len(result.to_pandas()) == (2 * len(ATTACKS) + 1) * 6
    assert next(iter(result.rows()))["run"] == "bert"
    saved = result.save(tmp_path / "kept")
    assert saved.numbers == finished.numbers
    assert saved.ratings is None


def test_figure_1_shows_what_asmin_and_asmax_do_to_the_same_text(finished: AttentionResult) -> None:
    pairs = finished.numbers.models["bert"].least_and_most
    assert pairs
    results = finished.results["bert"]
    for pair in pairs:
        for change, attack in ((pair.least, "asmin-ec"), (pair.most, "asmax-ec")):
            record = results[attack][pair.least.id]
            assert record.status == "success"
            assert (change.index, change.replacement) == (record.edits[0].index, record.edits[0].after)
            assert change.attention is not None
            scores = [round(score, 5) for score in change.attention.before]
            assert scores[change.index] == (min if attack == "asmin-ec" else max)(scores)
    strips = [block for block in finished.document().blocks if isinstance(block, Words) and len(block.rows) == 3]
    names, rows = zip(*strips[0].rows, strict=True)
    assert names == ("original", "asmin-ec", "asmax-ec")
    marked = [[index for index, word in enumerate(row) if word.marked] for row in rows]
    assert marked == [
        sorted({pairs[0].least.index, pairs[0].most.index}),
        [pairs[0].least.index],
        [pairs[0].most.index],
    ]
    assert rows[1][pairs[0].least.index].text == pairs[0].least.replacement


def test_the_page_sets_greedy_and_constrained_words_side_by_side(finished: AttentionResult) -> None:
    for name in finished.victims:
        for greedy, constrained in compared_texts(finished.results[name]):
            assert (greedy.attack, constrained.attack) == ("gs-gr", "gs-ec")
            assert greedy.id == constrained.id
            assert greedy.adversarial != constrained.adversarial
    markdown = finished.document().to_markdown()
    assert "What gs-gr and gs-ec write" in markdown
    assert "Table 2" in markdown
    assert "Tables 3 and 4" in markdown


def test_the_headline_is_a_share(finished: AttentionResult) -> None:
    (sentence,) = [item for item in findings(finished) if "attention elsewhere" in item]
    shares = [float(number) for number in re.findall(r"([\d.]+) %", sentence)]
    assert len(shares) == 2
    assert all(0 <= share <= 100 for share in shares)


def test_the_page_needs_nothing_else(finished: AttentionResult) -> None:
    page = (finished.folder / "report.html").read_text()
    assert page.count("<svg") == 1 + 2 * 2 + 1
    assert not re.search(r'(?:src|href)="https?:|@import|url\(["\']?http', page)
    assert "first in seeded order" not in page
    assert "all 6 of the 10 classified" in page
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower()
    assert 'class="word marked shaded"' in page
    assert "The paper&#39;s numbers" in page
    assert "Nobody has rated" in page
    assert "| gs-ec |" in (finished.folder / "report.md").read_text()


def test_attention_of_the_page_is_that_of_the_model(finished: AttentionResult) -> None:
    example = finished.numbers.models["lstm"].examples[0]
    words = [*example.words[: example.index], example.replacement, *example.words[example.index + 1 :]]
    record = next(record for record in finished.runs["lstm"].records("gs-ec") if record.id == example.id)
    assert st.Text.parse(record.adversarial or "").words == tuple(words)
    model: Any = st.load_model(toy_lstm())
    scores = model.word_attention([st.Text.parse(record.original), st.Text.parse(record.adversarial or "")], 0, "mean")
    title = f"example {example.id}, {example.label} → {example.prediction}"
    strips = [block for block in finished.document().blocks if isinstance(block, Words) and block.title == title]
    (_, before), (_, after) = strips[-1].rows
    assert [word.text for word in before] == list(example.words)
    assert [word.text for word in after] == words
    assert [word.detail for word in before] == [f"{score:.3f}" for score in scores[0]]
    assert [word.detail for word in after] == [f"{score:.3f}" for score in scores[1]]
    assert [index for index, word in enumerate(after) if word.marked] == [example.index]


def test_verify_reads_the_runs_the_measurements_and_the_summary(copied: Path, finished: AttentionResult) -> None:
    verification = opened(copied).verify()
    assert verification.holds
    records = [record for run in finished.runs.values() for record in run.records()]
    assert verification.checked == len(records) > 0
    example = finished.numbers.models["bert"].examples[0].id
    with sqlite3.connect(copied / "run.sqlite") as connection:
        (document,) = connection.execute(
            "SELECT document FROM results WHERE part = 'bert: inside' AND id = ?", (example,)
        ).fetchone()
        other = json.dumps({**json.loads(document), "replacement": "else"})
        connection.execute("UPDATE results SET document = ? WHERE part = 'bert: inside' AND id = ?", (other, example))
        connection.execute("DELETE FROM results WHERE part = 'theorem'")
    problems = opened(copied).verify().problems
    assert "summary.json: models does not follow from the results" in problems
    assert f"bert: example {example} was measured with another text than gs-ec made" in problems
    assert "bert: Theorem 1 was not checked" in problems
    swapped = {"bert": toy_lstm(), "lstm": toy_bert()}
    assert any(
        problem.startswith("lstm: the model is not the one") for problem in opened(copied).verify(swapped).problems
    )


class Stop:
    """An observer that interrupts the study at its nth report, or at the first of a part."""

    def __init__(self, after: int | str) -> None:
        self.after, self.count = after, 0

    def __call__(self, progress: st.Progress) -> None:
        self.count += 1
        if self.after in (self.count, progress.part):
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param("bert: gs-ec", marks=pytest.mark.slow),
        "bert: inside",
        pytest.param("lstm: inside", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_study_ends_in_the_same_numbers(
    toys: Path, finished: AttentionResult, tmp_path: Path, after: int | str
) -> None:
    folder = tmp_path / "a"
    with pytest.raises(KeyboardInterrupt):
        of_toys(toys, out=folder, observer=Stop(after))
    assert not st.load(folder).complete
    assert not (folder / "summary.json").exists()
    result = st.resume(folder)
    assert result.complete
    assert written(folder) == written(finished.folder)


def test_a_study_that_runs_out_of_time_is_not_measured_until_it_is_complete(
    toys: Path, finished: AttentionResult, tmp_path: Path
) -> None:
    result = of_toys(toys, out=tmp_path / "a", seconds=1e-9)
    assert not result.complete
    assert result.changes == {"bert": {}, "lstm": {}}
    assert "Not complete. Resume it with" in (tmp_path / "a" / "report.md").read_text()
    st.resume(tmp_path / "a")
    assert written(tmp_path / "a") == written(finished.folder)


def test_two_studies_do_not_share_a_folder(tmp_path: Path) -> None:
    rows = [("a great film", "positive"), ("a bad film", "negative")]
    refused = []

    def second(progress: st.Progress) -> None:
        with pytest.raises(RunError) as error:
            study(BLACK_BOX, rows, model_options=BLACK_BOX_OPTIONS, out=tmp_path / "a", resume=True)
        refused.append(str(error.value))

    study(BLACK_BOX, rows, model_options=BLACK_BOX_OPTIONS, out=tmp_path / "a", observer=second)
    assert refused
    assert all(sentence.startswith("Another process is working on") for sentence in refused)


def test_a_finished_study_is_analysed_again_without_its_models(
    copied: Path, finished: AttentionResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stockade.experiment.inputs.load_model", lambda *_, **__: pytest.fail("a model was loaded"))
    for file in ("summary.json", "report.html"):
        (copied / file).unlink()
    assert st.resume(copied).numbers == finished.numbers
    assert written(copied) == written(finished.folder)
    assert (copied / "report.html").exists()


def test_python_objects_are_given_again(copied: Path, toys: Path, finished: AttentionResult, tmp_path: Path) -> None:
    models, rows = {"bert": toy_bert(), "lstm": toy_lstm()}, toy_rows()
    folder = tmp_path / "objects"
    with pytest.raises(KeyboardInterrupt):
        study(models, rows, out=folder, observer=Stop("lstm: gs-gr"))
    with pytest.raises(RunError, match=r"was made from Python objects .* with the same objects"):
        st.resume(folder)
    with pytest.raises(RunError, match=r"data\.fingerprint was"):
        study(models, rows[:5], out=folder, resume=True)
    with pytest.raises(RunError, match=r"models\.bert\.fingerprint was"):
        study({**models, "bert": toy_lstm()}, rows, out=folder, resume=True)
    study(dict(reversed(models.items())), rows, out=folder, resume=True)
    for part in ("models", "claims", "pairs", "texts"):
        here, there = (
            json.dumps(written(path)[part]).replace(str(toys / name), "a Python object (tuple)")
            for path, name in ((folder, "-"), (finished.folder, "bert"))
        )
        assert here == there.replace(str(toys / "lstm"), "a Python object (tuple)"), part


def test_what_cannot_be_resumed(copied: Path, toys: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"limit was nothing, now 3; samples was 400, now 50"):
        of_toys(toys, out=copied, resume=True, limit=3, samples=50)
    with pytest.raises(RunError, match=r"models\.bert was .*, now nothing"):
        study(str(toys / "lstm"), str(toys / "data.csv"), out=copied, resume=True)
    with pytest.raises(RunError, match=r'data was .*, now "other\.csv"'):
        study([str(toys / "bert"), str(toys / "lstm")], "other.csv", out=copied, resume=True)
    with pytest.raises(RunError, match=r"exists already and is not empty\. Resume it with --resume"):
        of_toys(toys, out=copied)
    with pytest.raises(RunError, match="there is no such folder"):
        st.study("attention", out=tmp_path / "nothing", resume=True)
    with pytest.raises(RunError, match="nothing to resume without a folder"):
        of_toys(toys, resume=True)
    manifest = json.loads((copied / "manifest.json").read_text())
    del manifest["inputs"]["models"]["bert"]["missing"]
    (copied / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunError, match=r"manifest\.json cannot be read \(KeyError\('missing'\)\)"):
        opened(copied).numbers  # noqa: B018


def test_models_and_data_must_be_those_that_the_study_was_begun_with(toys: Path, tmp_path: Path) -> None:
    here = shutil.copytree(toys, tmp_path / "toys")
    with pytest.raises(KeyboardInterrupt):
        of_toys(here, out=tmp_path / "a", observer=Stop("lstm: gs-gr"))
    data = (here / "data.csv").read_text()
    (here / "data.csv").write_text(data + "great,positive\n")
    with pytest.raises(RunError, match=r"data\.csv has changed since the job was begun"):
        st.resume(tmp_path / "a")
    (here / "data.csv").write_text(data)
    for part in toy_bert():
        part.save_pretrained(here / "lstm")
    with pytest.raises(RunError, match="The model lstm is not the one the study was begun with"):
        st.resume(tmp_path / "a")


def test_bad_options_are_refused() -> None:
    data = toy_rows()
    with pytest.raises(OptionError, match='no option of the study attention "fluency"'):
        study(says, data, fluency=False)
    with pytest.raises(OptionError, match="--draws is 0, expected a whole number from 1 up"):
        study(says, data, draws=0)
    with pytest.raises(OptionError, match="name the sheet with --rating-sheet"):
        study(says, data, compare="a:gs-gr,a:gs-ec")
    with pytest.raises(OptionError, match="--pieces"):
        study(says, data, pieces="first")
    with pytest.raises(OptionError, match="--caution"):
        study(says, data, caution=-1.0)


def test_a_layer_that_no_model_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"--layer is 7, which no model has \(bert: The model has 2 attention layers"):
        study({"bert": toy_bert()}, toy_rows(), layer=7, out=tmp_path / "a")
    with pytest.raises(OptionError, match="--sides premise is for pairs, and the data are single texts"):
        study({"bert": toy_bert()}, toy_rows(), sides="premise", out=tmp_path / "a")


def test_options_reach_the_attacks_and_the_pilot_can_be_left_out(tmp_path: Path) -> None:
    options = {"layer": 1, "query": "first", "pieces": "max", "vocabulary": "letters", "caution": 2.0}
    result = study({"bert": toy_bert()}, toy_rows(), limit=1, out=tmp_path / "a", exhaustive=True, **options)
    recorded = {attack["key"]: attack["options"] for attack in result.run.manifest.spec["attacks"]}
    for name in BY_ATTENTION:
        assert {option: recorded[name][option] for option in options} == options
    assert recorded["gs-ec"]["exhaustive"] is True
    assert recorded["random"]["vocabulary"] == "letters"
    assert "asmax-ec-last" not in recorded, "layer 1 is the last one"
    assert {name: result.summary[name] for name in options} == options
    without = study({"bert": toy_bert()}, toy_rows(), limit=1, out=tmp_path / "b", pilot=False)
    assert list(without.numbers.models["bert"].attacks) == list(ATTACKS)
    first = study({"bert": toy_bert()}, toy_rows(), limit=1, out=tmp_path / "c")
    pilot = next(item for item in first.run.manifest.spec["attacks"] if item["key"] == "asmax-ec-last")
    assert (pilot["name"], pilot["options"]["layer"]) == ("asmax-ec", -1)


def test_pairs_are_attacked_in_the_premise(tmp_path: Path) -> None:
    pairs = [(text, "a film is bad") for text, _ in toy_rows()]
    bert = balanced(*toy_bert(), pairs)
    classes = HuggingFaceClassifier(*bert).predict_proba(pairs).argmax(1).tolist()
    rows = [(pair, LABELS[label]) for pair, label in zip(pairs, classes, strict=True)]
    result = study({"bert": bert}, rows, limit=4, sides="premise", out=tmp_path / "a")
    assert result.complete
    assert result.verify({"bert": bert}).holds
    found = [record for record in result.run.records("gs-gr") if record.status == "success"]
    assert found
    assert all(record.adversarial == "a film is bad" != record.adversarial_premise for record in found)
    assert all(change.side == "premise" for change in result.changes["bert"].values())
    markdown = (tmp_path / "a" / "report.md").read_text()
    assert "One word replaced in each premise" in markdown
    assert "Table 5" in markdown
    assert "Table 6" in markdown
    assert result.manifest.spec["sides"] == "premise"


def test_a_black_box_has_rows_that_say_why_they_are_empty(tmp_path: Path) -> None:
    rows = [("a great <b>film", "positive"), ("a bad film", "negative")]
    result = study(says, rows, out=tmp_path / "a", model_options=BLACK_BOX_OPTIONS)
    model = result.numbers.models["says"]
    assert list(model.attacks) == ["random", "list"]
    assert set(model.missing) == {*BY_ATTENTION, "gs-gr", "gs-ec"}
    assert model.a_star is None
    page = (tmp_path / "a" / "report.html").read_text()
    assert "the model does not show its attention: it is no Hugging Face model" in page
    assert "<b>film" not in page
    assert any("One model alone" in warning for warning in result.warnings)
    assert result.run.name == "says"
    with pytest.raises(RunError, match="nothing to compare"):
        st.study("attention", out=tmp_path / "a", resume=True, rating_sheet=tmp_path / "sheet.csv")


def test_a_defense_stands_around_every_model(tmp_path: Path) -> None:
    rows = [("a great film", "positive"), ("a bad film", "negative")]
    result = study(says, rows, out=tmp_path / "a", model_options=BLACK_BOX_OPTIONS, defenses="ranmask:copies=3")
    assert result.runs["says"].defenses[0].startswith("ranmask(")
    assert result.manifest.inputs["models"]["says"]["defenses"][0]["name"] == "ranmask"


def test_without_a_folder_the_study_lives_as_long_as_it_is_held() -> None:
    result = study(says, [("a great film", "positive")], model_options=BLACK_BOX_OPTIONS)
    folder = result.folder
    assert (folder / "report.html").exists()
    del result
    assert not folder.exists()


def test_the_command_and_its_resumption(toys: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    words = ["study", "attention", str(toys / "bert"), str(toys / "lstm"), str(toys / "data.csv"), "--limit", "2"]
    result = CliRunner().invoke(
        cli, [*words, "--draws", "10", "--samples", "50", "--out", str(folder)], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    assert "in seeded order the first 2 of" in " ".join(result.output.split())
    assert "gs-gr at least as strong as attention (A*)" in result.output
    assert len(opened(folder).selection.ids) == 2
    before = written(folder)
    shutil.rmtree(folder / "lstm")
    again = CliRunner().invoke(
        cli,
        ["study", "attention", "--resume", "--out", str(folder), "--rating-sheet", str(tmp_path / "s.csv")],
        catch_exceptions=False,
    )
    assert again.exit_code == 0, again.output
    assert (tmp_path / "s.csv").exists()
    assert written(folder) == before
    shown = CliRunner().invoke(cli, ["study", "attention", "--help"]).output
    ours = ("--layer", "--query", "--pieces", "--caution", "--exhaustive", "--vocabulary", "--sides", "--no-pilot")
    shared = ("--draws", "--samples", "--rating-sheet", "--compare", "--ratings", "--defense", "--budget")
    assert "[sum|mean|max]" in shown
    for option in (*ours, *shared):
        assert option in shown
