"""A stranger's function: every shape it may answer in, and one sentence for every shape it may not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Classifier
from stockade.models.adapters import load_model
from stockade.models.python import CallableClassifier

ROWS = [[0.25, 0.75], [0.9, 0.1]]
TEXTS = ["one", "two"]


def answering(answer: Any) -> Callable[[list[Any]], Any]:
    """A model that always says the same; asked about one text, its first row."""
    return lambda texts: answer


@pytest.mark.parametrize(
    "answer",
    [
        ROWS,
        np.array(ROWS),
        np.array(ROWS, dtype=np.float32),
        torch.tensor(ROWS, requires_grad=True),
        [torch.tensor(row) for row in ROWS],
        [np.array(row) for row in ROWS],
        [0.75, 0.1],
        np.array([0.75, 0.1]),
        [
            [{"label": "1", "score": 0.75}, {"label": "0", "score": 0.25}],
            [{"label": "0", "score": 0.9}, {"label": "1", "score": 0.1}],
        ],
    ],
)
def test_every_usual_shape_is_read_as_the_same_probabilities(answer: Any) -> None:
    model = CallableClassifier(answering(answer))
    np.testing.assert_allclose(model.predict_proba(TEXTS), ROWS, atol=1e-7)
    assert model.labels == ("0", "1")
    assert isinstance(model, Classifier)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            [[3.0, 0.21], [1.0, 0.0]],
            r"rows sum to 3\.21 .*these look like logits; declare them "
            'with outputs="logits" / --outputs logits',
        ),
        ([[-0.5, 1.5], [1.0, 0.0]], "these look like logits"),
        ([[0.2, 0.2], [0.5, 0.5]], r"rows sum to 0\.4 .*expected probabilities that sum to 1"),
        ([[0.5, 0.5]], "given 2 texts and answered with 1 rows"),
        ([0.5], "given 2 texts and answered with 1 numbers"),
        ([2, 0], "If they are numbers of classes, answer with a row for each text instead"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        ([[0.5, 0.5], [1.0]], "no table of numbers"),
        (["positive", "negative"], r"names of classes \(found: 'positive'\), expected a row of class probabilities"),
        (np.array(["positive", "negative"]), r"declare that with outputs=.labels. / --outputs labels"),
        (None, "Is a return missing"),
        ((row for row in ROWS), r"generator.*put list\(\.\.\.\) around it"),
        ([{"label": "1", "score": 0.7}, {"label": "0", "score": 0.9}], "top_k=None"),
        ([[{"name": "1"}], [{"name": "1"}]], 'not {"label": name, "score": number}'),
        (0.5, "shape"),
        (np.zeros((2, 0)), "rows of no numbers"),
    ],
)
def test_every_other_shape_is_one_sentence(answer: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        CallableClassifier(answering(answer)).predict_proba(TEXTS)


def test_an_estimator_without_probabilities_is_told_how_to_get_some() -> None:
    pipeline = pytest.importorskip("sklearn.pipeline")
    svm, text = pytest.importorskip("sklearn.svm"), pytest.importorskip("sklearn.feature_extraction.text")
    with pytest.raises(ModelError, match=r"^LinearSVC has no predict_proba.*CalibratedClassifierCV around LinearSVC"):
        CallableClassifier(svm.LinearSVC())
    whole = pipeline.make_pipeline(text.TfidfVectorizer(), svm.LinearSVC())
    with pytest.raises(ModelError, match=r"^Pipeline ends in LinearSVC, which has no predict_proba.*Calibrated"):
        CallableClassifier(whole)
    calibration = pytest.importorskip("sklearn.calibration")
    calibrated = pipeline.make_pipeline(text.TfidfVectorizer(), calibration.CalibratedClassifierCV(svm.LinearSVC()))
    calibrated.fit(["good film", "bad film"] * 5, ["pos", "neg"] * 5)
    assert CallableClassifier(calibrated).labels == ("neg", "pos")


def test_an_object_that_only_predicts_is_told_what_is_expected() -> None:
    class Naming:
        def predict(self, texts: list[str]) -> list[str]:
            return ["pos"] * len(texts)

    with pytest.raises(ModelError, match="Naming has predict and no predict_proba, expected class probabilities"):
        CallableClassifier(Naming())


def test_a_nan_row_is_that_texts_failure_alone() -> None:
    rows = CallableClassifier(answering([[np.nan, 0.5], [0.4, 0.6]])).predict_proba(TEXTS)
    assert np.isnan(rows[0]).all()
    np.testing.assert_allclose(rows[1], [0.4, 0.6])
    assert np.isnan(CallableClassifier(answering([np.inf, 0.6])).predict_proba(TEXTS)[0]).all()


def test_declared_logits_are_soft_maxed_once_in_float64() -> None:
    rows = CallableClassifier(answering([[40.0, 0.0], [np.nan, 0.0]]), outputs="logits").predict_proba(TEXTS)
    assert np.log(rows[0, 0] / rows[0, 1]) == pytest.approx(40.0)
    assert np.isnan(rows[1]).all()
    single = CallableClassifier(answering([0.0, -np.log(3.0)]), outputs="logits").predict_proba(TEXTS)
    np.testing.assert_allclose(single, [[0.5, 0.5], [0.75, 0.25]])


def test_rounding_drift_is_repaired_and_probabilities_are_not_soft_maxed_again() -> None:
    rows = CallableClassifier(answering([[0.3334, 0.6669], [1.0, -1e-9]])).predict_proba(TEXTS)
    np.testing.assert_allclose(rows.sum(1), 1.0, atol=1e-15)
    np.testing.assert_allclose(rows, [[0.3334, 0.6669], [1.0, 0.0]], atol=2e-4)


def test_the_number_of_classes_may_not_change() -> None:
    model = CallableClassifier(lambda texts: [[1 / len(texts[0])] * len(texts[0])] * len(texts))
    model.predict_proba(["ab"])
    with pytest.raises(ModelError, match=r"3 columns but has 2 classes \(0, 1\)"):
        model.predict_proba(["abc"])


def test_labels_are_given_or_carried_or_probed() -> None:
    calls: list[list[Any]] = []

    def predict(texts: list[Any]) -> list[list[float]]:
        calls.append(texts)
        return [[0.1, 0.2, 0.7]] * len(texts)

    assert CallableClassifier(predict, labels=["a", "b", "c"]).labels == ("a", "b", "c")
    assert calls == []
    assert CallableClassifier(predict).labels == ("0", "1", "2")
    assert [len(texts) for texts in calls] == [1]
    predict.labels = ["x", "y", "z"]  # type: ignore[attr-defined]
    assert CallableClassifier(predict).labels == ("x", "y", "z")
    with pytest.raises(ModelError, match="two or more different labels"):
        CallableClassifier(predict, labels=["a", "a", "b"])


def test_a_failing_probe_says_how_to_do_without() -> None:
    def pairs_only(texts: list[tuple[str, str]]) -> list[list[float]]:
        return [[float(premise == hypothesis), float(premise != hypothesis)] for premise, hypothesis in texts]

    with pytest.raises(ModelError, match=r"Name them with labels=\[…\] / --labels"):
        _ = CallableClassifier(pairs_only).labels
    rows = CallableClassifier(pairs_only, labels=["same", "other"]).predict_proba([("a", "a"), ("a", "b")])
    np.testing.assert_array_equal(rows, [[1, 0], [0, 1]])


def test_pipeline_labels_are_put_into_one_order() -> None:
    def pipe(texts: list[str]) -> list[list[dict[str, Any]]]:
        return [[{"label": "POS", "score": 0.8}, {"label": "NEG", "score": 0.2}] for _ in texts]

    assert CallableClassifier(pipe).labels == ("NEG", "POS")
    np.testing.assert_allclose(CallableClassifier(pipe, labels=["POS", "NEG"]).predict_proba(["a"]), [[0.8, 0.2]])
    with pytest.raises(ModelError, match="answered with the labels NEG, POS; expected bad, good"):
        CallableClassifier(pipe, labels=["bad", "good"]).predict_proba(["a"])


def test_an_estimator_brings_its_classes() -> None:
    estimator = make_pipeline(CountVectorizer(), LogisticRegression())
    estimator.fit(["good film", "bad film", "good", "bad"], ["pos", "neg", "pos", "neg"])
    model = load_model(estimator)
    assert model.labels == ("neg", "pos")
    np.testing.assert_allclose(model.predict_proba(TEXTS), estimator.predict_proba(TEXTS))
    before = model.fingerprint()  # type: ignore[attr-defined]
    estimator[-1].coef_ += 1.0
    assert CallableClassifier(estimator).fingerprint() != before


def test_fingerprints_tell_functions_apart() -> None:
    def first(texts: list[str]) -> list[float]:
        return [0.1] * len(texts)

    def second(texts: list[str], value: float = 0.2) -> list[float]:
        return [value] * len(texts)

    prints = [
        CallableClassifier(function).fingerprint()
        for function in (first, second, partial(second, value=0.3), partial(second, value=0.4))
    ]
    assert len(set(prints)) == 4
    assert CallableClassifier(first).fingerprint() == prints[0]


def test_python_references_import_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_victim.py").write_text(
        "def predict(texts):\n    return [0.5] * len(texts)\n\nclass Model:\n    pass\n\nlimit = 3\n"
    )
    (tmp_path / "my_broken.py").write_text("import not_installed_anywhere\n")
    (tmp_path / "my_raising.py").write_text("raise RuntimeError('no weights')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in __import__("sys").path if path])
    assert load_model("python:my_victim:predict").predict_proba(["a"]).tolist() == [[0.5, 0.5]]
    for reference, message in {
        "python:my_victim": "expected python:package.module:attribute",
        "python:no_such_module:predict": "There is no module no_such_module",
        "python:my_victim:predictt": r"has no predictt .*found: .*predict",
        "python:my_victim:Model": "is a class",
        "python:my_victim:limit": "is not a model",
        "python:my_broken:predict": "needs not_installed_anywhere, which is not installed",
        "python:my_raising:predict": "cannot be imported .*no weights",
    }.items():
        with pytest.raises(ModelError, match=message):
            load_model(reference)


def test_other_objects_and_options_are_refused() -> None:
    for thing in (3, {"a": 1}, (1, 2, 3)):
        with pytest.raises(ModelError, match="not a model"):
            load_model(thing)
    with pytest.raises(OptionError, match="outputs"):
        load_model(answering(ROWS), outputs="scores")
    with pytest.raises(OptionError, match='Did you mean "sentiment-cnn"'):
        load_model("builtin:sentiment-cn")
    ready = CallableClassifier(answering(ROWS), labels=["n", "p"])
    assert load_model(ready) is ready
    with pytest.raises(ModelError, match="names its own classes"):
        load_model(ready, labels=["a", "b"])
