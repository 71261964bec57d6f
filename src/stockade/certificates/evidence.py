"""What a certificate rests on: the votes of copies, and how the copies were drawn. The radius follows by arithmetic.

Each kind of evidence computes its radius, explains itself in short sentences, and goes to a file and back, so that
whoever holds a certificate can compute it again without the model. Evidence and smoothing distributions that belong to
one method live in that method's file and register here under the name that files know them by.
"""

from __future__ import annotations

import base64
import importlib
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, Self, TypeVar

from stockade.certificates.bounds import Number, Rule, insertions_radius, largest_radius, threshold
from stockade.certificates.sequential import Limits, Means, Plan, Tally, margin_limits
from stockade.core.errors import RunError

Losses = tuple[Fraction, ...] | tuple[float, ...]
"""For d = 0, 1, …: the largest share of the copies of a text that d changes can alter."""
Class = TypeVar("Class", bound=type)
Kind = TypeVar("Kind")
_SCALE = 10_000
_TALLIES: Mapping[str, type[Tally | Means]] = {"Tally": Tally, "Means": Means}


class SmoothingDistribution(Protocol):
    """How copies of a text are drawn at random, as far as a certificate needs to know: a frozen dataclass."""

    def losses(self) -> Losses:
        """For d = 0, 1, …: the largest share of the copies that d changes can alter."""
        ...

    def insertion_leads(self) -> tuple[Number, ...]:
        """For d = 0, 1, … insertions and no other change: the lead to exceed. Empty where nothing is known of them."""
        ...

    def difference(self, recorded: SmoothingDistribution) -> str:
        """In what a recorded distribution is not this one, in a sentence."""
        ...


class Evidence(Protocol):
    """What one certificate rests on."""

    @property
    def chosen(self) -> int:
        """The class that the certificate is about."""
        ...

    @property
    def classes(self) -> int:
        """How many classes there are."""
        ...

    @property
    def copies(self) -> int:
        """How many copies were counted."""
        ...

    @property
    def alpha(self) -> float | None:
        """The probability that the certificate may be wrong; None if nothing is left to chance."""
        ...

    def radius(self) -> int | None:
        """How many changes are safe; None: no class can be shown to win."""
        ...

    def insertions(self) -> int | None:
        """How many words may be inserted, if nothing else is changed; None where nothing is known of insertions."""
        ...

    def explain(self, labels: Sequence[str]) -> list[str]:
        """What was counted, then what follows from it, in short sentences. Limits never say more than is proved."""
        ...

    def refutation(self, *, chosen: int, radius: int, insertions: int | None) -> str | None:
        """As evidence from fresh copies: what it says against a certificate, if it does."""
        ...

    def described(self) -> dict[str, Any]:
        """As a file holds it."""
        ...

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """The evidence again, from what `described` made."""
        ...


