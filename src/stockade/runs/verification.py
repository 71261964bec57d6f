"""What a check of a run found, and what all kinds of runs are checked for: the summary must follow from the rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade.core.errors import RunError
from stockade.runs.run import SUMMARY_NAME


@dataclass(frozen=True, slots=True)
class Verification:
    """How many results were checked, and what did not hold."""

    checked: int
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.problems


def wrong_summary(folder: Path, part: str, computed: Mapping[str, Any], rows: str) -> list[str]:
    """What is wrong with the part of a written summary that must follow from the run's rows."""
    path = folder / SUMMARY_NAME
    if not path.exists():
        return [f"{SUMMARY_NAME} is missing: the run was interrupted before its end"]
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(f"{path} cannot be read ({error}).") from None
    same = written.get(part) == json.loads(json.dumps(computed))[part]
    return [] if same else [f"{SUMMARY_NAME} does not follow from the {rows}"]
