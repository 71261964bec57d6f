"""References to ensembles: several models in one name.

ensemble:A,B,C                            any model references: folders, builtin:NAME, python:MODULE:NAME
ensemble:A,B:temperatures=1.5,0.8         the logits of each member are divided by its temperature first
ensemble:"a folder, with a comma",B       what holds a comma or a quote stands in double quotes
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stockade.core.errors import ModelError

SCHEME = "ensemble:"
_TEMPERATURES = ":temperatures="
_MEMBER = re.compile(r'\s*("(?:[^"]|"")*"|[^",]*)\s*(?:,|$)')
_NEEDS_QUOTES = re.compile(rf'[",]|^\s|\s$|^{SCHEME}|{_TEMPERATURES}')


@dataclass(frozen=True, slots=True)
class EnsembleReference:
    """What a reference to an ensemble names.

    Parameters
    ----------
    members
        The references of the members, in order.
    temperatures
        One for each member; None without.
    """

    members: tuple[str, ...]
    temperatures: tuple[float, ...] | None = None

    @classmethod
    def parse(cls, reference: str) -> EnsembleReference:
        """Read `ensemble:A,B,…`; what cannot be one is a `ModelError` of one sentence."""
        written = reference.removeprefix(SCHEME)
        before, separator, after = written.rpartition(_TEMPERATURES)
        if not separator or '"' in after:  # within quotes it belongs to the name of a member
            return cls(tuple(_members(reference, written)))
        try:
            temperatures = tuple(float(number) for number in after.split(","))
        except ValueError:
            raise ModelError(
                f'The temperatures of {reference} are "{after}", expected a number for each member, as in '
                f"{SCHEME}A,B{_TEMPERATURES}1.5,0.8."
            ) from None
        return cls(tuple(_members(reference, before)), temperatures)

    def __str__(self) -> str:
        quoted = [
            '"' + member.replace('"', '""') + '"' if _NEEDS_QUOTES.search(member) else member for member in self.members
        ]
        heat = "" if self.temperatures is None else _TEMPERATURES + ",".join(map(repr, self.temperatures))
        return f"{SCHEME}{','.join(quoted)}{heat}"


def single_models(reference: str) -> tuple[str, ...]:
    """The references of all single models behind a reference: those of an ensemble, or the reference itself.

    Parameters
    ----------
    reference
        Any model reference; ensembles inside ensembles are looked into as well.
    """
    if not reference.startswith(SCHEME):
        return (reference,)
    return tuple(model for member in EnsembleReference.parse(reference).members for model in single_models(member))


def _members(reference: str, written: str) -> Iterator[str]:
    at, last = 0, False
    while not last:
        match = _MEMBER.match(written, at)
        if match is None:
            raise ModelError(
                f"{reference} has a quote in the middle of a member, or one that does not end: put the whole member "
                "into double quotes."
            )
        member = match[1].strip()
        if member.startswith(SCHEME):
            raise ModelError(
                f'An ensemble inside an ensemble stands in double quotes, as in {SCHEME}"{SCHEME}A,B",C (found: '
                f"{reference})."
            )
        if member.startswith('"'):
            member = member[1:-1].replace('""', '"')
        if not member.strip():
            raise ModelError(
                f"{reference} has an empty member, expected model references separated by commas, as in {SCHEME}A,B."
            )
        yield member
        at, last = match.end(), not match[0].endswith(",")
