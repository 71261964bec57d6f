"""Streams whose lines end: a gzipped line of gigabytes is refused before it is in memory."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

from stockade.core.errors import DataError
from stockade.core.limits import LONGEST_LINE


class BoundedLines(io.RawIOBase):
    """The bytes of a stream, up to the first line that is too long.

    Parameters
    ----------
    stream
        What is read.
    name
        What errors call it.
    longest
        The most bytes of a line.
    """

    def __init__(self, stream: gzip.GzipFile | io.FileIO, name: str, longest: int = LONGEST_LINE) -> None:
        self._stream, self._name, self._longest = stream, name, longest
        self._line, self._since = 1, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._stream.read(len(buffer))
        buffer[: len(chunk)] = chunk
        last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        if last < 0:
            self._since += len(chunk)
        else:
            self._line += chunk.count(b"\n")
            self._since = len(chunk) - last - 1
        if self._since > self._longest:
            raise DataError(
                f"{self._name} line {self._line} is longer than {self._longest:,} bytes, which no text is. Split it, "
                "or check that this is the right file."
            )
        return len(chunk)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_lines(path: Path, name: str) -> io.BufferedReader:
    """The bytes of a file, unpacked if its name ends in .gz, as long as its lines are not too long.

    Parameters
    ----------
    path
        The file.
    name
        What errors call it.
    """
    stream = gzip.GzipFile(path) if path.suffix.lower() == ".gz" else io.FileIO(path)
    return io.BufferedReader(BoundedLines(stream, name), 1 << 16)
