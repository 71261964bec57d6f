"""The adapter registry: who reads which reference or object, in which order, and what unknown schemes are told."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from stockade.models import adapters
from stockade.models.adapters import AdapterRegistry, LoadOptions, load_model, register_model
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.models.python import CallableClassifier


class Coin:
    """An object that only the adapter below takes."""

    deterministic = True

    def __init__(self, heads: float, labels: Sequence[str] = ("tails", "heads")) -> None:
        self.heads, self.labels = heads, tuple(labels)

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        return np.array([[1 - self.heads, self.heads] for _ in inputs])


class CoinAdapter:
    """Reads `coin:PROBABILITY` and numbers."""

    def matches(self, model: object) -> bool:
        return isinstance(model, float) or str(model).startswith("coin:")

    def load(self, model: object, options: LoadOptions) -> Coin:
        heads = float(str(model).removeprefix("coin:"))
        return Coin(heads) if options.labels is None else Coin(heads, options.labels)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> AdapterRegistry:
    """The package's adapters in a registry that forgets what a test adds."""
    fresh = AdapterRegistry(adapters._ADAPTERS, adapters._GROUP)
    monkeypatch.setattr(adapters, "MODEL_ADAPTERS", fresh)
    return fresh


def test_each_kind_of_model_has_its_adapter(registry: AdapterRegistry, tmp_path: Path, bert: Any) -> None:
    def predict(texts: list[str]) -> list[float]:
        return [0.5] * len(texts)

    for model, scheme in (
        ("builtin:sentiment-cnn", "builtin"),
        ("ensemble:builtin:sentiment-cnn,some/name", "ensemble"),
        ("python:my_model:predict", "python"),
        ("huggingface:some/name", "huggingface"),
        ("sklearn:model.skops", "sklearn"),
        ("onnx:some/folder", "onnx"),
        ("https://host.example/predict", "https"),
        ("http://host.example/predict", "http"),
        ("chat:https://host.example/v1#small", "chat"),
        ("zero-shot:some/name", "zero-shot"),
        ("spacy:en_core_web_sm", "spacy"),
        ("fasttext:model.bin", "fasttext"),
        ("some/name", "huggingface"),
        (tmp_path, "huggingface"),
        ((bert, None), "huggingface"),
        (bert, "huggingface"),
        (predict, "python"),
        (CallableClassifier(predict, labels=["a", "b"]), "python"),
        (3, "python"),
    ):
        assert registry.find(model) is registry._adapter(scheme), model


def test_a_registered_adapter_reads_its_scheme_and_its_objects(registry: AdapterRegistry) -> None:
    assert register_model("coin")(CoinAdapter) is CoinAdapter
    assert load_model("coin:0.75").predict_proba(["a"]).tolist() == [[0.25, 0.75]]
    assert load_model(0.25, labels=["no", "yes"]).labels == ("no", "yes")
    assert registry.schemes == ("coin", *adapters._ADAPTERS)
    register_model("coin")(CoinAdapter)  # a cell of a notebook that is run twice
    with pytest.raises(OptionError, match=r'The scheme "coin" belongs to the adapter .*CoinAdapter already'):
        register_model("coin")(type("Other", (CoinAdapter,), {}))
    with pytest.raises(OptionError, match=r"belongs to the adapter stockade\.models\.python:PythonAdapter already"):
        register_model("python")(CoinAdapter)


@pytest.mark.parametrize("scheme", ["", "c", "Coin", "two words", "a:b"])
def test_a_scheme_that_no_reference_could_have_is_refused(registry: AdapterRegistry, scheme: str) -> None:
    with pytest.raises(OptionError, match="cannot be the scheme of a model"):
        register_model(scheme)(CoinAdapter)


def test_what_is_no_adapter_is_refused(registry: AdapterRegistry) -> None:
    for wrong in (type("NoLoad", (), {"matches": lambda self, model: True}), CoinAdapter()):
        with pytest.raises(OptionError, match="is no model adapter: expected a class with matches and load"):
            register_model("wrong")(wrong)  # type: ignore[type-var]


def test_an_entry_point_adds_an_adapter_and_a_broken_one_is_one_sentence(registry: AdapterRegistry) -> None:
    def point(name: str, value: str) -> EntryPoint:
        return EntryPoint(name, value, "stockade.models")

    registry._plugins = {"coin": point("coin", f"{__name__}:CoinAdapter"), "gone": point("gone", "not_installed:A")}
    assert load_model("coin:1").predict_proba(["a"]).tolist() == [[0.0, 1.0]]
    with pytest.raises(ModelError, match=r'adapter "gone" cannot be loaded from not_installed:A .*uninstall'):
        load_model("gone:x")


@pytest.mark.parametrize("reference", ["keras:model.h5", "grpc://localhost/x"])
def test_an_unknown_scheme_is_answered_with_those_there_are(reference: str) -> None:
    with pytest.raises(
        ModelError,
        match=r"There is no model scheme .*\(found: builtin, .*huggingface, .*python, .*\).*python:package\.module:f",
    ):
        load_model(reference)


def test_a_misspelt_scheme_is_offered_the_nearest() -> None:
    with pytest.raises(ModelError, match=r'There is no model scheme "buitlin" .*Did you mean "builtin"\?$'):
        load_model("buitlin:sentiment-cnn")


def test_a_folder_may_have_a_colon_in_its_name(bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bert_folder.parent)
    bert_folder.rename("model:1")
    assert load_model("model:1").labels == ("LABEL_0", "LABEL_1")


def test_a_classifier_is_itself(bert: Any, tokenizer: Any) -> None:
    ready = HuggingFaceClassifier(bert, tokenizer, labels=["bad", "good"])
    assert load_model(ready) is ready
    assert load_model(ready, device="cpu").labels == ("bad", "good")
    assert load_model(ready, labels=["no", "yes"]).labels == ("no", "yes")


def test_a_classifier_around_a_network_answers_for_itself(bert: Any, tokenizer: Any) -> None:
    coin = Coin(1.0)
    coin.model, coin.tokenizer = bert, tokenizer  # type: ignore[attr-defined]
    assert load_model(coin) is coin
