"""Models with names of the zoo, and films that they judge by single words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import stockade as st
from stockade.studies.rules.study import RulesResult
from tests.toys import WeightVictim

LSTM, CHARACTERS, CNN, BERT = "LSTM-W-Random-1", "CNN-C-Random-1", "CNN-W-GloVe-1", "MiniLM-L6"
WORDS = {"funny": 2.0, "laughable": -2.0, "good": 1.0, "dull": -2.0, "dense": 1.5, "bad": -1.0, "film": 0.05}
TRAINING = [
    ("a funny film", "positive"),
    ("a good and funny film", "positive"),
    ("so funny", "positive"),
    ("good story", "positive"),
    ("a dull film", "negative"),
    ("so dull and bad", "negative"),
    ("bad , dull story", "negative"),
    ("a laughable film", "negative"),
]
TEXTS = [
    ("what a funny and really rather long film", "positive"),
    ("funny", "positive"),
    ("a funny story about them", "positive"),
    ("the good and the funny film they made", "positive"),
    ("a dull and really rather long film", "negative"),
    ("it is dull", "negative"),
    ("bad and dull and so on and on", "negative"),
    ("it is so bad", "negative"),
]
SMALL: dict[str, Any] = {"train_data": TRAINING, "max_count": 3, "min_count": 1}


def victims() -> dict[str, object]:
    """Four models that mostly agree; the last hardly minds the words of the others."""
    return {
        LSTM: WeightVictim(WORDS),
        CHARACTERS: WeightVictim({**WORDS, "film": 0.4}),
        CNN: WeightVictim({**WORDS, "good": 1.5, "bad": -1.5}),
        BERT: WeightVictim({"funny": 1.0, "good": 1.0, "dull": -1.0, "bad": -1.0, "laughable": 0.5}),
    }


def study(models: object = None, data: object = None, **options: Any) -> RulesResult:
    result = st.study("rules", models or victims(), data or TEXTS, **{**SMALL, **options})
    assert isinstance(result, RulesResult)
    return result


def write_csv(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text("text,label\n" + "".join(f'"{text}",{label}\n' for text, label in rows), encoding="utf-8")
    return str(path)
