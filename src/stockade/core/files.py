"""Files that are either the old one or the new one, never half of it, in folders that hold nothing of anybody else."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from stockade.core.errors import RunError
from stockade.core.limits import LARGEST_JSON

_LONGEST_REASON = 200
Made = TypeVar("Made")
FileState = tuple[int, int, int]
"""Size, time of the last change, and number of a file: another one when the file is."""


def file_state(path: str | Path) -> FileState | None:
    """What tells whether a file was changed; None if there is none that could be read."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder} cannot be written ({error.strerror or error}). Choose another folder.") from None


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new file beside `path`, bring it safely to the disk, and put it in the old one's place."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")  # nobody can have put a link there
    try:
        write(temporary)
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def read_json(path: Path, absent: str) -> Any:
    """What is in a file that describes a folder of ours; `absent` is said if there is none."""
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise unreadable(path, f"it is larger than {LARGEST_JSON:,} bytes")
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(absent) from None
    except RecursionError:
        raise unreadable(path, "it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Turn what damaged content makes Python raise into one sentence.

    What a file holds is checked where it is read; this is for what no check foresaw. `STOCKADE_TRACEBACK=1` shows the
    error as it is.

    Parameters
    ----------
    folder
        What is read while this lasts.
    """
    try:
        yield
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        if os.environ.get("STOCKADE_TRACEBACK"):
            raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:_LONGEST_REASON]
        raise RunError(
            f"{folder} holds something that Stockade does not write ({reason}). Restore it from a copy; if nobody has "
            "changed it, this is a bug, and STOCKADE_TRACEBACK=1 shows where."
        ) from error


def unreadable(path: Path, reason: object) -> RunError:
    """The error for a file that holds something else than what was written into it."""
    return RunError(f"{path} cannot be read ({reason}). Restore it from a copy, or start again with another folder.")


def write_text(path: Path, text: str) -> None:
    try:
        replace_file(path, lambda temporary: _write(temporary, text))
    except OSError as error:
        raise RunError(f"{path} cannot be written ({error.strerror or error}).") from None


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
