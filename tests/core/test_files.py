"""Files that are the old one or the new one, and folders that go when nobody needs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stockade.core.errors import RunError
from stockade.core.files import replace_file, write_json, write_text


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
