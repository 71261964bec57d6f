"""What the commands share at the end of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.cli.finish import output_folder
from stockade.core.errors import OptionError


def test_jobs_begun_in_the_same_second_get_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = set()
    for _ in range(5):
        folder = output_folder(None, "attack")
        folder.mkdir(parents=True)
        folders.add(folder)
    assert len(folders) == 5
    assert all(folder.parent == Path("runs") and folder.name.startswith("attack-") for folder in folders)


def test_a_named_folder_is_taken_and_a_resume_needs_one() -> None:
    assert output_folder(Path("mine"), "attack", resume=True) == Path("mine")
    with pytest.raises(OptionError, match="name it with --out"):
        output_folder(None, "attack", resume=True)
