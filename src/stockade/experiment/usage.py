"""What the queries of a metered model have cost, kept beside the results: requests, tokens, money.

Each session adds its counters when it ends, also when it ends early. What a killed session had used is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from stockade.core.files import read_json, write_json
from stockade.core.protocols import Classifier
from stockade.engine.services import innermost

USAGE = "usage.json"
_RECORDED: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""The counters of each model when they were last written down."""


@runtime_checkable
class Metered(Protocol):
    """A classifier that counts what its queries cost."""

    def usage(self) -> dict[str, Any]:
        """Counters by name; lists hold what was seen."""


@contextmanager
def metered(folder: Path, classifier: Classifier) -> Iterator[None]:
    """Add what a model counts meanwhile to what earlier sessions have used; one that counts nothing leaves no file.

    Parameters
    ----------
    folder
        The folder of the job.
    classifier
        The model, with or without defenses around it.
    """
    model = innermost(classifier)
    if not isinstance(model, Metered):
        yield
        return
    before = _RECORDED.get(model, {})  # what it was asked since, such as about its classes, belongs to this job
    try:
        yield
    finally:
        total, _RECORDED[model] = dict(read_usage(folder) or {}), model.usage()
        for name, value in _RECORDED[model].items():
            if isinstance(value, list):
                total[name] = sorted({*total.get(name, ()), *value})
            else:
                total[name] = round(total.get(name, 0) + value - before.get(name, 0), 9)
        write_json(folder / USAGE, total)


def read_usage(folder: Path) -> dict[str, Any] | None:
    """The counters of all sessions; None if the model counted nothing.

    Parameters
    ----------
    folder
        The folder of the job.
    """
    path = folder / USAGE
    if path.is_symlink() or not path.is_file():
        return None
    content = read_json(path, f"{folder} has no {USAGE}.")
    return content if isinstance(content, dict) else None


def usage_sentence(usage: dict[str, Any]) -> str:
    """The counters in a sentence.

    Parameters
    ----------
    usage
        What `read_usage` gives.
    """
    tokens = f"{usage.get('tokens_in', 0):,} tokens in and {usage.get('tokens_out', 0):,} out"
    cost = f", cost {usage['cost']:.4g}" if "cost" in usage else ""
    return f"The model was asked {usage.get('requests', 0):,} times: {tokens}{cost}."
