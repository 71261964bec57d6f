"""How similar each adversarial text is to its original: cosine of sentence vectors, full text against full text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stockade.core.protocols import SentenceEncoder
from stockade.runs.store import Store

CHUNK = 256


def scale_of(encoder: str) -> str:
    """How a similarity of the encoder of that name is to be read."""
    return f"cosine, {encoder}"


def measure_similarities(store: Store, attack: str, encoder: Callable[[], SentenceEncoder]) -> None:
    """Fill in the similarity of every success that has none yet; the encoder is made only if there is one."""
    missing = store.unmeasured(attack)
    model: SentenceEncoder | None = None
    for start in range(0, len(missing), CHUNK):
        chunk = missing[start : start + CHUNK]
        model = model or encoder()
        originals = model.embed([record.original for record in chunk])
        adversarials = model.embed([record.adversarial or "" for record in chunk])
        cosines = np.clip((originals * adversarials).sum(axis=1), -1.0, 1.0)
        store.set_similarities(
            attack, [(record.id, round(float(c), 6)) for record, c in zip(chunk, cosines, strict=True)]
        )
