"""How files are damaged: bytes here and there, or any value of a JSON document by any other.

`make fuzz` sets STOCKADE_FUZZ_SECONDS: every property is then tried with new damage for its share of that time. Without
it each is tried a few times, with the same damage on every machine. An error found there ends with the seed that
STOCKADE_FUZZ_SEED takes to find it again.
"""

from __future__ import annotations

import functools
import inspect
import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

SECONDS = float(os.environ.get("STOCKADE_FUZZ_SECONDS", "0"))
SEED = int(os.environ.get("STOCKADE_FUZZ_SEED", time.time_ns() % 2**32))
PROPERTIES = 11
"""How many properties share the time."""

_NUMBERS = (0, -1, 1.5, 10**30, float("inf"), float("nan"))
_ODD: tuple[Any, ...] = (None, True, False, *_NUMBERS, "", "x", "\x1b[2J", "\ud83d", [], {}, [[]], {"x": None})
scalars = st.one_of(st.sampled_from(_ODD), st.integers(), st.floats(), st.text(max_size=5))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def damaged_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """The content with a few pieces cut out, put in, or changed; sometimes something else altogether."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=80))
    damaged = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(damaged)))
        match draw(st.sampled_from(["flip", "cut", "end", "insert", "repeat"])):
            case "flip" if at < len(damaged):
                damaged[at] ^= draw(st.integers(1, 255))
            case "cut":
                del damaged[at : at + draw(st.integers(1, 40))]
            case "end":
                del damaged[at:]
            case "insert":
                damaged[at:at] = draw(st.binary(min_size=1, max_size=20))
            case _:
                damaged[at:at] = damaged[at : at + draw(st.integers(1, 40))]
    return bytes(damaged)


@st.composite
def damaged_json(draw: st.DrawFn, document: Any) -> Any:
    """The document with one value at any depth replaced, removed or added."""
    path = draw(st.sampled_from(_paths(document)))
    replacement = draw(values)
    if not path:
        return replacement
    return _changed(document, path, draw(st.sampled_from(["replace", "replace", "remove", "add"])), replacement)


def _paths(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(longer for key, value in inner for longer in _paths(value, (*path, key)))]


def _changed(document: Any, path: tuple[Any, ...], how: str, replacement: Any) -> Any:
    copy = dict(document) if isinstance(document, dict) else list(document)
    key, *rest = path
    if rest:
        copy[key] = _changed(copy[key], tuple(rest), how, replacement)
    elif how == "remove":
        del copy[key]
    elif how == "add" and isinstance(copy, dict):
        copy["extra"] = replacement
    else:
        copy[key] = replacement
    return copy


def tried(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Try a property of `data` on so many examples, the same every time; under `make fuzz` on new ones for its time.

    Parameters
    ----------
    examples
        How many make the short form.
    """
    shared: dict[str, Any] = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        if not SECONDS:
            short: Callable[..., None] = settings(
                max_examples=examples, derandomize=True, phases=[Phase.generate], **shared
            )(given(data=st.data())(test))
            return short

        @functools.wraps(test)
        def long(**fixtures: Any) -> None:
            end, number = time.monotonic() + SECONDS / PROPERTIES, SEED
            while time.monotonic() < end:
                fresh = seed(number)(given(data=st.data())(_copy_of(test)))
                try:
                    settings(max_examples=examples, **shared)(fresh)(**fixtures)
                except BaseException as error:
                    error.add_note(f"STOCKADE_FUZZ_SEED={number} tries this again.")
                    raise
                number += 1
            print(f"{test.__name__}: {number - SEED} rounds of {examples} examples")

        parameters = [value for name, value in inspect.signature(test).parameters.items() if name != "data"]
        long.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # the fixtures that pytest gives
        return long

    return decorate


def _copy_of(test: Callable[..., None]) -> Callable[..., None]:
    """A function that calls the test, because each can be given to hypothesis only once."""

    @functools.wraps(test)
    def again(*arguments: Any, **named: Any) -> None:
        test(*arguments, **named)

    return again
