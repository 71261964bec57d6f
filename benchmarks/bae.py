"""Tables 1 and 2 and Figure 2 of the BAE paper: its seven data sets, a word-LSTM, a word-CNN, and MiniLM for BERT.

    python benchmarks/bae.py DATA train          the models, one training each with the preset of its architecture
    python benchmarks/bae.py DATA grid           BAE's four modes and TextFooler on every model: the tables, the figure
    python benchmarks/bae.py DATA all            both

DATA is a folder with these files, `text` and `label` in each row; data sets whose files are not there are left out, and
`--files NAME=TRAIN@TEST` names other files for one:

    amazon   amazon/train.jsonl.gz, amazon/test.jsonl.gz
    yelp     yelp_sentence/train.jsonl.gz, yelp_sentence/test.jsonl.gz
    imdb     imdb/train.jsonl.gz, imdb/test.jsonl.gz
    mr       mr/all_minus_textfooler1000.jsonl.gz, textfooler_eval/mr.jsonl.gz
    mpqa     mpqa/all.jsonl.gz, of which a tenth by the hash of the text is the test set
    subj     subj/all.jsonl.gz, split likewise
    trec     trec/train.jsonl.gz, trec/test.jsonl.gz

and `glove_6b/`, the vectors of the word models. Models are in `models/` of --out, the study in `grid/`; both go on
where they stopped. The tables stand in `grid/report.md` beside the paper's.

What differs from the paper: one training of each model, MiniLM-L6 in place of BERT base and only on MR and TREC, GloVe
of 100 numbers, the built-in masked LM and sentence encoder in place of BERT base and USE; Yelp are single sentences.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line sets it

import stockade as st
from stockade.datasets.builtin import text_hash
from transfer import glove_file

ARCHITECTURES = {"word-lstm": "word-LSTM", "word-cnn": "word-CNN", "minilm": "MiniLM-L6"}
SMALL_DATA = ("mr", "trec")
"""What MiniLM is trained on: short texts, for it is the dearest to attack."""
STAND_INS = {"BERT": "minilm"}


POLARITY = ("negative", "positive")
QUESTIONS = ("abbreviation", "description", "entity", "human", "location", "number")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The files of a data set below DATA; without a test file a tenth of the other is held out.

    `labels` are the classes in the order of the data's labels, for human raters; None leaves them as they are.
    """

    train: str
    test: str | None
    labels: tuple[str, ...] | None = POLARITY


RECIPES: Mapping[str, Recipe] = {
    "amazon": Recipe("amazon/train.jsonl.gz", "amazon/test.jsonl.gz"),
    "yelp": Recipe("yelp_sentence/train.jsonl.gz", "yelp_sentence/test.jsonl.gz"),
    "imdb": Recipe("imdb/train.jsonl.gz", "imdb/test.jsonl.gz"),
    "mr": Recipe("mr/all_minus_textfooler1000.jsonl.gz", "textfooler_eval/mr.jsonl.gz"),
    "mpqa": Recipe("mpqa/all.jsonl.gz", None),
    "subj": Recipe("subj/all.jsonl.gz", None, labels=None),
    "trec": Recipe("trec/train.jsonl.gz", "trec/test.jsonl.gz", labels=QUESTIONS),
}


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set that is at hand."""

    name: str
    train: Path
    test: Path

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(name for name in ARCHITECTURES if name != "minilm" or self.name in SMALL_DATA)


def find_data(
    data: Path, out: Path, names: Sequence[str], files: Sequence[str], train_rows: int | None
) -> list[DataSet]:
    """The data sets whose files are there, in the order of the paper.

    Parameters
    ----------
    data, out
        Where they are, and where those that are split or shortened here are written.
    names
        Which to take; all that are there if empty.
    files
        Other files, as NAME=TRAIN@TEST.
    train_rows
        Train on so many rows only; on all if None.
    """
    other = dict(map(parse_files, files))
    chosen = []
    for name, recipe in RECIPES.items():
        if names and name not in names:
            continue
        train, test = other.get(name) or (data / recipe.train, None if recipe.test is None else data / recipe.test)
        missing = [path for path in (train, test) if path is not None and not path.is_file()]
        if missing:
            if name in names or name in other:
                raise SystemExit(f"{name}: {missing[0]} is not there. Name its files with --files {name}=TRAIN@TEST.")
            print(f"{name} is left out: {missing[0]} is not there")
            continue
        if test is None:
            train, test = split_rows(train, out / "data" / name)
        if train_rows is not None:
            train = shortened(train, out / "data" / f"{name}-{train_rows}.jsonl.gz", train_rows)
        chosen.append(DataSet(name, train, test))
    return chosen


def parse_files(written: str) -> tuple[str, tuple[Path, Path]]:
    """NAME=TRAIN@TEST."""
    name, equals, pair = written.partition("=")
    train, at, test = pair.rpartition("@")
    if name not in RECIPES or not (equals and at and train and test):
        raise SystemExit(f"--files {written} is not NAME=TRAIN@TEST with a NAME of {', '.join(RECIPES)}.")
    return name, (Path(train), Path(test))


def split_rows(source: Path, folder: Path) -> tuple[Path, Path]:
    """Nine tenths to train on and one to test on, by the hash of the text: equal texts are on the same side."""
    train, test = folder / "train.jsonl.gz", folder / "test.jsonl.gz"
    if not test.exists():
        rows = list(read_rows(source))
        held_out = [int(text_hash(json.loads(row)["text"])[:8], 16) % 10 == 0 for row in rows]
        write_rows(train, (row for row, out in zip(rows, held_out, strict=True) if not out))
        write_rows(test, (row for row, out in zip(rows, held_out, strict=True) if out))
    return train, test


def shortened(source: Path, path: Path, rows: int) -> Path:
    """A seeded sample of the rows of a file, which may be sorted by class."""
    if not path.exists():
        every = list(read_rows(source))
        write_rows(path, iter(Random(0).sample(every, min(rows, len(every)))))
    return path


def read_rows(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from (line for line in stream if line.strip())


def write_rows(path: Path, rows: Iterator[str]) -> None:
    """Write a file under another name first, so that one that is there is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with gzip.open(part, "wt", encoding="utf-8") as stream:
        stream.writelines(rows)
    part.replace(path)


