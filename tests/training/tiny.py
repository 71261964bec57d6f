"""A transformer of a few hundred weights, with dropout, and texts it can learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from stockade.experiment.progress import Observer, Runtime
from stockade.training.network import Origin
from stockade.training.options import TrainingOptions
from stockade.workflows.train import page
from stockade.workflows.train.result import TrainResult
from stockade.workflows.train.run import train_origin
from stockade.workflows.train.spec import TrainSpec

GOOD, BAD = ("good", "great", "fun", "fine"), ("bad", "dull", "worst", "poor")
PLAIN = ("a", "film", "the", "story", "with", "and", "of", "picture")
OPTIONS = TrainingOptions(epochs=3, batch=8, learning_rate=0.01, weight_decay=0.01, seed=3, precision="float32")


def rows(number: int = 60, seed: int = 0) -> list[tuple[str, str]]:
    """Texts with one telling word each."""
    rng = Random(seed)
    texts = []
    for index in range(number):
        words = [rng.choice(PLAIN) for _ in range(rng.randint(1, 7))]
        words.insert(rng.randrange(len(words) + 1), rng.choice(GOOD if index % 2 else BAD))
        texts.append((" ".join(words), "positive" if index % 2 else "negative"))
    return texts


def tokenizer() -> Any:
    words = ("[PAD]", "[UNK]", *PLAIN, *GOOD, *BAD)
    backend = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", model_max_length=64)


def build(texts: Sequence[Any], classes: Sequence[str], seed: int, width: int = 16, dropout: float = 0.2) -> Any:
    """(model, tokenizer), as the zoo builds them."""
    config = BertConfig(
        vocab_size=18,
        hidden_size=width,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=width,
        max_position_embeddings=64,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        id2label=dict(enumerate(classes)),
        label2id={name: number for number, name in enumerate(classes)},
    )
    return BertForSequenceClassification(config), tokenizer()


def tiny_origin(name: str = "tiny", **options: Any) -> Origin:
    """Builds the tiny transformer, whatever the architecture is called."""
    return Origin(architecture=name, builder=lambda texts, classes, seed: build(texts, classes, seed, **options))


def train_tiny(
    out: Path,
    data: object = None,
    *,
    origin: Origin | None = None,
    options: TrainingOptions = OPTIONS,
    resume: bool = False,
    observer: Observer | None = None,
    **spec: Any,
) -> TrainResult:
    """Trains the tiny transformer as `st.train` trains those of the zoo, on `rows()` unless there are other data."""
    origin = tiny_origin() if origin is None else origin
    described = TrainSpec.of(
        data=rows() if data is None else data,
        architecture=origin.architecture,
        model=origin.model,
        options=options.described(),
        **spec,
    )
    return train_origin(described, origin, out, Runtime(observer=observer), resume)


def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the curves out of reports, for tests of other things: drawing takes longer than training here."""
    monkeypatch.setattr(page, "loss_plot", lambda result: "")
