"""What a search may choose from: for each option of a defense a range of numbers or a list of values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

from stockade.core.errors import OptionError, unknown_name
from stockade.core.options import validated
from stockade.defenses.combine import Combination

Value = float | int | str | bool | None
LOGARITHMIC = " log"


@dataclass(frozen=True, slots=True)
class Numbers:
    """All numbers from `low` to `high`; `whole` ones only, or on a logarithmic scale."""

    low: float
    high: float
    whole: bool = False
    logarithmic: bool = False

    def draw(self, rng: Random) -> Value:
        """A number of the range, with four digits."""
        low, high = (math.log(self.low), math.log(self.high)) if self.logarithmic else (self.low, self.high)
        if self.whole and not self.logarithmic:
            return rng.randint(int(self.low), int(self.high))
        drawn = rng.uniform(low, high)
        value = math.exp(drawn) if self.logarithmic else drawn
        return round(min(self.high, max(self.low, value))) if self.whole else self.short(value)

    def short(self, value: float) -> float:
        """A number of the range with four digits, or one of its ends."""
        return min(self.high, max(self.low, float(f"{value:.4g}")))

    @property
    def ends(self) -> tuple[Value, ...]:
        """The smallest and the largest value."""
        return (round(self.low), round(self.high)) if self.whole else (self.low, self.high)

    def __str__(self) -> str:
        return f"{_plain(self.low)}..{_plain(self.high)}{LOGARITHMIC if self.logarithmic else ''}"


@dataclass(frozen=True, slots=True)
class Choices:
    """A few values."""

    values: tuple[Value, ...]

    def draw(self, rng: Random) -> Value:
        """One of the values."""
        return rng.choice(self.values)

    @property
    def ends(self) -> tuple[Value, ...]:
        """All of them."""
        return self.values

    def __str__(self) -> str:
        return "|".join(map(str, self.values))


Range = Numbers | Choices
Space = Mapping[str, Range]
_SHARES = Numbers(0.05, 0.95)
_COMBINATIONS = Choices(get_args(Combination))
_SAMPLES = Numbers(3, 14, whole=True)
_TOKENS = Numbers(1, 19, whole=True)

RANGES: Mapping[str, Space] = {
    "deletion": {"kept_chance": _SHARES, "combine": _COMBINATIONS},
    "fact": {
        "perturb_words": Numbers(4, 25, whole=True),
        "multiplier": Numbers(5, 15, whole=True),
        "total_alternatives": Numbers(4, 7, whole=True),
    },
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
"""What is searched where no range was named: the options that make a defense stronger or weaker, each in its range.

Those of FIVE and FACT are what Mein et al. 2020 searched (of FACT, on both of their data sets together); mask-top is
compared with FIVE, so it has the same. Those of FuSE lie around what they found on both of their data sets. Left out is
what a search should not decide: the attacker's knowledge (`draws`: fixed choices can be learnt by asking), what a text
may look like (`stop_words`, `mask`), keys and files, options of the training, and what only costs time: with more
copies of a text a smoothed answer is less noisy and never weaker.
"""
_NEVER_GUESSED = frozenset({"draws", "stop_words", "seed"})
_WIDER = 4
"""A whole number is searched from a quarter of its default to four times it."""


def draw_options(space: Space, rng: Random) -> dict[str, Value]:
    """A value for every option, in the order of their names, so that the order of the ranges does not matter."""
    return {name: space[name].draw(rng) for name in sorted(space)}


def read_ranges(written: Sequence[str], owner: str, kind: type) -> dict[str, Range]:
    """Ranges as on the command line: `rate=0.1..0.9`, `deviation=0.1..10 log`, `combine=logit|vote`.

    Parameters
    ----------
    written
        One for each option.
    owner, kind
        The defense, by name and class.
    """
    types, ranges = option_types(kind), dict[str, Range]()
    for item in written:
        name, equals, values = item.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values:
            raise OptionError(f'"{item}" is no range: write it as --range rate=0.1..0.9 or --range combine=logit|vote.')
        if name not in types:
            raise unknown_name(f"option of {owner}", name, types)
        ranges[name] = _read_range(item, owner, kind, name, values)
    return ranges


def _read_range(item: str, owner: str, kind: type, name: str, values: str) -> Range:
    low, dots, high = values.partition("..")
    logarithmic = bool(dots) and high.endswith(LOGARITHMIC)
    high = high.removesuffix(LOGARITHMIC) if logarithmic else high
    if not dots:
        checked = [validated(owner, kind, {name: value.strip()})[name] for value in values.split("|")]
        return Choices(tuple(checked))
    ends = [validated(owner, kind, {name: end.strip()})[name] for end in (low, high)]
    if any(isinstance(end, bool) or not isinstance(end, int | float) for end in ends):
        raise OptionError(f"{name} of {owner} is no number: list its values, as in --range {name}=A|B.")
    if not ends[0] < ends[1]:
        raise OptionError(f"The range {item} is empty: its lower end comes first, as in --range rate=0.1..0.9.")
    if logarithmic and ends[0] <= 0:
        raise OptionError(f"The range {item} is logarithmic: its lower end must be above 0.")
    whole = all(isinstance(end, int) for end in ends)
    return Numbers(float(ends[0]), float(ends[1]), whole, logarithmic)


def default_ranges(name: str, kind: type, fixed: Mapping[str, Value]) -> dict[str, Range]:
    """Ranges for the options of a defense that are not fixed; guessed from their types for one that is not listed."""
    ranges = RANGES[name] if name in RANGES else guessed_ranges(kind)
    return {option: values for option, values in ranges.items() if option not in fixed}


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
    return {name: values for name, values in guessed.items() if values is not None}


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


def option_types(kind: type) -> dict[str, Any]:
    """The type of every option of a defense."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _plain(number: float) -> str:
    """A number as people write it, if that says all of it."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)
