"""Trains models of the zoo on tasks of yours and reports what they reach and what it costs.

    python benchmarks/zoo.py --task MR mr-train.jsonl mr-test.jsonl --task AG ag-train.jsonl ag-test.jsonl \\
        [--models CNN-W-GloVe-1 MiniLM-L6 …] [--out FOLDER] [--glove FILE] [--minilm-l3 FOLDER] [--json FILE]

Each model is trained by `stockade.train` with the preset of its architecture: a tenth of the training data decides the
epoch, the test data are only looked at once at the end. The default models cover every architecture, input and
embedding of the zoo. WC-ELMo models read a language model that is pre-trained on the same training texts first, once
for each task, and learns on with the classifier: after a few hundred thousand words it is not good enough to be left as
it is. Finished trainings in --out are read, not repeated.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import stockade as st
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.models.adapters import load_model

MODELS = (
    "LSTM-W-Random-1",
    "LSTM-W-GloVe-4",
    "BiLSTM-W-W2vec-1",
    "BiLSTM-W-fastText-2",
    "CNN-W-Random-1",
    "CNN-W-GloVe-1",
    "CNN-W-GloVe-6",
    "CNN-W-W2vec-2",
    "CNN-W-fastText-4",
    "LSTM-C-Random-1",
    "BiLSTM-C-Random-2",
    "CNN-C-Random-1",
    "BiLSTM-WC-ELMo-1",
    "CNN-WC-ELMo-1",
    "BiLSTM-attention",
    "word-LSTM",
    "word-CNN",
    "BERT-NOPT",
    "MiniLM-L6",
)
COLUMNS = ("task", "model", "weights", "epochs", "CPU s", "validation", "test")


def train_once(
    folder: Path, data: str, architecture: str, sources: dict[str, str], **sizes: Any
) -> tuple[Any, float | None]:
    """The finished training of a folder, with its CPU seconds if it was made now."""
    done = (folder / "manifest.json").is_file() and st.load(folder).complete
    started = time.process_time()
    trained = st.train(data, architecture, out=folder, sources=sources, sizes=sizes, resume=folder.exists())
    return trained, None if done else time.process_time() - started


def test_accuracy(folder: Path, data: str) -> float:
    model = load_model(folder)
    examples = list(prepare_examples(load_data(data), model.labels))
    predicted = model.predict_proba([example.text.input for example in examples]).argmax(1)
    return float(np.mean([guess == example.label for guess, example in zip(predicted, examples, strict=True)]))


def weights_of(folder: Path) -> int:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "numpy") as file:
        return sum(int(np.prod(file.get_slice(name).get_shape())) for name in file.keys())  # noqa: SIM118


def measure(task: list[str], architecture: str, out: Path, options: argparse.Namespace) -> dict[str, Any]:
    name, train, test = task
    sources = {"glove": str(options.glove)} if options.glove and "GloVe" in architecture else {}
    if architecture.startswith("word-") or architecture == "BiLSTM-attention":
        sources = {"glove": str(options.glove)} if options.glove else {}
    sizes: dict[str, Any] = {}
    if "ELMo" in architecture:
        sizes = {"frozen": False}
        train_once(out / name / "biLM", train, "biLM", {})
        sources = {"elmo": str(out / name / "biLM")}
    if architecture == "MiniLM-L3":
        sources = {"checkpoint": str(options.minilm_l3)}
    folder = out / name / architecture
    trained, seconds = train_once(folder, train, architecture, sources, **sizes)
    return {
        "task": name,
        "model": architecture,
        "weights": weights_of(folder),
        "epochs": len(trained.history),
        "CPU s": None if seconds is None else round(seconds),
        "validation": round(trained.accuracy, 4),
        "test": round(test_accuracy(folder, test), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", nargs=3, action="append", required=True, metavar=("NAME", "TRAIN", "TEST"))
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--minilm-l3", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
        for task in options.task:
            for architecture in options.models:
                rows.append(measure(task, architecture, options.out or Path(scratch), options))
                print("| " + " | ".join(str(rows[-1][name]) for name in COLUMNS) + " |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
