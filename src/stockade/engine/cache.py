"""A cache of the values used last, bounded by memory rather than by entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_ENTRY_BYTES = 300
"""What an entry costs besides its key: the table's slot, the value and their headers (measured on rows of two to ten
classes). A cache of larger values is told so.
"""


class BoundedCache(Generic[Value]):
    """Keeps the values used last, as many as fit into `max_bytes`.

    Parameters
    ----------
    max_bytes
        The most memory for all entries, keys and overhead included.
    entry_bytes
        What an entry costs besides its key. Keys are strings, or tuples with strings.
    """

    def __init__(self, max_bytes: int = 128 * 2**20, entry_bytes: int = _ENTRY_BYTES) -> None:
        self._entry_bytes = entry_bytes
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._max_bytes = max_bytes
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> Value | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: Value) -> None:
        if key in self._values:
            self._values[key] = value
            self._values.move_to_end(key)
            return
        self._values[key] = value
        self._bytes += self._size(key)
        while self._bytes > self._max_bytes and self._values:
            oldest, _ = self._values.popitem(last=False)
            self._bytes -= self._size(oldest)

    def fetch(self, keys: Iterable[Key], compute: Callable[[list[Key]], Sequence[Value]]) -> dict[Key, Value]:
        """The value of each key; those that are missing are computed together, each once, and put into the cache."""
        values: dict[Key, Value] = {}
        missing: list[Key] = []
        for key in dict.fromkeys(keys):
            value = self.get(key)
            if value is None:
                missing.append(key)
            else:
                values[key] = value
        if missing:
            for key, value in zip(missing, compute(missing), strict=True):
                values[key] = value
                self.put(key, value)
        return values

    def _size(self, key: Hashable) -> int:
        if isinstance(key, tuple):
            return self._entry_bytes + sum(len(part) for part in key if isinstance(part, str | bytes))
        return self._entry_bytes + (len(key) if isinstance(key, str | bytes) else 0)
