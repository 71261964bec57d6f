"""NOTICE states the hash of every artifact that carries weights or words."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ARTIFACTS = ROOT / "src" / "stockade" / "artifacts"
WEIGHTS = sorted(
    path
    for path in ARTIFACTS.rglob("*")
    if path.suffix in (".safetensors", ".npz", ".gz") or path.name == "tokenizer.json"
)


@pytest.mark.parametrize("path", WEIGHTS, ids=lambda path: str(path.relative_to(ARTIFACTS)))
def test_the_notice_states_the_hash(path: Path) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() in (ROOT / "NOTICE").read_text(encoding="utf-8")


def test_nothing_shipped_is_large() -> None:
    assert sum(path.stat().st_size for path in ARTIFACTS.rglob("*") if path.is_file()) < 14 * 2**20


def test_the_wordnet_licence_is_kept_beside_the_table() -> None:
    assert "Princeton University" in (ARTIFACTS / "wordnet.LICENSE").read_text(encoding="utf-8")
