"""Saved scikit-learn pipelines as models: `sklearn:FILE`, read by skops, or by joblib or pickle where that is allowed.

A file of skops is data: what it would import is looked at before it is loaded, and refused unless skops knows it to be
safe. A file of joblib or pickle is a program in disguise. `allow_pickle` is the user's word for both.

A pipeline with `predict_proba` answers with that. One with `decision_function` alone, such as `LinearSVC`, answers with
the sigmoid (two classes) or softmax of its scores. Those rank texts and classes as the scores do, which is what attacks
follow, but are no calibrated probabilities.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stockade.core.errors import ModelError, missing_package
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from stockade.datasets.wording import first_line, listing
from stockade.models.answers import read_answer
from stockade.models.black_box import class_names, single_texts
from stockade.models.files import check_archive, file_fingerprint, model_file

if TYPE_CHECKING:
    from stockade.models.adapters import LoadOptions

SCHEME = "sklearn:"


class SklearnAdapter:
    """Reads `sklearn:FILE`."""

    def matches(self, model: object) -> bool:
        """True for references of the scheme."""
        return isinstance(model, str | Path) and str(model).startswith(SCHEME)

    def load(self, model: object, options: LoadOptions) -> SklearnClassifier:
        """The pipeline in the file as a classifier."""
        path = model_file(str(model).removeprefix(SCHEME), "a saved scikit-learn pipeline", "sklearn:model.skops")
        estimator = _of_skops(path, options.allow_pickle) if zipfile.is_zipfile(path) else _of_pickle(path, options)
        return SklearnClassifier(estimator, path, labels=options.labels, outputs=options.outputs)


class SklearnClassifier:
    """A fitted scikit-learn classifier that reads texts.

    Parameters
    ----------
    estimator : estimator
        A pipeline that begins with a vectorizer.
    path : Path
        The file it came from.
    labels : sequence of str, optional
        Names of the classes in the order of its `classes_`, in place of these.
    outputs : str, optional
        "labels" asks it through `predict`, as a model without scores.
    """

    deterministic = True

    def __init__(
        self, estimator: Any, path: Path, *, labels: Sequence[str] | None = None, outputs: str | None = None
    ) -> None:
        self.estimator, self._path = estimator, path
        self.label_only = outputs == "labels"
        self._method = "predict" if self.label_only else _scoring_method(estimator, path)
        self.calibrated = self._method != "decision_function"
        self._classes = _classes(estimator, path)
        self.labels = class_names(self._classes, labels, str(path))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """A row for each text; see the module for what it means where the estimator has no probabilities."""
        if not inputs:
            return np.zeros((0, len(self.labels)))
        answer = getattr(self.estimator, self._method)(single_texts(inputs, str(self._path)))
        if self.label_only:
            return read_answer(np.asarray(answer), len(inputs), self._classes, "labels")[0]
        outputs = "probabilities" if self.calibrated else "logits"
        return read_answer(answer, len(inputs), self.labels, outputs)[0]

    def fingerprint(self) -> str:
        """A hash of the file, and of how it is asked."""
        return file_fingerprint([self._path], self._method, self.labels)


def _scoring_method(estimator: Any, path: Path) -> str:
    for method in ("predict_proba", "decision_function"):
        if callable(getattr(estimator, method, None)):
            if method == "decision_function" and _one_versus_one(estimator):
                raise ModelError(
                    f"{path} compares its classes in pairs (decision_function_shape ovo), which is no score for each "
                    'class. Fit it with decision_function_shape="ovr", or use --outputs labels.'
                )
            return method
    if callable(getattr(estimator, "predict", None)):
        raise ModelError(
            f"{path} holds a {type(estimator).__name__} with neither predict_proba nor decision_function. If it only "
            "names classes, declare that with --outputs labels."
        )
    raise ModelError(f"{path} holds a {type(estimator).__name__}, expected a fitted scikit-learn classifier of texts.")


def _one_versus_one(estimator: Any) -> bool:
    last = estimator.steps[-1][1] if getattr(estimator, "steps", None) else estimator
    return getattr(last, "decision_function_shape", None) == "ovo" and len(getattr(last, "classes_", ())) > 2


def _classes(estimator: Any, path: Path) -> tuple[str, ...]:
    try:
        classes = tuple(str(name) for name in estimator.classes_)
    except Exception:
        raise ModelError(
            f"{path} holds a {type(estimator).__name__} without classes_: it is no classifier, or was not fitted."
        ) from None
    return classes


def _of_skops(path: Path, allow_pickle: bool) -> Any:
    check_archive(path)
    try:
        from skops.io import get_untrusted_types, load
    except ImportError:
        raise missing_package("skops", "sklearn", path) from None
    try:
        untrusted = sorted(get_untrusted_types(file=path))
        if untrusted and not allow_pickle:
            raise ModelError(
                f"{path} would import types that skops does not know to be safe ({listing(untrusted)}), and such a "
                "type can run code. If you trust its maker, allow it with allow_pickle=True / --allow-pickle."
            )
        return load(path, trusted=untrusted)
    except ModelError:
        raise
    except Exception as error:  # whatever a file that was not written by skops makes it raise
        raise ModelError(f"{path} cannot be read as a file of skops ({first_line(error, 200)}).") from error


def _of_pickle(path: Path, options: LoadOptions) -> Any:
    if not options.allow_pickle:
        raise ModelError(
            f"{path} is no file of skops; if joblib or pickle wrote it, opening it can run any code of whoever made "
            "it, with your rights. If you trust its maker, allow it with allow_pickle=True / --allow-pickle, or save "
            "the model with skops.io.dump."
        )
    try:
        import joblib
    except ImportError:
        raise missing_package("scikit-learn", "sklearn", path) from None
    try:
        return joblib.load(path)
    except ModuleNotFoundError as error:
        raise ModelError(f"{path} needs the package {error.name}, which is not installed.") from error
    except (pickle.UnpicklingError, AttributeError, EOFError, LookupError, OSError, TypeError, ValueError) as error:
        raise ModelError(f"{path} cannot be opened by joblib ({first_line(error, 200)}).") from error
