"""Any `texts -> probabilities` function, and any estimator with `predict_proba`, as a victim.

The function is called with a list of texts; for pair tasks each of them is a tuple `(premise, hypothesis)`.
What it may answer is said in `stockade.models.answers`; every answer is checked.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from stockade.models.answers import read_answer

OUTPUTS = ("probabilities", "logits")
_PROBE = "a plain sentence"


class CallableClassifier:
    """A function or estimator that gives class probabilities (or logits, if declared).

    `labels` names the columns; without it they come from the object's `labels` or `classes_`, or else the
    number of classes is learnt from the first answer, with the names "0", "1", …. Asking for `labels` before
    any answer calls the function once with one short text. Say `deterministic=False` when the same text may
    get another answer.
    """

    def __init__(
        self,
        function: Any,
        *,
        labels: Sequence[str] | None = None,
        outputs: str = "probabilities",
        deterministic: bool = True,
    ) -> None:
        if outputs not in OUTPUTS:
            raise OptionError(f'outputs is "probabilities" or "logits", not "{outputs}".')
        estimator = callable(getattr(function, "predict_proba", None))
        if isinstance(function, type) or not (estimator or callable(function)):
            raise ModelError(
                f"{_name(function)} is not a model: expected a function of a list of texts, or an object "
                "with predict_proba."
            )
        self.function = function
        self.outputs = outputs
        self.deterministic = deterministic
        self._call: Callable[[list[TextInput]], Any] = function.predict_proba if estimator else function
        self._labels = _given_labels(function, labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The class names in column order; found out by a probe call when nobody has told them."""
        if self._labels is None:
            try:
                self.predict_proba([_PROBE])
            except Exception as problem:
                raise ModelError(
                    f"The classes of {_name(self.function)} are unknown, and asking it about one short text "
                    f"failed ({type(problem).__name__}: {str(problem)[:200]}). Name them with labels=[…] / "
                    "--labels."
                ) from problem
        assert self._labels is not None
        return self._labels

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """The function's answer, checked; a row of NaN where it answered with a number that is none."""
        values, names = read_answer(self._call(list(inputs)), len(inputs), self._labels, self.outputs)
        if inputs:
            self._labels = names
        return values

    def fingerprint(self) -> str:
        """A hash of the function's name and source, or of the whole estimator.

        It cannot see what a function reads from elsewhere: global variables, closures, files, a remote
        service.
        """
        digest = hashlib.sha256()
        for part in _identity(self.function):
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()


def _given_labels(function: Any, labels: Sequence[str] | None) -> tuple[str, ...] | None:
    if labels is None:
        labels = getattr(function, "labels", None)
    if labels is None:
        try:
            labels = function.classes_
        except Exception:
            labels = None  # a function, or an estimator that is not fitted and will say so when it is called
    if labels is None or callable(labels):
        return None
    names = tuple(str(label) for label in labels)
    if len(names) < 2 or len(set(names)) != len(names):
        raise ModelError(f"A classifier needs two or more different labels, found: {', '.join(names) or 'none'}.")
    return names


def _identity(function: Any) -> list[bytes]:
    if isinstance(function, functools.partial):
        return [
            b"partial",
            repr((function.args, sorted(function.keywords.items()))).encode(),
            *_identity(function.func),
        ]
    parts = [_name(function).encode()]
    if callable(getattr(function, "predict_proba", None)):
        try:
            return [*parts, pickle.dumps(function, protocol=4)]
        except Exception:
            return [*parts, _source(type(function))]
    plain = inspect.isroutine(function)
    return [*parts, _source(function if plain else type(function))]


def _source(thing: Any) -> bytes:
    try:
        return inspect.getsource(thing).encode()
    except (OSError, TypeError):
        return b""


def _name(function: Any) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
