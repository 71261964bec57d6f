"""The contract: what every adapter's classifiers do, whatever library computes them.

A new adapter adds a case to `cases.py` and passes all of this.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import ModelError, OptionError, StockadeError
from stockade.core.protocols import Classifier, is_label_only
from stockade.models import adapters
from stockade.models.adapters import load_model
from tests.models.contract.cases import CASES, TEXTS, Case

ODD = ("", " ", "great " * 600, "Ünïcödé 漢字 🎬 great", "tab\tnew\nline", "<b>&amp;</b>")


@pytest.fixture(params=list(CASES), scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return CASES[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def model(case: Case) -> Classifier:
    return load_model(case.reference, **case.options)


def test_every_adapter_has_a_case() -> None:
    for scheme in adapters._ADAPTERS:
        assert any(name == scheme or name.startswith(f"{scheme}-") for name in CASES), scheme


def test_it_has_labels_and_says_whether_it_is_deterministic(model: Classifier) -> None:
    assert isinstance(model, Classifier)
    assert isinstance(model.labels, tuple)
    assert len(model.labels) >= 2
    assert len(set(model.labels)) == len(model.labels)
    assert all(isinstance(label, str) for label in model.labels)
    assert isinstance(model.deterministic, bool)


def test_a_text_gets_a_row_of_probabilities(model: Classifier) -> None:
    rows = model.predict_proba(list(TEXTS))
    assert rows.shape == (len(TEXTS), len(model.labels))
    assert rows.dtype == np.float64
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-9)


def test_no_text_gets_no_row(model: Classifier) -> None:
    assert model.predict_proba([]).shape == (0, len(model.labels))


def test_rows_depend_neither_on_the_batch_nor_on_its_order(model: Classifier, case: Case) -> None:
    together = model.predict_proba(list(TEXTS))
    alone = np.concatenate([model.predict_proba([text]) for text in TEXTS])
    backwards = model.predict_proba(list(TEXTS)[::-1])[::-1]
    np.testing.assert_allclose(alone, together, atol=case.tolerance)
    np.testing.assert_allclose(backwards, together, atol=case.tolerance)
    if model.deterministic:
        np.testing.assert_array_equal(model.predict_proba(list(TEXTS)), together)


def test_texts_differ_in_their_rows(model: Classifier) -> None:
    rows = model.predict_proba(["a great film", "a bad film"])
    assert not np.allclose(rows[0], rows[1])


def test_a_model_without_scores_has_one_class_per_row(model: Classifier) -> None:
    if is_label_only(model):
        assert sorted(set(model.predict_proba(list(TEXTS)).ravel().tolist())) == [0.0, 1.0]


@pytest.mark.parametrize("text", ODD, ids=["empty", "blank", "long", "unicode", "control", "markup"])
def test_odd_texts_are_answered(model: Classifier, text: str) -> None:
    rows = model.predict_proba([text, "a great film"])
    assert np.isfinite(rows).all()


def test_pairs_are_read_or_refused_in_a_sentence(model: Classifier, case: Case) -> None:
    pair = ("a film", "a great film")
    if case.reads_pairs:
        assert model.predict_proba([pair]).shape == (1, len(model.labels))
    else:
        with pytest.raises(ModelError, match=r"reads single texts, and the data are pairs"):
            model.predict_proba([pair])


def test_the_fingerprint_is_that_of_the_model(model: Any, case: Case) -> None:
    same, other = (load_model(name, **case.options) for name in (case.reference, case.other))
    assert re.fullmatch(r"[0-9a-f]{64}", model.fingerprint())
    assert same.fingerprint() == model.fingerprint()  # type: ignore[attr-defined]
    assert other.fingerprint() != model.fingerprint()  # type: ignore[attr-defined]


def test_classes_can_be_renamed(model: Classifier, case: Case) -> None:
    names = [f"class {number}" for number in range(len(model.labels))]
    if case.names_classes and not is_label_only(model):
        renamed = load_model(case.reference, **{**case.options, "labels": names})
        assert renamed.labels == tuple(names)
        np.testing.assert_allclose(renamed.predict_proba(["a great film"]), model.predict_proba(["a great film"]))
    with pytest.raises(StockadeError) as caught:
        load_model(case.reference, **{**case.options, "labels": ["the", "the"]}).predict_proba(["a film"])
    assert_one_sentence(caught.value)


def test_what_is_not_there_is_said_in_a_sentence(case: Case) -> None:
    with pytest.raises(StockadeError) as caught:
        load_model(case.absent, **(case.options if case.absent_options is None else case.absent_options)).predict_proba(
            ["a film"]
        )
    assert_one_sentence(caught.value)


def test_an_option_that_does_not_concern_it_is_refused(case: Case) -> None:
    settings = {**case.options.get("settings", {}), "no_such_setting": 1}
    with pytest.raises(OptionError, match=r"--setting is for models|no_such_setting"):
        load_model(case.reference, **{**case.options, "settings": settings})


def test_it_is_attacked_and_verified_by_its_reference(case: Case, tmp_path: Path) -> None:
    options = st.ModelOptions(**case.options)
    label = load_model(case.reference, **case.options).labels[-1]
    data = tmp_path / "data.csv"
    data.write_text(f"text,label\na great film,{label}\nthe film was great and not bad,{label}\n")
    folder = tmp_path / "run"
    run = st.attack(
        case.reference, data, "deepwordbug", preset="textattack", out=folder, similarity=False, model_options=options
    )
    numbers = run.summary["attacks"]["deepwordbug"]
    assert (numbers["n"], numbers["errors"]) == (2, 0)
    assert st.resume(folder, trust=True).summary["attacks"]["deepwordbug"] == numbers
    assert st.load(folder).verify(trust=True).holds


def assert_one_sentence(error: BaseException) -> None:
    message = str(error)
    assert message.endswith((".", "?", '"'))
    assert "\n" not in message
    assert len(message) < 700
