"""The adapter of docs/extending/adapter.md, run as a user would: from a file of their own."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from stockade.models import adapters
from tests.docs.documents import ROOT, blocks

PAGE = ROOT / "docs" / "extending" / "adapter.md"


def test_the_snippet_runs_from_a_users_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = adapters.AdapterRegistry(adapters._ADAPTERS, adapters._GROUP)
    monkeypatch.setattr(adapters, "MODEL_ADAPTERS", registry)
    (snippet,) = blocks(PAGE, "python")
    (tmp_path / "keyword_models.py").write_text(snippet.code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("keyword_models.py", run_name="__main__")
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"success \| what a great film -> what a \w+ film", first)
    assert first.count("great") == 1
    assert second == "failed | an awful mess of a film -> None"
    assert registry.schemes[0] == "keyword"
