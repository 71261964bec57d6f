"""What is searched where no range was named: the options that make a defense stronger or weaker, each in its range.

Left out is what a search should not decide: the attacker's knowledge (`draws`: fixed choices can be learnt by asking),
what a text may look like (`stop_words`, `mask`), keys and files, options of the training, and what only costs time:
with more copies of a text a smoothed answer is less noisy and never weaker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from stockade.defenses.combine import Combination
from stockade.tuning.space import Choices, Numbers, Range, Space, option_types

_SHARES = Numbers(0.05, 0.95)
_COMBINATIONS = Choices(get_args(Combination))
_SAMPLES = Numbers(3, 14, whole=True)
_TOKENS = Numbers(1, 19, whole=True)

RANGES: Mapping[str, Space] = {
    "deletion": {"kept_chance": _SHARES, "combine": _COMBINATIONS},
    "five": {
        "deviation": Numbers(0.1, 10, logarithmic=True),
        "samples": _SAMPLES,
        "tokens": _TOKENS,
        "combine": _COMBINATIONS,
    },
    "fuse": {
        "perturb_words": Numbers(1, 10, whole=True),
        "candidates": Numbers(5, 20, whole=True),
        "similarity": Choices(("filter", "rank")),
        "multiplier": Numbers(3, 20, whole=True),
        "total_alternatives": Numbers(3, 15, whole=True),
        "combine": _COMBINATIONS,
    },
    "hull": {
        "count": Numbers(2, 32, whole=True, logarithmic=True),
        "min_cosine": Numbers(0.5, 0.9),
        "concentration": Numbers(0.1, 10, logarithmic=True),
        "combine": _COMBINATIONS,
    },
    "mask-top": {"words": _TOKENS, "copies": _SAMPLES, "combine": _COMBINATIONS},
    "partition": {
        "groups": Numbers(2, 40, whole=True, logarithmic=True),
        "layout": Choices(("blocks", "interleaved")),
        "combine": Choices(("vote", "probability")),
    },
    "ranmask": {"rate": _SHARES, "combine": _COMBINATIONS},
    "route": {"combine": _COMBINATIONS},
    "safer": {
        "min_cosine": Numbers(0.6, 0.95),
        "maximum": Numbers(25, 400, whole=True, logarithmic=True),
        "combine": _COMBINATIONS,
    },
}
"""By defense. Those of FIVE are what Mein et al. 2020 searched; mask-top is compared with it, so it has the same.
Those of FuSE lie around what they found on both of their data sets.
"""
_NEVER_GUESSED = frozenset({"draws", "stop_words", "seed"})
_WIDER = 4
"""A whole number is searched from a quarter of its default to four times it."""


def default_ranges(name: str, kind: type, fixed: Mapping[str, Any]) -> dict[str, Range]:
    """Ranges for the options of a defense that are not fixed; guessed from their types for one that is not listed."""
    ranges = RANGES[name] if name in RANGES else guessed_ranges(kind)
    return {option: one for option, one in ranges.items() if option not in fixed}


def guessed_ranges(kind: type) -> dict[str, Range]:
    """The values of a list, shares from 5 to 95 %, whole numbers around the default. Other options (texts, files, what
    may be None) stay as they are.
    """
    types = option_types(kind)
    guessed = {
        field.name: _guess(types[field.name], field.default)
        for field in dataclasses.fields(kind)
        if field.name not in _NEVER_GUESSED
    }
    return {name: one for name, one in guessed.items() if one is not None}


def _guess(declared: Any, default: Any) -> Range | None:
    if get_origin(declared) is Literal:
        return Choices(get_args(declared))
    if declared is bool:
        return Choices((False, True))
    if declared is float and isinstance(default, float) and 0 < default < 1:
        return _SHARES
    if declared is int and isinstance(default, int) and default >= 1:
        return Numbers(max(1, default // _WIDER), default * _WIDER, whole=True, logarithmic=True)
    return None
