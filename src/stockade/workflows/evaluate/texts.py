"""The texts of an evaluation: every adversarial text of every cell, as rows, as examples, and where its run is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from stockade.core.records import Record, Status
from stockade.experiment.export import Layout
from stockade.experiment.result import REPORT
from stockade.report.document import Cell, Details, Heading, Note, Table
from stockade.report.examples import CHANGED, QUERIES, Example, Examples, Filter, record_example
from stockade.report.numbers import number
from stockade.workflows.attack.result import LAYOUT, as_row
from stockade.workflows.evaluate.grid import CellKey
from stockade.workflows.evaluate.tables import FIRST_FLIP, has_first_flips

if TYPE_CHECKING:
    from stockade.workflows.evaluate.result import EvaluateResult

_PER_CELL, _MOST = 20, 400
"""How many texts a page shows of each cell, and of all."""

CELL_LAYOUT = Layout(
    ("model", "defense", "view", "seed", *LAYOUT.columns),
    LAYOUT.nested,
    lambda: {**Layout.of_row({"seed": 0}).kinds(), **LAYOUT.kinds()},
)
"""The columns of every text of every cell."""


def cell_row(key: CellKey, record: Record) -> dict[str, Any]:
    """A text of a cell as plain values.

    Parameters
    ----------
    key, record
        Which cell, and what its run says of the text.
    """
    return {"model": key.model, "defense": key.defense, "view": key.view, "seed": key.seed, **as_row(record)}


def cell_examples(
    result: EvaluateResult, attack: str | None = None, status: Status | None = "success"
) -> Iterator[Example]:
    """The texts of all cells, the first of each, then the second of each: a few of them are of many cells.

    Parameters
    ----------
    result
        The evaluation.
    attack, status
        Only those of this attack or status; all if None.
    """
    keys = [key for key in result.cells() if attack is None or key.attack == attack]
    cells = [_examples_of(result, key, status) for key in keys]
    return (example for row in zip_longest(*cells) for example in row if example is not None)


def _examples_of(result: EvaluateResult, key: CellKey, status: Status | None) -> Iterator[Example]:
    row = f"{key.model}, {key.defense}"
    seed = f", seed {key.seed}" if len(result.grid.seeds) > 1 else ""
    for record in result.run_of(key).records(key.attack, status):
        example = record_example(record)
        yield replace(
            example,
            label=f"{row}: {key.attack}, {key.view}{seed}",
            facets={**example.facets, "row": row, "view": key.view},
        )


def example_blocks(result: EvaluateResult) -> Iterator[Heading | Examples | Note]:
    """What fooled the models, with filters; nothing if nothing was attacked."""
    if not any(result.cells()):
        return
    yield Heading("What fooled them")
    of_each_cell = (islice(_examples_of(result, key, "success"), _PER_CELL) for key in result.cells())
    items = list(islice(chain.from_iterable(of_each_cell), _MOST))
    if not items:
        yield Note("No text was fooled.")
        return
    filters = (Filter("row", "Model and defense"), Filter("attack", "Attack"), Filter("view", "View"))
    more = f"At most {_PER_CELL} texts of each cell; all of them: stockade export {result.folder} --cells"
    yield Examples(items=items, filters=filters, sorts=(CHANGED, QUERIES), search=True, preview=2, more=more)


def cell_table(result: EvaluateResult) -> Details | None:
    """Every cell with the page of its run; None if there is none."""
    rows: list[tuple[str | Cell, ...]] = []
    two_rules = has_first_flips(result.analysis)
    for key in result.cells():
        summary = result.run_of(key).summary["attacks"][key.attack]
        path = (result.grid.cell_folder(key) / REPORT).relative_to(result.folder)
        rows.append(
            (
                key.model,
                key.defense,
                key.attack,
                Cell(key.view, href=quote(path.as_posix())),
                str(key.seed),
                f"{summary['succeeded']:,} of {summary['attacked']:,}",
                *([_first_flips(summary)] if two_rules else []),
                number(summary["mean_queries"]),
                number(summary["mean_perturbed_percent"], 1, " %"),
            )
        )
    flips = [FIRST_FLIP] if two_rules else []
    columns = ("model", "defense", "attack", "view", "seed", "fooled", *flips, "queries", "changed words")
    caption = "Each cell is a run of its own, with its page: follow its view. Fooled: of the texts that were attacked."
    table = Table(columns, rows, caption=caption, numeric=range(4, len(columns)), grouped=2)
    return Details("Every cell, with the page of its run", (table,), unfolded=True) if rows else None


def _first_flips(summary: Mapping[str, Any]) -> str:
    """How many texts fooled the model once; of one that always answers alike, what fooled it."""
    return f"{summary.get('first_flip_succeeded', summary['succeeded']):,} of {summary['attacked']:,}"
