"""What human raters say of the adversarial texts (the paper's Tables 2 and 3).

Readability of a method is the number of times it was preferred, divided by that of the method preferred most (100
against 40 votes: 1.0 and 0.4). Human accuracy is the share of given labels that are the true ones. Intervals are 95 %
bootstrap intervals over texts, because the raters of one text are not independent.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import OptionError, RunError
from stockade.core.files import write_json
from stockade.studies.attention.filled_sheets import Rating, read_filled
from stockade.studies.attention.rating_sheet import read_key

FILE_NAME = "ratings.json"
_RESAMPLES = 2_000


def keep_ratings(folder: Path, sheets: Sequence[Path]) -> None:
    """Read filled sheets, one per rater, into the study's folder; they take the place of those there."""
    if not sheets:
        return
    names = [sheet.stem for sheet in sheets]
    if len(set(names)) < len(names):
        raise OptionError(f"Two rating sheets have the same name ({', '.join(names)}): call each after its rater.")
    key = read_key(folder)
    raters = {
        sheet.stem: {one: dataclasses.asdict(rating) for one, rating in read_filled(sheet, key).items()}
        for sheet in sheets
    }
    write_json(folder / FILE_NAME, {"created": key["created"], "raters": raters})


def score_ratings(folder: Path) -> dict[str, Any] | None:
    """Both scores for every comparison; None before anybody has rated."""
    path = folder / FILE_NAME
    if not path.exists():
        return None
    try:
        raters = json.loads(path.read_text(encoding="utf-8"))["raters"]
        given = {name: {one: Rating(**rating) for one, rating in rows.items()} for name, rows in raters.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read ({error}). Give the sheets again with --ratings.") from None
    key = read_key(folder)
    unknown = [one for rows in given.values() for one in rows if one not in key["items"]]
    if unknown:
        raise RunError(f"{path} has ratings of another sheet ({unknown[0]}). Give the sheets again with --ratings.")
    return {
        "raters": list(given),
        "comparisons": [_compare(methods, key["items"], given) for methods in key["comparisons"]],
    }


def _compare(
    methods: Sequence[str], items: Mapping[str, Mapping[str, Any]], given: Mapping[str, Mapping[str, Rating]]
) -> dict[str, Any]:
    chosen = {one: item for one, item in items.items() if item["comparison"] == list(methods)}
    groups = list(dict.fromkeys(item["group"] for item in chosen.values()))
    votes, right = np.zeros((len(groups), len(methods))), np.zeros((len(groups), len(methods)))
    for one, item in chosen.items():
        place = groups.index(item["group"]), methods.index(item["method"])
        votes[place] = sum(rows[one].preferred for rows in given.values())
        right[place] = sum(rows[one].label == item["gold"] for rows in given.values())
    return {"texts": len(groups), "methods": score_methods(methods, votes, right, len(given))}


def score_methods(
    methods: Sequence[str], votes: NDArray[np.float64], right: NDArray[np.float64], raters: int, seed: int = 0
) -> dict[str, Any]:
    """Scores from counts, a row per text and a column per method."""
    picks = np.random.default_rng(seed).integers(len(votes), size=(_RESAMPLES, len(votes))) if len(votes) > 1 else None
    readable, accurate = _readability(votes.sum(0)), right.sum(0) / max(1, raters * len(right))
    spread = None if picks is None else np.array([_readability(votes[pick].sum(0)) for pick in picks])
    shares = None if picks is None else right[picks].sum(1) / (raters * len(right))
    return {
        method: {
            "votes": int(votes[:, at].sum()),
            "readability": _interval(readable[at], None if spread is None else spread[:, at]),
            "accuracy": _interval(accurate[at], None if shares is None else shares[:, at]),
        }
        for at, method in enumerate(methods)
    }


def _readability(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = votes / max(1.0, float(votes.max()))
    return found


def _interval(value: float, draws: NDArray[np.float64] | None) -> dict[str, float | None]:
    if draws is None:
        return {"value": round(float(value), 6), "low": None, "high": None}
    low, high = np.percentile(draws, [2.5, 97.5]).tolist()
    return {"value": round(float(value), 6), "low": round(low, 6), "high": round(high, 6)}
