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
from stockade.studies.attention.victims import ATTACKS, BY_ATTENTION
from tests.study.attention_toys import LABELS, toy_bert, toy_lstm, toy_rows

SMALL: dict[str, Any] = {"draws": 20, "samples": 400}


def says(texts: list[str]) -> list[list[float]]:
    """A black box: texts with "great" in them are positive."""
    return [[0.1, 0.9] if "great" in text else [0.9, 0.1] for text in texts]


def test_a_whole_study(finished_study: st.Study) -> None:
    folder, numbers = finished_study.folder, finished_study.numbers
    assert {"plan.json", "study.json", "study.md", "study.html", "bert", "lstm"} <= {
        one.name for one in folder.iterdir()
    }
    assert json.loads((folder / "study.json").read_text()) == json.loads(json.dumps(numbers, allow_nan=False))
    assert (numbers["texts"]["chosen"], numbers["texts"]["total"]) == (6, 10)
    for name, model in numbers["models"].items():
        assert list(model["attacks"]) == list(ATTACKS)
        assert {found["attacked"] for found in model["attacks"].values()} == {6}, name
        assert model["attention"]["texts"] == model["attacks"]["gs-ec"]["succeeded"] > 0
        assert model["relative_embedding_change"]["mean"]["value"] > 0
        assert model["embedding_change"]["layers"][0][10] > 0
        assert model["embedding_change"]["layers"][0][9] in (
            0.0,
            None,
        )  # the input of a word does not see its neighbour
    bert, lstm = numbers["models"]["bert"], numbers["models"]["lstm"]
    assert (bert["kind"], lstm["kind"]) == ("self-attentive", "recurrent")
    assert len(bert["theorem"]["heads"]) == 4
    assert bert["theorem"]["real_vectors"] > 0
    assert lstm["without_theorem"] == "it has no layer of self-attention"
    assert len(numbers["orders"]) == 2 * 4 + len(ATTACKS) + 1
    assert set(finished_study.runs) == {"bert", "lstm"}
    with pytest.raises(OptionError, match=r"several runs: take one of runs \(bert, lstm\)"):
        _ = finished_study.run
    assert 'class="stockade"' in finished_study._repr_html_()


def test_the_page_needs_nothing_else(finished_study: st.Study) -> None:
    page = (finished_study.folder / "study.html").read_text()
    assert page.count("<svg") == 1 + 2 * 2 + 1
    assert not re.search(r'(?:src|href)="https?:|@import|url\(["\']?http', page)
    assert "first in seeded order" not in page
    assert "all 6 of the 10 looked at" in page
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower()
    assert 'class="word replaced"' in page
    markdown = (finished_study.folder / "study.md").read_text()
    assert "| gs-ec |" in markdown
    assert "Nobody has rated" in page


def test_attention_of_the_page_is_that_of_the_model(finished_study: st.Study) -> None:
    look = finished_study.numbers["models"]["lstm"]["examples"][0]
    model = st.load_model(toy_lstm())
    words = [*look["words"][: look["index"]], look["replacement"], *look["words"][look["index"] + 1 :]]
    record = next(one for one in finished_study.runs["lstm"].records("gs-ec") if one.id == look["id"])
    assert st.Text.parse(record.adversarial or "").words == tuple(words)
    scores = model.word_attention([st.Text.parse(record.original), st.Text.parse(record.adversarial or "")], 0, "mean")  # type: ignore[attr-defined]
    assert look["attention"]["before"] == pytest.approx(scores[0].tolist(), abs=1e-5)
    assert look["attention"]["after"] == pytest.approx(scores[1].tolist(), abs=1e-5)


def test_a_finished_study_is_analysed_again_without_its_models(study_folder: Path) -> None:
    before = json.loads((study_folder / "study.json").read_text())
    (study_folder / "study.html").unlink()
    after = st.study("attention", out=study_folder, resume=True).numbers
    same = ("models", "orders", "texts", "pairs")
    assert json.loads(json.dumps([after[part] for part in same])) == [before[part] for part in same]
    assert (study_folder / "study.html").exists()


def test_an_interrupted_study_goes_on_with_the_same_texts(study_folder: Path) -> None:
    before = json.loads((study_folder / "study.json").read_text())
    with sqlite3.connect(study_folder / "bert" / "run.sqlite") as connection:
        connection.execute("DELETE FROM results WHERE attack = 'gs-ec'")
    shutil.rmtree(study_folder / "lstm")
    with pytest.raises(RunError, match="was a Python object: resume the study from Python"):
        st.study("attention", out=study_folder, resume=True)
    models = {"bert": toy_bert(), "lstm": toy_lstm()}
    after = st.study("attention", models, toy_rows(), out=study_folder, resume=True, **SMALL).numbers
    for name in models:
        for attack in ATTACKS:
            assert after["models"][name]["attacks"][attack]["rate"] == before["models"][name]["attacks"][attack]["rate"]
        assert after["models"][name]["relative_embedding_change"] == before["models"][name]["relative_embedding_change"]
    assert json.loads(json.dumps(after["orders"])) == before["orders"]


