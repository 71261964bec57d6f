"""The numbers of a run of certificates: how many texts are certified at each radius, medians, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from stockade.certificates.certificate import Certificate
from stockade.certificates.documents import threat_in_words
from stockade.certificates.medians import certified_curve, curve_band, median_bound, median_rate
from stockade.core.statistics import wilson

SCHEMA = 1
BAND = 0.05
"""The band holds at all radii at once but for this chance."""


def summarise_method(
    certificates: Sequence[Certificate], method: Mapping[str, Any], seconds: float, rows: int, labelled: bool
) -> dict[str, Any]:
    """One method's summary. A text counts at radius d if its true class is certified there, or any class where the data
    have no labels; texts that ended in an error leave n. An abstention is neither right nor wrong: `accuracy` counts it
    as not right.
    """
    known = [one for one in certificates if one.status != "error"]
    statuses = Counter(one.status for one in certificates)
    radii = [one.radius if one.correct or not labelled else None for one in known]
    words = [max(1, one.words) for one in known]
    certified = statuses["certified"] + statuses["claimed"]
    right = sum(one.correct for one in known)
    curve = zip(certified_curve(radii), curve_band(radii, BAND), strict=True) if radii else ()
    return {
        "sound": method["sound"],
        "threat": threat_in_words(method, any(one.premise is not None for one in certificates)),
        "alpha": method["options"].get("alpha"),
        "n": len(known),
        "errors": statuses["error"],
        "abstained": statuses["abstained"],
        "certified": certified,
        "accuracy": wilson(right, len(known)) if labelled else None,
        "wrong": certified - right if labelled else None,
        "curve": [
            {"radius": radius, "share": share, "low": low, "high": high}
            for radius, (share, (low, high)) in enumerate(curve)
        ],
        "median_radius": median_bound(radii) if radii else None,
        "median_rate": median_rate(radii, words) if radii else None,
        "mean_radius": sum(radius or 0 for radius in radii) / len(radii) if radii else None,
        "mean_copies": sum(one.copies for one in known) / len(known) if known else None,
        "truncated": sum(one.truncated for one in known),
        "seconds": round(seconds, 3),
        "model_rows": rows,
    }
