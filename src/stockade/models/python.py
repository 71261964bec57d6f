"""Python objects as models: any `texts -> probabilities` function, any estimator with `predict_proba`.

The function is called with a list of texts; for pair tasks each of them is a tuple `(premise, hypothesis)`.
`stockade.models.answers` lists what it may answer with; every answer is checked.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stockade.core.errors import ModelError
from stockade.core.protocols import Classifier, Probabilities
from stockade.core.text import TextInput
from stockade.core.trust import check_vouched
from stockade.models.adapters import LoadOptions, check_outputs, load_with
from stockade.models.answers import read_answer
from stockade.models.worker import in_worker

_SCHEME = "python:"
_PROBE = "a plain sentence"


class PythonAdapter:
    """Reads `python:package.module:attribute`, and every object that no other adapter takes."""

    limits_calls = True

    def matches(self, model: object) -> bool:
        """True for references of the scheme and for objects."""
        return str(model).startswith(_SCHEME) if isinstance(model, str | Path) else True

    def load(self, model: object, options: LoadOptions) -> Classifier:
        """The model itself if it is a `Classifier`, or the function or estimator as one; in a worker, if calls have a
        time limit.
        """
        if options.timeout is not None:
            return in_worker(model, options, lambda: self._wrap(model, replace(options, timeout=None)))
        if isinstance(model, str | Path):
            imported = import_attribute(str(model))
            return self._wrap(imported, options) if isinstance(imported, str | Path) else load_with(imported, options)
        return self._wrap(model, options)

    def _wrap(self, model: Any, options: LoadOptions) -> Classifier:
        if isinstance(model, type):
            raise ModelError(
                f"{model.__name__} is a class; expected an object with predict_proba or a function: make one of it "
                "first."
            )
        if isinstance(model, Classifier):
            if options.labels is not None and tuple(options.labels) != tuple(model.labels):
                raise ModelError(f"The model names its own classes ({', '.join(model.labels)}): leave the labels out.")
            return model
        return CallableClassifier(model, labels=options.labels, outputs=options.outputs or "probabilities")


class CallableClassifier:
    """A function or estimator that gives class probabilities (or logits, if declared).

    Parameters
    ----------
    function : callable or estimator
        Called with a list of texts; an object with `predict_proba` is asked through that.
    labels : sequence of str, optional
        Names of the columns. Without them they come from the object's `labels` or `classes_`, or else the number of
        classes is learnt from the first answer, with the names "0", "1", …; asking for `labels` before any answer
        calls the function once with one short text.
    outputs : {"probabilities", "logits", "labels"}
        What the function answers with. With "labels" it names a class for each text, and an object with `predict` is
        asked through that.
    deterministic : bool
        Whether the same text always gets the same answer.
    """

    def __init__(
        self,
        function: Any,
        *,
        labels: Sequence[str] | None = None,
        outputs: str = "probabilities",
        deterministic: bool = True,
    ) -> None:
        check_outputs(outputs)
        answers = "predict" if outputs == "labels" else "predict_proba"
        estimator = callable(getattr(function, answers, None))
        if not estimator and callable(getattr(function, "predict", None)) and not isinstance(function, type):
            raise _without_probabilities(function)
        if isinstance(function, type) or not (estimator or callable(function)):
            raise ModelError(
                f"{name_of(function)} is not a model: expected a function of a list of texts, or an object "
                "with predict_proba."
            )
        self.function = function
        self.outputs = outputs
        self.deterministic = deterministic
        self.label_only = outputs == "labels"
        self._call: Callable[[list[TextInput]], Any] = getattr(function, answers) if estimator else function
        self._labels = _stated_labels(function, labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The class names in column order; learnt by a call with one short text when nothing states them."""
        if self._labels is None:
            try:
                self.predict_proba([_PROBE])
            except Exception as problem:
                raise ModelError(
                    f"The classes of {name_of(self.function)} are unknown, and asking it about one short text "
                    f"failed ({type(problem).__name__}: {str(problem)[:200]}). Name them with labels=[…] / "
                    "--labels."
                ) from problem
        assert self._labels is not None
        return self._labels

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """The function's answer, checked; a row of NaN where it holds NaN or infinity.

        What it prints goes to standard error: standard output is for results.
        """
        try:
            with contextlib.redirect_stdout(sys.stderr):
                answer = self._call(list(inputs))
        except SystemExit as left:
            raise RuntimeError(f"it called sys.exit({left.code!r})") from left
        values, names = read_answer(answer, len(inputs), self._labels, self.outputs)
        if inputs:
            self._labels = names
        return values

    @property
    def stated_labels(self) -> tuple[str, ...] | None:
        """The class names as far as they are known without asking the model."""
        return self._labels

    def fingerprint(self) -> str:
        """A hash of the function's name and source, or of the whole estimator.

        It cannot see what a function reads from elsewhere: global variables, closures, files, a remote
        service.
        """
        digest = hashlib.sha256()
        for part in identity_of(self.function):
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()


def _without_probabilities(estimator: Any) -> ModelError:
    """The error for an estimator that only names classes, such as scikit-learn's LinearSVC."""
    name = type(estimator).__name__
    if not hasattr(estimator, "get_params"):
        return ModelError(
            f"{name} has predict and no predict_proba, expected class probabilities. Give it a method predict_proba, "
            "or give a function that returns a row of probabilities for each text."
        )
    last = estimator.steps[-1][1] if getattr(estimator, "steps", None) else estimator
    inside = f"{name} ends in {type(last).__name__}, which has" if last is not estimator else f"{name} has"
    return ModelError(
        f"{inside} no predict_proba, and attacks need class probabilities. Calibrate it: put "
        f"sklearn.calibration.CalibratedClassifierCV around {type(last).__name__} and fit it again."
    )


def import_attribute(reference: str) -> Any:
    """What `python:package.module:attribute` names. The current folder can be imported from, as with `python -m`."""
    module_name, separator, path = reference.removeprefix(_SCHEME).partition(":")
    if not (module_name and separator and path):
        raise ModelError(
            f"{reference} is incomplete; expected python:package.module:attribute, for example python:my_model:predict."
        )
    check_vouched(reference)
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)  # it stays: the user's function may import its neighbours when it is first called
    try:
        with contextlib.redirect_stdout(sys.stderr):
            value: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as problem:
        if problem.name and (module_name == problem.name or module_name.startswith(problem.name + ".")):
            raise ModelError(
                f"There is no module {problem.name} for {reference} (looked in {here} and the installed packages)."
            ) from None
        raise ModelError(
            f"The module {module_name} of {reference} needs {problem.name}, which is not installed."
        ) from problem
    except (Exception, SystemExit) as problem:
        raise ModelError(
            f"The module {module_name} of {reference} cannot be imported ({type(problem).__name__}: {problem})."
        ) from problem
    for name in path.split("."):
        if not hasattr(value, name):
            public = sorted(attribute for attribute in getattr(value, "__dict__", ()) if not attribute.startswith("_"))
            raise ModelError(
                f"{module_name} has no {name} for {reference} (found: {', '.join(public[:12]) or 'nothing'})."
            )
        value = getattr(value, name)
    return value


def _stated_labels(function: Any, labels: Sequence[str] | None) -> tuple[str, ...] | None:
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


def identity_of(function: Any) -> list[bytes]:
    if isinstance(function, functools.partial):
        return [
            b"partial",
            repr((function.args, sorted(function.keywords.items()))).encode(),
            *identity_of(function.func),
        ]
    parts = [name_of(function).encode()]
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


def name_of(function: Any) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
