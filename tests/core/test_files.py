"""Files that are the old one or the new one, and folders that go when nobody needs them."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from stockade.core.errors import RunError
from stockade.core.files import in_temporary_folder, refuse_existing, replace_file, write_json, write_text


def test_a_file_that_cannot_be_brought_to_the_disk_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "summary.json"
    write_json(path, {"old": 1})
    before = path.read_text()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(RunError, match=r"summary\.json cannot be written \(No space left on device\)"):
            write_json(path, {"new": 2})
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path], "nothing half written is left beside it"
    write_json(path, {"new": 2})
    assert path.read_text() == '{\n  "new": 2\n}\n'


def test_a_file_is_never_half_written(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_text(path, "old")

    def half(target: Path) -> None:
        target.write_text("ne")
        assert path.read_text() == "old", "who reads it meanwhile sees the old one"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(path, half)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_no_encoding_can_hold_is_written_as_its_number(tmp_path: Path) -> None:
    write_text(tmp_path / "page.html", "a \ud800 b é")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "a \\ud800 b é"


class Held:
    def __init__(self, folder: Path) -> None:
        self.folder = folder


def test_a_temporary_folder_is_there_as_long_as_what_was_made_in_it() -> None:
    made = in_temporary_folder(Held)
    folder = made.folder
    (folder / "file").write_text("kept")
    gc.collect()
    assert (folder / "file").read_text() == "kept"
    del made
    gc.collect()
    assert not folder.exists()


def test_a_temporary_folder_goes_when_nothing_could_be_made_in_it() -> None:
    folders = []

    def broken(folder: Path) -> Held:
        folders.append(folder)
        (folder / "file").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_temporary_folder(broken)
    assert [folder.exists() for folder in folders] == [False]


def test_what_is_there_already_is_refused(tmp_path: Path) -> None:
    refuse_existing(tmp_path / "new", "run.sqlite")
    refuse_existing(tmp_path, "run.sqlite")  # an empty folder may be used
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"is not empty\. Choose another --out"):
        refuse_existing(tmp_path, "run.sqlite")
    (tmp_path / "run.sqlite").write_text("")
    with pytest.raises(RunError, match="Continue it with --resume, or choose another --out"):
        refuse_existing(tmp_path, "run.sqlite")
    with pytest.raises(RunError, match="exists already"):
        refuse_existing(tmp_path / "notes.txt", "run.sqlite")
