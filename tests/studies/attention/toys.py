"""Two tiny random victims, one self-attentive and one recurrent, that are easily fooled by one word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from stockade.core.text import TextInput
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.models.zoo.build import build_model
from tests.models.conftest import tiny_bert, tiny_tokenizer

LABELS = ["negative", "positive"]
TEXTS = (
    "a great film and the film was bad",
    "the film is bad and not great .",
    "not a great film",
    "was the film not bad",
    "a film is a film",
    "greatly bad films",
    "the great and the bad",
    "bad bad bad film",
    "is the film great and is a film bad and not great",
    "great great great film and great films",
)


def toy_bert() -> tuple[Any, Any]:
    model = tiny_bert(id2label=dict(enumerate(LABELS)), label2id={name: at for at, name in enumerate(LABELS)})
    return balanced(model, tiny_tokenizer())


def toy_lstm() -> tuple[Any, Any]:
    options = {"hidden_size": 8, "embedding": "Random", "embedding_size": 50, "minimum_count": 1}
    model, tokenizer = build_model("BiLSTM-attention", TEXTS, LABELS, seed=1, options=options)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        weights: torch.Tensor = model.get_input_embeddings().weight  # type: ignore[assignment]
        weights.copy_(torch.randn(weights.shape, generator=generator) * 2)
    return balanced(model, tokenizer)


def balanced(model: Any, tokenizer: Any, texts: Sequence[TextInput] = TEXTS) -> tuple[Any, Any]:
    """Moves the bias so that half of the texts are of each class."""
    margins = _log_odds(model, tokenizer, texts)
    with torch.no_grad():
        model.classifier.bias[1] -= float(torch.tensor(margins).median()) + 1e-3
    return model, tokenizer


def _log_odds(model: Any, tokenizer: Any, texts: Sequence[TextInput]) -> list[float]:
    rows = HuggingFaceClassifier(model, tokenizer).predict_proba(list(texts))
    return [float(torch.logit(torch.tensor(row[1]), eps=1e-12)) for row in rows]


def toy_rows() -> list[tuple[str, str]]:
    """Labelled by the self-attentive model, so that the other one is wrong on some."""
    classes = HuggingFaceClassifier(*toy_bert()).predict_proba(list(TEXTS)).argmax(1)
    return [(text, LABELS[label]) for text, label in zip(TEXTS, classes.tolist(), strict=True)]
