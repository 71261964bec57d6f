"""Whether a change of the scheduler costs speed, and how steadily texts are finished: this checkout against another.

    python benchmarks/steady.py OTHER_CHECKOUT [--texts 60] [--repeats 8] [--model sentiment-cnn …] [--attack pwws …]

For each model and attack two processes are started, one per checkout. They attack the same texts in turns, so that a
busy machine slows both alike, and share one memory of batch sizes. Printed, this checkout first:

    cpu, wall       ratio of the times from the first search to the last: the median over the turns, with its quartiles
    calls, tokens   ratio of the model's forward passes and of their padded tokens, which no busy machine changes
    finished        when 25, 50 and 75 % of the texts were finished, in percent of the whole time, for either checkout
    MB              peak memory of either process
    differ          rows (status, adversarial text, queries) that are not the same
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MODELS = ("sentiment-cnn", "sentiment-lstm", "sentiment-bert")
ATTACKS = ("pwws", "textfooler", "deepwordbug")
HERE = Path(__file__).resolve()
QUARTERS = (0.25, 0.5, 0.75)
FEW = 8
"""Texts for warming up."""


def serve(model_name: str, attack: str, concurrency: int, batch_tokens: int | None) -> None:
    """Attack once for every line of standard input, which says how many texts, and print what that took."""
    import stockade as st

    model: Any = st.load_model(f"builtin:{model_name}")
    kind, predict = type(model), type(model).predict_encoded
    kind.fingerprint = lambda self: model_name  # hashing the weights is no part of the attack
    calls: list[int] = []
    moments: list[tuple[float, float]] = []

    def clocks() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def counted(self: Any, batch: Sequence[Any]) -> Any:
        if len(calls) == 1:  # the first call only looks at the shape of an answer
            moments.append(clocks())
        calls.append(len(batch) * max(map(len, batch), default=0))
        return predict(self, batch)

    kind.predict_encoded = counted
    for line in sys.stdin:
        calls.clear()
        moments.clear()
        result = st.attack(
            model,
            "builtin:reviews",
            attack,
            limit=int(line),
            similarity=False,
            concurrency=concurrency,
            batch_tokens=batch_tokens,
            observer=lambda progress: moments.extend([clocks()] if progress.status else []),
        )
        (started, cpu), *finished = moments
        answer = {
            "cpu": finished[-1][1] - cpu,
            "wall": finished[-1][0] - started,
            "finished": [moment - started for moment, _ in finished],
            "calls": len(calls),
            "tokens": sum(calls),
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "rows": [(record.id, record.status, record.adversarial, record.queries) for record in result.examples],
        }
        print(json.dumps(answer), flush=True)


class Side:
    """A process that attacks with the package of one checkout."""

    def __init__(self, checkout: Path, cell: Sequence[str], threads: int, cache: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(checkout / "src"),
            "STOCKADE_CACHE": cache,
            "OMP_NUM_THREADS": str(threads),
            "HF_HUB_OFFLINE": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(HERE), "--serve", *cell],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, texts: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{texts}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate()


def spread(ratios: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [*ratios] * 3
    return f"{middle:.3f} ({low:.3f}–{high:.3f})"


def evenness(run: dict[str, Any]) -> str:
    """When a quarter, half and three quarters of the texts were finished, in percent of the time."""
    finished = run["finished"]
    return "/".join(f"{finished[max(0, round(part * len(finished)) - 1)] / finished[-1]:.0%}" for part in QUARTERS)


def measure(model: str, attack: str, options: argparse.Namespace, cache: str) -> dict[str, Any]:
    cell = [model, attack, str(options.concurrency), str(options.batch_tokens)]
    sides = {
        "this": Side(HERE.parents[1], cell, options.threads, cache),
        "other": Side(options.other, cell, options.threads, cache),
    }
    for side in sides.values():
        side.run(min(FEW, options.texts))
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for turn in range(options.repeats):
        for name in ("this", "other") if turn % 2 else ("other", "this"):
            runs[name].append(sides[name].run(options.texts))
    for side in sides.values():
        side.close()
    pairs = list(zip(runs["this"], runs["other"], strict=True))
    this, other = pairs[-1]
    return {
        "model": model,
        "attack": attack,
        "cpu": spread([a["cpu"] / b["cpu"] for a, b in pairs]),
        "wall": spread([a["wall"] / b["wall"] for a, b in pairs]),
        "best cpu seconds": f"{min(a['cpu'] for a, _ in pairs):.2f} to {min(b['cpu'] for _, b in pairs):.2f}",
        "calls": f"{this['calls'] / other['calls']:.3f}",
        "tokens": f"{this['tokens'] / other['tokens']:.3f}",
        "finished": f"{evenness(this)} to {evenness(other)}",
        "MB": f"{this['megabytes']:.0f} to {other['megabytes']:.0f}",
        "differ": sum(a != b for a, b in zip(this["rows"], other["rows"], strict=True)),
    }


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        model, attack, concurrency, batch_tokens = sys.argv[2:6]
        serve(model, attack, int(concurrency), int(batch_tokens) or None)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="another checkout of Stockade: the folder that holds src/")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--batch-tokens", type=int, default=0, help="a fixed size of batches; tuned if 0")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch; CPU times are steadiest with one")
    parser.add_argument("--model", nargs="*", default=MODELS)
    parser.add_argument("--attack", nargs="*", default=ATTACKS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as cache:
        for model in options.model:
            for attack in options.attack:
                results.append(measure(model, attack, options, cache))
                print("  ".join(f"{name}: {value}" for name, value in results[-1].items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
