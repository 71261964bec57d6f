"""Folders of studies made of hand-written results, as if their attacks had been there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stockade.core.records import Record
from stockade.core.text import Edit
from stockade.experiment.store import Effort
from stockade.experiment.workspace import begin
from stockade.studies.bae.analysis import ATTACKS, texts_to_measure
from stockade.studies.bae.spec import BaeSpec
from stockade.studies.bae.study import RUN, BaeResult, Measure, measure_perplexities
from stockade.workflows.attack.result import CODEC, AttackResult
from stockade.workflows.attack.spec import AttackSpec
from tests.records import record

TEN_WORDS = "one two three four five six seven eight nine ten"
MODEL = {"reference": "builtin:toy", "labels": ["negative", "positive"], "deterministic": True, "fingerprint": None}


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


def describe_toys(texts: int, **model: Any) -> dict[str, Any]:
    """What a manifest would say of the model and the data."""
    data = {"reference": "toy data", "fingerprint": "", "rows": texts, "size": texts, "label_counts": {}, "ids": None}
    return {"model": {**MODEL, **model}, "data": data, "neighbours": None}


def make_run(
    folder: Path, spec: AttackSpec, records: Mapping[str, Sequence[Record]], *, size: int | None = None, **model: Any
) -> AttackResult:
    """A run of attacks with these results, by attack.

    Parameters
    ----------
    folder
        Where it is made.
    spec
        What it was made with.
    records
        Its results.
    size
        How many texts there are; as many as results if None.
    **model
        What the manifest says of the model, if it is not a deterministic one with two classes.
    """
    texts = max(map(len, records.values()), default=0) if size is None else size
    with begin(folder, spec, describe_toys(texts, **model), resume=False) as workspace:
        for attack, entries in records.items():
            for position, entry in enumerate(entries):
                document = CODEC.encode(entry)
                workspace.store.add(attack, entry.id, document, position=position, status=entry.status, effort=Effort())
        result = AttackResult.of(workspace)
        result.write_summary()
    return result


def make_bae(
    folder: Path,
    records: Mapping[str, Sequence[Record]],
    *,
    measure: Measure | None = None,
    size: int | None = None,
    model: Mapping[str, Any] | None = None,
    **options: Any,
) -> BaeResult:
    """A study of BAE with these results; `measure` stands in for the masked LM, None leaves fluency out."""
    settings = {"encoder": "toy", "fluency": measure is not None, **options}
    spec = BaeSpec.of(models={"toy": "builtin:toy"}, data="toy data", **settings)
    texts = max(map(len, records.values()), default=0) if size is None else size
    with begin(folder, spec, describe_toys(texts, **(model or {})), resume=False) as workspace:
        run = make_run(folder / RUN, spec.attack, records, size=size, **(model or {}))
        result = BaeResult.of_runs(workspace, {RUN: run})
        if measure is not None:
            measure_perplexities(workspace.store, texts_to_measure(result.results), measure)
        result.write_summary()
    return result


def of_each(make: Any) -> dict[str, list[Record]]:
    """The results of every attack of the study: what `make` makes of its name."""
    return {name: make(name) for name in ATTACKS}
