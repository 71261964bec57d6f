"""The defaults that the specification lists, where it is at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SPEC = Path(__file__).parents[2] / "shared" / "SPEC.md"
needs_specification = pytest.mark.skipif(not SPEC.is_file(), reason="the specification is not on this machine")


def listed_defaults() -> dict[str, dict[str, Any]]:
    """Section 1.13, "Defaults at a glance": options by method."""
    yaml: Any = pytest.importorskip("yaml")
    listing = SPEC.read_text(encoding="utf-8").split("## 1.13")[1].split("```yaml\n")[1].split("```")[0]
    defaults: dict[str, dict[str, Any]] = yaml.safe_load(listing)
    return defaults
