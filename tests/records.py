"""Records for tests, with only what matters said."""

from __future__ import annotations

from typing import Any

from stockade.core.records import Record, Status


def record(example: int | str, status: Status = "failed", attack: str = "toy", **fields: Any) -> Record:
    values: dict[str, Any] = {
        "id": str(example),
        "attack": attack,
        "status": status,
        "reason": None,
        "label": "positive",
        "original": "a great film",
        "adversarial": "a big film" if status == "success" else None,
        "original_prediction": "positive",
        "adversarial_prediction": "negative" if status == "success" else None,
        "original_scores": (0.2, 0.8),
        "adversarial_scores": (0.6, 0.4) if status == "success" else None,
        "queries": 10,
        "rows": 8,
        **fields,
    }
    return Record(**values)
