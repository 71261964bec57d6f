"""What random masking costs: many masked copies through a defended model against as many plain texts through the bare
one.

    python benchmarks/smoothing.py [--victim sentiment-cnn …] [--texts 100] [--copies 100] [--rate 0.3] [--json FILE]

`predict_proba` of a model inside RanMASK, on built-in test sentences, against the same masked copies written out as
strings and given to the bare model (transformers' tokenizer and forward, sorted by length) at several batch sizes, of
which the best counts. Same process, one torch thread, CPU seconds; each side is measured `--repeat` times and the
least counts. "different" is how many of the copies look different to the model: equal ones are computed once, which is
part of the ratio; "per different" is the ratio as if the bare model had been given only those.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from stockade.core.text import TextInput
from stockade.datasets.load import load_data
from stockade.defenses.defended import Defended
from stockade.defenses.ranmask import RanMask
from stockade.models.adapters import load_model
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.models.masking import mask_token, masked_strings

VICTIMS = ("sentiment-cnn", "sentiment-bert")
BATCH_SIZES = (16, 32, 64, 128, 256, 512)


class Recording:
    """A classifier that notes which copies it was asked to encode."""

    def __init__(self, inner: HuggingFaceClassifier) -> None:
        self._inner = inner
        self.labels, self.deterministic = inner.labels, inner.deterministic
        self.copies: list[TextInput] = []
        self.predict_encoded, self.encode, self.predict_proba = inner.predict_encoded, inner.encode, inner.predict_proba

    def encode_masked(self, words: Sequence[str], premise: str | None, keep: Any) -> Any:
        self.copies += masked_strings(words, premise, keep, mask_token(self._inner.tokenizer)[0])
        return self._inner.encode_masked(words, premise, keep)


def cpu_seconds(work: Callable[[], object], repeat: int) -> float:
    """The least of several measurements."""
    found = []
    for _ in range(repeat):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def bare(model: HuggingFaceClassifier, texts: Sequence[TextInput], size: int) -> None:
    """Sort by length, tokenise, forward in batches of one size: what a careful user of transformers would write."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    with torch.inference_mode():
        for start in range(0, len(order), size):
            batch = [texts[index] for index in order[start : start + size]]
            inputs = model.tokenizer(batch, padding=True, truncation=True, return_tensors="pt")
            model.model(**{name: inputs[name] for name in ("input_ids", "attention_mask")}).logits.softmax(1)


def measure(victim: str, number: int, copies: int, rate: float, repeat: int) -> dict[str, Any]:
    model = load_model(f"builtin:{victim}", device="cpu")
    assert isinstance(model, HuggingFaceClassifier)
    texts = [row.input for row in islice(load_data("builtin:reviews").rows(), number)]
    defense = RanMask(rate=rate, copies=copies)
    recording = Recording(model)
    Defended(name="ranmask", defense=defense, inner=recording).predict_proba(texts)  # also warms up
    distinct = len({one.key for one in model.encode(recording.copies)})
    defended = cpu_seconds(lambda: Defended(name="ranmask", defense=defense, inner=model).predict_proba(texts), repeat)
    sizes = {size: cpu_seconds(lambda size=size: bare(model, recording.copies, size), repeat) for size in BATCH_SIZES}  # type: ignore[misc]
    best = min(sizes, key=lambda size: sizes[size])
    return {
        "victim": victim,
        "texts": number,
        "copies": len(recording.copies),
        "different": distinct,
        "defended_seconds": round(defended, 3),
        "bare_seconds": round(sizes[best], 3),
        "bare_batch": best,
        "ratio": round(defended / sizes[best], 3),
        "ratio_per_different": round(defended / (sizes[best] * distinct / len(recording.copies)), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--victim", action="append", choices=VICTIMS)
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--copies", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    found = []
    for victim in options.victim or VICTIMS:
        found.append(measure(victim, options.texts, options.copies, options.rate, options.repeat))
        print(json.dumps(found[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
