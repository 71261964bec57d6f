from __future__ import annotations

from collections.abc import Iterator

import pytest

from stockade.defenses.registry import DEFENSES
from tests.workflows.evaluate.kit import TOYS


@pytest.fixture
def toy_defenses() -> Iterator[None]:
    """The toys on the list of defenses, as long as a test runs."""
    for name, made in TOYS.items():
        DEFENSES.register(name, paper="a toy", presets={"paper": {}})(made)
    yield
    for name in TOYS:
        DEFENSES._loaded.pop(name)
