"""Training texts that a defense has changed before the model is built, kept in the training's folder: what took long to
make is not made again when the training is resumed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stockade.core.errors import DataError
from stockade.core.files import write_json
from stockade.core.text import TextInput
from stockade.training.data import TextSet, TrainingData
from stockade.training.kit import Rewrite

FILE_NAME = "rewritten.json"


def key_of(texts: TrainingData, seed: int, defenses: Sequence[Mapping[str, Any]]) -> str:
    """What the rewritten texts depend on, as a hash."""
    told = [texts.train.inputs, texts.train.labels, texts.classes, seed, list(defenses)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def rewritten(folder: Path, texts: TrainingData, rewrite: Rewrite, seed: int, key: str) -> TrainingData:
    """The data with its training texts rewritten; the folder's, if it has those of the same key."""
    found = _kept(folder, key)
    if found is None:
        inputs, labels = rewrite(texts.train.inputs, texts.train.labels, texts.classes, seed)
        if len(inputs) != len(labels) or not inputs:
            raise DataError(
                f"A defense rewrote the training texts as {len(inputs)} texts with {len(labels)} labels; expected as "
                "many labels as texts, and at least one."
            )
        found = TextSet(tuple(inputs), tuple(labels))
    return replace(texts, train=found)


def keep(folder: Path, texts: TrainingData, key: str) -> None:
    """Write the rewritten texts into the folder, unless they are there."""
    if _kept(folder, key) is None:
        write_json(folder / FILE_NAME, {"key": key, "inputs": texts.train.inputs, "labels": texts.train.labels})


def _kept(folder: Path, key: str) -> TextSet | None:
    try:
        content = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("key") != key:
        return None
    inputs: list[TextInput] = [one if isinstance(one, str) else (one[0], one[1]) for one in content["inputs"]]
    return TextSet(tuple(inputs), tuple(content["labels"]))
