"""The folder of a training: begun once, resumed only by the same training, ended as a Hugging Face model folder.

`training.json` is written first and says what the training is; the model's own files come last, each put in its
place by one rename, `config.json` after all others: before it is there, the folder is not a model to anybody.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stockade.core.differences import differences
from stockade.core.errors import RunError
from stockade.core.files import make_folder, refuse_existing, sync_folder, write_json

RECORD, CHECKPOINT, _SAVING, _LOCK = "training.json", "checkpoint", ".saving", ".lock"
SCHEMA = 1


def read_record(folder: Path) -> dict[str, Any]:
    """What `training.json` says."""
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{folder} is not a training of Stockade: it has no {RECORD}. Choose another --out.") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}). Restore it from a copy, or use another --out.") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA or "config" not in record:
        raise RunError(f"{path} is not a record this version of Stockade reads (format {SCHEMA}). Use another --out.")
    return record


def begin(folder: Path, config: Mapping[str, Any], resume: bool) -> None:
    """Make the folder with its record, or see that the record of the one to resume says the same."""
    if not resume:
        refuse_existing(folder, RECORD)
    if resume and (folder / RECORD).exists():
        _check_same(folder, read_record(folder)["config"], config)
        return
    refuse_existing(folder, RECORD)
    make_folder(folder)
    write_json(folder / RECORD, {"schema": SCHEMA, "complete": False, "config": config})


def _check_same(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    found = differences(decisive(old), decisive(new))
    if found is not None:
        raise RunError(
            f"{folder} is another training: {found}. Nothing was changed; resume with the same options, or use another "
            "--out."
        )


def decisive(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a configuration that decides the weights: how things were called does not."""
    return {name: value for name, value in config.items() if name != "request"}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second process away from the folder; the system lets go of the lock when this one ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system: two processes in one folder are then the user's care
        yield
        return
    with (folder / _LOCK).open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"Another process is training in {folder}. Wait for it, or use another --out.") from None
        for left_over in [*folder.glob(".*.tmp"), *(folder / CHECKPOINT).glob(".*.tmp")]:
            left_over.unlink(missing_ok=True)  # half-written when an earlier process was killed
        try:
            yield
        finally:
            (folder / _LOCK).unlink(missing_ok=True)


def save_model(folder: Path, model: Any, tokenizer: Any) -> None:
    """Put the model's files into the folder, whole ones only."""
    from stockade.models.pretrained import quiet

    saving = folder / _SAVING
    shutil.rmtree(saving, ignore_errors=True)
    try:
        with quiet():
            model.save_pretrained(saving)
            tokenizer.save_pretrained(saving)
        files = sorted(saving.iterdir(), key=lambda path: path.name == "config.json")
        for path in files:
            with path.open("rb+") as stream:
                os.fsync(stream.fileno())
        for path in files:
            path.chmod(0o644)  # safetensors makes files that nobody else can read
            path.replace(folder / path.name)
    except Exception as problem:  # a full disk is an error of another class in each of the libraries that write here
        raise RunError(
            f"The trained model cannot be saved in {folder} ({problem}). Its checkpoint is unharmed: make room and "
            "go on with --resume."
        ) from problem
    finally:
        shutil.rmtree(saving, ignore_errors=True)
    sync_folder(folder)


def end(folder: Path, record: Mapping[str, Any]) -> None:
    """The training is complete: say so, and drop the checkpoint."""
    write_json(folder / RECORD, {"schema": SCHEMA, **record, "complete": True})
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
