"""What the tests of training have in common."""

from __future__ import annotations

import pytest

from stockade.training import recording


@pytest.fixture
def plain_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the curves out of the page, for tests of other things: drawing takes longer than training here."""
    monkeypatch.setattr(recording, "render_page", lambda *given: "")
