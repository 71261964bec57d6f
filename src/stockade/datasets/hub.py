"""Data sets of the hub through the optional package `datasets`: `hf:NAME`, `hf:NAME:SPLIT`, `hf:NAME:CONFIG:SPLIT`.

NAME may also be a local folder, either of plain files or written by `save_to_disk`. Without a split the test split is
taken, else the validation split, else the only one. The package downloads once and maps its files into memory, so
rows are streamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from stockade.core.arrow import cells_of
from stockade.core.errors import DataError, ResourceMissing
from stockade.datasets.arrow import place
from stockade.datasets.wording import first_line, listing

_BATCH = 1000
_PREFERRED = ("test", "validation", "dev")


@dataclass(frozen=True, slots=True)
class HubTable:
    """A `datasets.Dataset` (or `IterableDataset`), however it came to be."""

    dataset: Any
    name: str = "the Dataset"
    has_header: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        names = self.dataset.column_names
        return tuple(names) if names is not None else tuple(next(iter(self.dataset), {}))

    def cells(self, wanted: tuple[str, ...]) -> Iterator[Sequence[object]]:
        batches = self.dataset.select_columns(list(wanted)).with_format("arrow").iter(batch_size=_BATCH)
        return cells_of(batches, wanted, self.name)

    def place(self, number: int) -> str:
        return place(number)

    def label_names(self, column: str) -> tuple[str, ...] | None:
        names = getattr((self.dataset.features or {}).get(column), "names", None)
        return tuple(map(str, names)) if names else None

    def sha256(self) -> None:
        return None


def open_hub(reference: str) -> HubTable:
    """The table behind the part of a reference that follows `hf:`."""
    name, config, split = _parse(reference)
    library = _library(reference)
    try:
        splits = _load(library, name, config, split)
    except Exception as error:  # the package raises errors of a dozen libraries; all of them mean that there is no data
        raise _cannot_load(reference, error) from None
    if not isinstance(splits, dict):
        return HubTable(splits, f"hf:{reference}")
    if split is None:
        split = _default_split(splits)
    if split is None or split not in splits:
        lacking = f'no split "{split}"' if split else "no test split"
        raise DataError(
            f"hf:{reference} has {lacking} (found: {listing(splits)}). Name one of them, as in "
            f"hf:{name}:{next(iter(splits))}."
        )
    return HubTable(splits[split], ":".join(["hf", name, *([config] if config else []), split]))


def _default_split(splits: dict[str, Any]) -> str | None:
    """The test split, else the validation split, else the only one there is."""
    preferred = [split for split in _PREFERRED if split in splits]
    return preferred[0] if preferred else next(iter(splits)) if len(splits) == 1 else None


def _parse(reference: str) -> tuple[str, str | None, str | None]:
    match reference.split(":"):
        case [name] if name:
            return name, None, None
        case [name, split] if name and split:
            return name, None, split
        case [name, config, split] if name and config and split:
            return name, config, split
        case _:
            raise DataError(
                f'"hf:{reference}" names no data set, expected hf:NAME, hf:NAME:SPLIT or hf:NAME:CONFIG:SPLIT.'
            )


def _library(reference: str) -> Any:
    try:
        return import_module("datasets")
    except ImportError:
        raise ResourceMissing(
            f"hf:{reference} needs the package datasets, which is not installed. "
            'Install it with: pip install "stockade[hf]"'
        ) from None


def _load(library: Any, name: str, config: str | None, split: str | None) -> Any:
    """All splits, or, where the names of the splits can be had first, the wanted one alone."""
    folder = Path(name).expanduser()
    if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
        return library.load_from_disk(str(folder))
    if split is not None and split in library.get_dataset_split_names(name, config):
        return {split: library.load_dataset(name, config, split=split)}
    return library.load_dataset(name, config)


def _cannot_load(reference: str, error: Exception) -> DataError:
    kind = type(error).__name__
    if "Config name is missing" in str(error):
        lines = str(error).strip().splitlines()
        return DataError(
            f"hf:{reference} has several configurations "
            f"({first_line(ValueError(lines[1])) if len(lines) > 1 else kind}). "
            "Name one, as in hf:NAME:CONFIG:SPLIT."
        )
    if isinstance(error, ConnectionError) or "Connection" in kind or "Offline" in kind or "Timeout" in kind:
        return DataError(
            f"hf:{reference} cannot be downloaded ({kind}: {first_line(error)}). "
            "Check the network, or give a local .csv, .jsonl or .parquet file."
        )
    return DataError(
        f"hf:{reference} cannot be loaded ({kind}: {first_line(error)}), expected the name of a data set of the "
        "Hugging Face hub. Check its spelling, or give a local .csv, .jsonl or .parquet file."
    )
