"""Every error a user can meet, in one tree.

    StockadeError                 one sentence: what was wrong, what was found, what was expected, what to do
    ├── InputError                something the user gave us cannot be used
    │   ├── DataError             a data file or object: missing, empty, wrong column, unknown label …
    │   ├── ModelError            a model reference or object that cannot be loaded, or answers in a shape we cannot use
    │   │   ├── NoAnswer          a call that was too slow, or ended the process of the model
    │   │   └── ModelGone         no answer to many calls in a row: ends the run, which can be resumed
    │   ├── OptionError           an unknown name or an option out of range
    │   └── RunError              a run folder: exists already, corrupt, made with another configuration
    ├── ResourceMissing           a language resource or optional package is not installed
    └── SearchStopped             ends one search, never the run
        ├── BudgetExhausted       the search has used all the queries it may use
        └── ScoringFailed         the model raised, answered NaN or an unusable row for one text

The command line prints the sentence of a `StockadeError` and exits with code 2; anything else is a bug and shows its
traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StockadeError(Exception):
    """Base of all errors that are meant to be read by a user."""


class InputError(StockadeError):
    """Something the user gave us cannot be used."""


class DataError(InputError):
    """A data file or data object cannot be used."""


class ModelError(InputError):
    """A model cannot be loaded, or answers in a shape we cannot use."""


class NoAnswer(ModelError):
    """A call of the model brought no answer: it took too long, or the process of the model is gone."""


class ModelGone(ModelError):
    """The model has stopped answering at all; unlike other faults of a model this ends the run."""


class OptionError(InputError):
    """An unknown name or an option out of range."""


class RunError(InputError):
    """A run folder cannot be created, read or resumed."""


class ResourceMissing(StockadeError):
    """A language resource or an optional package is not installed."""


class SearchStopped(StockadeError):
    """Ends one search and is recorded with it; the run goes on."""


class BudgetExhausted(SearchStopped):
    """The search has used all the queries it may use."""


class ScoringFailed(SearchStopped):
    """The model raised, or answered with something unusable, for one text."""


class Terminated(KeyboardInterrupt):
    """The system has asked the process to end (SIGTERM): a job leaves what it has, as after Ctrl-C."""


def unknown_name(kind: str, name: str, existing: Iterable[str]) -> OptionError:
    """An `OptionError` that lists what exists and offers the nearest name.

    Parameters
    ----------
    kind
        What the name should have named, such as "attack".
    name
        The name that does not exist.
    existing
        The names that do.
    """
    names = sorted(existing)
    prefixed = [option for option in names if option.startswith(name.lower())] if len(name) > 2 else []
    near = prefixed or difflib.get_close_matches(name.lower(), names, n=1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    return OptionError(f'There is no {kind} "{name}" (found: {", ".join(names)}).{hint}')


def missing_package(package: str, extra: str, owner: object) -> ResourceMissing:
    """A `ResourceMissing` for an optional package.

    Parameters
    ----------
    package
        What is not installed.
    extra
        The extra of Stockade that brings it.
    owner
        What needs it.
    """
    return ResourceMissing(f'{owner} needs {package}, which is not installed: pip install "stockade[{extra}]".')
