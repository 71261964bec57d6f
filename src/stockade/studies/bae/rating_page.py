"""What human raters say, on the page of the study of BAE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stockade.report.document import Block, Cell, Note, Table, code
from stockade.report.numbers import count, number, percent_cell, ranged_cell
from stockade.studies.bae.ratings import LEAST, MOST, RatingNumbers


def rating_blocks(ratings: RatingNumbers | None, folder: str) -> Iterator[Block]:
    """Table 4, or how to get it.

    Parameters
    ----------
    ratings
        What raters say; None before anybody has.
    folder
        That of the study.
    """
    if ratings is None:
        command = f"stockade study bae --resume --out {folder}"
        yield Note(
            (
                "Nobody has rated yet. ",
                code(f"{command} --rating-sheet sheet.csv"),
                " writes a blind sheet, ",
                code(f"{command} --ratings anna.csv"),
                " reads it back.",
            ),
            kind="aside",
        )
        return
    yield rating_table({"": ratings})


def rating_table(ratings: Mapping[str, RatingNumbers]) -> Table:
    """Table 4, for one study or for several cells.

    Parameters
    ----------
    ratings
        What raters say, by the name of the cell; an empty name for the only one.
    """
    rows: list[tuple[str | Cell, ...]] = [
        (
            *([cell] if cell else []),
            method,
            f"{scores.texts:,}",
            percent_cell(scores.accuracy),
            ranged_cell(scores.naturalness, 2),
        )
        for cell, numbers in ratings.items()
        for method, scores in numbers.methods.items()
    ]
    agreement = "; ".join(
        f"{f'{cell}: ' if cell else ''}{count(len(numbers.raters), 'rater')} ({', '.join(numbers.raters)}), "
        f"Krippendorff's α of labels {number(numbers.label_agreement, 2)}, of naturalness "
        f"{number(numbers.naturalness_agreement, 2)}"
        for cell, numbers in ratings.items()
    )
    caption = (
        f"Labels that are the true ones, and naturalness from {LEAST} to {MOST}: means over raters and texts with 95 % "
        f"bootstrap intervals over texts. {agreement}."
    )
    named = "" not in ratings
    columns = (*(["cell"] if named else []), "texts of", "texts", "human accuracy", "naturalness")
    return Table(columns, rows, caption=caption, grouped=int(named), numeric=range(2 if named else 1, len(columns)))
