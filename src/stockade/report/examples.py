"""Texts as reports show them: with marked words, as diffs, several versions of one text, many with filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

from stockade.core.records import Record, Status
from stockade.core.text import Piece
from stockade.report.diff import premise_pieces, record_pieces

Tone = Literal["plain", "good", "bad", "warning", "soft", "strong"]
"""What a colour would say: green, red, amber, grey, or bold."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text that a page marks.

    Parameters
    ----------
    text
        The word.
    marked
        Whether it is underlined: it may change, or it was replaced.
    depth
        How deep its colour is, between 0 and 1; None for no colour.
    detail
        Small print below it, such as its attention.
    """

    text: str
    marked: bool = False
    depth: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Rows of words one above the other, such as attention before and after; word `i` of each row stands in one column.

    Parameters
    ----------
    rows
        Each a name and its words.
    title
        Says which text that is.
    """

    rows: Sequence[tuple[str, Sequence[Word]]]
    title: str = ""

    @property
    def columns(self) -> tuple[tuple[Word, ...], ...]:
        """The words that stand one above the other; empty words fill up shorter rows."""
        return tuple(zip_longest(*(words for _, words in self.rows), fillvalue=Word("")))


Marked = str | Sequence[Piece | Word]
"""A text as a page shows it: plain, in pieces of a diff, or in words of which some are marked."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A share as a bar with a text behind it; `cells` divides it into that many equal parts, if they are few."""

    share: float
    text: str = ""
    cells: int = 0


@dataclass(frozen=True, slots=True)
class Version:
    """One of several versions of an example's text: whose it is, the text, and a few words on it."""

    name: str
    text: Marked
    detail: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A text and what became of it.

    Parameters
    ----------
    text
        The text; attacked texts in the pieces of their diff.
    status
        In one or two words: "success", "radius 3".
    tone
        The colour of the status.
    label
        The attack or method it comes from.
    verdict
        What the model said: "positive 0.98 → negative 0.61".
    details
        Small print: id, true label, queries.
    premise
        The premise of a pair; one that was attacked in the pieces of its diff.
    bar
        Drawn below the text.
    notes
        Sentences below the text; the first in ink, the others soft.
    explained
        Sentences for those who want to know exactly, folded away on the page and left out elsewhere.
    versions
        The same text in other versions, one below the other.
    facets
        The values that `Filter`s ask for, by their key.
    values
        Numbers that examples can be sorted by, by their name.
    """

    text: Marked
    status: str = ""
    tone: Tone = "plain"
    label: str = ""
    verdict: str = ""
    details: Sequence[str] = ()
    premise: Marked | None = None
    bar: Bar | None = None
    notes: Sequence[str] = ()
    explained: Sequence[str] = ()
    versions: Sequence[Version] = ()
    facets: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice above examples: those whose facet `key` has the chosen value stay."""

    key: str
    label: str
    selected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Texts to look at, with filters on the page.

    Parameters
    ----------
    items
        The examples.
    filters
        What a reader can choose by.
    search
        Whether the page has a field that searches the texts.
    preview
        How many of each label the terminal, Markdown and notebooks show.
    more
        A sentence at the end, such as how many did not fit.
    sorts
        The names of the values that a reader can sort by, the largest first.
    """

    items: Sequence[Example]
    filters: Sequence[Filter] = ()
    sorts: Sequence[str] = ()
    search: bool = False
    preview: int = 5
    more: str = ""

    def previewed(self) -> tuple[Example, ...]:
        """The first of each label among those that the filters select at the beginning."""
        counts: dict[str, int] = {}
        chosen = []
        for item in self.items:
            if all(item.facets.get(choice.key) == choice.selected for choice in self.filters if choice.selected):
                counts[item.label] = counts.get(item.label, 0) + 1
                if counts[item.label] <= self.preview:
                    chosen.append(item)
        return tuple(chosen)

    def options(self, key: str) -> tuple[str, ...]:
        """The values of a facet, in the order in which they come."""
        return tuple(dict.fromkeys(item.facets[key] for item in self.items if key in item.facets))


CHANGED, QUERIES, SIMILARITY = "changed words", "queries", "similarity"
"""What the results of attacks can be sorted by."""
TONES: Mapping[Status, Tone] = {"success": "bad", "failed": "good", "error": "warning", "skipped": "soft"}
"""The colour of a status: what the attack reached is bad."""


def record_example(record: Record, *, labelled: bool = True) -> Example:
    """The result of an attack as an example, with the facets `status` and `attack`.

    Parameters
    ----------
    record
        One text under one attack.
    labelled
        Whether its label is the true one, not the model's own prediction.
    """
    verdict = _verdict(record.original_prediction, record.original_scores)
    if record.adversarial_prediction is not None:
        verdict += f" → {_verdict(record.adversarial_prediction, record.adversarial_scores)}"
    return Example(
        text=record_pieces(record),
        status=record.status,
        tone=TONES[record.status],
        label=record.attack,
        verdict=verdict,
        details=tuple(_details(record, labelled)),
        premise=premise_pieces(record),
        notes=(record.reason,) if record.reason else (),
        facets={"status": record.status, "attack": record.attack},
        values={name: value for name, value in _values(record) if value is not None},
    )


def _values(record: Record) -> Iterator[tuple[str, float | None]]:
    yield CHANGED, record.perturbed_percent
    yield QUERIES, record.queries
    yield SIMILARITY, record.similarity


def _verdict(prediction: str | None, scores: Sequence[float] | None) -> str:
    return " ".join(filter(None, (prediction, f"{max(scores):.2f}" if prediction and scores else None)))


def _details(record: Record, labelled: bool) -> Iterator[str]:
    yield f"example {record.id}"
    if labelled:
        yield f"true label {record.label}"
    yield f"{record.queries:,} {'query' if record.queries == 1 else 'queries'}"
    if record.perturbed_percent is not None:
        yield f"{record.perturbed_percent:.1f} % of words changed"
    if record.truncated_words:
        words = "word" if record.truncated_words == 1 else "words"
        yield f"{record.truncated_words} {words} pushed out of what the model reads"
    if record.similarity is not None:
        yield f"similarity {record.similarity:.3f}"
    yield from _both_rules(record)


def _both_rules(record: Record) -> Iterator[str]:
    """What is known of a text under an attack on a randomised model."""
    if record.hit_rate is not None:
        draws = "draws" if record.draws is None else f"{record.draws:,} draws"
        yield f"fools the model in {record.hit_rate:.0%} of {draws}"
    if record.first_flip and record.first_flip_queries is not None:
        after = f"after {record.first_flip_queries:,} {'query' if record.first_flip_queries == 1 else 'queries'}"
        yield f"first flip {after}" if record.status == "success" else f"first flip {after}, which does not repeat"
    if record.dismissed:
        yield f"{record.dismissed:,} {'flip' if record.dismissed == 1 else 'flips'} that did not repeat"
