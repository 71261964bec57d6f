"""What the page shows of single texts: the words that GR and EC write, and which words attention points at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stockade.core.records import Record
from stockade.report.diff import premise_pieces, record_pieces
from stockade.report.document import Block, Cell, Heading, Note, Table
from stockade.report.examples import Example, Examples, Version
from stockade.report.numbers import percent_cell
from stockade.studies.attention.analysis import EXAMPLES, ModelNumbers
from stockade.studies.attention.choices import RULES
from stockade.studies.attention.inputs import GREEDY, GREEDY_EC
from stockade.studies.attention.inside import AttentionView
from stockade.studies.records import Results, succeeded

Models = Mapping[str, ModelNumbers]
_SIDE_BY_SIDE = (
    "The same place of the same text: gs-gr writes the first word in a random order that fools the model, gs-ec the "
    "one that moves the sentence vector least. Shown are texts into which they write different words."
)
_CHOICES = (
    "How many of the words that attention points at have several pieces, by what the attention of such a word is taken "
    "to be; the rule of this study is in bold. A sum favours words of several pieces. Models that read every word in "
    "one piece are not listed."
)
_SHORTEST, _LONGEST = 20, 240


def side_by_side_blocks(models: Models, results: Mapping[str, Results], *, pairs: bool) -> Iterator[Block]:
    """What gs-gr and gs-ec write into the same texts (Table 2, of pairs Table 6)."""
    yield Heading("What gs-gr and gs-ec write", aside="Table 6" if pairs else "Table 2")
    items = [_compared(name, *both) for name in models for both in compared_texts(results[name])]
    if not items:
        yield Note("No text is fooled by both gs-gr and gs-ec with different words.", kind="aside")
        return
    yield Examples(items=items, preview=EXAMPLES)
    yield Note(_SIDE_BY_SIDE, kind="aside")


def compared_texts(results: Results, most: int = EXAMPLES) -> list[tuple[Record, Record]]:
    """A few texts that gs-gr and gs-ec both fool the model on with different words, neither tiny nor long if there are
    others.
    """
    greedy, constrained = results.get(GREEDY, {}), results.get(GREEDY_EC, {})
    both = [
        (record, constrained[text])
        for text, record in greedy.items()
        if succeeded(record)
        and succeeded(constrained.get(text))
        and record.adversarial_input != constrained[text].adversarial_input
    ]
    return sorted(both, key=lambda pair: not _SHORTEST <= len(pair[0].original) <= _LONGEST)[:most]


def _compared(model: str, greedy: Record, constrained: Record) -> Example:
    return Example(
        text=greedy.original,
        premise=greedy.premise,
        label=model,
        details=(f"example {greedy.id}", greedy.label),
        versions=[_version(record) for record in (greedy, constrained)],
    )


def _version(record: Record) -> Version:
    """What an attack wrote, in the side of a pair that it wrote into, and what the model says then."""
    in_premise = record.adversarial_premise is not None
    name = f"{record.attack}, premise" if in_premise else record.attack
    shown = premise_pieces(record) if in_premise else record_pieces(record)
    return Version(name, shown or "", f"→ {record.adversarial_prediction}")


def choice_blocks(models: Models, view: AttentionView) -> Iterator[Block]:
    """How often attention points at words of several pieces."""
    rows: list[tuple[str | Cell, ...]] = []
    for name, model in models.items():
        if model.choices is None or not model.choices.all_words["value"]:
            continue
        for rule in RULES:
            shares = (model.choices.asmin[rule], model.choices.asmax[rule], model.choices.all_words)
            used = Cell(rule, tone="strong" if rule == view.pieces else "plain")
            rows.append((name, used, *map(percent_cell, shares)))
    if rows:
        yield Heading("Words of several pieces")
        columns = ("model", "attention of a word", "chosen by asmin", "chosen by asmax", "of all words")
        yield Table(columns, rows, caption=_CHOICES, numeric=(2, 3, 4))
