"""Training options: ranges, strings, presets."""

from __future__ import annotations

from typing import Any

import pytest

from stockade.core.errors import OptionError
from stockade.training.options import PRESETS, TrainingOptions, preset, preset_for, read_class_weights


def test_presets_say_what_the_papers_say() -> None:
    ranmask, firebert, fact = preset("ranmask"), preset("firebert"), preset("fact")
    assert (ranmask.epochs, ranmask.batch, ranmask.learning_rate, ranmask.weight_decay) == (20, 32, 5e-5, 1e-6)
    assert (ranmask.schedule, ranmask.clip, ranmask.max_length) == ("cosine", 1.0, 128)
    assert preset("ranmask-authors") == ranmask.changed(epochs=10)
    assert (firebert.epochs, firebert.batch, firebert.learning_rate, firebert.epsilon) == (5, 32, 2e-5, 1e-8)
    assert (firebert.weight_decay, firebert.warm_up, firebert.schedule, firebert.max_length) == (0, 0, "linear", 128)
    assert (fact.epochs, fact.schedule_unit) == (1, "texts")
    for name, kind in {
        "CNN-W-GloVe-2": "zoo-word",
        "BiLSTM-C-Random-1": "zoo-character",
        "LSTM-WC-ELMo-1": "zoo-character",
        "BERT-NOPT": "scratch",
        "RoBERTa": "transformer",
        "BiLSTM-attention": "zoo-word",
        "MiniLM-L6": "minilm",
        "biLM": "bilm",
        "stockade-lstm": "zoo-word",
    }.items():
        assert preset_for(name) == kind
        assert kind in PRESETS
    with pytest.raises(OptionError, match=r'no training preset "ranmsk".*Did you mean "ranmask"'):
        preset("ranmsk")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs is 0, expected a whole number from 1 up"),
        ({"batch": 2.5}, "batch is 2.5, expected a whole number"),
        ({"learning_rate": float("nan")}, "learning_rate is nan, expected a number above 0"),
        ({"word_dropout": 1.0}, "word_dropout is 1.0, expected a number from 0 up and below 1"),
        ({"schedule": "cosin"}, 'no schedule "cosin".*Did you mean "cosine"'),
        ({"epoch": 3}, 'no training option "epoch".*Did you mean "epochs"'),
        ({"epochs": "many"}, 'epochs is "many", expected a number'),
        ({"class_weights": "1,two"}, 'class weights "1,two" cannot be read'),
        ({"class_weights": (0.0, 0.0)}, "expected none, balanced"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        TrainingOptions().changed(**options)


def test_options_from_text() -> None:
    options = TrainingOptions().changed(patience="none", clip="0.5", epochs="3", class_weights="balanced")
    assert (options.patience, options.clip, options.epochs, options.class_weights) == (None, 0.5, 3, "balanced")
    assert read_class_weights("1,2.5") == (1.0, 2.5)
