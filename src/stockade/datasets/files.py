"""Data files: `open_file` looks at the path, then hands over to the reader of its format.

| name ends in | reader |
|---|---|
| `.csv`, `.tsv`, also with `.gz` | `delimited.py` |
| `.jsonl`, also with `.gz` | `jsonlines.py` |
| `.parquet` | `arrow.py` |

All of them stream: memory does not grow with the number of rows.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from stockade.core.errors import DataError
from stockade.datasets.arrow import open_parquet
from stockade.datasets.delimited import open_delimited
from stockade.datasets.jsonlines import open_json_lines
from stockade.datasets.reading import PLAIN, Reading
from stockade.datasets.source import Table
from stockade.datasets.streams import DataFile, unreadable
from stockade.datasets.wording import clip

EXTENSIONS = (".csv", ".tsv", ".jsonl", ".parquet")

_LONGEST_PATH = 250
_EXPECTED = "a .csv, .tsv, .jsonl or .parquet file"
_ADVICE = {
    ".json": "Write one object per line and name it .jsonl.",
    ".ndjson": "Rename it to .jsonl.",
    ".txt": "Give it a header line and name it .csv or .tsv.",
    ".xlsx": "Export it as .csv.",
    ".xls": "Export it as .csv.",
    ".zip": "Unpack it.",
    ".arrow": "Write it as .parquet.",
}


def open_file(path: Path, needs_labels: bool = True, reading: Reading = PLAIN) -> Table:
    """The table in a file, or one sentence on why there is none.

    Parameters
    ----------
    path
        The file.
    needs_labels
        Whether it must have a column of labels.
    reading
        Its encoding and delimiter, if they are not the usual ones, and what to do with rows that cannot be read.
    """
    path = path.expanduser()
    _check_path(path)
    file, kind, skip = DataFile.at(path, reading.encoding), _format(path), reading.skip_bad_rows
    if kind in (".csv", ".tsv"):
        delimiter = reading.mark or ("," if kind == ".csv" else "\t")
        return open_delimited(file, delimiter, needs_labels, is_csv=kind == ".csv", skip_bad_rows=skip)
    reading.refuse(path.name, "delimiter", *(() if kind == ".jsonl" else ("encoding",)))
    return open_json_lines(file, skip_bad_rows=skip) if kind == ".jsonl" else open_parquet(file)


def _format(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    inner = suffixes[-2] if zipped and len(suffixes) > 1 else "" if zipped else "".join(suffixes[-1:])
    if zipped and inner == ".parquet":
        raise DataError(
            f"{path.name} is a gzipped parquet file, expected a plain one: parquet is compressed inside. Unpack it "
            "with: gunzip"
        )
    if inner not in EXTENSIONS:
        extension = f"the extension {inner}" if inner else "no extension"
        advice = _ADVICE.get(inner, "Convert or rename it.")
        raise DataError(f"{path.name} has {extension}, expected {_EXPECTED}. {advice}")
    return inner


def _check_path(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise _no_such_file(path) from None
    except OSError as error:
        raise unreadable(Path(clip(str(path), _LONGEST_PATH)), error) from None
    if S_ISDIR(mode):
        inside = sorted(child.name for child in _children(path) if child.suffix.lower() in (*EXTENSIONS, ".gz"))
        hint = f"Give one of the files in it, such as {path / inside[0]}." if inside else f"Give {_EXPECTED}."
        raise DataError(f"{path} is a folder, expected {_EXPECTED}. {hint}")
    if not S_ISREG(mode):
        raise DataError(f"{path} is not a regular file, and data is read more than once. Save it as {_EXPECTED} first.")


def _no_such_file(path: Path) -> DataError:
    near = difflib.get_close_matches(path.name, [child.name for child in _children(path.parent)], n=1)
    hint = f"Did you mean {path.with_name(near[0])}?" if near else "Check the path."
    shown = clip(str(path), _LONGEST_PATH)
    return DataError(f'There is no file "{shown}", expected {_EXPECTED}, hf:NAME[:SPLIT] or builtin:reviews. {hint}')


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (OSError, ValueError):
        return []
