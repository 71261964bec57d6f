"""Saved scikit-learn pipelines: what is opened, what is refused before anything of it runs, what rows mean."""

from __future__ import annotations

import math
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import ModelError, ResourceMissing, RunError
from stockade.models.adapters import load_model
from stockade.models.code import code_fingerprint
from tests.models.contract.cases import fitted

joblib = pytest.importorskip("joblib", reason="scikit-learn is not installed")
TEXTS = ["a great film", "a bad film"]


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (f"open({self.path!r}, 'w').close()",)


class Lexicon:
    """A class of the user's own with predict_proba, which skops cannot know."""

    classes_ = ("bad", "good")

    def predict_proba(self, texts: list[str]) -> list[list[float]]:
        return [[0.25, 0.75] if "great" in text else [0.9, 0.1] for text in texts]


def save(model: Any, path: Path) -> str:
    joblib.dump(model, path)
    return f"sklearn:{path}"


def test_a_pickle_is_not_opened_unasked_and_the_error_says_what_it_risks(tmp_path: Path) -> None:
    for name, dump in (
        ("model.joblib", joblib.dump),
        ("model.pkl", lambda model, path: path.write_bytes(pickle.dumps(model))),
    ):
        ran, path = tmp_path / "ran", tmp_path / name
        dump(Canary(ran), path)
        with pytest.raises(ModelError, match=r"can run any code of whoever made it, with your rights.*--allow-pickle"):
            load_model(f"sklearn:{path}")
        assert not ran.exists()


def test_a_joblib_pipeline_answers_like_itself(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    pipeline = fitted(LogisticRegression())
    model = load_model(save(pipeline, tmp_path / "m.joblib"), allow_pickle=True)
    assert model.labels == ("negative", "positive")
    np.testing.assert_allclose(model.predict_proba(TEXTS), pipeline.predict_proba(TEXTS))


def test_margins_become_probabilities_that_rank_alike(tmp_path: Path) -> None:
    from sklearn.svm import LinearSVC

    pipeline = fitted(LinearSVC())
    model: Any = load_model(save(pipeline, tmp_path / "m.joblib"), allow_pickle=True)
    margins = pipeline.decision_function(TEXTS)
    expected = [1 / (1 + math.exp(-margin)) for margin in margins]
    np.testing.assert_allclose(model.predict_proba(TEXTS)[:, 1], expected)
    assert not model.calibrated


def test_margins_of_several_classes_become_a_softmax(tmp_path: Path) -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC, LinearSVC

    texts, classes = ["one", "two", "three", "one one", "two two", "three three"], [1, 2, 3, 1, 2, 3]
    pipeline = make_pipeline(CountVectorizer(), LinearSVC()).fit(texts, classes)
    model = load_model(save(pipeline, tmp_path / "m.joblib"), allow_pickle=True)
    powers = np.exp(pipeline.decision_function(["two"])[0])
    np.testing.assert_allclose(model.predict_proba(["two"])[0], powers / powers.sum())
    assert model.labels == ("1", "2", "3")
    pairwise = make_pipeline(CountVectorizer(), SVC(decision_function_shape="ovo")).fit(texts, classes)
    reference = save(pairwise, tmp_path / "ovo.joblib")
    with pytest.raises(ModelError, match=r"compares its classes in pairs.*ovr"):
        load_model(reference, allow_pickle=True)
    assert load_model(reference, allow_pickle=True, outputs="labels").predict_proba(["two"]).tolist() == [[0, 1, 0]]


def test_what_is_no_classifier_of_texts_is_refused(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.pipeline import make_pipeline

    for model, message in (
        (3, "holds a int, expected a fitted scikit-learn classifier"),
        (make_pipeline(LogisticRegression()), "was not fitted"),
    ):
        with pytest.raises(ModelError, match=message):
            load_model(save(model, tmp_path / "m.joblib"), allow_pickle=True)
    assert load_model(save(fitted(RidgeClassifier()), tmp_path / "r.joblib"), allow_pickle=True).labels
    (tmp_path / "broken.joblib").write_bytes(b"\x80\x04nothing")
    with pytest.raises(ModelError, match=r"cannot be opened by joblib"):
        load_model(f"sklearn:{tmp_path / 'broken.joblib'}", allow_pickle=True)
    with pytest.raises(ModelError, match=r"is no file; expected a saved scikit-learn pipeline"):
        load_model(f"sklearn:{tmp_path}")


def test_types_that_skops_does_not_know_are_named_and_refused(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    path = tmp_path / "m.skops"
    io.dump(Lexicon(), path)
    with pytest.raises(ModelError, match=r"tests\.models\.test_scikit_learn\.Lexicon.*can run code.*--allow-pickle"):
        load_model(f"sklearn:{path}")
    assert load_model(f"sklearn:{path}", allow_pickle=True).labels == ("bad", "good")


def test_an_archive_that_leads_out_of_itself_is_refused(tmp_path: Path) -> None:
    for name in ("../escape", "/etc/passwd", "C:\\windows", "a/../../b"):
        path = tmp_path / "m.skops"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "{}")
        with pytest.raises(ModelError, match="leads out of the archive"):
            load_model(f"sklearn:{path}")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(ModelError, match=r"cannot be read as a file of skops|needs skops"):
        load_model(f"sklearn:{path}")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    monkeypatch.setitem(__import__("sys").modules, "skops.io", None)
    with pytest.raises(
        ResourceMissing, match=r'needs skops, which is not installed: pip install "stockade\[sklearn\]"'
    ):
        load_model(f"sklearn:{path}")


def test_a_folder_cannot_have_a_pickle_opened(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    reference = save(fitted(LogisticRegression()), tmp_path / "m.joblib")
    folder, ran = tmp_path / "run", tmp_path / "ran"
    data = tmp_path / "d.csv"
    data.write_text("text,label\na great film,positive\n")
    options = st.ModelOptions(allow_pickle=True)
    run = st.attack(reference, data, "deepwordbug", out=folder, model_options=options, similarity=False)
    assert run.manifest.inputs["model"]["code"] == code_fingerprint(reference)
    save(Canary(ran), tmp_path / "m.joblib")
    for trust, message in ((False, "--trust-run"), (True, "is not what it was")):
        with pytest.raises(RunError, match=message):
            st.resume(folder, trust=trust)
    assert not ran.exists()


def test_a_model_of_labels_alone_is_recorded_as_such(tmp_path: Path) -> None:
    from sklearn.linear_model import Perceptron

    reference = save(fitted(Perceptron()), tmp_path / "m.joblib")
    options = st.ModelOptions(allow_pickle=True, outputs="labels")
    run = st.attack(reference, [("a great film", "positive")], "deepwordbug", model_options=options, similarity=False)
    assert run.manifest.inputs["model"]["label_only"] is True
    assert set(run.examples[0].original_scores) == {0.0, 1.0}
