"""Accuracy and F1 on clean and pre-made texts: as a table of the page and as rows of an export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from stockade.experiment.export import Layout
from stockade.report.document import Cell, Table
from stockade.report.numbers import NOT_AVAILABLE, plain_percent
from stockade.workflows.evaluate.analysis import Analysis, ClassMeasures, Row
from stockade.workflows.evaluate.f1 import RESAMPLES
from stockade.workflows.evaluate.measures import Measure
from stockade.workflows.evaluate.spec import NONE
from stockade.workflows.evaluate.tables import share_cell

_CLEAN = "clean"
_ALL = "all"


def class_rows(row: Row) -> Iterator[tuple[str, str, ClassMeasures]]:
    """The sets of texts of a row, which of their texts, and its numbers on those.

    Parameters
    ----------
    row
        A model in its defenses.
    """
    yield _CLEAN, _ALL, row.clean
    for name, measures in row.premade.items():
        yield name, _ALL, measures
        for attempt, part in measures.attempts.items():
            yield name, attempt, part


def class_table(analysis: Analysis) -> Table:
    """Like FireBERT's Tables 1 and 2: accuracy and F1 of every row on clean and pre-made texts.

    Parameters
    ----------
    analysis
        What the grid found.
    """
    positives = sorted({row.positive for row in analysis.measured if row.positive is not None})
    kept = any(part.attempts for row in analysis.measured for part in row.premade.values())
    columns = ["model", "defense", "texts", *(["attempts"] if kept else []), "n", "accuracy", "macro F1"]
    columns += [f"F1 of {', '.join(positives)}"] if positives else []
    rows = []
    for row in analysis.measured:
        for name, attempt, measures in class_rows(row):
            cells: list[str | Cell] = [row.model, row.defense, name, *([attempt] if kept else [])]
            cells += [f"{max(measures.n.values(), default=0):,}", share_cell(measures.accuracy)]
            cells += [share_cell(measures.macro_f1)]
            if positives:
                cells.append(NOT_AVAILABLE if measures.positive_f1 is None else share_cell(measures.positive_f1))
            rows.append(cells)
    positive = " The positive class is the second of two." if positives else ""
    attempts = (
        " Attempts: a text on which the attack succeeded fools the model that it was made on; one on which it failed "
        "is kept as the search left it."
        if kept
        else ""
    )
    caption = (
        "Accuracy with 95 % Wilson intervals; F1 over all texts of a set, macro over the classes that are true or "
        f"predicted in it, with 95 % bootstrap intervals ({RESAMPLES:,} resamples of the texts).{positive}{attempts}"
    )
    first = columns.index("n")
    return Table(columns, rows, caption=caption, numeric=range(first, len(columns)), grouped=2)


def premade_title(analysis: Analysis) -> str:
    """The result of an evaluation without attacks in a line: the row that is right on most pre-made texts.

    Parameters
    ----------
    analysis
        What the grid found.
    """
    rows = [row for row in analysis.measured if _premade_accuracy(row) is not None]
    if not rows:
        return "Nothing could be measured"
    best = max(rows, key=_rank)
    at_best = "At best " if len(rows) > 1 else ""
    around = "without a defense" if best.defense == NONE else f"in {best.defense}"
    share = plain_percent(_rank(best))
    return f"{at_best}{share} of the pre-made texts are classified correctly ({best.model} {around})"


def premade_findings(analysis: Analysis, models: Sequence[str]) -> Iterator[str]:
    """What the best row of each model gets right of the pre-made texts, and the bare model.

    Parameters
    ----------
    analysis
        What the grid found.
    models
        Their names.
    """
    for model in models:
        rows = [row for row in analysis.measured if row.model == model and _premade_accuracy(row) is not None]
        if not rows:
            yield f"{model}: nothing could be measured."
            continue
        best = max(rows, key=_rank)
        bare = next((row for row in rows if row.defense == NONE), best)
        sets = " and ".join(
            f"{_written(measures.accuracy)} of {name}"
            + (f" (without a defense {share_cell(bare.premade[name].accuracy).text})" if bare is not best else "")
            for name, measures in best.premade.items()
        )
        around = "without a defense" if best.defense == NONE else f"in {best.defense}"
        yield f"{model} {around} is right on {sets}; its clean accuracy is {_written(best.clean.accuracy)}."


def _premade_accuracy(row: Row) -> float | None:
    """The mean accuracy over the pre-made sets."""
    values = [value for measures in row.premade.values() if (value := measures.accuracy.value) is not None]
    return fmean(values) if values else None


def _rank(row: Row) -> float:
    return _premade_accuracy(row) or 0.0


def _written(measure: Measure) -> str:
    cell = share_cell(measure)
    return f"{cell.text} ({cell.detail})" if cell.detail else cell.text


def class_records(analysis: Analysis) -> Iterator[Mapping[str, Any]]:
    """The same numbers as rows of an export, as `stockade export --premade` writes them.

    Parameters
    ----------
    analysis
        What the grid found.
    """
    for row in analysis.measured:
        for name, attempt, measures in class_rows(row):
            yield {
                "model": row.model,
                "defense": row.defense,
                "texts": name,
                "attempts": attempt,
                "n": max(measures.n.values(), default=0),
                **_columns("accuracy", measures.accuracy),
                **_columns("macro_f1", measures.macro_f1),
                "positive_class": row.positive,
                **_columns("positive_f1", measures.positive_f1),
            }


def _columns(name: str, measure: Measure | None) -> dict[str, float | None]:
    values: Sequence[float | None] = (None,) * 3 if measure is None else (measure.value, measure.low, measure.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


_NUMBERS = tuple(f"{name}{end}" for name in ("accuracy", "macro_f1", "positive_f1") for end in ("", "_low", "_high"))
CLASS_LAYOUT = Layout.of_row(
    {
        **dict.fromkeys(("model", "defense", "texts", "attempts"), ""),
        "n": 0,
        **dict.fromkeys(_NUMBERS[:6], 0.0),
        "positive_class": "",
        **dict.fromkeys(_NUMBERS[6:], 0.0),
    }
)
"""The columns of those rows."""
