"""Files and folders of models as a stranger might send them: links and names that lead elsewhere are refused.

A folder may have links within itself. The hub's cache is a special case: there a snapshot is a folder of links to the
blobs beside it.
"""

from __future__ import annotations

import hashlib
import stat
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath

from stockade.core.errors import ModelError
from stockade.core.limits import LARGEST_ARCHIVE

_DEEPEST = 3
_MOST_ENTRIES = 10_000


def model_file(path: str, kind: str, example: str) -> Path:
    """The file that a reference names; what is none is an error that says what was expected.

    Parameters
    ----------
    path
        As the user wrote it.
    kind
        What the file should be, such as "a scikit-learn model".
    example
        A reference that would be right.
    """
    file = Path(path).expanduser()
    if not path or not file.exists():
        raise ModelError(f'There is no file "{path}"; expected {kind}, as in {example}.')
    if not file.is_file():
        raise ModelError(f"{path} is no file; expected {kind}, as in {example}.")
    return file


def file_fingerprint(files: Iterable[Path], *settings: object) -> str:
    """A hash of the names and contents of files, and of settings that decide answers besides them.

    Parameters
    ----------
    files
        The files, in any order.
    *settings
        Values whose `repr` says all of them.
    """
    digest = hashlib.sha256()
    for path in sorted(files):
        with path.open("rb") as stream:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest())
    for setting in settings:
        digest.update(repr(setting).encode() + b"\0")
    return digest.hexdigest()


def check_links(folder: Path) -> None:
    """Refuse a model's folder with links that lead out of it: loading it would read what nobody has named.

    Parameters
    ----------
    folder
        The folder as the user named it; it may itself be a link.
    """
    home = folder.resolve()
    allowed = [home, *([home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [])]
    for path in _entries(home, _DEEPEST):
        if path.is_symlink():
            try:
                target = path.resolve()
            except (OSError, RuntimeError):
                raise ModelError(f"{folder / path.relative_to(home)} is a link to itself. Remove it.") from None
            if not any(target.is_relative_to(place) for place in allowed):
                raise ModelError(
                    f"{folder / path.relative_to(home)} is a link that leads out of the model's folder, to {target}. "
                    "Put the file itself there."
                )


def check_archive(path: Path) -> None:
    """Refuse a zip archive with names that lead out of it, with links, or larger than any model once unpacked.

    Parameters
    ----------
    path
        The archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ModelError(f"{path} is a damaged archive ({error}). Save the model again.") from None
    for entry in entries:
        if leads_out(entry.filename) or stat.S_ISLNK(entry.external_attr >> 16):
            raise ModelError(
                f'{path} holds "{entry.filename[:80]}", which leads out of the archive. Do not trust whoever made it.'
            )
    size = sum(entry.file_size for entry in entries)
    if size > LARGEST_ARCHIVE or len(entries) > _MOST_ENTRIES:
        raise ModelError(
            f"{path} has {len(entries):,} files of {size:,} bytes once unpacked, expected at most {_MOST_ENTRIES:,} of "
            f"{LARGEST_ARCHIVE:,}."
        )


def leads_out(name: str) -> bool:
    """Whether a path inside a folder or archive leads out of it, on any system.

    Parameters
    ----------
    name
        The path as the file states it.
    """
    for path in (PurePosixPath(name), PureWindowsPath(name)):
        if path.is_absolute() or ".." in path.parts or path.drive:
            return True
    return "\0" in name


def _entries(folder: Path, depth: int) -> Iterable[Path]:
    for path in folder.iterdir():
        yield path
        if depth > 1 and path.is_dir() and not path.is_symlink():
            yield from _entries(path, depth - 1)
