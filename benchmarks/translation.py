"""Translators of our own on Multi30k English to German: what they reach, and what attacks make of them.

    python benchmarks/translation.py DATA train [--preset fast|study] [--arch transformer-mt …] [--out runs/translation]
    python benchmarks/translation.py DATA attack [--keyword-texts 200] [--typo-texts 1000]

DATA is a folder with `train.jsonl.gz`, `val.jsonl.gz` and `test_2016_flickr.jsonl.gz`, each with `en` and `de`.

`train` trains what is missing, or goes on with it, on one thread, and prints for each model BLEU on the test sentences
of 2016 (sacrebleu, 13a; lower-cased as papers on Multi30k print it, and cased), greedy and with a beam of 5, the CPU
time, and BLEU on the validation sentences after each epoch. `attack` runs `mt-typo` and `mt-keyword` on the models that
`train` has made: BLEU before and after with a paired bootstrap, keyword success beside the paper's, and what both cost
on half and on all of the sentences, which shows whether the cost is linear.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import stockade as st
from stockade.models.translation.bleu import corpus_bleu

ANCHOR = 41.02
"""BLEU, lower-cased and tokenised, of a published Transformer of this size on the same test sentences (41.02)."""
BEAM = 5


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def pairs_of(path: Path) -> tuple[list[str], list[str]]:
    """The source and the target sentences of a file."""
    from stockade.datasets.parallel import load_parallel

    rows = list(load_parallel(str(path)))
    return [row.source for row in rows], [row.target for row in rows]


def train(data: Path, out: Path, preset: str, architectures: list[str]) -> None:
    """Train, translate the test sentences, print BLEU and the curve."""
    import torch

    torch.set_num_threads(1)
    sources, references = pairs_of(data / "test_2016_flickr.jsonl.gz")
    print("| model | preset | CPU minutes | decoding | BLEU, lower-cased | BLEU, cased |\n|---|---|---|---|---|---|")
    curves: dict[str, list[Any]] = {}
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
            name = "greedy" if beam == 1 else f"beam {beam}"
            print(
                f"| {architecture} | {preset} | {minutes:.1f} | {name} | {lower.score:.2f} | {cased.score:.2f} |",
                flush=True,
            )
    print(f"\n{lower.signature}; published anchor {ANCHOR}")
    for architecture, curve in curves.items():
        print(f"{architecture}, validation by epoch: {', '.join('–' if b is None else f'{b:.1f}' for b in curve)}")
