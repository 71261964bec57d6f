"""Files of JSON objects, one a line, that may come from anywhere: bounded in size, and errors name the line.

Blank lines and lines that begin with # are skipped. An object with the same key twice is refused, because which value
is meant cannot be known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade.core.errors import DataError
from stockade.core.sanitize import terminal

_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Lines:
    """What is expected of a file, for its errors.

    Parameters
    ----------
    kind
        What such a file is called.
    example
        A line of it.
    advice
        What to do when there is no such file.
    most_bytes, longest_line
        The largest file and the longest line, in bytes.
    """

    kind: str
    example: str
    advice: str
    most_bytes: int = 1 << 28
    longest_line: int = 1 << 20


def read_objects(path: str | Path, expected: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with the numbers of their lines, in order.

    Parameters
    ----------
    path
        The file, in UTF-8.
    expected
        What is expected of it.
    """
    for number, line in _filled_lines(path, expected):
        yield number, _object(line, f"{path} line {number}", expected)


def _filled_lines(path: str | Path, expected: Lines) -> Iterator[tuple[int, str]]:
    size = number = 0
    try:
        with Path(path).open("rb") as stream:
            while line := stream.readline(expected.longest_line + 1):
                number, size = number + 1, size + len(line)
                if len(line) > expected.longest_line:
                    raise DataError(
                        f"{path} line {number} is longer than {expected.longest_line:,} bytes, expected "
                        f"{expected.example}."
                    )
                if size > expected.most_bytes:
                    raise DataError(f"{path} is larger than {expected.most_bytes:,} bytes. Leave some lines out.")
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if text and not text.startswith("#"):
                    yield number, text
    except FileNotFoundError:
        raise DataError(f"There is no {expected.kind} {path}. {expected.advice}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} line {number} is not UTF-8. Save the file in that encoding.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"The {expected.kind} {path} cannot be read ({reason}). Check the path.") from None


def _object(line: str, where: str, expected: Lines) -> dict[str, Any]:
    try:
        values = _DECODER.decode(line)
    except _RepeatedKey as error:
        raise DataError(f'{where} has the key "{shown(error.args[0])}" twice. Leave one of them.') from None
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}"
        raise DataError(f"{where} is not JSON ({reason}), expected {expected.example}.") from None
    except (ValueError, RecursionError):
        reason = "nested too deeply or a number too long"
        raise DataError(f"{where} is not JSON ({reason}), expected {expected.example}.") from None
    if not isinstance(values, dict):
        raise DataError(f"{where} is {shown(values)}, expected an object such as {expected.example}.")
    return values


class _RepeatedKey(Exception):
    """The key that an object has twice."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKey(next(key for key in keys if keys.count(key) > 1))
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats)


def shown(value: object) -> str:
    """A value of a file as errors show it: short, without control characters; strings as they are, others as JSON.

    Parameters
    ----------
    value
        Whatever the file held.
    """
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = terminal(text).replace("\n", "␊").replace("\t", "␉")
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
