"""Small models of the zoo for the tests, one of each kind, built once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stockade.models.zoo.build import Sources, build_bilm, build_model

TEXTS = [
    "A great film, truly great.",
    "what a bad , bad movie !",
    "the plot is thin but the cast is great",
    "Not good; not bad...",
    "the film is not a movie",
]
PAIRS = [("a man runs .", "a man sleeps"), ("the dog", "the dog runs"), ("a man", "the dog sleeps .")]
LABELS = ("negative", "positive")
LANGUAGE = {"projection_size": 6, "filters": [[1, 4], [2, 4], [3, 4]], "character_size": 5, "longest_word": 12}
CHARACTER = {"character_size": 5, "character_widths": [1, 2, 3], "character_filters": 4}
LSTM: dict[str, Any] = {"hidden_size": 6}
CNN: dict[str, Any] = {"filters": 4}
KINDS: dict[str, dict[str, Any]] = {
    "LSTM-W-Random-1": {**LSTM, "embedding_size": 5},
    "BiLSTM-W-GloVe-4": LSTM,
    "CNN-W-GloVe-1": CNN,
    "CNN-W-Random-6": {**CNN, "embedding_size": 5},
    "LSTM-C-Random-2": {**LSTM, **CHARACTER},
    "BiLSTM-C-Random-1": {**LSTM, **CHARACTER},
    "CNN-C-Random-1": {**CNN, **CHARACTER},
    "CNN-C-Random-2": {**CNN, **CHARACTER},
    "LSTM-WC-ELMo-1": LSTM,
    "CNN-WC-ELMo-2": CNN,
    "BiLSTM-attention": LSTM,
    "word-LSTM": LSTM,
    "word-CNN": CNN,
    "BERT-NOPT": {"hidden_size": 8, "heads": 2, "intermediate_size": 16, "maximum": 64},
}


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="zoo-")


@cache
def sources() -> Sources:
    """Files of a few made-up word vectors, and a folder with an untrained language model."""
    folder = Path(_folder().name)
    words = ["a", "great", "film", "the", "bad", "movie", "is", "not", "man", "dog", "runs", "good", "plot"]
    lines = [
        f"{word} " + " ".join(str((7 * row + 3 * column) % 11 - 5) for column in range(6))
        for row, word in enumerate(words)
    ]
    (folder / "vectors.txt").write_text("\n".join(lines), encoding="utf-8")
    model, tokenizer = build_bilm(TEXTS, options=LANGUAGE)
    model.save_pretrained(folder / "bilm")
    tokenizer.save_pretrained(folder / "bilm")
    return Sources(glove=folder / "vectors.txt", elmo=folder / "bilm")


def build(name: str, inputs: Any = TEXTS, *, seed: int = 1, **options: Any) -> tuple[Any, Any]:
    return build_model(name, inputs, LABELS, sources=sources(), seed=seed, options={**KINDS[name], **options})


@cache
def built(name: str, pairs: bool = False) -> tuple[Any, Any]:
    """A model that must not be changed."""
    return build(name, PAIRS if pairs else TEXTS)
