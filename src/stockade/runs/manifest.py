"""What a run was: versions, seed, every option given or defaulted, fingerprints of model and data, the sampled ids."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from stockade.core.differences import differences
from stockade.core.errors import RunError
from stockade.core.files import make_folder, read_json, write_json

FILE_NAME = "manifest.json"
SCHEMA = 1
_PACKAGES = ("stockade", "torch", "transformers", "tokenizers", "numpy")
_FREE = ("model_options",)
"""How the model is loaded may differ when a run is resumed (another device, say); its fingerprint may not."""


def make_manifest(
    command: str, config: Mapping[str, Any], model: Mapping[str, Any], data: Mapping[str, Any]
) -> dict[str, Any]:
    """The manifest of a run that is about to start."""
    return {
        "schema": SCHEMA,
        "command": command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "platform": platform.platform(),
        "config": json.loads(json.dumps(config)),
        "model": json.loads(json.dumps(model)),
        "data": json.loads(json.dumps(data)),
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / FILE_NAME
    manifest = read_json(path, f"{folder} is not a run: it has no {FILE_NAME}.")
    if not isinstance(manifest, dict) or not {"config", "model", "data", "schema"} <= manifest.keys():
        raise RunError(
            f"{path} is not a manifest of Stockade. Restore it from a copy, or start again with another --out."
        )
    if manifest["schema"] != SCHEMA:
        raise RunError(f"{path} has format {manifest['schema']}; this version of Stockade reads format {SCHEMA}.")
    return manifest


def begin_run(folder: Path, manifest: Mapping[str, Any], resume: bool) -> None:
    """Write the manifest of a new run; one that is gone on with must have been made from the same."""
    if resume and folder.exists() and any(folder.iterdir()):
        check_resumable(folder, read_manifest(folder), manifest)
        return
    make_folder(folder)
    write_json(folder / FILE_NAME, manifest)


def check_resumable(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse to go on with a run under another configuration, model or data; say what differs."""
    found = differences(_decisive(old), _decisive(new))
    if found is not None:
        raise RunError(
            f"{folder} was made with another configuration: {found}. Resume with the same options, or use another "
            "--out."
        )


def _decisive(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What decides a run's results."""
    config = {name: value for name, value in manifest["config"].items() if name not in _FREE}
    for kind in ("attacks", "methods"):
        config[kind] = {one["key"]: one for one in config.get(kind, [])}
    return {"config": config, "model": manifest["model"], "data": manifest["data"]}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
