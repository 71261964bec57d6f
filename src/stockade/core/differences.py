"""What differs between two configurations, in words, for those who resume something under other options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_MOST_SHOWN = 4
_LONGEST = 40


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """The first few differences by dotted name, "seed was 0, now 1; …"; None where there is none."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    found = [
        f"{name} was {_short(before.get(name))}, now {_short(after.get(name))}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    if not found:
        return None
    more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    return "; ".join(found[:_MOST_SHOWN]) + more


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not value:
        yield name, value
        return
    for key, item in value.items():
        yield from _leaves(item, f"{name}.{key}" if name else str(key))


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "…"
