"""What a search may choose from: for each option of a defense a range of numbers or a list of values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, get_type_hints

from stockade.core.errors import OptionError, unknown_name
from stockade.core.options import validated

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
        return (round(self.low), round(self.high)) if self.whole else (self.low, self.high)

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}{LOGARITHMIC if self.logarithmic else ''}"


@dataclass(frozen=True, slots=True)
class Choices:
    """A few values."""

    values: tuple[Value, ...]

    def draw(self, rng: Random) -> Value:
        return rng.choice(self.values)

    @property
    def ends(self) -> tuple[Value, ...]:
        return self.values

    def __str__(self) -> str:
        return "|".join(map(str, self.values))


Range = Numbers | Choices
Space = Mapping[str, Range]


def draw_options(space: Space, rng: Random) -> dict[str, Value]:
    """A value for every option, in the order of their names, so that the order they were given in does not matter."""
    return {name: space[name].draw(rng) for name in sorted(space)}


def read_ranges(written: Sequence[str], owner: str, kind: type) -> dict[str, Range]:
    """Ranges as on the command line: `rate=0.1..0.9`, `deviation=0.1..10 log`, `combine=logit|vote`."""
    types, found = option_types(kind), dict[str, Range]()
    for item in written:
        name, equals, values = item.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values:
            raise OptionError(f'"{item}" is no range: write it as --range rate=0.1..0.9 or --range combine=logit|vote.')
        if name not in types:
            raise unknown_name(f"option of {owner}", name, types)
        found[name] = _read_range(item, owner, kind, name, values)
    return found


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


def option_types(kind: type) -> dict[str, Any]:
    """The type of every option of a defense."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
