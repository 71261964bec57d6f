"""Reads what a user's function answered, and says in one sentence what is wrong with it.

Understood: arrays, nested lists and tensors of shape [n, C]; n numbers, read as the probability
of the second of two classes; and lists of `{"label": …, "score": …}` as Hugging Face pipelines give them with
`top_k=None`. A row with a NaN or an infinite number becomes a row of NaN: that text failed, the others did
not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError
from stockade.core.protocols import Probabilities

_TOLERANCE = 1e-3


def read_answer(
    answer: Any, texts: int, labels: Sequence[str] | None, outputs: str
) -> tuple[Probabilities, tuple[str, ...]]:
    """The answer as checked probabilities of shape [texts, classes], and the names of its columns.

    Parameters
    ----------
    answer : object
        What the function returned.
    texts : int
        How many texts it was called with.
    labels : sequence of str, optional
        Names of the columns, if they are known before.
    outputs : {"probabilities", "logits", "labels"}
        What the numbers are, or that the answer names a class for each text.
    """
    names = () if labels is None else tuple(labels)
    if outputs == "labels":
        return one_hot(answer, texts, names), names
    if _is_list_of_dicts(answer):
        values, names = _from_dicts(answer, labels)
    else:
        values = _numbers(answer)
    if values.ndim == 2 and values.shape[1] == 1:
        raise ModelError(
            f"The model answered {texts} texts with shape {values.shape}: one number in each row, and nothing says of "
            "which class. Answer with a column for each class; if the number is the probability of the second of two "
            f"classes, answer with shape ({texts},) instead."
        )
    if values.ndim == 1:
        _check_rows(len(values), texts, f"{len(values)} numbers")
        values = _two_columns(values, outputs)
    if values.ndim != 2:
        raise ModelError(
            f"The model answered {texts} texts with an array of shape {values.shape}; expected ({texts}, classes)."
        )
    _check_rows(len(values), texts, f"{len(values)} rows")
    if texts and values.shape[1] < 2:
        raise ModelError(
            "The model answered with rows of no numbers; expected one probability per class, of two classes or more."
        )
    names = names or tuple(str(number) for number in range(values.shape[1]))
    if texts and values.shape[1] != len(names):
        raise ModelError(
            f"The model answered with {values.shape[1]} columns but has {len(names)} classes "
            f"({', '.join(names)}). It must answer with one probability per class, in the order of the "
            "labels."
        )
    broken: NDArray[np.bool_] = np.logical_not(np.isfinite(values).all(axis=1))
    values = np.where(broken[:, None], np.nan, values)
    if outputs == "logits":
        return softmax(values), names
    return _checked(values, broken), names


def one_hot(answer: Any, texts: int, labels: Sequence[str]) -> Probabilities:
    """Rows with 1 for the class that a model names for each text; NaN where it names none.

    Parameters
    ----------
    answer : object
        A class for each text: its name, or its index where no class is called like the number.
    texts : int
        How many texts the model was given.
    labels : sequence of str
        The classes.
    """
    if not labels:
        raise ModelError("A model that only names classes does not say which there are: name them with --labels.")
    if isinstance(answer, str | bytes) or not isinstance(answer, Sequence | np.ndarray):
        raise ModelError(
            f"The model answered with a {type(answer).__name__}; expected a list with the name of a class per text."
        )
    _check_rows(len(answer), texts, f"{len(answer)} labels")
    rows = np.zeros((texts, len(labels)))
    for row, item in zip(rows, answer, strict=True):
        if item is None:
            row[:] = np.nan
        else:
            row[_class_index(item, labels)] = 1.0
    return rows


def _class_index(item: Any, labels: Sequence[str]) -> int:
    name = str(item)
    if name in labels:
        return labels.index(name)
    if isinstance(item, int | np.integer | np.bool_) and 0 <= int(item) < len(labels):
        return int(item)
    raise ModelError(f"The model answered {name[:60]!r}, which is none of its classes ({', '.join(labels)}).")


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probabilities of a row of logits each."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _numbers(answer: Any) -> NDArray[np.float64]:
    if answer is None:
        raise ModelError(
            "The model answered None; expected an array of probabilities of shape (texts, classes). Is a "
            "return missing?"
        )
    if isinstance(answer, Iterator):
        raise ModelError(
            f"The model answered with a {type(answer).__name__}; expected a list or an array: put list(...) around it."
        )
    if callable(getattr(answer, "detach", None)):
        answer = answer.detach().cpu().double().numpy()
    if isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        answer = [
            row.detach().cpu().double().numpy() if callable(getattr(row, "detach", None)) else row for row in answer
        ]
    if _names_classes(answer):
        raise ModelError(
            f"The model answered with names of classes (found: {str(next(iter(answer)))[:60]!r}), expected a row of "
            "class probabilities for each text, as predict_proba gives them. If it knows none, declare that with "
            'outputs="labels" / --outputs labels: it is then attacked by its labels alone.'
        )
    try:
        values = np.asarray(answer)
        if values.dtype.kind not in "fiub":
            raise ValueError(f"found {values.dtype.name} values" if values.dtype.kind in "US" else "found objects")
        return values.astype(np.float64)
    except (ValueError, TypeError) as problem:
        raise ModelError(
            f"The model answered with a {type(answer).__name__} that is no table of numbers "
            f"({str(problem)[:120]}); expected one row of class probabilities per text."
        ) from None


def _names_classes(answer: Any) -> bool:
    """Whether the answer is a string for each text, the class that the model gives it."""
    if isinstance(answer, np.ndarray):
        return bool(answer.size) and isinstance(answer.flat[0], str | bytes)
    if isinstance(answer, str | bytes) or not isinstance(answer, Sequence):
        return False
    return bool(answer) and isinstance(answer[0], str | bytes)


def _two_columns(values: NDArray[np.float64], outputs: str) -> NDArray[np.float64]:
    """One number per text: the second class's probability, or its logit against zero."""
    if outputs == "logits":
        return np.stack([np.zeros_like(values), values], axis=1)
    finite = values[np.isfinite(values)]
    if finite.size and (finite.min() < 0.0 or finite.max() > 1.0):
        raise ModelError(
            f"The model answered with one number per text, from {finite.min():.3g} to {finite.max():.3g}; "
            f"expected the probability of the second class, in [0, 1]. {_LOGITS_HINT} If they are numbers of "
            "classes, answer with a row for each text instead: 1 for that class and 0 for the others."
        )
    return np.stack([1.0 - values, values], axis=1)


