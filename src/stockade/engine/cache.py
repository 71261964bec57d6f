"""A least-recently-used cache that is bounded by memory, not by entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")

_ENTRY_BYTES = 300
"""What an entry costs besides its key: the table's slot, the value and their headers (measured on rows of two to ten
classes). Larger values must be said.
"""


class BoundedCache(Generic[Value]):
    """Keeps the most recently used values that fit into `max_bytes`, keys and overhead included; `entry_bytes` is what
    an entry costs besides its key.
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

    def _size(self, key: Hashable) -> int:
        if isinstance(key, tuple):
            return self._entry_bytes + sum(len(part) for part in key if isinstance(part, str | bytes))
        return self._entry_bytes + (len(key) if isinstance(key, str | bytes) else 0)
