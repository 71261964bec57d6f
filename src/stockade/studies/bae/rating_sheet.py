"""Blind sheets for human raters (the paper's Table 4): originals and their adversarial texts, shuffled.

Raters get every original of a sample of the texts, and what BAE-R, BAE-R+I and TextFooler made of it where they
succeeded, in one shuffled list. They give each text its class and a naturalness from 1 to 5: grammar, and how likely it
is to be from the original data. For a sense of the data they first read other originals, in a file of their own.

Differences to the paper: a text that two attacks made alike stands on the sheet once and counts for both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pydantic import TypeAdapter

from stockade.core.errors import RunError
from stockade.core.files import write_json
from stockade.core.text import Text
from stockade.experiment.store import Codec
from stockade.studies.bae.analysis import BASELINE, BOTH, REPLACE
from stockade.studies.rating_sheet.sheet import beside, random_name, refuse_written, write_rows
from stockade.studies.records import Results, succeeded

ORIGINAL = "original"
RATED = (REPLACE, BOTH, BASELINE)
"""The attacks whose texts are rated."""
METHODS = (ORIGINAL, *RATED)
SCHEMA = 1
_COLUMNS, _PREMISE = ("id", "text", "label", "naturalness"), "premise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What a row of a sheet is: `shown` is what a rater reads, `text` the id of its original; `methods` made it."""

    id: str
    text: str
    methods: tuple[str, ...]
    gold: str
    shown: str
    premise: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What the rows of a sheet are, by their id; to be kept from the raters."""

    schema: int = SCHEMA
    study: str
    created: str
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    """The ids of the originals, in the order in which they were drawn."""
    items: Mapping[str, Item]


KEY_CODEC: Codec[Key] = Codec(dataclasses.asdict, TypeAdapter(Key).validate_python)


def check_sheet(path: Path) -> None:
    """Refuse a sheet that cannot be written, before anything is attacked."""
    refuse_written(path, beside(path, "key.json"), beside(path, "reference.csv"))
    if not path.parent.is_dir():
        raise RunError(f"{path} cannot be written (there is no folder {path.parent}). Choose another --rating-sheet.")


def make_key(results: Results, *, texts: int, study: str, created: str, seed: int, labels: tuple[str, ...]) -> Key:
    """Lay out a sheet: what its rows are, in their order.

    Parameters
    ----------
    results
        What the attacks did.
    texts
        How many originals are rated, with what the attacks made of them; fewer if there are no more.
    study, created, seed
        What the study is called, when it was begun, and its seed; the last two decide the order.
    labels
        The classes that raters may give.
    """
    rng = Random(f"rating sheet {seed} {created}")
    every = [text for text, record in results[REPLACE].items() if record.status != "error"]
    chosen = rng.sample(every, min(texts, len(every)))
    items = [item for text in chosen for item in _items(text, results, rng)]
    if len(items) == len(chosen):
        raise RunError("None of the attacks fooled the model on the texts of the sheet: there is nothing to compare.")
    rng.shuffle(items)
    return Key(
        study=study,
        created=created,
        labels=labels,
        texts=tuple(chosen),
        items={item.id: item for item in items},
    )


def write_sheet(path: Path, key: Key, references: Sequence[Text]) -> None:
    """Write a sheet with empty columns for the rater, and beside it its key and the texts to read first.

    Parameters
    ----------
    path
        The sheet.
    key
        What its rows are.
    references
        Other originals; without any there is no file of them.
    """
    write_rows(
        path,
        _with_premise(_COLUMNS, key.items.values()),
        ({"id": item.id, "premise": item.premise, "text": item.shown} for item in key.items.values()),
    )
    if references:
        rows = [{"premise": text.premise, "text": str(text)} for text in references]
        write_rows(beside(path, "reference.csv"), _with_premise(("text",), references), rows)
    write_json(beside(path, "key.json"), KEY_CODEC.encode(key))


def _with_premise(columns: Sequence[str], texts: object) -> tuple[str, ...]:
    """The columns, with that of the premise in front of the text where there are pairs."""
    paired = any(text.premise is not None for text in texts)  # type: ignore[attr-defined]
    at = columns.index("text")
    return (*columns[:at], _PREMISE, *columns[at:]) if paired else tuple(columns)


def _items(text: str, results: Results, rng: Random) -> list[Item]:
    """The rows of one text: the original, and each different text that an attack made of it."""
    original = results[REPLACE][text]
    methods: dict[str, list[str]] = {original.original: [ORIGINAL]}
    for attack in RATED:
        record = results[attack].get(text)
        if record is not None and succeeded(record):
            methods.setdefault(record.adversarial or "", []).append(attack)
    return [
        Item(
            id=random_name(rng),
            text=text,
            methods=tuple(made_by),
            gold=original.label,
            shown=shown,
            premise=original.premise,
        )
        for shown, made_by in methods.items()
    ]
