"""What `stockade train` adds to a bare torch loop over the same model and batches that were made before.

    python benchmarks/training.py [--models CNN-W-Random-1 …] [--texts 4000] [--epochs 4] [--rounds 3] [--json FILE]

Both sides train the same model from the same weights on the same batches with the same optimiser, clipping and
schedule, validate after each epoch, and run in turns in one process with one torch thread. The bare side has its
tensors ready and does nothing else. *loop* is the time of Stockade's loop with tokenised texts: batches are put
together, losses watched, checkpoints and the page written. *whole* is all of `train`: also reading and splitting the
data, building the model, tokenising, the final save, the card. CPU seconds, the median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from stockade.datasets.load import load_data
from stockade.datasets.source import DataSource, Row
from stockade.experiment.progress import Runtime
from stockade.training.batches import Batches, WordDropout
from stockade.training.data import prepare_data
from stockade.training.loop import fit, make_optimiser, rate_factor
from stockade.training.network import Origin, make_encoder
from stockade.training.options import TrainingOptions, preset, preset_for
from stockade.workflows.train import run as workflow
from stockade.workflows.train.spec import TrainSpec

MODELS = ("CNN-W-Random-1", "LSTM-W-Random-1", "MiniLM-L6")
COLUMNS = ("model", "texts", "epochs", "bare s", "loop s", "whole s", "loop / bare", "whole / bare")


@dataclass(frozen=True)
class Sample:
    """So many rows of another source, evenly spaced."""

    source: DataSource
    size: int

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def label_names(self) -> tuple[str, ...] | None:
        return self.source.label_names

    def rows(self) -> Any:
        found: list[Row] = list(self.source.rows())
        return iter(found[:: max(1, len(found) // self.size)][: self.size])

    def fingerprint(self) -> str:
        return f"{self.source.fingerprint()} {self.size}"


def bare_seconds(origin: Origin, source: DataSource, options: TrainingOptions) -> float:
    """The plain loop over batches that are ready."""
    texts = prepare_data(source, seed=options.seed)
    model, tokenizer = origin.build(texts.train.inputs, texts.classes, options.seed)
    encoder = make_encoder(model, tokenizer, options.max_length)
    device = torch.device("cpu")

    def batches_of(part: Any, dropout: WordDropout | None) -> Batches:
        labels = np.array(part.labels, dtype=np.int64)
        encoded = encoder.encode(part.inputs)
        backward = torch.autograd.backward
        return Batches(
            inputs=part.inputs,
            labels=labels,
            encoded=encoded,
            encoder=encoder,
            size=options.batch,
            seed=options.seed,
            device=device,
            backward=backward,
            dropout=dropout,
        )

    train = batches_of(texts.train, WordDropout.of(options.word_dropout, encoder))
    epochs = [[(one.tensors, one.labels) for one in train.epoch(epoch)] for epoch in range(options.epochs)]
    judged = [(one.tensors, one.labels) for one in batches_of(texts.validation, None).by_length()]
    optimiser = make_optimiser(model, options)
    weights = list(model.parameters())
    steps, step = options.epochs * len(epochs[0]), 0
    started = time.process_time()
    for batches in epochs:
        model.train()
        for tensors, labels in batches:
            factor = rate_factor(options.schedule, step, steps, options.warm_up_length(steps))
            optimiser.param_groups[0]["lr"] = options.learning_rate * factor
            optimiser.zero_grad(set_to_none=True)
            loss = functional.cross_entropy(model(**tensors).logits, labels)
            loss.backward()
            if options.clip is not None:
                nn.utils.clip_grad_norm_(weights, options.clip)
            optimiser.step()
            step += 1
        model.eval()
        with torch.inference_mode():
            sum(int((model(**tensors).logits.argmax(1) == labels).sum()) for tensors, labels in judged)
    return time.process_time() - started


def own_seconds(origin: Origin, source: DataSource, options: TrainingOptions) -> tuple[float, float]:
    """(loop, whole) of Stockade's training."""
    spent = 0.0

    def timed(*arguments: Any) -> Any:
        nonlocal spent
        began = time.process_time()
        state = fit(*arguments)
        spent = time.process_time() - began
        return state

    with patch.object(workflow, "fit", timed), tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        spec = TrainSpec.of(data=source, architecture=origin.architecture, options=options.described(), device="cpu")
        workflow.train_origin(spec, origin, Path(folder) / "m", Runtime(), resume=False)
        whole = time.process_time() - started
    return spent, whole


def measure(name: str, source: DataSource, options: TrainingOptions, rounds: int) -> dict[str, Any]:
    origin = Origin(architecture=name)
    own_seconds(origin, Sample(source, 100), replace(options, epochs=1))  # imports and first calls
    found = [(bare_seconds(origin, source, options), *own_seconds(origin, source, options)) for _ in range(rounds)]
    bare, loop, whole = (statistics.median(column) for column in zip(*found, strict=True))
    return {
        "model": name,
        "texts": sum(1 for _ in source.rows()),
        "epochs": options.epochs,
        "bare s": round(bare, 2),
        "loop s": round(loop, 2),
        "whole s": round(whole, 2),
        "loop / bare": round(statistics.median(row[1] / row[0] for row in found), 3),
        "whole / bare": round(statistics.median(row[2] / row[0] for row in found), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Stockade's training beside a bare torch loop.")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--texts", type=int, default=4000, help="rows of the built-in reviews (default: 4000)")
    parser.add_argument("--epochs", type=int, help="default: the preset's")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    rows = []
    for name in given.models:
        options = preset(preset_for(name)).changed(patience=None)
        options = options if given.epochs is None else options.changed(epochs=given.epochs)
        rows.append(measure(name, Sample(load_data("builtin:reviews:train"), given.texts), options, given.rounds))
        print(f"| {' | '.join(str(rows[-1][column]) for column in COLUMNS)} |", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
