"""How often the estimate of gs-ec finds the very word that a scan of the whole vocabulary finds, and what it saves.

    python benchmarks/nearest_flip.py [--model builtin:sentiment-cnn …] [--data builtin:reviews] [--texts 50]

Both run on the same texts, those the model gets right. "same word" is over texts that the scan fools; "farther" is how
much farther from the original's sentence vector the estimate's word is where it is another one.
"""

from __future__ import annotations

import argparse
import time
from statistics import fmean
from typing import Any

import numpy as np
import torch

import stockade as st
from stockade.core.protocols import RepresentingClassifier
from stockade.models.adapters import load_model

COLUMNS = ("model", "texts", "fooled", "of them by both", "same word", "farther", "queries", "CPU")


def run(model: Any, data: str, attack: str, limit: int) -> tuple[dict[str, Any], float]:
    started = time.process_time()
    found = st.attack(model, data, attack, limit=limit, similarity=False)
    records = {record.id: record for record in found.examples if record.status in ("success", "failed")}
    return records, time.process_time() - started


def measure(reference: str, data: str, texts: int) -> dict[str, Any]:
    model = load_model(reference, device="cpu")
    assert isinstance(model, RepresentingClassifier)
    quick, quick_seconds = run(model, data, "gs-ec", texts)
    full, full_seconds = run(model, data, "gs-ec@exhaustive", texts)
    fooled = [key for key, record in full.items() if record.status == "success"]
    both = [key for key in fooled if quick[key].status == "success"]
    others = [key for key in both if quick[key].adversarial != full[key].adversarial]
    farther = [_distance(model, quick[key]) / _distance(model, full[key]) - 1 for key in others]
    return {
        "model": reference,
        "texts": len(full),
        "fooled": len(fooled),
        "of them by both": len(both),
        "same word": len(both) - len(others),
        "farther": f"{fmean(farther):.1%}" if farther else "–",
        "queries": f"{_mean_queries(quick):,.0f} / {_mean_queries(full):,.0f}",
        "CPU": f"{quick_seconds:.0f} / {full_seconds:.0f} s",
    }


def _distance(model: RepresentingClassifier, record: Any) -> float:
    _, (before, after) = model.represent([record.original, record.adversarial])
    return float(np.abs(before - after).sum())


def _mean_queries(records: dict[str, Any]) -> float:
    return fmean(record.queries for record in records.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="*", default=("builtin:sentiment-cnn", "builtin:sentiment-lstm"))
    parser.add_argument("--data", default="builtin:reviews")
    parser.add_argument("--texts", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    for reference in options.model:
        row = measure(reference, options.data, options.texts)
        print("| " + " | ".join(str(row[name]) for name in COLUMNS) + " |", flush=True)


if __name__ == "__main__":
    main()
