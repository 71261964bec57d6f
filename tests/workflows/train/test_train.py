"""A training as a whole: what it learns, what its folder holds, what it can be trained on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification

import stockade as st
from stockade.core.errors import DataError, ModelError, OptionError, RunError
from stockade.report.heat_map import HeatMap
from stockade.workflows.train.result import TrainResult
from tests.training.tiny import BAD, GOOD, OPTIONS, build, rows, train_tiny

SHORT = OPTIONS.changed(epochs=1)
CLASSES = ("negative", "positive")


def test_it_learns_and_the_folder_is_a_model(trained: TrainResult) -> None:
    assert trained.accuracy == 1.0
    assert trained.history[-1].loss < trained.history[0].loss / 5
    classifier = st.load_model(trained.folder)
    assert classifier.labels == CLASSES
    texts = [f"a {word} film" for word in (*GOOD, *BAD)]
    assert classifier.predict_proba(texts).argmax(1).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_the_folder_says_what_was_done(trained: TrainResult) -> None:
    names = {path.name for path in trained.folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "manifest.json", "report.html"} <= names
    assert "checkpoint" not in names
    assert trained.complete
    assert trained.manifest.spec["options"]["seed"] == 3
    assert trained.summary["history"][-1]["validation"]["accuracy"] == 1.0
    card = (trained.folder / "README.md").read_text()
    low, high = trained.interval or (0, 0)
    assert f"| all classes | 20 | 20 | 1.0000 ({low:.3f} to {high:.3f}) |" in card
    assert trained.manifest.inputs["data"]["fingerprint"] in card
    assert "| learning_rate | 0.02 |" in card
    page = (trained.folder / "report.html").read_text()
    assert "<svg" in page
    assert "validation accuracy" in page
    assert 'http-equiv="refresh"' not in page
    assert 'href="http' not in page.replace("xlink:href", "")


def test_it_is_opened_and_verified_like_any_job(trained: TrainResult) -> None:
    opened = st.load(trained.folder)
    assert isinstance(opened, TrainResult)
    assert opened.history == trained.history
    assert opened.verify().holds


def test_the_trained_folder_can_be_attacked(trained: TrainResult) -> None:
    run = st.attack(trained.folder, rows(8, seed=5), "deepwordbug", similarity=False)
    numbers = run.summary["attacks"]["deepwordbug"]
    assert numbers["n"] == 8
    assert numbers["errors"] == 0
    assert numbers["succeeded"] > 0


@pytest.mark.usefixtures("plain_report")
def test_a_trained_model_is_trained_further(trained: TrainResult, tmp_path: Path) -> None:
    again = st.train(rows(40, seed=9), model=trained.folder, out=tmp_path / "m", epochs=1, learning_rate=1e-9, seed=1)
    assert again.accuracy == 1.0
    with pytest.raises(DataError, match=r'has the label "spam".* which is no class of the model'):
        st.train([("a film", "spam"), ("the film", "positive")], model=trained.folder, out=tmp_path / "n")
    with pytest.raises(ModelError, match="has no weights to train"):
        st.train(rows(), model=lambda texts: [[0.5, 0.5] for _ in texts], out=tmp_path / "n")
    model, tokenizer = build([], CLASSES, 0)
    before = [weight.clone() for weight in model.parameters()]
    st.train(rows(20), model=(model, tokenizer), out=tmp_path / "o", epochs=1)
    assert all(torch.equal(first, second) for first, second in zip(before, model.parameters(), strict=True))


@pytest.mark.usefixtures("plain_report")
def test_labels_of_any_kind_are_the_names_of_the_classes(tmp_path: Path) -> None:
    result = train_tiny(
        tmp_path / "m", [(text, 7 if label == "positive" else 3) for text, label in rows()], options=SHORT
    )
    assert result.load().labels == ("3", "7")
    run = st.attack(result.folder, [("a great film", 7), ("a dull film", 3)], "pwws", similarity=False)
    assert run.summary["attacks"]["pwws"]["n"] == 2


@pytest.mark.usefixtures("plain_report")
def test_empty_texts_are_trained_on_and_counted(tmp_path: Path) -> None:
    data = [*rows(40), ("", "negative"), ("  ", "positive"), ("", "negative")]
    result = train_tiny(tmp_path / "m", data, options=SHORT)
    warnings = " ".join(result.warnings)
    assert "3 of the 43 texts of the list are empty; they are trained on" in warnings
    assert result.load().predict_proba([""]).shape == (1, 2)


@pytest.mark.usefixtures("plain_report")
def test_pairs(tmp_path: Path) -> None:
    result = train_tiny(tmp_path / "m", [(("a film", text), label) for text, label in rows()], options=SHORT)
    assert result.load().predict_proba([("a film", "a great film")]).shape == (1, 2)


@pytest.mark.usefixtures("plain_report")
def test_from_python(tmp_path: Path) -> None:
    sizes, out = {"filters": 8}, tmp_path / "m"
    result = st.train(rows(60), "CNN-W-Random-1", out=out, sizes=sizes, epochs=2, seed=4, labels=CLASSES)
    assert result.folder == out
    assert result.classes == CLASSES
    assert len(result.history) == 2
    assert AutoModelForSequenceClassification.from_pretrained(out).config.id2label == dict(enumerate(CLASSES))
    with pytest.raises(RunError, match="made from Python objects"):
        st.resume(out)
    with pytest.raises(OptionError, match="no data"):
        st.train(None, out=tmp_path / "n")
    with pytest.raises(OptionError, match=r'no training option "arch".*Did you mean "architecture"'):
        st.train(rows(), arch="CNN-W-Random-1", out=tmp_path / "n")
    assert not (tmp_path / "n").exists()


def test_the_page_says_how_good_it_is_and_which_class_is_taken_for_which(trained: TrainResult) -> None:
    document = trained.document()
    assert document.title.endswith(" is right on 100.0 % of the validation texts")
    confusion = trained.best.validation.confusion
    assert [sum(row) for row in confusion] == list(trained.best.validation.totals)
    assert [row[at] for at, row in enumerate(confusion)] == list(trained.best.validation.right)
    (heat_map,) = [block for block in document.blocks if isinstance(block, HeatMap)]
    assert heat_map.values == ((1.0, 0.0), (0.0, 1.0))
    markdown = document.to_markdown().partition("<summary>Options")[0]
    assert "## By class" in markdown
    assert "**Which class is taken for which**" in markdown
    assert "learning_rate" not in markdown, "options are folded away"
    assert trained.best == st.load(trained.folder).best  # type: ignore[attr-defined]
