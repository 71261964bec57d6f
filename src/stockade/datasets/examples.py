"""From rows to examples: every row checked, labels matched to the model's classes, a fair sample taken.

`prepare_examples` reads the whole source once before anything is attacked, so that a broken row or an unknown label
is an error in the first seconds and not after an hour. A sample is the rows with the smallest hash of (seed, row id):
the same rows on every machine, spread over a file that is sorted by label, and contained in every larger sample of
the same seed.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from stockade.core.errors import DataError, OptionError
from stockade.core.example import Example
from stockade.core.text import Text
from stockade.datasets.labels import align_labels
from stockade.datasets.sampling import seeded_places
from stockade.datasets.source import DataSource, Label, Row
from stockade.datasets.table import TableSource
from stockade.datasets.wording import listing, quote

_MOST_LABELS = 10_000


@dataclass(frozen=True, slots=True)
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

    def __iter__(self) -> Iterator[Example]:
        wanted = None if self.ids is None else frozenset(self.ids)
        left = self.size
        for row in self.source.rows():
            if wanted is not None and row.id not in wanted:
                continue
            if row.label not in self.classes:
                break
            if self.classes[row.label] == self.target:
                continue
            yield Example(row.id, Text.parse(row.text, row.premise), self.classes[row.label], self.target)
            left -= 1
            if not left:
                return
        raise has_changed(self.name, self.size - left, self.size)


def has_changed(name: str, found: int, size: int) -> DataError:
    """The error for data that are not what they were when they were checked."""
    return DataError(f"{name} has changed since it was checked (found: {found} of {size} examples). Load it again.")


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

    `labels` are the model's classes; `limit` takes a seeded sample of that many rows, all if there are fewer;
    `label_map` translates labels of the data to classes where names do not match (see `labels.py`).
    """
    if target is not None and not 0 <= target < len(labels):
        raise OptionError(
            f"The target is class {target}, expected a number from 0 to {len(labels) - 1} ({listing(labels)})."
        )
    found = scan(source, limit, seed)
    classes = align_labels(
        found.counts, source.label_names, labels, label_map, data_name=source.name, first_rows=found.first_rows
    )
    counts = dict.fromkeys(labels, 0)
    for label, count in (
        found.counts.items() if found.sample is None else Counter(label for _, label in found.sample).items()
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
        total=found.total,
        ids=None if found.sample is None else tuple(row_id for row_id, _ in found.sample),
        labels=tuple(labels),
        label_counts=MappingProxyType(counts),
        source=source,
        classes=MappingProxyType(classes),
        target=target,
    )


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a source tells: `sample` is (id, label) of the chosen rows in order, None if it is all."""

    total: int
    counts: Mapping[Label, int]
    first_rows: Mapping[Label, str]
    sample: tuple[tuple[str, Label], ...] | None


def scan(source: DataSource, limit: int | None, seed: int) -> Scan:
    """Read a source once: its labels, how many rows of each, and the sample of `limit` rows."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise OptionError(
            f"--limit is {limit}, expected a whole number of examples from 1 up. Leave it out to take all rows."
        )
    counts: dict[Label, int] = {}
    first_rows: dict[Label, str] = {}
    ids = None if isinstance(source, TableSource) else _Ids(source.name)  # a table numbers its rows itself
    sample = None if limit is None else _Sample(limit, seed)
    total = 0
    for row in source.rows():
        if ids is not None:
            ids.add(row.id, total)
        if row.label in counts:
            counts[row.label] += 1
        else:
            _first_of_its_label(row, source, counts, first_rows)
        if sample is not None:
            sample.add(total, row)
        total += 1
    if not total:
        raise DataError(f"{source.name} has no rows, expected one per text. Give data with at least one.")
    chosen = sample.chosen() if sample is not None and limit is not None and limit < total else None
    return Scan(total, counts, first_rows, chosen)


def _first_of_its_label(row: Row, source: DataSource, counts: dict[Label, int], first_rows: dict[Label, str]) -> None:
    if len(counts) == _MOST_LABELS:
        raise DataError(
            f"{source.name} has more than {_MOST_LABELS:,} different labels (found: "
            f"{listing(map(quote, list(counts)[:3]))} …), "
            "expected the classes of a model. Name the right column with --label-column."
        )
    counts[row.label] = 1
    first_rows[row.label] = row.id


class _Sample:
    """The `limit` rows with the smallest hashes so far: memory for that many, however long the source is."""

    def __init__(self, limit: int, seed: int) -> None:
        self._limit = limit
        self._place = seeded_places(seed)
        self._heap: list[tuple[int, int, str, Label]] = []
        self._highest = b""
        """The largest hash in a full heap: most rows of a long source are above it and cost one comparison."""

    def add(self, number: int, row: Row) -> None:
        digest = self._place(row.id)
        if self._highest and digest >= self._highest:
            return
        entry = (-int.from_bytes(digest, "big"), -number, row.id, row.label)  # heapq keeps the smallest on top
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heapreplace(self._heap, entry)
        if len(self._heap) == self._limit:
            self._highest = (-self._heap[0][0]).to_bytes(8, "big")

    def chosen(self) -> tuple[tuple[str, Label], ...]:
        """Ids and labels of the sample, in the order of the source."""
        in_order = sorted(self._heap, key=lambda entry: -entry[1])
        return tuple((row_id, label) for _, _, row_id, label in in_order)


class _Ids:
    """Refuses an id that was seen before; ids that are the row's own number need no memory for that."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: set[str] | None = None

    def add(self, row_id: str, number: int) -> None:
        if self._seen is None:
            if row_id == str(number):
                return
            self._seen = set(map(str, range(number)))
        if row_id in self._seen:
            raise DataError(
                f"{self._name} has two rows with the id {quote(row_id)}, expected each id once. Number the rows."
            )
        self._seen.add(row_id)
