"""Which models bring code of their own, and whether it is still the same: both without running any of it."""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from stockade.models.adapters import MODEL_ADAPTERS
from stockade.models.ensemble_reference import single_models

_PYTHON, _SKLEARN = "python:", "sklearn:"
_ONLY_DATA = ("builtin", "ensemble", "huggingface", "onnx", "sklearn", "zero-shot")
"""Adapters that read data and never run what a reference names, unless pickles or remote code are allowed."""
_CODE = ("*.py", "*.bin", "*.pt", "*.pth", "*.ckpt")
_CHOOSING = ("config.json", "tokenizer_config.json")
"""What is run when a folder is loaded with remote code or pickles allowed, and what names it."""


def is_service(reference: str) -> bool:
    """Whether a reference names a service, which would be told texts and secrets.

    Parameters
    ----------
    reference
        Any model reference.
    """
    return reference.startswith(("http://", "https://", "chat:"))


def code_in(reference: str) -> str | None:
    """The first model behind a reference that is code: `python:…`, or whatever an adapter of somebody else loads; a
    service counts as well.

    Parameters
    ----------
    reference
        Any model reference; ensembles are looked into.
    """
    for model in single_models(reference):
        scheme, colon, _ = model.partition(":")
        if colon and scheme in MODEL_ADAPTERS.schemes and scheme not in _ONLY_DATA:
            return model
    return None


def code_fingerprint(reference: str) -> str | None:
    """A hash of the files whose code loading a model can run; None where there are none, or none that can be found.

    Parameters
    ----------
    reference
        Any model reference.
    """
    files = [path for model in single_models(reference) for path in _files(model)]
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as stream:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _files(model: str) -> list[Path]:
    """The module of a Python reference; a saved estimator; pickles and code in the folder of a model, and what
    chooses among them.
    """
    if model.startswith(_PYTHON):
        path = _module_file(model.removeprefix(_PYTHON).partition(":")[0])
        return [] if path is None else [path]
    if model.startswith(_SKLEARN):
        file = Path(model.removeprefix(_SKLEARN)).expanduser()
        return [file] if file.is_file() else []
    folder = Path(model.removeprefix("huggingface:").removeprefix("zero-shot:")).expanduser()
    try:
        code = sorted({path for pattern in _CODE for path in folder.glob(pattern) if path.is_file()})
    except (OSError, ValueError):  # a name of the hub that is no path
        return []
    return [*code, *(folder / name for name in _CHOOSING if (folder / name).is_file())] if code else []


def _module_file(module: str) -> Path | None:
    """The file that importing a module would run, found without importing its packages."""
    places: list[str] | None = [os.getcwd(), *sys.path]
    spec = None
    for at, part in enumerate(module.split(".")):
        name = ".".join(module.split(".")[: at + 1])
        spec = PathFinder.find_spec(name, places) if part else None
        if spec is None:
            return None
        places = list(spec.submodule_search_locations or ())
    path = Path(spec.origin) if spec is not None and spec.origin is not None else None
    return path if path is not None and path.is_file() else None
