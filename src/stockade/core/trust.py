"""Whose code may run: a folder that somebody else made must not bring any.

Whoever names a model on the command line, or in Python, vouches for it. A folder is only data: a job that is resumed or
verified is run inside `only_vouched`, and code that nobody but the folder names is refused at the place where it would
be imported, however deep in the folder the name stood. The workspace looks through a manifest before anything is loaded
(`experiment.workspace.check_trust`); this is the second lock on the same door.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from stockade.core.errors import RunError


@dataclass(frozen=True, slots=True)
class _Vouched:
    folder: Path
    references: frozenset[str]


Trust = _Vouched | None
"""Whose code may run here; None for anybody's."""
_VOUCHED: ContextVar[Trust] = ContextVar("stockade_vouched", default=None)


@contextmanager
def only_vouched(folder: Path, references: Collection[str] = (), *, trust: bool = False) -> Iterator[None]:
    """Refuse code that only a folder names, for as long as this lasts.

    Parameters
    ----------
    folder
        The folder, for the error.
    references
        Model references that the user has named.
    trust
        Whether the user trusts the folder: then nothing is refused.
    """
    token = _VOUCHED.set(None if trust else _Vouched(folder, frozenset(references)))
    try:
        yield
    finally:
        _VOUCHED.reset(token)


def current_trust() -> Trust:
    """Whose code may run here, for a process that works for this one."""
    return _VOUCHED.get()


def with_trust(trust: Trust) -> None:
    """Let no other code run here than in the process that this one works for.

    Parameters
    ----------
    trust
        The `current_trust` there.
    """
    _VOUCHED.set(trust)


def check_vouched(reference: str, verb: str = "runs") -> None:
    """Refuse to import, or to ask, what a reference names, if only a folder that nobody vouches for names it.

    A service is told texts and secrets, so it is not asked because somebody else's folder says so.

    Parameters
    ----------
    reference
        A model reference such as `python:package.module:attribute`.
    verb
        What would be done with it: it "runs" code, or "asks" a service.
    """
    vouched = _VOUCHED.get()
    if vouched is not None and reference not in vouched.references:
        raise untrusted(vouched.folder, f"{verb} {reference}")


def untrusted(folder: Path, risk: str) -> RunError:
    """The error for a folder that would run code.

    Parameters
    ----------
    folder
        Which folder.
    risk
        What it would do, such as `runs python:victim:predict` or `asks https://…`.
    """
    named = "that is code named" if not risk.startswith("asks") else "texts and secrets would go to a service named"
    return RunError(
        f"{folder} {risk}: {named} by the folder, not by you. Add --trust-run (trust=True in Python) "
        "if you trust whoever made it, or give the model and the data again."
    )
