"""Data by its own classes, for what is made from labelled data alone, without a model to match labels to."""

from __future__ import annotations

from collections.abc import Mapping

from stockade.core.errors import DataError
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.source import DataSource, Label
from stockade.datasets.wording import listing, quote

_MOST_CLASSES = 1_000


def by_own_classes(
    source: DataSource, *, limit: int | None = None, label_map: Mapping[str, str] | None = None
) -> ExampleSet:
    """Every row checked, or a sample of `limit` rows, by the data's own names of its labels.

    `label_map` gives a label, or the data's name for it, another name. There must be at least two classes.
    """
    names: dict[Label, str] = {}
    for row in source.rows():
        if row.label not in names:
            names[row.label] = _name(row.label, source, label_map or {})
            if len(names) > _MOST_CLASSES:
                raise DataError(
                    f"{source.name} has more than {_MOST_CLASSES:,} different labels (found: "
                    f"{listing(map(quote, list(names)[:3]))} …), expected classes. "
                    "Name the right column with --label-column."
                )
    classes = tuple(sorted(set(names.values())))
    examples = prepare_examples(
        source, classes, limit=limit, label_map={str(label): name for label, name in names.items()}
    )
    found = [name for name, count in examples.label_counts.items() if count]
    if len(found) < 2:
        sampled = "" if examples.ids is None else f" among the {examples.size} rows of its sample"
        raise DataError(
            f"{source.name} has only the class {quote(found[0])}{sampled}, expected at least two. "
            "Give data of all classes, or name the right column with --label-column."
        )
    return examples


def _name(label: Label, source: DataSource, label_map: Mapping[str, str]) -> str:
    name = str(label)
    if source.label_names is not None and isinstance(label, int):
        if not 0 <= label < len(source.label_names):
            raise DataError(
                f"{source.name} has the label {label}, expected a number from 0 to {len(source.label_names) - 1} "
                f"({listing(source.label_names)}). -1 often marks rows without a label: choose another split."
            )
        name = source.label_names[label]
    return label_map.get(str(label), label_map.get(name, name))