_LOGITS_HINT = 'If these are logits, declare them with outputs="logits" / --outputs logits.'


def _checked(values: NDArray[np.float64], broken: NDArray[np.bool_]) -> Probabilities:
    """Rows that are probabilities up to rounding, made to sum to one exactly."""
    sums = values.sum(axis=1)
    wrong = ~broken & ((np.abs(sums - 1.0) > _TOLERANCE) | (values < -_TOLERANCE).any(axis=1))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        shown = ", ".join(f"{value:.3g}" for value in values[row][:5])
        looks = (
            'these look like logits; declare them with outputs="logits" / --outputs logits'
            if (values[~broken] < 0).any() or (values[~broken] > 1).any()
            else "expected probabilities that sum to 1"
        )
        raise ModelError(f"The model's rows sum to {sums[row]:.3g} (row {row}: {shown}): {looks}.")
    clipped = np.clip(values, 0.0, 1.0)
    total: Probabilities = clipped / clipped.sum(axis=1, keepdims=True)
    return total


def _check_rows(rows: int, texts: int, what: str) -> None:
    if rows != texts:
        raise ModelError(
            f"The model was given {texts} texts and answered with {what}; expected one row per text, in order."
        )


def _is_list_of_dicts(answer: Any) -> bool:
    if not isinstance(answer, list | tuple) or not answer:
        return False
    first = answer[0]
    return isinstance(first, Mapping) or (
        isinstance(first, list | tuple) and bool(first) and isinstance(first[0], Mapping)
    )


def _from_dicts(answer: Sequence[Any], labels: Sequence[str] | None) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    if isinstance(answer[0], Mapping):
        raise ModelError(
            "The model answered with the best label only; expected the scores of all labels: call the "
            "pipeline with top_k=None."
        )
    try:
        rows = [{str(item["label"]): float(item["score"]) for item in row} for row in answer]
    except (KeyError, TypeError, ValueError):
        raise ModelError(
            'The model answered with dictionaries that are not {"label": name, "score": number}.'
        ) from None
    names = tuple(labels) if labels is not None else tuple(sorted(rows[0]))
    for row in rows:
        if row.keys() != set(names):
            raise ModelError(
                f"The model answered with the labels {', '.join(sorted(row))}; expected {', '.join(names)}."
            )
    return np.array([[row[name] for name in names] for row in rows], dtype=np.float64), names
