"""The page of the study."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from stockade.studies.html import fill_body, fill_page
from stockade.studies.masking import tables
from stockade.studies.masking.changed_sets import SETS
from stockade.studies.masking.headline import headline
from stockade.studies.masking.measures import GAMMA
from stockade.studies.masking.plan import Plan
from stockade.studies.masking.plots import attack_plot, choice_plot, rate_plot
from stockade.studies.masking.published import DIVERGENCE, SOURCE, published_table

_PACKAGE = "stockade.studies.masking"
Numbers = Mapping[str, Any]


def render_page(plan: Plan, numbers: Numbers) -> str:
    """The whole page."""
    return fill_page(_PACKAGE, _content(plan, numbers))


def render_body(plan: Plan, numbers: Numbers) -> str:
    """The page without its frame, as a notebook shows it."""
    return fill_body(_PACKAGE, _content(plan, numbers))


def _content(plan: Plan, numbers: Numbers) -> dict[str, Any]:
    return {
        "study": numbers,
        "headline": headline(numbers),
        "certificates": tables.certificate_table(numbers),
        "curve": tables.curve_table(numbers),
        "rate_plot": rate_plot(numbers),
        "published": published_table() if numbers["published"] else None,
        "source": SOURCE,
        "attacks": tables.attack_table(numbers),
        "attack_plot": attack_plot(numbers),
        "votes": tables.vote_table(numbers),
        "check": tables.check_table(numbers),
        "choice_plot": choice_plot(numbers),
        "divergence": f"{DIVERGENCE:.1e}",
        "sets": SETS,
        "risk": tables.risk_table(numbers),
        "too_short": max((one["risk"]["too_short"] for one in tables.masked(numbers)), default=0),
        "gamma": GAMMA,
        "manifest": json.dumps(dataclasses.asdict(plan), indent=2, ensure_ascii=False, default=str),
    }