def model_folder(out: Path, model: str, data_set: DataSet) -> Path:
    return out / "models" / f"{model}-{data_set.name}"


def train_models(data_sets: Sequence[DataSet], models: Sequence[str], out: Path, glove: Path, **options: Any) -> None:
    """Train what is not trained yet, and print what each reaches."""
    for data_set in data_sets:
        for model in data_set.models:
            if model not in models:
                continue
            folder, started = model_folder(out, model, data_set), time.perf_counter()
            trained = st.train(
                str(data_set.train),
                ARCHITECTURES[model],
                out=folder,
                sources={} if model == "minilm" else {"glove": str(glove)},
                labels=RECIPES[data_set.name].labels,
                resume=(folder / "manifest.json").exists(),
                **options,
            )
            accuracy = (trained.summary["accuracy"] or {}).get("value")
            seconds = time.perf_counter() - started
            print(f"{model} on {data_set.name}: {seconds:.0f} s now, validation accuracy {accuracy}")


def run_grid(data_sets: Sequence[DataSet], models: Sequence[str], out: Path, **options: Any) -> None:
    """Run the study or go on with it, and print what it took and what became of the claims."""
    cells = {
        f"{model}/{data_set.name}": (str(model_folder(out, model, data_set)), str(data_set.test))
        for data_set in data_sets
        for model in data_set.models
        if model in models
    }
    stand_ins = {
        paper: model for paper, model in STAND_INS.items() if any(cell.startswith(f"{model}/") for cell in cells)
    }
    folder, started = out / "grid", time.perf_counter()
    resumed = (folder / "manifest.json").exists()
    finished: Any = st.study("bae", cells=cells, stand_ins=stand_ins, out=folder, resume=resumed, **options)
    print(f"grid: {time.perf_counter() - started:.0f} s now; {folder / 'report.md'}")
    for name, run in finished.runs.items():
        attacked = {attack: f"{numbers.seconds:.0f}" for attack, numbers in run.numbers.attacks.items()}
        print(f"  {name}: seconds by attack {attacked}")
    for claim in finished.claims:
        print(f"  {claim.verdict}: {claim.claim} ({claim.numbers})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("part", choices=("train", "grid", "all"))
    parser.add_argument("--out", type=Path, default=Path("runs/bae"))
    parser.add_argument("--sets", nargs="*", default=[], choices=tuple(RECIPES), help="which data sets; all at hand")
    parser.add_argument("--models", nargs="*", default=list(ARCHITECTURES), choices=tuple(ARCHITECTURES))
    parser.add_argument("--files", action="append", default=[], metavar="NAME=TRAIN@TEST")
    parser.add_argument("--limit", type=int, default=100, help="texts of each cell (100, as the paper's Table 1)")
    parser.add_argument("--epochs", type=int, help="fewer than the preset's, for a trial")
    parser.add_argument("--train-rows", type=int, help="fewer than all, for a trial")
    parser.add_argument(
        "--fluency", action="store_true", help="measure pseudo-perplexities too, which are not in the paper"
    )
    options = parser.parse_args()
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    data_sets = find_data(options.data, out, options.sets, options.files, options.train_rows)
    if not data_sets:
        raise SystemExit(f"{options.data} holds none of the data sets: see --help for their files.")
    if options.part in ("train", "all"):
        limited = {} if options.epochs is None else {"epochs": options.epochs}
        train_models(data_sets, options.models, out, glove_file(options.data, out), **limited)
    if options.part in ("grid", "all"):
        run_grid(data_sets, options.models, out, limit=options.limit, score_first=True, fluency=options.fluency)


if __name__ == "__main__":
    main()
