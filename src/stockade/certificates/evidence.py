"""What a certificate rests on: counts, and the law of the copies behind them. The radius follows by arithmetic alone.

Each kind of evidence knows its radius and how to tell itself to a file and back, so that whoever holds a certificate
can compute it again without the model.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Protocol

from stockade.certificates.betting_evidence import read_betting
from stockade.certificates.bounds import (
    Rule,
    insertions_radius,
    largest_radius,
    legacy_claim,
    partition_radius,
)
from stockade.certificates.distributions import (
    INSERTIONS,
    DeletionDistribution,
    MaskingDistribution,
    SmoothingDistribution,
    SynonymDistribution,
)
from stockade.certificates.exact import VoteTable, exact_radius
from stockade.certificates.packing import packed, unpacked
from stockade.certificates.sequential import Limits, Means, Plan, Tally, margin_limits
from stockade.core.errors import RunError


class Evidence(Protocol):
    """The ground of one certificate."""

    @property
    def chosen(self) -> int: ...

    @property
    def classes(self) -> int: ...

    @property
    def copies(self) -> int: ...

    def radius(self) -> int | None: ...

    def described(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class SampledEvidence:
    """Votes (or sums of probabilities) of copies drawn at random, after the last look at them."""

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
    def limits(self) -> Limits:
        return margin_limits(self.tally, self.chosen, self.plan, self.rule)

    def radius(self) -> int | None:
        return largest_radius(self.limits.low, self.distribution.losses(), self.rule)

    def insertions(self) -> int | None:
        """How many words may be inserted, if nothing else is changed; known where copies lose words.

        A lead of g is as good as a share of (1 + g) / 2 here, see `insertion_leads`.
        """
        if not isinstance(self.distribution, DeletionDistribution):
            return None
        low = Fraction(self.limits.low)
        return insertions_radius(
            low if self.rule == "majority" else (1 + low) / 2, self.distribution.kept_chance, INSERTIONS
        )

    def described(self) -> dict[str, Any]:
        distribution, tally = type(self.distribution).__name__, type(self.tally).__name__
        return {
            "kind": "sampled",
            "distribution": {"kind": distribution, **asdict(self.distribution)},  # type: ignore[call-overload]
            "rule": self.rule,
            "plan": asdict(self.plan),
            "chosen": self.chosen,
            "tally": {"kind": tally, **asdict(self.tally)},
        }


@dataclass(frozen=True, slots=True)
class EnumeratedEvidence:
    """The vote of every copy there is."""

    table: VoteTable
    chosen: int

    @property
    def classes(self) -> int:
        return self.table.classes

    @property
    def copies(self) -> int:
        return len(self.table.votes)

    def radius(self) -> int | None:
        return exact_radius(self.table, self.chosen)

    def described(self) -> dict[str, Any]:
        votes = packed(bytes(self.table.votes))
        table = {"words": self.table.words, "kept": self.table.kept, "classes": self.table.classes, "votes": votes}
        return {"kind": "enumerated", "chosen": self.chosen, "table": table}


@dataclass(frozen=True, slots=True)
class PartitionEvidence:
    """The votes of the groups that a text is split into; nothing is left to chance."""

    counts: tuple[int, ...]
    chosen: int

    @property
    def classes(self) -> int:
        return len(self.counts)

    @property
    def copies(self) -> int:
        return sum(self.counts)

    def radius(self) -> int | None:
        return partition_radius(self.counts, self.chosen)

    def described(self) -> dict[str, Any]:
        return {"kind": "grouped", "counts": list(self.counts), "chosen": self.chosen}


@dataclass(frozen=True, slots=True)
class LegacyEvidence:
    """Votes as the published procedure of RanMASK reads them. Its radius proves nothing."""

    distribution: MaskingDistribution
    alpha: float
    chosen: int
    counts: tuple[int, ...]

    @property
    def classes(self) -> int:
        return len(self.counts)

    @property
    def copies(self) -> int:
        return sum(self.counts)

    def radius(self) -> int | None:
        claim = legacy_claim(
            self.counts[self.chosen], self.copies, self.distribution.words, self.distribution.kept, self.alpha
        )
        return claim.radius

    def described(self) -> dict[str, Any]:
        return {"kind": "legacy", **asdict(self), "counts": list(self.counts)}


_DISTRIBUTIONS: Mapping[str, type[MaskingDistribution | DeletionDistribution | SynonymDistribution]] = {
    kind.__name__: kind for kind in (MaskingDistribution, DeletionDistribution, SynonymDistribution)
}
_TALLIES: Mapping[str, type[Tally | Means]] = {kind.__name__: kind for kind in (Tally, Means)}


def read_evidence(described: Mapping[str, Any]) -> Evidence:
    """Evidence as a file holds it."""
    try:
        return _READERS[described["kind"]](described)
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise RunError(f"The evidence of a certificate cannot be read ({error!r}).") from None


def _sampled(told: Mapping[str, Any]) -> SampledEvidence:
    plan = Plan(**{**told["plan"], "looks": tuple(told["plan"]["looks"])})
    return SampledEvidence(
        _made(_DISTRIBUTIONS, told["distribution"]), told["rule"], plan, told["chosen"], _made(_TALLIES, told["tally"])
    )


def _enumerated(told: Mapping[str, Any]) -> EnumeratedEvidence:
    table = told["table"]
    votes = tuple(unpacked(table["votes"]))
    return EnumeratedEvidence(VoteTable(table["words"], table["kept"], votes, table["classes"]), told["chosen"])


def _grouped(told: Mapping[str, Any]) -> PartitionEvidence:
    return PartitionEvidence(tuple(told["counts"]), told["chosen"])


def _claimed(told: Mapping[str, Any]) -> LegacyEvidence:
    return LegacyEvidence(
        MaskingDistribution(**told["distribution"]), told["alpha"], told["chosen"], tuple(told["counts"])
    )


def _made(kinds: Mapping[str, Any], told: Mapping[str, Any]) -> Any:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
    return kinds[str(values.pop("kind"))](**values)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Evidence]] = {
    "sampled": _sampled,
    "enumerated": _enumerated,
    "grouped": _grouped,
    "legacy": _claimed,
    "betting": read_betting,
}
