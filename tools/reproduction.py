"""Write docs/reproduction.md: every table and figure of the papers, the command that prints it, and what came out.

    python tools/reproduction.py record RUN NAME "COMMAND"   # keep what a study found, in benchmarks/results/NAME.json
    python tools/reproduction.py write                       # writes the page, from the catalogue and those files
    python tools/reproduction.py check                       # exit code 1 if the page is not what would be written

No number of the page is typed: verdicts and cost come from the summaries and stores of the studies that were run.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
CATALOGUE = ROOT / "benchmarks" / "reproduction.toml"
TARGET = ROOT / "docs" / "reproduction.md"
_HEAD = """# Reproduction

Every table and figure of the five papers with the command that makes it, beside the published numbers where the paper
has any. Made by `python tools/reproduction.py write`; the verdicts, texts and costs are those of the studies that were
run, as [benchmarks/results](../benchmarks/results) keeps them. *Cost* is the time that the searches and models of the
study took on two cores, which were shared with other work; training the models comes on top. `MODEL` and `DATA` are
yours; the papers' own checkpoints (BERT-base, RoBERTa) and data sets that cannot be redistributed are not part of
Stockade.

A claim is held, not held or undecided by a test ([how](studies.md#how-a-claim-is-decided)). The models here are small:
a claim that is not held is a finding about these models, not an error of the paper.
"""
_FOLDERS = re.compile(r"(?<![\w.:<>/])/(?:[\w.@+-]+/)+")
"""What stands before the name of a file."""
_COLUMNS = ("item", "what", "command", "data", "run here", "claims: held / not held / undecided", "cost")


@dataclass(frozen=True, slots=True)
class Item:
    """A table or figure of a paper.

    Parameters
    ----------
    item
        Such as "Table 1".
    what
        What it shows, in a few words.
    command
        What prints it.
    data
        What the paper, or the run here, used.
    results
        The names of kept results that show it.
    """

    item: str
    what: str
    command: str
    data: str = ""
    results: tuple[str, ...] = ()

    def row(self, kept: Mapping[str, Mapping[str, Any]]) -> str:
        """The item as a row of the page."""
        runs = [kept[name] for name in self.results if name in kept]
        links = ", ".join(f"[{name}](../benchmarks/results/{name}.md)" for name in self.results if name in kept)
        verdicts = Counter(claim["verdict"] for run in runs for claim in run["claims"])
        counts = " / ".join(str(verdicts[verdict]) for verdict in ("held", "not held", "undecided"))
        cost = "; ".join(_duration(run["seconds"]) for run in runs)
        cells = [self.item, self.what, f"`{self.command}`" if self.command else "–", self.data or "–"]
        cells += [links, counts if verdicts else "–", cost] if runs else ["no", "–", "–"]
        return f"| {' | '.join(cells)} |"


def record(folder: Path, name: str, command: str) -> None:
    """Keep what a finished study found: its claims, warnings and cost, and its page without the paths of this machine.

    Parameters
    ----------
    folder
        The folder of the study.
    name
        What it is called in the catalogue.
    command
        The command that made it.
    """
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    if not summary["complete"]:
        raise SystemExit(f"{folder} is not complete: finish it with stockade resume first.")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    kept = {
        "command": command,
        "study": summary["study"],
        "stockade": manifest.get("versions", {}).get("stockade"),
        "created": summary["created"],
        "limit": summary["limit"],
        "seed": summary["seed"],
        "seconds": round(_seconds(folder)),
        "warnings": [_without_paths(warning, folder) for warning in summary["warnings"]],
        "claims": summary["claims"],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = (folder / "report.md").read_text(encoding="utf-8").split("\n## Manifest")[0]
    (RESULTS / f"{name}.md").write_text(_without_paths(page, folder).rstrip() + "\n", encoding="utf-8")


def _seconds(folder: Path) -> float:
    """What all jobs inside took, as their stores say."""
    total = 0.0
    for path in sorted(folder.rglob("run.sqlite")):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            total += connection.execute("SELECT TOTAL(seconds) FROM effort").fetchone()[0]
    return total


def _without_paths(text: str, folder: Path) -> str:
    """The text with the study's folder as RUN, and other files by their names."""
    return _FOLDERS.sub("", text.replace(f"{folder}", "RUN"))


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def page(papers: Sequence[Mapping[str, Any]], kept: Mapping[str, Mapping[str, Any]]) -> str:
    """The page.

    Parameters
    ----------
    papers
        The catalogue.
    kept
        The kept results by name.
    """
    parts = [_HEAD]
    for paper in papers:
        items = [Item(**{**entry, "results": tuple(entry.get("results", ()))}) for entry in paper["items"]]
        missing = [name for item in items for name in item.results if name not in kept]
        if missing:
            raise SystemExit(f"There is no benchmarks/results/{missing[0]}.json: record that run first.")
        parts.append(f"\n## {paper['title']}\n")
        if "note" in paper:
            parts.append(f"\n{fill(paper['note'], 100, break_long_words=False, break_on_hyphens=False)}\n")
        parts.append(f"\n| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}\n")
        parts += [f"{item.row(kept)}\n" for item in items]
    return "".join(parts)


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case ["record", folder, name, command]:
            record(Path(folder).resolve(), name, command)
            return 0
        case ["write" | "check" as action]:
            papers = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))["paper"]
            kept = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")}
            text = page(papers, kept)
            if action == "check":
                return int(text != TARGET.read_text(encoding="utf-8"))
            TARGET.write_text(text, encoding="utf-8")
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
