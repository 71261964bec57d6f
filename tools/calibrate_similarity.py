"""Which threshold of our sentence encoder lets the edits pass that published attacks made under theirs.

    python tools/calibrate_similarity.py LOGS [--texts 300] [--encoder NAME] [--plot FILE.svg]

Thresholds in papers are for the Universal Sentence Encoder (USE). LOGS is a folder with public logs of TextAttack
attacks on BERT, gzipped, one JSON object a line: `original`, `perturbed`, `result` ("Successful"):

    bert-imdb-textfooler, bert-sst2-textfooler, bert-yelp-textfooler    angular 0.840845, against the text before
    bert-imdb-bae                                                       cosine 0.936338, against the original

Both compare a window of 15 words around the edited one, and every edit in a log has passed. So a threshold of ours that
accepts 95 % of those edits is one that treats them nearly as USE did. What the logs do not hold: USE's scores, and the
edits that it refused. They say how strict a filter may be before it loses published edits, not how much it must refuse.

An edit is *lone* when no other word of its window was changed: then the two windows that USE compared are known,
whatever the order of the edits. Only those decide thresholds. One of the other edits (*joint*) of each text is shown as
well, made alone in the original text, which is near to what was compared but not the same. Texts shorter than the
window were not compared by the published attacks and are left out.

For contrast the same word is replaced by a random word of the same part of speech (from all texts of the log, tagged in
their places), and by a WordNet antonym if it has one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from stockade.attacks.similarity import Scale, from_cosine, to_cosine, window_bounds
from stockade.core.text import Text, match_case
from stockade.lexicon.pos import load_tagger
from stockade.lexicon.wordnet import load_wordnet
from stockade.models.sentence_encoder import SentenceEncoder

WINDOW = 15
WHOLE_TEXTS = 100
SHARES = (0.99, 0.95, 0.90)
RESAMPLES = 500
KINDS = ("lone", "joint", "random", "antonym")
Cosines = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Published:
    """A filter as it was published, and the logs of attacks that used it."""

    name: str
    scale: Scale
    threshold: float
    logs: tuple[str, ...]


FILTERS = (
    Published(
        "textfooler",
        "angular",
        0.840845057,
        ("bert-imdb-textfooler", "bert-sst2-textfooler", "bert-yelp-textfooler"),
    ),
    Published("bae", "cosine", 0.936338, ("bert-imdb-bae",)),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two windows to compare: of which text, and what was done to the word in the middle."""

    text: str
    kind: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Cosines of one kind of comparison, with the number of the text that each is from."""

    cosines: Cosines
    texts: NDArray[np.int64]

    def threshold(self, share: float) -> float:
        """The largest cosine that at least this share reaches."""
        return float(np.quantile(self.cosines, 1 - share, method="lower"))

    def accepted(self, cosine: float) -> float:
        return float((self.cosines >= cosine).mean())

    def interval(self, share: float) -> tuple[float, float]:
        """Where nine in ten thresholds lie when texts, not edits, are drawn anew."""
        by_text = [self.cosines[self.texts == text] for text in np.unique(self.texts)]
        rng = np.random.default_rng(0)
        found = []
        for _ in range(RESAMPLES):
            drawn = np.concatenate([by_text[i] for i in rng.integers(0, len(by_text), len(by_text))])
            found.append(np.quantile(drawn, 1 - share, method="lower"))
        low, high = np.quantile(found, [0.05, 0.95])
        return float(low), float(high)


def read_log(path: Path, count: int) -> list[tuple[Text, Text]]:
    """A sample of the successes whose texts the filter looked at: originals and what became of them."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["result"] == "Successful"]
    pairs = [(Text.parse(row["original"]), Text.parse(row["perturbed"])) for row in rows]
    pairs = [(old, new) for old, new in pairs if WINDOW <= len(old) == len(new)]
    return Random(0).sample(pairs, min(count, len(pairs)))


def compare_windows(pairs: Sequence[tuple[Text, Text]], log: str) -> list[Comparison]:
    """All comparisons of a log."""
    tagger, wordnet, rng = load_tagger(), load_wordnet(), Random(0)
    tags = [tagger.universal(old.words) for old, _ in pairs]
    pools = defaultdict[str, list[str]](list)
    for (old, _), own in zip(pairs, tags, strict=True):
        for word, tag in zip(old.words, own, strict=True):
            pools[tag].append(word.lower())
    found = []
    for number, (old, new) in enumerate(pairs):
        changed = [i for i in old.indices if old.words[i] != new.words[i]]
        lone = [i for i in changed if len(_inside(changed, window_bounds(len(old), i, WINDOW))) == 1]
        joint = [i for i in changed if i not in lone]
        for i in [*lone, *rng.sample(joint, min(1, len(joint)))]:
            start, end = window_bounds(len(old), i, WINDOW)
            word = old.words[i]
            others = [other for other in pools[tags[number][i]] if other not in (word.lower(), new.words[i].lower())]
            written = {"lone" if i in lone else "joint": new.words[i]}
            if i in lone and others:
                written["random"] = match_case(rng.choice(others), word)
            if i in lone and (opposite := sorted(wordnet.antonyms(word))):
                written["antonym"] = match_case(rng.choice(opposite), word)
            before = str(old.part(start, end))
            for kind, other in written.items():
                after = str(old.replace(i, other).part(start, end))
                found.append(Comparison(f"{log}/{number}", kind, before, after))
    return found


def _inside(indices: Sequence[int], bounds: tuple[int, int]) -> list[int]:
    return [i for i in indices if bounds[0] <= i < bounds[1]]


