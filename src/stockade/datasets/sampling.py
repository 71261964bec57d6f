"""One pass over a source: labels counted, ids checked, a fair sample taken.

A sample is the rows with the smallest hash of (seed, row id): the same rows on every machine, spread over a file that
is sorted by label, and contained in every larger sample of the same seed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from stockade.core.errors import DataError, OptionError
from stockade.core.limits import MOST_LABELS
from stockade.datasets.source import DataSource, Label, Row, TableSource
from stockade.datasets.wording import listing, quote


def seeded_places(seed: int) -> Callable[[str], bytes]:
    """The place of a row by its id: a sample takes the rows with the lowest."""
    seeded = blake2b(f"sample {seed} ".encode(), digest_size=8)

    def place(row_id: str) -> bytes:
        hasher = seeded.copy()
        hasher.update(row_id.encode("utf-8", "surrogatepass"))
        return hasher.digest()

    return place


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a source shows: `sample` is (id, label) of the chosen rows in order, None if it is all."""

    total: int
    counts: Mapping[Label, int]
    first_rows: Mapping[Label, str]
    sample: tuple[tuple[str, Label], ...] | None

    @property
    def ids(self) -> tuple[str, ...] | None:
        return None if self.sample is None else tuple(row_id for row_id, _ in self.sample)


def scan(source: DataSource, limit: int | None, seed: int) -> Scan:
    """Read a source once: its labels, how many rows of each, and the sample.

    Parameters
    ----------
    source : DataSource
        The rows.
    limit : int, optional
        The size of the sample; all rows by default.
    seed : int
        Which sample.
    """
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
    if len(counts) == MOST_LABELS:
        raise DataError(
            f"{source.name} has more than {MOST_LABELS:,} different labels (found: "
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
    """Refuses an id that comes twice; ids that are the row's own number need no memory for that."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ids: set[str] | None = None

    def add(self, row_id: str, number: int) -> None:
        if self._ids is None:
            if row_id == str(number):
                return
            self._ids = set(map(str, range(number)))
        if row_id in self._ids:
            raise DataError(
                f"{self._name} has two rows with the id {quote(row_id)}, expected each id once. Number the rows."
            )
        self._ids.add(row_id)
