"""Folders and archives of models: links and names that lead elsewhere are refused before anything is read."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from stockade.core.errors import ModelError
from stockade.models.adapters import load_model
from stockade.models.files import check_archive, check_links, leads_out
from tests.models.conftest import tiny_bert, tiny_tokenizer


def make_model(folder: Path) -> Path:
    tiny_bert().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def test_a_folder_with_a_link_out_of_it_is_refused(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model")
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    (folder / "notes.json").symlink_to(secret)
    with pytest.raises(ModelError, match=r"notes\.json is a link that leads out of the model's folder"):
        load_model(str(folder))
    (folder / "notes.json").unlink()
    (folder / "inner").mkdir()
    (folder / "inner" / "up").symlink_to("../../secret.json")
    with pytest.raises(ModelError, match=r"inner/up is a link that leads out"):
        load_model(folder)


def test_links_within_the_folder_and_to_the_hubs_blobs_are_fine(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model")
    (folder / "weights.safetensors").symlink_to("model.safetensors")
    assert load_model(folder).labels
    (tmp_path / "link").symlink_to(folder)
    assert load_model(tmp_path / "link").labels
    blobs = tmp_path / "hub" / "models--a--b" / "blobs"
    snapshot = blobs.parent / "snapshots" / "0123"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for path in folder.iterdir():
        if not path.is_symlink():
            path.rename(blobs / path.name)
            (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert load_model(snapshot).labels


@pytest.mark.parametrize("name", ["../a", "a/../../b", "/a", "\\\\host\\a", "C:a", "a\\..\\..\\b", "a\0b"])
def test_names_that_lead_out(name: str) -> None:
    assert leads_out(name)


@pytest.mark.parametrize("name", ["a", "a/b", "a/..b", "./a", "a.b/c..d"])
def test_names_that_do_not(name: str) -> None:
    assert not leads_out(name)


def test_archives_with_links_or_of_any_size_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(ModelError, match="leads out of the archive"):
        check_archive(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(100_000))
    check_archive(path)
    monkeypatch.setattr("stockade.models.files.LARGEST_ARCHIVE", 99_999)
    with pytest.raises(ModelError, match=r"1 files of 100,000 bytes once unpacked"):
        check_archive(path)
    path.write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(ModelError, match="damaged archive"):
        check_archive(path)


def test_a_link_that_turns_in_circles_ends_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ModelError, match=r"is a link to itself|leads out"):
        check_links(tmp_path)
