"""The README and the pages of docs/ as data: their prose, code blocks, commands, links and headings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]))
"""README, CHANGELOG and CONTRIBUTING, and everything under docs/."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`(stockade [^`]+)`")
_LINK = re.compile(r"(?<!`)\[[^\]]+\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced piece of code."""

    language: str
    code: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command line of Stockade, without its first word."""

    arguments: tuple[str, ...]
    line: int
    is_mention: bool
    """Whether it stands in a sentence, where arguments may be left out."""


def name_of(page: Path) -> str:
    """The page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """The fenced pieces of code of a page, or those in one language."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 1)
        for match in _FENCE.finditer(text)
        if language in (None, match[1])
    ]


def code_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of fenced and indented code with their numbers; one that goes on after a backslash is one line."""
    fenced, joined, start = False, "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            start = start if joined else number
            joined += line.strip().removesuffix("\\") if line.endswith("\\") else line.strip()
            if not line.endswith("\\"):
                yield start, joined
                joined = ""


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither code nor rows of a table, with their numbers."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("    ", "|")):
            yield number, line


def commands(page: Path) -> list[Command]:
    """Every command line of Stockade on a page, in code and in sentences."""
    text = page.read_text(encoding="utf-8")
    lines = []
    for number, line in code_lines(text):
        match = re.match(r"(?:\$ |accelerate launch -m )?stockade(?!:)(?: (.*))?$", line)
        if match:
            lines.append((number, match[1] or "", False))
    prose = "\n".join(line for line in text.split("\n") if not line.startswith("    "))
    for match in _INLINE.finditer(_FENCE.sub("", prose)):
        lines.append((0, match[1].removeprefix("stockade "), True))
    return [Command(tuple(shlex.split(rest, comments=True)), number, is_mention) for number, rest, is_mention in lines]


def links(page: Path) -> list[str]:
    """Where the links of a page lead that stay in the repository."""
    targets = _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in targets if not target.startswith(("http://", "https://", "mailto:"))]


def anchors(page: Path) -> set[str]:
    """The names that the headings of a page have in links."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
