"""What the tests of training have in common."""

from __future__ import annotations

import pytest

from tests.training.tiny import without_plots


@pytest.fixture
def plain_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the curves out of reports."""
    without_plots(monkeypatch)
