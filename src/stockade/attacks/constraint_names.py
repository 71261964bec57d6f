"""Constraints as a user writes them: `same-pos & similarity(cosine, 0.9, window=15) & edit-distance(30)`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from stockade.attacks.constraints import Constraint, KeepStopWords, MaxChanged, MaxEditDistance, SamePos, conjunction
from stockade.attacks.similarity import Similarity
from stockade.core.errors import OptionError, unknown_name
from stockade.core.options import validated

CONSTRAINTS: Mapping[str, type[Any]] = {
    kind.name: kind for kind in (KeepStopWords, MaxChanged, MaxEditDistance, SamePos, Similarity)
}
_ONE = re.compile(r"\s*([A-Za-z-]+)\s*(?:\(([^()]*)\))?\s*")


def parse_constraint(written: str) -> Constraint:
    """The constraint of an expression; `str` of a constraint gives the expression back."""
    found = conjunction(*(_parse_one(part, written) for part in written.split("&")))
    assert found is not None
    return found


def _parse_one(part: str, written: str) -> Constraint:
    match = _ONE.fullmatch(part)
    if match is None:
        raise OptionError(
            f'"{part.strip()}" in the constraint "{written}" is not of the form name(value, option=value), '
            "such as similarity(cosine, 0.9)."
        )
    name, arguments = match.group(1), match.group(2) or ""
    kind = CONSTRAINTS.get(name)
    if kind is None:
        raise unknown_name("constraint", name, CONSTRAINTS)
    options = validated(name, kind, _arguments(name, kind, arguments))
    required = [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
    missing = [option for option in required if option not in options]
    if missing:
        raise OptionError(f"The constraint {name} needs {' and '.join(missing)}: {name}({', '.join(required)}).")
    constraint: Constraint = kind(**options)
    return constraint


def _arguments(name: str, kind: Any, written: str) -> dict[str, str]:
    order = [field.name for field in dataclasses.fields(kind)]
    given: dict[str, str] = {}
    for place, item in enumerate(filter(None, (item.strip() for item in written.split(",")))):
        option, equals, value = item.partition("=")
        if not equals:
            if place >= len(order):
                raise OptionError(f"The constraint {name} takes at most {len(order)} values ({', '.join(order)}).")
            option, value = order[place], item
        given[option.strip().replace("-", "_")] = value.strip()
    return given
