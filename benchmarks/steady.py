"""Whether a change of the scheduler costs speed, and how steadily texts are finished: this checkout against another.

    python benchmarks/steady.py OTHER_CHECKOUT [--texts 60] [--repeats 5] [--model sentiment-cnn …] [--attack pwws …]

For each model and attack two processes are started, one per checkout; they attack the same texts in turns, so that a
busy machine slows both alike. Both share one memory of batch sizes, so that only the order of the work differs. Printed
are the ratio of CPU times and of wall times (this checkout to the other; the median over all pairs of turns, and the
lowest and highest), when 25, 50 and 75 % of the texts were finished as shares of the whole time, and the peak memory.
Rows must be equal; the script says where they are not.
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
from pathlib import Path
from typing import Any

MODELS = ("sentiment-cnn", "sentiment-lstm", "sentiment-bert")
ATTACKS = ("pwws", "textfooler", "deepwordbug")
HERE = Path(__file__).resolve()
QUARTILES = (0.25, 0.5, 0.75)


def serve(model: str, attack: str, texts: int, concurrency: int) -> None:
    """The side of one checkout: attacks once for every line it reads and answers with what that took."""
    import stockade as st

    def run(limit: int) -> dict[str, Any]:
        moments: list[float] = []
        started, cpu = time.perf_counter(), time.process_time()
        result = st.attack(
            f"builtin:{model}",
            "builtin:reviews",
            attack,
            limit=limit,
            similarity=False,
            concurrency=concurrency,
            observer=lambda _: moments.append(time.perf_counter() - started),
        )
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
        rows = [(record.id, record.status, record.adversarial, record.queries) for record in result.examples]
        return {"cpu": cpu, "wall": wall, "moments": moments, "rows": rows}

    for line in sys.stdin:
        answer = run(min(texts, 8) if line.strip() == "warm" else texts)
        answer["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(answer), flush=True)


class Side:
    """A process that attacks with the package of one checkout."""

    def __init__(self, checkout: Path, cell: list[str], threads: int, cache: str) -> None:
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

    def run(self, line: str = "run") -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate()


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def evenness(run: dict[str, Any]) -> str:
    """When a quarter, half and three quarters of the texts were finished, in percent of the time."""
    moments = run["moments"]
    shares = [moments[max(0, round(part * len(moments)) - 1)] / moments[-1] for part in QUARTILES]
    return " ".join(f"{share:4.0%}" for share in shares)


def measure(model: str, attack: str, options: argparse.Namespace, cache: str) -> dict[str, Any]:
    cell = [model, attack, str(options.texts), str(options.concurrency)]
    sides = {
        "this": Side(HERE.parents[1], cell, options.threads, cache),
        "other": Side(options.other, cell, options.threads, cache),
    }
    runs: dict[str, list[dict[str, Any]]] = {"this": [], "other": []}
    for side in sides.values():
        side.run("warm")
    for turn in range(options.repeats):
        for name in ("this", "other") if turn % 2 else ("other", "this"):
            runs[name].append(sides[name].run())
    for side in sides.values():
        side.close()
    pairs = list(zip(runs["this"], runs["other"], strict=True))
    different = sum(a != b for a, b in zip(runs["this"][-1]["rows"], runs["other"][-1]["rows"], strict=True))
    return {
        "model": model,
        "attack": attack,
        "cpu": spread([this["cpu"] / other["cpu"] for this, other in pairs]),
        "wall": spread([this["wall"] / other["wall"] for this, other in pairs]),
        "seconds": " ".join(f"{min(run['cpu'] for run in runs[name]):.1f}" for name in ("this", "other")),
        "finished (this)": evenness(runs["this"][-1]),
        "finished (other)": evenness(runs["other"][-1]),
        "MB": " ".join(f"{runs[name][-1]['megabytes']:.0f}" for name in ("this", "other")),
        "different rows": different,
    }


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        model, attack, texts, concurrency = sys.argv[2:6]
        serve(model, attack, int(texts), int(concurrency))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="another checkout of Stockade: the folder that holds src/")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=64)
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
