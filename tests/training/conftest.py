"""What the tests of training have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from stockade.training import recording


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Weights are compared to the last bit, also with those of another process: sums over threads differ there."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def plain_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the curves out of the page, for tests of other things: drawing takes longer than training here."""
    monkeypatch.setattr(recording, "render_page", lambda *given: "")