def measure(comparisons: Sequence[Comparison], encoder: SentenceEncoder) -> dict[str, Measured]:
    """The cosines of all comparisons, by kind."""
    cosines = _cosines([(one.before, one.after) for one in comparisons], encoder)
    numbers = {text: number for number, text in enumerate(dict.fromkeys(one.text for one in comparisons))}
    measured = {}
    for kind in KINDS:
        rows = [row for row, one in enumerate(comparisons) if one.kind == kind]
        measured[kind] = Measured(cosines[rows], np.array([numbers[comparisons[row].text] for row in rows]))
    return measured


def _cosines(pairs: Sequence[tuple[str, str]], encoder: SentenceEncoder) -> Cosines:
    rows = {string: row for row, string in enumerate(dict.fromkeys(string for pair in pairs for string in pair))}
    vectors = encoder.embed(list(rows)).astype(np.float64)
    first, second = (vectors[[rows[pair[side]] for pair in pairs]] for side in (0, 1))
    cosines: Cosines = np.clip((first * second).sum(1), -1, 1)
    return cosines


def report(published: Published, measured: dict[str, Measured], texts: int) -> None:
    """Print what the filter's number and the calibrated ones accept."""
    paper = to_cosine(published.threshold, published.scale)
    lone = measured["lone"]
    print(f"\n{published.name}: {published.scale} {published.threshold} (cosine {paper:.4f}), {texts} texts")
    sizes = ", ".join(f"{kind} {len(measured[kind].cosines):,}" for kind in KINDS)
    print(f"comparisons: {sizes}; texts with a lone edit: {len(np.unique(lone.texts)):,}\n")
    print(
        "| filter | cosine (90 % interval) | angular | tf | "
        + " | ".join(KINDS)
        + " |\n|---|---|---|---|---|---|---|---|"
    )
    limits = [("the published number", paper, "")]
    for share in SHARES:
        low, high = lone.interval(share)
        limits.append((f"accepts {share:.0%}", lone.threshold(share), f" ({low:.3f} … {high:.3f})"))
    for name, limit, interval in limits:
        scales = " | ".join(f"{from_cosine(limit, scale):.4f}" for scale in ("angular", "tf"))
        shares = " | ".join(f"{measured[kind].accepted(limit):.3f}" for kind in KINDS)
        print(f"| {name} | {limit:.4f}{interval} | {scales} | {shares} |")


def by_log(lone: Measured, logs: Sequence[str]) -> None:
    """Print the thresholds of each log by itself: how much depends on the texts."""
    print()
    for log in dict.fromkeys(logs):
        own = np.array([other == log for other in logs])
        part = Measured(lone.cosines[own], lone.texts[own])
        found = ", ".join(f"{share:.0%} {part.threshold(share):.3f}" for share in SHARES)
        print(f"{log}: {own.sum():,} lone edits, thresholds that accept {found}")


def unknown_share(pairs: Sequence[tuple[Text, Text]]) -> float:
    """The share of substitutes that WordNet does not know: word pieces, names, function words."""
    edits = [zip(old.words, new.words, strict=True) for old, new in pairs]
    written = [after for edit in edits for before, after in edit if before != after]
    return sum(not load_wordnet().has(word) for word in written) / len(written)


def plot(curves: dict[str, dict[str, Measured]], out: Path) -> None:
    """What share of each kind a threshold accepts, per filter."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "stockade"
    from matplotlib import pyplot

    labels = {"lone": "published edits", "random": "random word, same part of speech", "antonym": "antonym"}
    figure, axes = pyplot.subplots(1, len(curves), figsize=(9, 3.2), sharey=True)
    grid = np.linspace(0.4, 1, 121)
    for axis, published in zip(axes, FILTERS, strict=True):
        for kind, label in labels.items():
            axis.plot(grid, [curves[published.name][kind].accepted(x) for x in grid], label=label)
        axis.axvline(
            to_cosine(published.threshold, published.scale), color="black", linestyle=":", label="the published number"
        )
        axis.axvline(curves[published.name]["lone"].threshold(0.95), color="grey", linestyle="--", label="accepts 95 %")
        axis.set(title=published.name, xlabel="threshold (cosine, window of 15)")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("share accepted")
    axes[0].legend(fontsize=7, loc="lower left")
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path)
    parser.add_argument("--texts", type=int, default=300, help="texts of each log")
    parser.add_argument("--encoder", help="a sentence-transformers folder or name; else the packaged one")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    missing = [log for one in FILTERS for log in one.logs if not (options.logs / f"{log}.jsonl.gz").is_file()]
    if missing:
        sys.exit(f"{options.logs} has no {missing[0]}.jsonl.gz; see --help for what the folder must hold.")
    encoder = SentenceEncoder(options.encoder)
    print(f"encoder: {encoder.name}")
    curves = {}
    for published in FILTERS:
        logs = {log: read_log(options.logs / f"{log}.jsonl.gz", options.texts) for log in published.logs}
        comparisons = [one for log, pairs in logs.items() for one in compare_windows(pairs, log)]
        measured = curves[published.name] = measure(comparisons, encoder)
        report(published, measured, sum(map(len, logs.values())))
        by_log(measured["lone"], [one.text.partition("/")[0] for one in comparisons if one.kind == "lone"])
        for log, pairs in logs.items():
            print(f"substitutes that WordNet does not know, {log}: {unknown_share(pairs):.0%}")
            cosines = _cosines([(str(old), str(new)) for old, new in pairs[:WHOLE_TEXTS]], encoder)
            low, middle = np.quantile(cosines, [0.05, 0.5])
            print(
                f"whole texts, {log}: median cosine {middle:.3f}, 95 % reach {low:.3f}, n = {len(cosines)}", flush=True
            )
    if options.plot is not None:
        plot(curves, options.plot)


if __name__ == "__main__":
    main()
