"""Texts whose classes nobody has said, or that are not wanted: what there is to certify in new data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stockade.core.text import Text
from stockade.datasets.examples import has_changed, scan
from stockade.datasets.source import DataSource


@dataclass(frozen=True, slots=True)
class UnlabelledExample:
    """A text by its id; its class is not known."""

    id: str
    text: Text
    label: None = None


@dataclass(frozen=True, slots=True)
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

    def __iter__(self) -> Iterator[UnlabelledExample]:
        wanted = None if self.ids is None else frozenset(self.ids)
        found = 0
        for row in self.source.rows():
            if wanted is None or row.id in wanted:
                found += 1
                yield UnlabelledExample(row.id, Text.parse(row.text, row.premise))
        if found != self.size:
            raise has_changed(self.name, found, self.size)


def prepare_texts(source: DataSource, *, limit: int | None = None, seed: int = 0) -> UnlabelledSet:
    """Check every row of a source and choose the texts; the same rows as `prepare_examples` would."""
    found = scan(source, limit, seed)
    ids = None if found.sample is None else tuple(row_id for row_id, _ in found.sample)
    return UnlabelledSet(
        source.name, source.fingerprint(), found.total if ids is None else len(ids), found.total, ids, source
    )
