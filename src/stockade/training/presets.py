"""Training options by name: what suits a kind of model, and what a paper used."""

from __future__ import annotations

import re

from stockade.core.errors import unknown_name
from stockade.training.options import TrainingOptions

_WORD = TrainingOptions(
    epochs=8, batch=50, learning_rate=1e-3, weight_decay=0.01, patience=3, word_dropout=0.05, max_length=512
)
_CHARACTER = TrainingOptions(epochs=12, batch=50, learning_rate=1e-3, weight_decay=0.01, warm_up=0.03, patience=4)
_TRANSFORMER = TrainingOptions(
    epochs=4, batch=32, learning_rate=2e-5, weight_decay=0.01, warm_up=0.06, patience=2, max_length=256
)
_MINILM = TrainingOptions(
    epochs=4, batch=32, learning_rate=1e-4, weight_decay=0.01, warm_up=0.06, patience=2, max_length=256
)
_SCRATCH = TrainingOptions(
    epochs=12, batch=32, learning_rate=3e-4, weight_decay=0.01, warm_up=0.1, patience=4, max_length=256
)
_BILM = TrainingOptions(epochs=10, batch=32, learning_rate=1e-3, weight_decay=0.0, warm_up=0.03, patience=2)
_RANMASK = TrainingOptions(
    epochs=20, batch=32, learning_rate=5e-5, weight_decay=1e-6, schedule="cosine", clip=1.0, max_length=128
)
_FIREBERT = TrainingOptions(
    epochs=5, batch=32, learning_rate=2e-5, weight_decay=0.0, epsilon=1e-8, clip=1.0, max_length=128
)
_FACT = _FIREBERT.changed(epochs=1, batch=7, schedule_unit="texts")

PRESETS: dict[str, tuple[TrainingOptions, str]] = {
    "zoo-word": (_WORD, "word-level CNNs and LSTMs"),
    "zoo-character": (_CHARACTER, "models that read characters"),
    "minilm": (_MINILM, "MiniLM, all weights"),
    "transformer": (_TRANSFORMER, "BERT, RoBERTa and their kin"),
    "scratch": (_SCRATCH, "transformers that begin at random weights"),
    "bilm": (_BILM, "a two-way language model"),
    "ranmask": (_RANMASK, "RanMASK as its text says (Zeng et al. 2023); IMDB: max length 256"),
    "ranmask-authors": (_RANMASK.changed(epochs=10), "RanMASK as its code does: 10 epochs"),
    "firebert": (_FIREBERT, "the re-tuned baseline of FireBERT (MNLI); IMDB: batch 20, length 256"),
    "fact": (_FACT, "FireBERT's co-tuning (MNLI)"),
    "fact-imdb": (_FACT.changed(batch=2, max_length=256), "FireBERT's co-tuning (IMDB)"),
}

_BY_NAME = (
    (r"bilm", "bilm"),
    (r"minilm", "minilm"),
    (r"nopt", "scratch"),
    (r"bert|electra|xlnet|deberta", "transformer"),
    (r"-(w?c)-|char", "zoo-character"),
    (r"cnn|lstm|gru", "zoo-word"),
)


def preset(name: str) -> TrainingOptions:
    """The options of that name."""
    if name not in PRESETS:
        raise unknown_name("training preset", name, PRESETS)
    return PRESETS[name][0]


def preset_for(architecture: str) -> str:
    """The preset that suits a model, by its name in the zoo or the `model_type` of its config."""
    for pattern, found in _BY_NAME:
        if re.search(pattern, architecture.lower()):
            return found
    return "transformer"
