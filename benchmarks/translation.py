"""Translators of our own on Multi30k English to German: what they reach, and what attacks make of them.

    python benchmarks/translation.py DATA train [--preset fast|study] [--arch transformer-mt …] [--out runs/translation]
    python benchmarks/translation.py DATA cost [--texts 200]
    python benchmarks/translation.py DATA study [--texts 200]

DATA is a folder with `train.jsonl.gz`, `val.jsonl.gz` and `test_2016_flickr.jsonl.gz`, each with `en` and `de`.

`train` trains what is missing, or goes on with it, on one thread, and prints for each model BLEU on the test sentences
of 2016 (sacrebleu, 13a; lower-cased as papers on Multi30k print it, and cased), greedy and with a beam of 5, the CPU
time, and BLEU on the validation sentences after each epoch. `cost` attacks those models with `mt-keyword` on a part and
on all of the sentences: CPU time in all and per sentence, which shows whether it is linear. `study` is `stockade study
translation` on them: keywords, typos and attention beside the paper's numbers.
"""

from __future__ import annotations

import argparse
import os
import resource
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import stockade as st
from stockade.models.translation import ARCHITECTURES
from stockade.models.translation.bleu import corpus_bleu

TEST = "test_2016_flickr.jsonl.gz"
ANCHOR = 41.02
"""BLEU, lower-cased and tokenised, of a published Transformer of this size on the same test sentences (41.02)."""
BEAM = 5


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def pairs_of(path: Path) -> tuple[list[str], list[str]]:
    """The source and the target sentences of a file."""
    from stockade.datasets.parallel import load_parallel

    pairs = list(load_parallel(str(path)).pairs())
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def train(data: Path, out: Path, preset: str, architectures: list[str]) -> None:
    """Train, translate the test sentences, print BLEU and the curve."""
    import torch

    torch.set_num_threads(1)
    sources, references = pairs_of(data / TEST)
    print("| model | preset | CPU minutes | decoding | BLEU, lower-cased | BLEU, cased |\n|---|---|---|---|---|---|")
    curves: dict[str, list[float | None]] = {}
    signature = ""
    for architecture in architectures:
        folder, begun = out / f"{architecture}-{preset}", cpu_seconds()
        trained = st.train(
            str(data / "train.jsonl.gz"),
            architecture,
            validation=str(data / "val.jsonl.gz"),
            preset=preset,
            out=folder,
            resume=folder.exists(),
        )
        minutes = (cpu_seconds() - begun) / 60
        curves[architecture] = [epoch.validation.bleu for epoch in trained.history]
        translator = trained.load_translator()
        for beam in (1, BEAM):
            written = translator.translate(sources, beam=beam)
            lower, cased = (corpus_bleu(written, references, lowercase=lowercase) for lowercase in (True, False))
            signature, name = lower.signature, "greedy" if beam == 1 else f"beam {beam}"
            print(
                f"| {architecture} | {preset} | {minutes:.1f} | {name} | {lower.score:.2f} | {cased.score:.2f} |",
                flush=True,
            )
    print(f"\n{signature}; published anchor {ANCHOR}")
    for architecture, curve in curves.items():
        print(f"{architecture}, validation by epoch: {', '.join('–' if b is None else f'{b:.1f}' for b in curve)}")


def cost(data: Path, folders: list[Path], texts: int) -> None:
    """What keyword attacks cost on a quarter, half and all of the sentences."""
    import torch

    torch.set_num_threads(1)
    print("| model | sentences | success | CPU minutes | CPU s per sentence | queries |\n|---|---|---|---|---|---|")
    for folder in folders:
        for size in (texts // 4, texts // 2, texts):
            begun = cpu_seconds()
            run = st.attack(str(folder), str(data / TEST), "mt-keyword", limit=size, similarity=False)
            seconds, numbers = cpu_seconds() - begun, run.summary["attacks"]["mt-keyword"]
            print(
                f"| {folder.name} | {size} | {100 * numbers['success_rate']['value']:.1f} % | {seconds / 60:.1f} | "
                f"{seconds / size:.2f} | {numbers['mean_queries']:.0f} |",
                flush=True,
            )


def study(data: Path, out: Path, folders: list[Path], texts: int) -> None:
    """Run the study and print its claims; the tables are in its folder."""
    models = {folder.name: str(folder) for folder in folders}
    folder = out / "study"
    result = st.study("translation", models, str(data / TEST), searched=texts, out=folder, resume=folder.exists())
    for claim in result.claims:
        print(claim.verdict, claim.claim, claim.numbers, sep=" | ")
    print(f"Tables: {folder / 'report.md'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("part", choices=("train", "cost", "study"))
    parser.add_argument("--preset", choices=("fast", "study"), default="fast")
    parser.add_argument("--arch", nargs="+", choices=ARCHITECTURES, default=list(ARCHITECTURES))
    parser.add_argument("--texts", type=int, default=200, help="sentences of the attacks that search")
    parser.add_argument("--out", type=Path, default=Path("runs/translation"))
    options = parser.parse_args()
    folders = [options.out / f"{architecture}-{options.preset}" for architecture in options.arch]
    match options.part:
        case "train":
            train(options.data, options.out, options.preset, options.arch)
        case "cost":
            cost(options.data, folders, options.texts)
        case "study":
            study(options.data, options.out, folders, options.texts)


if __name__ == "__main__":
    main()
