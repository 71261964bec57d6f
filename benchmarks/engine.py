"""What the engine costs: an attack's CPU time against the bare model on the same texts, and concurrency 64 against 1.

    python benchmarks/engine.py [--texts 200] [--victim sentiment-cnn …] [--attack pwws …] [--json FILE]

For each built-in victim and attack, one run on the built-in test sentences at concurrency 64, one torch thread. Its
unique texts then go through the bare model (transformers' tokenizer and forward, sorted by length) at several batch
sizes; the best one counts. The ratio of the two CPU times is what search, bookkeeping and storage add to the model
(below 1: the engine spared it work). "stripped" is the ratio to the same texts through Stockade's own faster
tokenising and padding, with no search at all. Machines are noisy: read the ratios, not the seconds, and repeat.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from stockade.core.text import TextInput
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.load import load_data
from stockade.experiment.progress import Runtime
from stockade.experiment.store import ResultStore
from stockade.models.adapters import load_model
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.workflows.attack.searches import run_searches
from stockade.workflows.attack.spec import AttackSpec

VICTIMS = ("sentiment-cnn", "sentiment-lstm", "sentiment-bert")
ATTACKS = ("deepwordbug", "deepwordbug@textattack", "pwws", "pwws@textattack")
COLUMNS = {
    "unique": "unique_texts",
    "engine s": "attack_cpu_seconds",
    "bare s": "bare_cpu_seconds",
    "ratio": "ratio",
    "stripped": "ratio_to_stripped",
    "64 over 1": "speedup_64_over_1",
}
FEW = 40
"""Texts for warming up and for comparing concurrency 64 with 1."""
BATCH_SIZES = (8, 16, 32, 64, 128, 256)


class Recording:
    """A classifier that notes every text it encodes."""

    def __init__(self, inner: HuggingFaceClassifier) -> None:
        self._inner, self.texts = inner, dict[TextInput, None]()
        self.labels, self.deterministic = inner.labels, inner.deterministic

    def encode(self, inputs: Sequence[TextInput]) -> Any:
        self.texts.update(dict.fromkeys(inputs))
        return self._inner.encode(inputs)

    def predict_encoded(self, batch: Sequence[Any]) -> Any:
        return self._inner.predict_encoded(batch)

    def predict_proba(self, inputs: Sequence[TextInput]) -> Any:
        return self._inner.predict_proba(inputs)


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def attack_seconds(model: Any, examples: ExampleSet, attack: str, concurrency: int) -> float:
    spec, runtime = AttackSpec.of(model="", data="", attacks=attack), Runtime(concurrency=concurrency)
    with tempfile.TemporaryDirectory() as folder:
        store = ResultStore(Path(folder), writable=True)
        return cpu_seconds(lambda: run_searches(store, model, examples, spec, runtime))


def bare_seconds(model: HuggingFaceClassifier, texts: Sequence[TextInput], size: int) -> float:
    """Sort by length, tokenise, forward in batches of one size: what a careful user of transformers would write."""

    network, tokenizer = model.model, model.tokenizer

    def work() -> None:
        ordered = sorted(texts, key=len)
        with torch.inference_mode():
            for start in range(0, len(ordered), size):
                batch = tokenizer(ordered[start : start + size], padding=True, truncation=True, return_tensors="pt")
                network(**batch).logits.softmax(1).numpy()

    return cpu_seconds(work)


def stripped_seconds(model: HuggingFaceClassifier, texts: Sequence[TextInput], size: int) -> float:
    """The same through Stockade's own tokenising and padding, without any search: what no engine can go below."""

    def work() -> None:
        encoded = sorted(model.encode(texts), key=len)
        for start in range(0, len(encoded), size):
            model.predict_encoded(encoded[start : start + size])

    return cpu_seconds(work)


def measure(victim: str, attack: str, texts: int, repeats: int) -> dict[str, Any]:
    model = load_model(f"builtin:{victim}", device="cpu")
    assert isinstance(model, HuggingFaceClassifier)
    examples, few = (
        prepare_examples(load_data("builtin:reviews"), model.labels, limit=limit) for limit in (texts, min(FEW, texts))
    )
    attack_seconds(model, few, attack, 64)  # warms up the language resources and tunes the batch size
    recording = Recording(model)
    first = attack_seconds(recording, examples, attack, 64)
    texts_scored = list(recording.texts)
    sample = texts_scored[:: max(1, len(texts_scored) // 500)]
    best = min(BATCH_SIZES, key=lambda size: bare_seconds(model, sample, size))
    ours, bare, stripped = [first], [], []
    for repeat in range(repeats):
        if repeat:
            ours.append(attack_seconds(model, examples, attack, 64))
        bare.append(bare_seconds(model, texts_scored, best))
        stripped.append(stripped_seconds(model, texts_scored, best))
    together, alone = attack_seconds(model, few, attack, 64), attack_seconds(model, few, attack, 1)
    return {
        "victim": victim,
        "attack": attack,
        "texts": texts,
        "unique_texts": len(texts_scored),
        "batch_size": best,
        "attack_cpu_seconds": round(min(ours), 3),
        "bare_cpu_seconds": round(min(bare), 3),
        "ratio": round(min(ours) / min(bare), 3),
        "ratio_to_stripped": round(min(ours) / min(stripped), 3),
        "speedup_64_over_1": round(alone / together, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--victim", nargs="*", default=VICTIMS)
    parser.add_argument("--attack", nargs="*", default=ATTACKS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["STOCKADE_CACHE"] = cache
        rows = []
        print(f"{'victim':<16}{'attack':<24}" + "".join(f"{head:>11}" for head in COLUMNS))
        for victim in options.victim:
            for attack in options.attack:
                row = measure(victim, attack, options.texts, options.repeats)
                rows.append(row)
                print(
                    f"{victim:<16}{attack:<24}" + "".join(f"{row[name]:>11,}" for name in COLUMNS.values()), flush=True
                )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
