"""Temperatures that make the logits of several models comparable (Guo et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stockade.core.protocols import Probabilities
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.models.adapters import LoadOptions, load_with
from stockade.models.ensemble import aligned_columns, name_of
from stockade.models.mean_logits import predict_logits

COLDEST, HOTTEST = 0.05, 20.0


def calibrate_temperatures(
    members: Sequence[object],
    data: object,
    *,
    limit: int | None = None,
    seed: int = 0,
    label_map: Mapping[str, str] | None = None,
    options: LoadOptions | None = None,
) -> tuple[float, ...]:
    """For each model the temperature at which its probabilities fit labelled data best.

    The mean negative log-likelihood of the labels is minimised over temperatures from 0.05 to 20. A model that gets
    every text right ends at the lower bound: it could not be too sure of itself on these data.

    Parameters
    ----------
    members : sequence of str, Path or object
        The models, as `st.ensemble` takes them.
    data : str, Path or object
        Labelled data that no member was trained on, as `st.load_data` takes them.
    limit, seed : int, optional
        Take a seeded sample of so many rows; all rows by default.
    label_map : mapping, optional
        The models' class for a label of the data, where their names differ.
    options : LoadOptions, optional
        How the models are loaded.

    Returns
    -------
    tuple of float
        For `st.ensemble(members, temperatures)`.
    """
    classifiers = [load_with(member, options or LoadOptions()) for member in members]
    every_columns = aligned_columns(classifiers, [name_of(member) for member in members])
    labels = classifiers[0].labels
    examples = list(prepare_examples(load_data(data), labels, limit=limit, seed=seed, label_map=label_map))
    inputs = [example.text.input for example in examples]
    true = np.array([example.label for example in examples])
    return tuple(
        _temperature(predict_logits(classifier, inputs)[:, columns], true)
        for classifier, columns in zip(classifiers, every_columns, strict=True)
    )


def _temperature(logits: Probabilities, true: NDArray[np.int64]) -> float:
    from scipy.optimize import minimize_scalar

    def negative_log_likelihood(log_temperature: float) -> float:
        rows = logits / math.exp(log_temperature)
        return float((np.logaddexp.reduce(rows, axis=1) - rows[np.arange(len(true)), true]).mean())

    # In the logarithm, twice as hot is as far away as half as hot.
    least = minimize_scalar(negative_log_likelihood, bounds=(math.log(COLDEST), math.log(HOTTEST)), method="bounded")
    return round(math.exp(float(least.x)), 4)