class Kinds(Generic[Kind]):
    """Classes by the name that files know them by.

    Parameters
    ----------
    what : str
        What errors call them.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._classes: dict[str, type[Kind]] = {}

    def register(self, name: str) -> Callable[[Class], Class]:
        """Class decorator: let files name the class."""

        def add(cls: Class) -> Class:
            self._classes[name] = cls
            return cls

        return add

    def name_of(self, value: Kind) -> str:
        """What files call the class of a value."""
        return next(name for name, cls in self._classes.items() if cls is type(value))

    def find(self, name: str) -> type[Kind]:
        """The class of that name."""
        if name not in self._classes:
            # It may belong to a method that nobody has imported yet. By name, because this file imports no model.
            importlib.import_module("stockade.certificates.registry").load_methods()
        if name not in self._classes:
            kinds = ", ".join(sorted(self._classes))
            raise RunError(
                f'There is no {self._what} "{name}" (found: {kinds}): the certificate was made by another version of '
                "Stockade. Certify the text again."
            )
        return self._classes[name]


EVIDENCE: Kinds[Evidence] = Kinds("evidence")
DISTRIBUTIONS: Kinds[SmoothingDistribution] = Kinds("smoothing distribution")


def read_evidence(description: Mapping[str, Any]) -> Evidence:
    """The evidence of a certificate, as a file holds it."""
    try:
        return EVIDENCE.find(description["kind"]).from_description(description)
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise RunError(f"The evidence of a certificate cannot be read ({error!r}).") from None


def describe_distribution(distribution: SmoothingDistribution) -> dict[str, Any]:
    """A smoothing distribution as a file holds it."""
    return {"kind": DISTRIBUTIONS.name_of(distribution), **asdict(distribution)}  # type: ignore[call-overload]


def read_distribution(description: Mapping[str, Any]) -> SmoothingDistribution:
    """The smoothing distribution again, from what `describe_distribution` made."""
    return _made(DISTRIBUTIONS.find(description["kind"]), description)


@EVIDENCE.register("sampled")
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledEvidence:
    """Votes (or sums of probabilities) of copies drawn at random, at the last look at them.

    Parameters
    ----------
    distribution : SmoothingDistribution
        How the copies were drawn.
    rule : Rule
        Whether the lead ("gap") or the share ("majority") of the class must be large enough.
    plan : Plan
        When to look, fixed before the first copy was drawn.
    chosen : int
        The class.
    tally : Tally or Means
        The votes, or the sums of probabilities.
    """

    distribution: SmoothingDistribution
    rule: Rule
    plan: Plan
    chosen: int
    tally: Tally | Means

    @property
    def classes(self) -> int:
        return len(self.tally.counts if isinstance(self.tally, Tally) else self.tally.totals)

    @property
    def copies(self) -> int:
        return self.tally.copies

    @property
    def alpha(self) -> float | None:
        return None if self._all_copies else self.plan.alpha

    @property
    def limits(self) -> Limits:
        """Between which the lead (the share) lies."""
        return margin_limits(self.tally, self.chosen, self.plan, self.rule)

    def radius(self) -> int | None:
        return largest_radius(self.limits.low, self.distribution.losses(), self.rule)

    def insertions(self) -> int | None:
        low = Fraction(self.limits.low)
        return insertions_radius(low if self.rule == "gap" else 2 * low - 1, self.distribution.insertion_leads())

    def explain(self, labels: Sequence[str]) -> list[str]:
        limits, radius, losses = self.limits, self.radius(), self.distribution.losses()
        lead = "lead" if self.rule == "gap" else "share"
        between = f"{lead} at least {rounded_down(limits.low):.4f}, at most {rounded_up(limits.high):.4f}"
        following = 0 if radius is None else radius + 1
        needed = threshold(losses[following], self.rule) if following < len(losses) else None
        return [
            self._counted(labels),
            f"{lead} exactly {float(limits.low):.4f}" if limits.low == limits.high else between,
            out_of_reach(following)
            if needed is None or needed >= 1
            else f"radius {following} needs more than " + (f"{rounded_up(needed):.4f}" if needed else "0"),
        ]

    def refutation(self, *, chosen: int, radius: int, insertions: int | None) -> str | None:
        if self.chosen != chosen:
            return "another class wins over all copies"
        needs: dict[str, Number] = {f"radius {radius}": threshold(self.distribution.losses()[radius], self.rule)}
        if insertions is not None:
            leads = self.distribution.insertion_leads()
            needs[f"a number of {insertions} insertions"] = leads[insertions] if insertions < len(leads) else 1.0
        high = self.limits.high
        for claim, needed in needs.items():
            if not high > needed:
                return f"{claim} needs more than {float(needed):.3f}, fresh copies show at most {float(high):.3f}"
        return None

    def described(self) -> dict[str, Any]:
        return {
            "kind": "sampled",
            "distribution": describe_distribution(self.distribution),
            "rule": self.rule,
            "plan": asdict(self.plan),
            "chosen": self.chosen,
            "tally": {"kind": type(self.tally).__name__, **asdict(self.tally)},
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        plan = Plan(**{**description["plan"], "looks": tuple(description["plan"]["looks"])})
        tally = _made(_TALLIES[description["tally"]["kind"]], description["tally"])
        distribution = read_distribution(description["distribution"])
        rule, chosen = description["rule"], description["chosen"]
        return cls(distribution=distribution, rule=rule, plan=plan, chosen=chosen, tally=tally)

    @property
    def _all_copies(self) -> bool:
        """Whether all copies there are were asked."""
        return self.plan.population == self.copies

    def _counted(self, labels: Sequence[str]) -> str:
        if isinstance(self.tally, Means):
            return means_by_class(labels, self.tally.totals, self.copies)
        what = f"all {self.copies:,} copies there are" if self._all_copies else f"{self.copies:,} copies"
        return votes_by_class(labels, self.tally.counts, self.copies, what)


def exact_refutation(fresh: Evidence, chosen: int, radius: int) -> str | None:
    """What fresh evidence that leaves nothing to chance says against a certificate: anything but the same."""
    same = (fresh.chosen, fresh.radius()) == (chosen, radius)
    return None if same else f"certified radius {radius}, now {fresh.radius()}"


def votes_by_class(labels: Sequence[str], counts: Sequence[float], copies: int, what: str | None = None) -> str:
    """The votes in a sentence; `what` says whose they are."""
    votes = ", ".join(f"{label} {round(count):,}" for label, count in zip(labels, counts, strict=True))
    silent = copies - round(sum(counts))
    return f"votes of {what or f'{copies:,} copies'}: {votes}" + (f", none {silent:,}" if silent else "")


def means_by_class(labels: Sequence[str], totals: Sequence[float], copies: int, what: str | None = None) -> str:
    """The mean probabilities in a sentence; `what` says whose they are."""
    means = ", ".join(f"{label} {total / copies:.3f}" for label, total in zip(labels, totals, strict=True))
    return f"mean probabilities of {what or f'{copies:,} copies'}: {means}"


def out_of_reach(radius: int) -> str:
    """Says that no votes prove a radius."""
    return f"radius {radius} is out of reach, whatever the votes"


def rounded_down(value: Number) -> float:
    """To four digits, never up: for what is proved."""
    return math.floor(float(value) * _SCALE) / _SCALE


def rounded_up(value: Number) -> float:
    """To four digits, never down: for what is needed."""
    return math.ceil(float(value) * _SCALE) / _SCALE


def packed(raw: bytes) -> str:
    """Many small numbers as a short string, for files that people open."""
    return base64.b85encode(zlib.compress(raw)).decode()


def unpacked(text: str) -> bytes:
    """What `packed` made a string of."""
    return zlib.decompress(base64.b85decode(text))


def _made(cls: type[Kind], description: Mapping[str, Any]) -> Kind:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in description.items()}
    return cls(**{name: value for name, value in values.items() if name != "kind"})
