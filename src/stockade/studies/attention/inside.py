"""What the successes of gs-ec do inside a model: attention before and after, hidden vectors layer by layer, sentence
vectors; and the check of Theorem 1 on the model's weights.

It is measured once and kept beside the run (`inside.json`), so that a study is analysed again without its models.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stockade.core.errors import ModelError
from stockade.core.files import write_json
from stockade.core.protocols import AttentiveClassifier, Classifier, RepresentingClassifier
from stockade.core.records import Record
from stockade.core.text import Text
from stockade.runs.run import Run
from stockade.studies.attention.theorem import check_theorem
from stockade.studies.attention.victims import GREEDY_EC, Victim

FILE_NAME = "inside.json"
SCHEMA = 1
_REAL_VECTORS = 2_000
_DIGITS = 6
Pair = tuple[Record, Text, Text]


def look_inside(run: Run, victim: Victim, load: Callable[[], Classifier], samples: int) -> dict[str, Any]:
    """Everything measured of one model; `load` is only called if something is not known yet."""
    found = [] if GREEDY_EC in victim.missing else list(run.records(GREEDY_EC, "success"))
    of = _key(victim, found, samples)
    known = _read(run.folder / FILE_NAME)
    if known is not None and known.get("of") == of:
        return known
    content = {"schema": SCHEMA, "of": of, **_measure(load(), victim, found, run, samples)}
    write_json(run.folder / FILE_NAME, content)
    return content


def pairs_of(found: Sequence[Record]) -> list[Pair]:
    """Original and adversarial text of each success, word by word: exactly one word is replaced."""
    pairs = []
    for record in found:
        before = Text.parse(record.original, record.premise)
        if len(record.edits) == 1 and record.edits[0].op == "replace":
            after = before.replace(record.edits[0].index, record.edits[0].after)
            if str(after) == record.adversarial:
                pairs.append((record, before, after))
    return pairs


def _measure(model: Classifier, victim: Victim, found: Sequence[Record], run: Run, samples: int) -> dict[str, Any]:
    pairs = pairs_of(found)
    looks: list[dict[str, Any]] = [_words(*pair) for pair in pairs]
    attention = _attention(model, victim, pairs, looks)
    layers = _layers(model, pairs, looks)
    _sentences(model, pairs, looks)
    texts = [Text.parse(record.original, record.premise) for record in run.records("list")]
    theorem, reason = _theorem(model, texts, samples)
    return {
        "without_attention": attention,
        "without_layers": layers,
        "successes": len(found),
        "looks": looks,
        "theorem": theorem,
        "without_theorem": reason,
    }


def _words(record: Record, before: Text, after: Text) -> dict[str, Any]:
    index = record.edits[0].index
    return {
        "id": record.id,
        "label": record.label,
        "prediction": record.adversarial_prediction,
        "words": list(before.words),
        "index": index,
        "replacement": after.words[index],
        "attention": None,
        "layers": None,
        "relative_change": None,
    }


def _attention(model: Classifier, victim: Victim, pairs: Sequence[Pair], looks: list[dict[str, Any]]) -> str | None:
    """Fills in attention before and after; why there is none."""
    missing = victim.missing.get("asmax-gr")
    if missing or not isinstance(model, AttentiveClassifier):
        return missing or "the model does not show its attention"
    if pairs:
        scores = model.word_attention([text for _, *both in pairs for text in both], 0, "mean")
        for look, before, after in zip(looks, scores[::2], scores[1::2], strict=True):
            look["attention"] = {"before": _rounded(before), "after": _rounded(after)}
    return None


def _layers(model: Classifier, pairs: Sequence[Pair], looks: list[dict[str, Any]]) -> str | None:
    """Fills in how far each word's vector moved in each layer; why nobody knows."""
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.internals import hidden_by_word

    if not isinstance(model, HuggingFaceClassifier):
        return "it is no Hugging Face model"
    try:
        for look, (_, before, after) in zip(looks, pairs, strict=True):
            one, other = hidden_by_word(model, [before, after])
            look["layers"] = [
                _rounded(np.linalg.norm(new.astype(np.float64) - old, axis=1))
                for old, new in zip(one, other, strict=True)
            ]
    except ModelError as error:
        return str(error).rstrip(".")
    return None


def _sentences(model: Classifier, pairs: Sequence[Pair], looks: list[dict[str, Any]]) -> None:
    """Fills in R_e, how far the sentence vector moved in parts of its length."""
    if not pairs or not isinstance(model, RepresentingClassifier):
        return
    _, vectors = model.represent([text.input for _, *both in pairs for text in both])
    for look, change in zip(looks, relative_changes(vectors[::2], vectors[1::2]), strict=True):
        look["relative_change"] = change


def relative_changes(before: Any, after: Any) -> list[float | None]:
    """‖z − z'‖₂ / ‖z‖₂ row by row; None where z is zero."""
    before, after = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    lengths = np.linalg.norm(before, axis=1)
    moved = np.linalg.norm(after - before, axis=1)
    return [round(float(m / n), _DIGITS) if n else None for m, n in zip(moved, lengths, strict=True)]


def _theorem(model: Classifier, texts: Sequence[Text], samples: int) -> tuple[dict[str, Any] | None, str | None]:
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.internals import attention_inputs, self_attention

    layers = self_attention(model) if isinstance(model, HuggingFaceClassifier) else []
    if not isinstance(model, HuggingFaceClassifier) or not layers:
        return None, "it has no layer of self-attention"
    real = attention_inputs(model, [text for text in texts if len(text)], _REAL_VECTORS)
    return check_theorem(layers, real, samples), None


def _rounded(values: Any) -> list[float | None]:
    """For JSON, which has no NaN."""
    return [None if np.isnan(value) else round(float(value), _DIGITS) for value in values]


def _key(victim: Victim, found: Sequence[Record], samples: int) -> str:
    """What the measurements depend on."""
    parts = [SCHEMA, victim.fingerprint, samples, [(one.id, one.original, one.adversarial) for one in found]]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _read(path: Path) -> dict[str, Any] | None:
    """What is known already; a file that cannot be read only costs a new measurement."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
