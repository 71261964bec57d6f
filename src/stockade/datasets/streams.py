"""Data files as streams of text lines: plain or gzipped, UTF-8, never more than a buffer in memory.

A file is read several times (once to check and sample, once per run), so `DataFile` remembers the file it has seen
and refuses one that was changed in between: row numbers would silently point at other texts.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, TextIOWrapper
from pathlib import Path

from stockade.core.errors import DataError
from stockade.core.files import FileState, file_state
from stockade.core.lines import open_lines

_DISGUISES = (
    (b"\xff\xfe", "The file looks like UTF-16: save it as UTF-8."),
    (b"\xfe\xff", "The file looks like UTF-16: save it as UTF-8."),
    (b"\x1f\x8b", "The file looks gzipped: let its name end in .gz."),
    (b"PK\x03\x04", "The file looks like a zip archive or a spreadsheet: unpack it or export it as csv."),
    (b"PAR1", "The file looks like parquet: let its name end in .parquet."),
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of data and what it looked like when it was first seen."""

    path: Path
    state: FileState | None
    encoding: str | None = None
    """Of the text in it; UTF-8 if None."""

    @classmethod
    def at(cls, path: Path, encoding: str | None = None) -> DataFile:
        return cls(path, file_state(path), encoding)

    @property
    def name(self) -> str:
        """What errors call the file."""
        return self.path.name

    @property
    def is_gzipped(self) -> bool:
        return self.path.suffix.lower() == ".gz"

    def check_unchanged(self) -> None:
        """Raise if this is not the file it was when it was first seen."""
        if self.state is None or file_state(self.path) != self.state:
            raise DataError(
                f"{self.name} has changed since it was opened, so its row numbers no longer mean the same texts. "
                "Start again, and leave the file alone until the run has ended."
            )

    def open(self) -> BufferedReader:
        """The bytes of the file, unpacked if it is gzipped; a line that is too long is an error."""
        self.check_unchanged()
        try:
            return open_lines(self.path, self.name)
        except OSError as error:
            raise unreadable(self.path, error) from None

    def lines(self) -> Iterator[str]:
        """The lines of the file with their endings, without a byte order mark."""
        with self._unpacking(), self.open() as stream, TextIOWrapper(stream, self._codec, newline="") as text:
            try:
                yield from text
            except UnicodeError as error:
                raise self._undecodable(error) from None

    @contextmanager
    def _unpacking(self) -> Iterator[None]:
        """What reading a damaged file raises, in one sentence."""
        try:
            yield
        except EOFError:
            raise DataError(
                f"{self.name} is cut off: its gzip data ends before the end-of-file mark. Copy or download it again."
            ) from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{self.name} cannot be unpacked ({error}), expected gzip data. Copy or download it again."
            ) from None
        except OSError as error:
            raise unreadable(self.path, error) from None

    def sha256(self) -> str:
        """The hash of the file's bytes as they are on disk."""
        self.check_unchanged()
        try:
            with self.path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise unreadable(self.path, error) from None

    @property
    def _codec(self) -> str:
        return "utf-8-sig" if self.encoding is None else self.encoding

    def _undecodable(self, error: UnicodeError) -> DataError:
        """The error for bytes that are no UTF-8: only now is it worth reading line by line to say where."""
        if self.encoding is not None:
            return DataError(f"{self.name} is not {self.encoding} text ({error}). Name another with --encoding.")
        hint = "Save the file as UTF-8, or name its encoding, as in --encoding latin-1."
        with self._unpacking(), self.open() as stream:
            for number, line in enumerate(stream, start=1):
                if number == 1:
                    hint = next((text for magic, text in _DISGUISES if line.startswith(magic)), hint)
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as problem:
                    place = f"byte 0x{line[problem.start]:02x} at position {problem.start + 1} of the line"
                    return DataError(f"{self.name} line {number} is not UTF-8 text (found: {place}). {hint}")
        return DataError(f"{self.name} is not UTF-8 text. {hint}")


def unreadable(path: Path, error: OSError) -> DataError:
    """The error for a file that the system will not let us read."""
    reason = error.strerror or str(error)
    return DataError(f"{path} cannot be read ({reason}). Check the path and its permissions.")
