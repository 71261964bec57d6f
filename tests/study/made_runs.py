"""Run folders made of hand-written results, as if the attacks of the study had been there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stockade.core.files import write_json
from stockade.core.records import Record
from stockade.core.text import Edit
from stockade.runs.manifest import make_manifest
from stockade.runs.run import Run
from stockade.runs.store import Effort, Store
from stockade.studies.bae.analysis import ATTACKS
from tests.records import record

TEN_WORDS = "one two three four five six seven eight nine ten"


def success(
    example: int, attack: str, *changes: tuple[str, str], similarity: float | None = 0.9, **fields: Any
) -> Record:
    """A success on a text of ten words; a change without a word before is an insertion."""
    edits = tuple(
        Edit("replace" if before else "insert", index, before, after) for index, (before, after) in enumerate(changes)
    )
    adversarial = f"{TEN_WORDS} {' '.join(after for _, after in changes)}"
    values: dict[str, Any] = {
        "original": TEN_WORDS,
        "adversarial": adversarial,
        "edits": edits,
        "similarity": similarity,
    }
    return record(example, "success", attack, perturbed_percent=10.0 * len(edits), **{**values, **fields})


def failure(example: int, attack: str, **fields: Any) -> Record:
    return record(example, "failed", attack, **{"original": TEN_WORDS, **fields})


def skipped(example: int, attack: str) -> Record:
    return record(example, "skipped", attack, original=TEN_WORDS, queries=0, rows=0)


def make_run(
    folder: Path,
    records: Mapping[str, Sequence[Record]],
    *,
    options: Mapping[str, Any] | None = None,
    attacks: Sequence[str] = ATTACKS,
    size: int | None = None,
) -> Run:
    folder.mkdir(parents=True)
    config = {
        "seed": 0,
        "attacks": [{"key": name, "name": name, "preset": "paper", "options": dict(options or {})} for name in attacks],
        "budget": None,
        "similarity": "cosine, toy",
        "mlm": None,
        "encoder": "toy",
    }
    total = max(map(len, records.values()), default=0) if size is None else size
    model = {"reference": "toy model", "labels": ["negative", "positive"], "deterministic": True, "fingerprint": None}
    data = {"reference": "toy data", "fingerprint": "", "rows": total, "size": total, "label_counts": {}, "ids": None}
    write_json(folder / "manifest.json", make_manifest("attack", config, model, data))
    with Store(folder, writable=True) as store:
        for found in records.values():
            for position, one in enumerate(found):
                store.add(one, position, 0, Effort())
    return Run(folder)
