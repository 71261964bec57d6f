"""The one door to the files under `stockade.artifacts`.

A missing file becomes one sentence that says which file, and which script makes it.
"""

from __future__ import annotations

from importlib import resources

from stockade.core.errors import ResourceMissing


def read_artifact(name: str, made_by: str) -> bytes:
    """The content of the artifact `name`; `made_by` is the script under tools/ that builds it."""
    file = resources.files("stockade.artifacts").joinpath(name)
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise ResourceMissing(
            f"The file {name} is missing from stockade.artifacts. "
            f"Reinstall Stockade, or make the file with {made_by} in a source checkout."
        ) from None
