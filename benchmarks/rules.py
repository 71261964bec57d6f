"""What mining rules costs, and how many places of a rule it needs.

    python benchmarks/rules.py places [--texts 3000]     success on a model that was not asked, by --max-count
    python benchmarks/rules.py cost [--texts 200]        CPU time per replacement of six models of the paper's kinds

`places` mines with the built-in CNN and applies the rules to the built-in LSTM. `cost` builds the models of the
transfer paper's human expert untrained (their speed does not depend on their weights), with the built-in BERT among
them, and counts CPU time after the first chunk, while batches are tuned; 5,000 reviews then take
`replacements * CPU time / cores`. A busy machine inflates CPU time too: repeat, and take the lowest.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line sets it

import stockade as st
from stockade.datasets.builtin import reviews
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.experiment.progress import Progress
from stockade.workflows.mine.occurrences import plan_scoring
from stockade.workflows.mine.spec import MAX_COUNT, MIN_COUNT

TRAIN, TEST = "builtin:reviews:train", "builtin:reviews:test"
EXPERT = ("LSTM-W-Random-1", "CNN-C-Random-1", "LSTM-WC-ELMo-1", "CNN-W-Random-1", "LSTM-C-Random-1")
MAX_COUNTS = (2, 3, 5, 10, None)
TARGET = 5_000
"""Reviews of the cost target."""


def measure_places(texts: int) -> None:
    """Success of rules that were scored at more and more places."""
    print(f"{'places':>7} {'scored':>9} {'seconds':>8} {'success':>8} {'final':>8}")
    for most in MAX_COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            mined = st.mine_rules("builtin:sentiment-cnn", TRAIN, limit=texts, max_count=most, out=f"{folder}/mined")
            seconds = time.perf_counter() - started
            attacks = {judge: f"rules:file={mined.path},judge={judge}" for judge in ("any-prefix", "final")}
            run = st.attack("builtin:sentiment-lstm", TEST, attacks, similarity=False)  # type: ignore[arg-type]
            rates = [100 * attack["success_rate"]["value"] for attack in run.summary["attacks"].values()]
            scored = mined.summary["scored"]
        print(f"{most or 'all':>7} {scored:>9,} {seconds:>8.0f} {rates[0]:>7.1f}% {rates[1]:>7.1f}%", flush=True)


def measure_cost(texts: int) -> None:
    """CPU time per replacement, and what follows for the target."""
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.zoo.build import Sources, build_bilm, build_model

    inputs = [review.text for review in reviews("train")]
    with tempfile.TemporaryDirectory() as folder:
        for part in build_bilm(inputs[:2_000]):
            part.save_pretrained(folder)
        models: dict[str, object] = {"BERT": "builtin:sentiment-bert"}
        for name in EXPERT:
            model, tokenizer = build_model(name, inputs, ["negative", "positive"], sources=Sources(elmo=folder))
            models[name] = HuggingFaceClassifier(model, tokenizer)
        marks: list[tuple[int, float]] = []

        def note(progress: Progress) -> None:
            marks.append((progress.done, time.process_time()))

        st.mine_rules(models, TRAIN, limit=texts, out=Path(folder) / "mined", observer=note)
    (first, begun), (last, ended) = marks[0], marks[-1]
    if first == last:
        raise SystemExit("There is only one chunk: give more --texts.")
    each = (ended - begun) / (last - first)
    examples = prepare_examples(load_data(TRAIN), ("negative", "positive"), limit=TARGET)
    plan = plan_scoring(examples, min_count=MIN_COUNT, max_count=MAX_COUNT, seed=0)
    scored = sum(min(MAX_COUNT, candidate.occurrences) for candidate in plan.candidates)
    print(f"{1000 * each:.1f} ms of CPU per replacement, {last - first:,} measured")
    print(f"{TARGET:,} reviews: {scored:,} replacements, {scored * each / 2 / 60:.1f} minutes of two cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["places", "cost"])
    parser.add_argument("--texts", type=int)
    arguments = parser.parse_args()
    if arguments.what == "places":
        measure_places(arguments.texts or 3_000)
    else:
        measure_cost(arguments.texts or 200)


if __name__ == "__main__":
    main()
