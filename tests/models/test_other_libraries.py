"""Zero-shot models, spaCy pipelines and fastText files: what rows mean, and what is refused in a sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from stockade.core.errors import ModelError, OptionError, ResourceMissing
from stockade.models.adapters import load_model
from stockade.models.huggingface import HuggingFaceClassifier
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.models.contract import cases

NLI = {0: "contradiction", 1: "neutral", 2: "entailment"}


def inference_folder(folder: Path, **options: Any) -> str:
    tiny_bert(num_labels=3, **options).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return f"zero-shot:{folder}"


def test_zero_shot_scores_are_the_softmax_of_entailment(tmp_path: Path) -> None:
    reference = inference_folder(tmp_path / "m", id2label=NLI)
    model = load_model(reference, labels=["bad", "great"], settings={"hypothesis": "the film is {label} ."})
    inner = HuggingFaceClassifier(tiny_bert(num_labels=3, id2label=NLI), tiny_tokenizer())
    text = "a great film"
    pairs = [(text, f"the film is {label} .") for label in ("bad", "great")]
    logits = inner.logits_encoded(inner.encode(pairs))[:, 2]
    powers = np.exp(logits)
    np.testing.assert_allclose(model.predict_proba([text])[0], powers / powers.sum(), atol=1e-6)
    assert model.labels == ("bad", "great")


def test_a_model_that_does_not_say_what_entailment_is(tmp_path: Path) -> None:
    reference = inference_folder(tmp_path / "m")
    with pytest.raises(ModelError, match=r"LABEL_0, LABEL_1, LABEL_2, and none is called entailment"):
        load_model(reference, labels=["a", "b"])
    assert load_model(reference, labels=["a", "b"], settings={"entailment": "LABEL_2"}).predict_proba(
        ["film"]
    ).shape == (1, 2)
    for options, error, message in (
        ({"labels": None}, ModelError, "no classes of its own: name them with --labels"),
        ({"labels": ["a", "a"]}, ModelError, "two or more different labels"),
        ({"labels": ["a", "b"], "settings": {"entailment": "yes"}}, OptionError, "none of the model's"),
        ({"labels": ["a", "b"], "settings": {"hypothesis": "so what"}}, OptionError, "no place for the class"),
    ):
        with pytest.raises(error, match=message):
            load_model(reference, **options)


def test_spacy_answers_with_the_categorizers_scores(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="spacy is not installed")
    case = cases.spacy(tmp_path)
    pipeline = spacy.load(tmp_path / "a")
    model = load_model(case.reference)
    assert model.labels == ("negative", "positive")
    expected = pipeline("a great film").cats["positive"]
    assert model.predict_proba(["a great film"])[0, 1] == pytest.approx(expected, abs=1e-6)
    named: Any = load_model(case.reference, outputs="labels", labels=["no", "yes"])
    assert named.label_only
    assert set(named.predict_proba(["a great film"]).ravel()) == {0.0, 1.0}


def test_spacy_pipelines_that_cannot_be_attacked(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="spacy is not installed")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ModelError, match=r"has no text categorizer"):
        load_model(f"spacy:{tmp_path / 'blank'}")
    several = spacy.blank("en")
    several.add_pipe("textcat_multilabel").add_label("a")
    several.initialize()
    several.to_disk(tmp_path / "several")
    with pytest.raises(ModelError, match="do not exclude each other"):
        load_model(f"spacy:{tmp_path / 'several'}")
    (tmp_path / "broken").mkdir()
    with pytest.raises(ModelError, match="cannot be loaded as a spaCy pipeline"):
        load_model(f"spacy:{tmp_path / 'broken'}")


def test_fasttext_files(tmp_path: Path) -> None:
    fasttext = pytest.importorskip("fasttext", reason="fasttext is not installed")
    case = cases.fasttext(tmp_path)
    model = load_model(case.reference)
    assert sorted(model.labels) == ["negative", "positive"]
    rows = model.predict_proba(["a great film\nindeed", "a bad film", "zzz qqq"])
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    assert [model.labels[column] for column in rows[:2].argmax(axis=1)] == ["positive", "negative"]
    (tmp_path / "no.bin").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="cannot be loaded as a fastText model"):
        load_model(f"fasttext:{tmp_path / 'no.bin'}")
    vectors = fasttext.train_unsupervised(str(tmp_path / "train.txt"), dim=2, minCount=1, epoch=1, thread=1, verbose=0)
    vectors.save_model(str(tmp_path / "vectors.bin"))
    with pytest.raises(ModelError, match="holds word vectors"):
        load_model(f"fasttext:{tmp_path / 'vectors.bin'}")
    free = fasttext.train_supervised(
        str(tmp_path / "train.txt"), loss="ova", dim=2, epoch=30, thread=1, verbose=0, lr=1.0
    )
    free.save_model(str(tmp_path / "ova.bin"))
    with pytest.raises(ModelError, match="another loss than softmax"):
        load_model(f"fasttext:{tmp_path / 'ova.bin'}")


class StandIn:
    """Speaks like a fastText model, for machines where the library cannot be installed."""

    def __init__(self) -> None:
        self.f, self.model, self.loss = self, "supervised", "softmax"

    def getArgs(self) -> StandIn:
        return self

    def get_labels(self) -> list[str]:
        return ["__label__no", "__label__yes"]

    def predict(self, line: str, k: int, threshold: float, on_unicode_error: str) -> list[tuple[float, str]]:
        assert (k, threshold, line.count("\n")) == (-1, 0.0, 1)
        return [(0.75, "__label__yes"), (0.25001, "__label__no")] if line.strip() else []


def test_fasttext_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.bin").write_bytes(b"model")
    library = ModuleType("fasttext")
    library.load_model = lambda path: StandIn()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fasttext", library)
    model = load_model(f"fasttext:{tmp_path / 'm.bin'}")
    assert model.labels == ("no", "yes")
    np.testing.assert_allclose(model.predict_proba(["two\nlines", " "]), [[0.25, 0.75], [0.5, 0.5]], atol=1e-4)


@pytest.mark.parametrize(("module", "reference"), [("spacy", "spacy:some_pipeline"), ("fasttext", "fasttext:{}")])
def test_a_missing_library_is_named(
    module: str, reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.bin").write_bytes(b"model")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ResourceMissing, match=rf'needs {module}, which is not installed: pip install "stockade\[{module}\]"'
    ):
        load_model(reference.format(tmp_path / "m.bin"))
