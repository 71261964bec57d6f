"""From rows to examples: with the classes of a model, without labels, or with the classes of the data itself.

The whole source is read once before anything is attacked, so that a broken row or an unknown label is an error in the
first seconds and not after an hour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from stockade.core.errors import DataError, OptionError
from stockade.core.example import Example
from stockade.core.text import Text
from stockade.datasets.labels import align_labels
from stockade.datasets.sampling import scan
from stockade.datasets.source import DataSource, Label, Row
from stockade.datasets.wording import listing, quote

_MOST_CLASSES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleSet:
    """Examples ready to be attacked; iterate over it as often as you like, it reads its source anew each time.

    `size` examples are yielded of the `total` rows of the source, in the source's order; `ids` are those of a sample,
    None if it is all rows. `label_counts` counts the yielded examples of each class of the model.
    """

    name: str
    fingerprint: str
    size: int
    total: int
    ids: tuple[str, ...] | None
    labels: tuple[str, ...]
    label_counts: Mapping[str, int]
    source: DataSource = field(repr=False)
    classes: Mapping[Label, int] = field(repr=False)
    """The class of the model for every label of the source."""
    target: int | None = None
    """The class that a targeted attack wants, on every example; examples that have it already are left out."""

    def __len__(self) -> int:
        return self.size

    def committed(self) -> Iterator[tuple[str, str | None, str, str]]:
        """Id, premise, text and class of each example in order: what a manifest commits to."""
        return ((row.id, row.premise, row.text, self.labels[self.classes[row.label]]) for row in self._rows())

    def __iter__(self) -> Iterator[Example]:
        for row in self._rows():
            yield Example(row.id, Text.parse(row.text, row.premise), self.classes[row.label], self.target)

    def _rows(self) -> Iterator[Row]:
        wanted = None if self.ids is None else frozenset(self.ids)
        left = self.size
        for row in self.source.rows():
            if wanted is not None and row.id not in wanted:
                continue
            if row.label not in self.classes:
                break
            if self.classes[row.label] == self.target:
                continue
            yield row
            left -= 1
            if not left:
                return
        raise has_changed(self.name, self.size - left, self.size)


def has_changed(name: str, count: int, size: int) -> DataError:
    """The error for data that are not what they were when they were checked."""
    return DataError(f"{name} has changed since it was checked (found: {count} of {size} examples). Load it again.")


def prepare_examples(
    source: DataSource,
    labels: Sequence[str],
    *,
    limit: int | None = None,
    seed: int = 0,
    label_map: Mapping[str, str] | None = None,
    target: int | None = None,
) -> ExampleSet:
    """Check every row of a source, match its labels to a model's, and choose the examples to attack.

    Parameters
    ----------
    source : DataSource
        The rows.
    labels : sequence of str
        The model's classes.
    limit : int, optional
        The size of a seeded sample; all rows if there are fewer, or by default.
    seed : int
        Which sample.
    label_map : mapping, optional
        The class of a label of the data, where names do not match (see `labels.py`).
    target : int, optional
        The class that a targeted attack wants.
    """
    if target is not None and not 0 <= target < len(labels):
        raise OptionError(
            f"The target is class {target}, expected a number from 0 to {len(labels) - 1} ({listing(labels)})."
        )
    scanned = scan(source, limit, seed)
    classes = align_labels(
        scanned.counts, source.label_names, labels, label_map, data_name=source.name, first_rows=scanned.first_rows
    )
    counts = dict.fromkeys(labels, 0)
    for label, count in (
        scanned.counts.items() if scanned.sample is None else Counter(label for _, label in scanned.sample).items()
    ):
        counts[labels[classes[label]]] += count
    if target is not None:
        counts[labels[target]] = 0
        if not any(counts.values()):
            raise DataError(f"Every example of {source.name} is of the target class {labels[target]} already.")
    return ExampleSet(
        name=source.name,
        fingerprint=source.fingerprint(),
        size=sum(counts.values()),
        total=scanned.total,
        ids=scanned.ids,
        labels=tuple(labels),
        label_counts=MappingProxyType(counts),
        source=source,
        classes=MappingProxyType(classes),
        target=target,
    )


@dataclass(frozen=True, slots=True)
class UnlabelledExample:
    """A text by its id, without a class."""

    id: str
    text: Text
    label: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledSet:
    """What an `ExampleSet` is, without labels: iterate over it as often as you like."""

    name: str
    fingerprint: str
    size: int
    total: int
    ids: tuple[str, ...] | None
    source: DataSource = field(repr=False)

    @property
    def label_counts(self) -> Mapping[str, int]:
        return {}

    def __len__(self) -> int:
        return self.size

    def committed(self) -> Iterator[tuple[str, str | None, str, None]]:
        """Id, premise and text of each example in order: what a manifest commits to."""
        return ((row.id, row.premise, row.text, None) for row in self._rows())

    def __iter__(self) -> Iterator[UnlabelledExample]:
        return (UnlabelledExample(row.id, Text.parse(row.text, row.premise)) for row in self._rows())

    def _rows(self) -> Iterator[Row]:
        wanted = None if self.ids is None else frozenset(self.ids)
        count = 0
        for row in self.source.rows():
            if wanted is None or row.id in wanted:
                count += 1
                yield row
        if count != self.size:
            raise has_changed(self.name, count, self.size)


def prepare_texts(source: DataSource, *, limit: int | None = None, seed: int = 0) -> UnlabelledSet:
    """Check every row of a source and choose the texts; the same rows as `prepare_examples` would.

    Parameters
    ----------
    source : DataSource
        The rows; their labels are ignored.
    limit : int, optional
        The size of a seeded sample; all rows by default.
    seed : int
        Which sample.
    """
    scanned = scan(source, limit, seed)
    size = scanned.total if scanned.ids is None else len(scanned.ids)
    return UnlabelledSet(
        name=source.name,
        fingerprint=source.fingerprint(),
        size=size,
        total=scanned.total,
        ids=scanned.ids,
        source=source,
    )


def by_own_classes(
    source: DataSource,
    *,
    limit: int | None = None,
    seed: int = 0,
    label_map: Mapping[str, str] | None = None,
    fewest_classes: int = 2,
) -> ExampleSet:
    """Examples by the data's own classes, for what is made from labelled data alone, without a model.

    Parameters
    ----------
    source : DataSource
        The rows.
    limit : int, optional
        The size of a sample; all rows by default.
    seed : int
        Which sample.
    label_map : mapping, optional
        Another name for a label, or for the data's name for it.
    fewest_classes : int
        How many classes there must be, 1 or 2.
    """
    names: dict[Label, str] = {}
    for row in source.rows():
        if row.label not in names:
            names[row.label] = _class_name(row.label, source, label_map or {})
            if len(names) > _MOST_CLASSES:
                raise DataError(
                    f"{source.name} has more than {_MOST_CLASSES:,} different labels (found: "
                    f"{listing(map(quote, list(names)[:3]))} …), expected classes. "
                    "Name the right column with --label-column."
                )
    classes = tuple(sorted(set(names.values())))
    examples = prepare_examples(
        source, classes, limit=limit, seed=seed, label_map={str(label): name for label, name in names.items()}
    )
    present = [name for name, count in examples.label_counts.items() if count]
    if len(present) < fewest_classes:
        sampled = "" if examples.ids is None else f" among the {examples.size} rows of its sample"
        raise DataError(
            f"{source.name} has only the class {quote(present[0])}{sampled}, expected at least two. "
            "Give data of all classes, or name the right column with --label-column."
        )
    return examples


def _class_name(label: Label, source: DataSource, label_map: Mapping[str, str]) -> str:
    name = str(label)
    if source.label_names is not None and isinstance(label, int):
        if not 0 <= label < len(source.label_names):
            raise DataError(
                f"{source.name} has the label {label}, expected a number from 0 to {len(source.label_names) - 1} "
                f"({listing(source.label_names)}). -1 often marks rows without a label: choose another split."
            )
        name = source.label_names[label]
    return label_map.get(str(label), label_map.get(name, name))
