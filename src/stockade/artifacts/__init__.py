"""Files of our own making that come with the package, each with the script under tools/ that makes it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from stockade.core.errors import ResourceMissing


def artifact_path(name: str) -> Path:
    """Where the file or folder of that name is, whether it exists or not."""
    return Path(str(resources.files(__name__).joinpath(name)))


def read_artifact(name: str, made_by: str) -> bytes:
    """The content of a file; a missing one is an error that names the script that makes it, `made_by`."""
    try:
        return artifact_path(name).read_bytes()
    except FileNotFoundError:
        raise ResourceMissing(
            f"The file {name} is missing from stockade.artifacts. "
            f"Reinstall Stockade, or make the file with {made_by} in a source checkout."
        ) from None
