"""The experiments of the transfer paper on MR with models of the zoo: matrix, ensembles, rules.

    python benchmarks/transfer.py DATA small         20 × 20 models, 200 texts each, from nothing: what a study costs
    python benchmarks/transfer.py DATA full          all models that need no download, 1,000 texts each: Tables 1 to 4
    python benchmarks/transfer.py DATA ensemble      ensembles chosen on that matrix, attacked: Table 8, Figure 1
    python benchmarks/transfer.py DATA rules         rules mined with six of the models: Tables 5, 6, 9 and 10
                                                     (both with --of small: on the 20 models)
    python benchmarks/transfer.py DATA genetic       the 20 models under the genetic attack
    python benchmarks/transfer.py DATA news          the 20 models on AG-News

DATA is a folder with `mr/all_minus_textfooler1000.jsonl.gz` and `textfooler_eval/mr.jsonl.gz` (MR without, and only,
the thousand sentences that TextFooler was evaluated on), `ag_news/`, `glove_6b/` and `pretrained_minilm_l3/`. Each part
is a study in its folder below --out and goes on where it stopped; the pool in `pool-mr/` serves all of them. The tables
stand in `report.md` of each study, beside the paper's.

What differs from the paper: MiniLM-L6, MiniLM-L3 and BERT-NOPT in place of BERT, RoBERTa and ALBERT, word2vec and
fastText trained on MR itself, and an ELMo of MR's sentences, which is no ELMo.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line sets it

import numpy as np

import stockade as st

STAND_IN = {"BERT": "MiniLM-L6"}
"""In the lists of the paper's expert."""


def glove_file(data: Path, folder: Path) -> Path:
    """The GloVe vectors as the text file that trainings read."""
    path = folder / "glove.100d.txt"
    if not path.exists():
        words = (data / "glove_6b" / "words.100d.txt").read_text(encoding="utf-8").split("\n")
        vectors = np.load(data / "glove_6b" / "glove.6B.100d.f16.npy").astype(np.float32)
        lines = (f"{word} {' '.join(f'{x:.5g}' for x in row)}\n" for word, row in zip(words, vectors, strict=False))
        path.write_text("".join(lines), encoding="utf-8")
    return path


def minilm_l3(data: Path, folder: Path) -> Path:
    """MiniLM-L3 as a model folder in single precision."""
    from safetensors.torch import load_file, save_file

    path, source = folder / "minilm-l3", data / "pretrained_minilm_l3"
    if not path.exists():
        path.mkdir()
        weights = {name: tensor.float() for name, tensor in load_file(source / "model.fp16.safetensors").items()}
        save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
        for name in ("config.json", "tokenizer.json"):
            shutil.copy(source / name, path)
        settings = {"tokenizer_class": "BertTokenizerFast", "do_lower_case": True, "model_max_length": 512}
        (path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return path


def log(every: float = 60.0) -> Callable[[st.Progress], None]:
    """Prints a line now and then."""
    last = -every

    def observer(progress: st.Progress) -> None:
        nonlocal last
        if time.perf_counter() - last > every:
            last = time.perf_counter()
            print(f"{progress.part}: {progress.done} of {progress.total} {progress.unit}", flush=True)

    return observer


def run(name: str, folder: Path, data: str | None, **options: Any) -> None:
    """Run a study or go on with it, and print what it took and where its tables are."""
    started = time.perf_counter()
    resume = (folder / "manifest.json").exists()
    finished = st.study(name, None, data, out=folder, resume=resume, observer=log(), **options)
    print(f"{name}: {time.perf_counter() - started:.0f} s now; {folder / 'report.md'}")
    for claim in finished.claims:
        print(" ", claim)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("part", choices=("small", "full", "ensemble", "rules", "genetic", "news"))
    parser.add_argument("--out", type=Path, default=Path("runs/transfer"))
    parser.add_argument("--attacked", type=int, default=1000, help="texts attacked on each model of the full pool")
    parser.add_argument("--sampled", type=int, default=500, help="adversarial texts of each that targets are given")
    parser.add_argument("--of", choices=("small", "full"), default="full", help="whose models ensemble and rules take")
    options = parser.parse_args()
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    glove = glove_file(options.data, out)
    test = str(options.data / "textfooler_eval" / "mr.jsonl.gz")
    train = str(options.data / "mr" / "all_minus_textfooler1000.jsonl.gz")
    pool: dict[str, Any] = {
        "workers": os.cpu_count() or 1,
        "train_data": train,
        "vectors": {"glove": str(glove)},
        "pool_folder": str(out / "pool-mr"),
    }
    match options.part:
        case "small":
            run("transfer", out / "small", test, pool="default", attacked=200, **pool)
        case "full":
            checkpoints = {"MiniLM-L3": str(minilm_l3(options.data, out))}
            sizes = {"attacked": options.attacked, "sampled": options.sampled}
            run("transfer", out / "full", test, pool="full", checkpoints=checkpoints, **sizes, **pool)
        case "ensemble":
            run("ensemble", out / "ensemble", None, matrix=str(out / options.of), stand_ins=STAND_IN, limit=300)
        case "rules":
            run("rules", out / "rules", None, transfer=str(out / options.of), train_data=train, stand_ins=STAND_IN)
        case "genetic":
            attacks = ["pwws", "genetic@transfer"]
            run("transfer", out / "genetic", test, pool="default", attacks=attacks, attacked=200, **pool)
        case "news":
            pool |= {
                "train_data": str(options.data / "ag_news" / "train_subset.jsonl.gz"),
                "pool_folder": str(out / "pool-ag"),
            }
            test = str(options.data / "ag_news" / "test.jsonl.gz")
            run("transfer", out / "news", test, pool="default", attacked=200, **pool)


if __name__ == "__main__":
    main()
