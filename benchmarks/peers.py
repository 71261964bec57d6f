"""Stockade beside TextAttack: the same victims, texts and attacks in one run; CPU time, queries and success side by
side.

    python benchmarks/peers.py [--texts 200] [--stock-texts 10] [--only cnn|minilm] [--json FILE]

TextAttack runs in an environment of its own that this script makes (`.venv-textattack`, pinned in
textattack_side/requirements.txt; what it needs offline is told in textattack_side/README.md); WordNet's dict files
come from Debian's wordnet-base (`--wordnet`). One torch thread on both sides; the clock covers the attack alone, not
imports, loading or reading data.

The CNN is attacked through a wrapper that pads to the longest text of a batch; MiniLM also through TextAttack's stock
Hugging Face wrapper, which pads every text to 512 tokens and is therefore measured on fewer texts (`--stock-texts`).
DeepWordBug draws at random, so its success is the mean over `--seeds` seeds on each side; PWWS does not. Read the
ratios, not the seconds: machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from stockade.attacks.registry import make_attack
from stockade.datasets import load_data, prepare_examples
from stockade.models import load_model
from stockade.runs.attack import AttackSettings, run_attacks
from stockade.runs.metrics import summarise_attack
from stockade.runs.store import Store

HERE = Path(__file__).parent
SIDE = HERE / "textattack_side"
ENVIRONMENT = HERE.parent / ".venv-textattack"
WORDNET = Path("/usr/share/wordnet")
RECIPES = ("pwws", "deepwordbug")


@dataclass(frozen=True)
class Side:
    """One tool's figures on one set of texts, means over seeds."""

    cpu_seconds_per_text: float
    queries: float
    success: float
    succeeded: float
    attacked: int


@dataclass(frozen=True)
class Comparison:
    victim: str
    wrapper: str
    attack: str
    texts: int
    textattack: Side
    ours: Side
    paper: Side

    @property
    def speedup(self) -> float:
        return self.textattack.cpu_seconds_per_text / self.ours.cpu_seconds_per_text


def ready_environment(wordnet: Path) -> tuple[Path, Path]:
    """TextAttack's python and its NLTK data, made when they are not there yet."""
    python, nltk_data = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "nltk_data"
    done = ENVIRONMENT / ".ready"
    if not done.exists():
        print("Making TextAttack's environment …", flush=True)
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        requirements = SIDE / "requirements.txt"
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "-r", requirements], check=True)
        done.touch()
    if not nltk_data.exists():
        if not wordnet.is_dir():
            sys.exit(f"{wordnet} is missing. Install Debian's wordnet-base, or name its dict folder with --wordnet.")
        subprocess.run([sys.executable, SIDE / "setup_nltk.py", nltk_data, "--wordnet", wordnet], check=True)
    return python, nltk_data


class Bench:
    """Runs both tools on the same sample of the built-in test sentences."""

    def __init__(self, folder: Path, wordnet: Path, seeds: int) -> None:
        self._folder, self._seeds = folder, seeds
        self._python, self._nltk_data = ready_environment(wordnet)

    def compare(self, victim: str, wrapper: str, recipe: str, texts: int) -> Comparison:
        model = load_model(f"builtin:{victim}", device="cpu")
        examples = prepare_examples(load_data("builtin:reviews"), model.labels, limit=texts)
        rows = [{"id": e.id, "text": str(e.text), "label": e.label} for e in examples]
        file = self._folder / f"{victim}-{texts}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        saved = self._folder / victim
        model.model.save_pretrained(saved)  # type: ignore[attr-defined]
        model.tokenizer.save_pretrained(saved)  # type: ignore[attr-defined]
        seeds = range(self._seeds if recipe == "deepwordbug" and wrapper != "stock" else 1)
        self._ours(model, examples, f"{recipe}@textattack", 0)  # warm up: language resources, batch size
        theirs, ours, paper = [], [], []
        for seed in seeds:
            theirs.append(self._textattack(file, saved, wrapper, recipe, seed))
            ours.append(self._ours(model, examples, f"{recipe}@textattack", seed))
            paper.append(self._ours(model, examples, recipe, seed))
        return Comparison(victim, wrapper, recipe, texts, mean(theirs), mean(ours), mean(paper))

    def _textattack(self, file: Path, victim: Path, wrapper: str, recipe: str, seed: int) -> Side:
        out = self._folder / "textattack.jsonl"
        out.unlink(missing_ok=True)
        command: list[Any] = [self._python, SIDE / "run_textattack.py", "--examples", file, "--victim", victim]
        command += ["--wrapper", wrapper, "--recipe", recipe, "--out", out, "--nltk-data", self._nltk_data]
        done = subprocess.run([*map(str, command), "--seed", str(seed)], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"TextAttack failed:\n{done.stderr[-2000:]}")
        *rows, last = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        attacked = [row for row in rows if row["result"] != "skipped"]
        won = sum(row["result"] == "success" for row in attacked)
        queries = fmean(row["num_queries"] for row in attacked)
        seconds = last["summary"]["cpu_seconds"] / len(rows)
        return Side(seconds, queries, won / len(attacked), won, len(attacked))

    def _ours(self, model: Any, examples: Any, attack: str, seed: int) -> Side:
        settings = AttackSettings((make_attack(attack),), seed)
        with tempfile.TemporaryDirectory() as folder:
            started = time.process_time()
            run_attacks(model, examples, settings, Path(folder))
            seconds = time.process_time() - started
            with Store(Path(folder)) as store:
                numbers = summarise_attack(store.records(attack), store.effort(attack))
        success, won = numbers["success_rate"]["value"], numbers["succeeded"]
        return Side(seconds / len(examples), numbers["mean_queries"], success, won, numbers["attacked"])


def mean(sides: list[Side]) -> Side:
    names = [field for field in asdict(sides[0]) if field != "attacked"]
    return Side(**{name: fmean(getattr(side, name) for side in sides) for name in names}, attacked=sides[0].attacked)


def show(row: Comparison) -> None:
    head = f"{row.victim} · {row.attack} · {row.wrapper} wrapper · {row.texts} texts ({row.ours.attacked} attacked)"
    print(f"\n{head}\n{'':<24}{'CPU ms/text':>12}{'queries':>10}{'success':>10}")
    for name, side in (
        ("TextAttack", row.textattack),
        ("Stockade @textattack", row.ours),
        ("Stockade paper", row.paper),
    ):
        cpu = 1000 * side.cpu_seconds_per_text
        print(f"{name:<24}{cpu:>12.1f}{side.queries:>10.1f}{100 * side.success:>9.1f}%")
    print(
        f"{row.speedup:.1f}x faster, success {100 * (row.ours.success - row.textattack.success):+.1f} points",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--stock-texts", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5, help="for DeepWordBug")
    parser.add_argument("--only", choices=("cnn", "minilm"))
    parser.add_argument("--wordnet", type=Path, default=WORDNET, help="dict files of Debian's wordnet-base")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cases = [("sentiment-cnn", "zoo", options.texts)] if options.only != "minilm" else []
    if options.only != "cnn":
        cases += [("sentiment-bert", "dynamic", options.texts), ("sentiment-bert", "stock", options.stock_texts)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.wordnet, options.seeds)
        for victim, wrapper, texts in cases:
            for recipe in RECIPES:
                rows.append(bench.compare(victim, wrapper, recipe, texts))
                show(rows[-1])
    if options.json:
        found = [{**asdict(row), "speedup": round(row.speedup, 2)} for row in rows]
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
