"""Files that are the old one or the new one, and folders that go when nobody needs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stockade.core.errors import RunError
from stockade.core.files import file_state, make_folder, read_json, replace_file, sync_folder, write_json, write_text


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


def test_an_error_before_the_first_letter_is_the_error_that_is_raised(tmp_path: Path) -> None:
    def refuse(target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(PermissionError):
        replace_file(tmp_path / "page.html", refuse)
    with pytest.raises(RunError, match=r"page\.html cannot be written \(No such file or directory\)"):
        write_text(tmp_path / "absent" / "page.html", "text")


def test_a_folder_that_cannot_be_brought_to_the_disk_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_folder(tmp_path / "absent")

    handles = []

    def unable(handle: int) -> None:
        handles.append(handle)
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", unable)
    sync_folder(tmp_path)
    assert len(handles) == 1
    with pytest.raises(OSError):  # it is closed
        os.fstat(handles[0])


def test_folders_are_made_with_their_parents_and_refused_in_one_sentence(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    write_text(tmp_path / "file", "")
    with pytest.raises(RunError, match=r"cannot be written \(.+\)\. Choose another folder\."):
        make_folder(tmp_path / "file" / "b")


def test_a_description_is_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with pytest.raises(RunError, match=r"^There is no run\.$"):
        read_json(path, "There is no run.")
    write_json(path, {"seed": 1})
    assert read_json(path, "There is no run.") == {"seed": 1}
    path.write_text("{")
    with pytest.raises(RunError, match=r"manifest\.json cannot be read \(.+\)\. Restore it from a copy"):
        read_json(path, "There is no run.")


def test_the_state_of_a_file_is_another_one_when_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert file_state(path) is None
    write_text(path, "old")
    before = file_state(path)
    assert before is not None
    assert before == file_state(str(path))
    assert before[0] == 3
    write_text(path, "new")
    assert file_state(path) != before