def test_what_cannot_be_resumed(study_folder: Path, tmp_path: Path) -> None:
    models = {"bert": toy_bert(), "lstm": toy_lstm()}
    with pytest.raises(RunError, match="is a study of the models bert, lstm, not of lstm, bert"):
        st.study("attention", dict(reversed(models.items())), toy_rows(), out=study_folder, resume=True, **SMALL)
    with pytest.raises(RunError, match="other options: limit was nothing, now 3; samples was 400, now 10000"):
        st.study("attention", models, toy_rows(), out=study_folder, resume=True, limit=3, draws=20)
    with pytest.raises(RunError, match=r"exists already and is not empty\. Continue it with --resume"):
        st.study("attention", models, toy_rows(), out=study_folder, **SMALL)
    with pytest.raises(RunError, match=r"no study attention: it has no plan\.json"):
        st.study("attention", out=tmp_path / "nothing", resume=True)
    with pytest.raises(RunError, match="nothing to resume without a folder"):
        st.study("attention", models, toy_rows(), resume=True, **SMALL)
    shutil.rmtree(study_folder / "lstm")
    with pytest.raises(RunError, match=r"The data of .* have changed"):
        st.study("attention", models, toy_rows()[:5], out=study_folder, resume=True, **SMALL)
    (study_folder / "bert" / "inside.json").write_text("{half")
    shutil.copytree(study_folder / "bert", study_folder / "lstm")
    with pytest.raises(RunError, match=r"bert is not the one the study was begun with"):
        st.study(
            "attention",
            {"bert": toy_lstm(), "lstm": toy_lstm()},
            toy_rows(),
            out=study_folder,
            resume=True,
            **SMALL,
        )
    (study_folder / "plan.json").write_text("{}")
    with pytest.raises(RunError, match=r"plan\.json cannot be read"):
        st.study("attention", out=study_folder, resume=True)


def test_options_of_other_studies_and_bad_ones_are_refused(tmp_path: Path) -> None:
    data = toy_rows()
    with pytest.raises(OptionError, match='no option of the study attention "fluency"'):
        st.study("attention", says, data, fluency=False)
    with pytest.raises(OptionError, match='no option of the study bae "rating-sheet"'):
        st.study("bae", says, data, rating_sheet="x.csv")
    with pytest.raises(OptionError, match=r"of one model \(found: 2\)"):
        st.study("bae", [says, says], data)
    with pytest.raises(OptionError, match="--draws is 0"):
        st.study("attention", says, data, draws=0)
    with pytest.raises(OptionError, match="ratings is one string"):
        st.study("attention", says, data, ratings="x.csv")
    with pytest.raises(OptionError, match="name the sheet with --rating-sheet"):
        st.study("attention", says, data, compare=["a:gs-gr,a:gs-ec"])


def test_a_black_box_has_rows_that_say_why_they_are_empty(tmp_path: Path) -> None:
    rows = [("a great <b>film", "positive"), ("a bad film", "negative")]
    options = st.ModelOptions(labels=LABELS)
    found = st.study("attention", says, rows, out=tmp_path / "a", model_options=options, **SMALL)
    model = found.numbers["models"]["says"]
    assert list(model["attacks"]) == ["random", "list"]
    assert set(model["missing"]) == {*BY_ATTENTION, "gs-gr", "gs-ec"}
    assert model["a_star"] is None
    page = (tmp_path / "a" / "study.html").read_text()
    assert "the model does not show its attention: it is no Hugging Face model" in page
    assert "<b>film" not in page
    assert any("One model alone" in warning for warning in found.numbers["warnings"])
    assert found.run.name == "says"
    with pytest.raises(RunError, match="nothing to compare"):
        st.study("attention", out=tmp_path / "a", resume=True, rating_sheet=tmp_path / "sheet.csv")


def test_without_a_folder_the_study_lives_as_long_as_it_is_held() -> None:
    rows = [("a great film", "positive")]
    found = st.study("attention", says, rows, model_options=st.ModelOptions(labels=LABELS), **SMALL)
    folder = found.folder
    assert (folder / "study.html").exists()
    del found
    assert not folder.exists()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    for name, parts in (("bert", toy_bert()), ("lstm", toy_lstm())):
        for part in parts:
            part.save_pretrained(tmp_path / name)
    rows = "\n".join(f'"{text}",{label}' for text, label in toy_rows())
    (tmp_path / "data.csv").write_text(f"text,label\n{rows}\n")
    words = ["study", "attention", "./bert", "./lstm", "data.csv", "--limit", "2", "--draws", "10", "--samples", "50"]
    result = CliRunner().invoke(cli, [*words, "--out", "runs/a"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "2 texts that all models get right" in result.output
    assert "gs-gr at least as strong as attention (A*)" in result.output
    assert json.loads(Path("runs/a/plan.json").read_text())["choice"]["ids"]
    shutil.rmtree("runs/a/lstm")
    again = CliRunner().invoke(cli, ["study", "attention", "--resume", "--out", "runs/a"], catch_exceptions=False)
    assert again.exit_code == 0, again.output
    assert again.output.split("The paper's orders")[0] == result.output.split("The paper's orders")[0]


def test_the_command_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def refusal(*words: str) -> str:
        result = CliRunner().invoke(cli, ["study", *words])
        assert isinstance(result.exception, OptionError), result.output
        return str(result.exception)

    assert "MODEL and DATA are missing" in refusal("attention")
    assert "DATA is missing" in refusal("attention", "builtin:sentiment-cnn")
    assert "of one model (found: 2)" in refusal("bae", "builtin:sentiment-cnn", "builtin:sentiment-lstm", "d.csv")
    assert 'no option of the study attention "score-first"' in refusal("attention", "a", "b", "--score-first")
    assert 'no option of the study bae "draws"' in refusal("bae", "a", "b", "--draws", "3")
