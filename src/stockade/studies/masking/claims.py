"""What the paper says about the mask rate: its claims, held against a study, and its own numbers, to be read beside.

Reported, never enforced: the paper had other models and data. The radii of its Tables 2 and 3 are printed by a
procedure that returns the first number of words that fails its test, and that takes p_c for a bound on β: one less is
what the test says, and that is no certificate either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stockade.report.document import Table
from stockade.report.numbers import NOT_AVAILABLE, number, plain_percent
from stockade.studies.claims import Claim
from stockade.studies.masking.analysis import RateNumbers

SOURCE = (
    "Zeng, Zheng, Xu, Li, Yuan, Huang 2021: Certified Robustness to Text Adversarial Attacks by Randomized [MASK], "
    "Tables 2 (AG-News) and 3 (SST-2)"
)
DIVERGENCE = 2.5e-5
"""What the paper calls very small (AG-News; on SST-2 1.75e-5)."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of Tables 2 and 3: percent, words, percent; None where the paper prints N/A."""

    data: str
    rate: float
    accuracy: float
    median_radius: int | None
    median_rate: float | None

    @property
    def corrected(self) -> int | None:
        """One less than is printed."""
        return None if self.median_radius is None else self.median_radius - 1


PUBLISHED = (
    PublishedRow("AG-News", 0.40, 96.2, 1, 2.6),
    PublishedRow("AG-News", 0.50, 95.7, 1, 2.7),
    PublishedRow("AG-News", 0.60, 95.7, 2, 5.0),
    PublishedRow("AG-News", 0.65, 95.0, 2, 5.0),
    PublishedRow("AG-News", 0.70, 94.5, 2, 5.0),
    PublishedRow("AG-News", 0.75, 93.9, 3, 7.0),
    PublishedRow("AG-News", 0.80, 92.0, 3, 7.5),
    PublishedRow("AG-News", 0.85, 92.2, 4, 8.8),
    PublishedRow("AG-News", 0.90, 91.1, 5, 11.4),
    PublishedRow("AG-News", 0.95, 85.8, 5, 11.8),
    PublishedRow("SST-2", 0.20, 92.4, 1, 5.26),
    PublishedRow("SST-2", 0.30, 92.4, 1, 5.26),
    PublishedRow("SST-2", 0.40, 91.2, 1, 5.26),
    PublishedRow("SST-2", 0.50, 89.3, 1, 5.56),
    PublishedRow("SST-2", 0.60, 84.3, 1, 7.41),
    PublishedRow("SST-2", 0.70, 83.3, 2, 8.00),
    PublishedRow("SST-2", 0.80, 81.4, 2, 10.00),
    PublishedRow("SST-2", 0.90, 49.6, None, None),
)


def published_table() -> Table:
    """The paper's Tables 2 and 3."""
    rows = [
        (
            row.data,
            f"{100 * row.rate:.0f} %",
            f"{row.accuracy:.1f} %",
            number(row.median_radius, 0),
            number(row.corrected, 0),
            NOT_AVAILABLE if row.median_rate is None else f"{row.median_rate:g} %",
        )
        for row in PUBLISHED
    ]
    columns = ("data", "mask rate", "accuracy", "MCB as printed", "MCB − 1", "MCR as printed")
    caption = (
        f"{SOURCE}; RoBERTa. MCB and MCR by the published procedure, hence not certificates. Other models and data: "
        "compare shapes, not values."
    )
    return Table(columns, rows, caption=caption)


def check_claims(rates: Sequence[RateNumbers], attacks: Sequence[str]) -> tuple[Claim, ...]:
    """The claims of Tables 2 and 3 and of Figures 2 and 3.

    Parameters
    ----------
    rates
        The numbers by rising mask rate.
    attacks
        The attacks of the study.
    """
    claims = [_accuracy_falls(rates), _medians_rise(rates), _divergence_is_small(rates)]
    for attack in attacks:
        claims += [_logit_rises(rates, attack), *_votes_lead(rates, attack)]
    return tuple(claims)


def _accuracy_falls(rates: Sequence[RateNumbers]) -> Claim:
    claim = "the clean accuracy is highest at the lowest rate"
    values = {entry.rate: entry.certificates.accuracy["value"] for entry in rates}
    measured = [value for value in values.values() if value is not None]
    decided = len(values) > 1 and len(measured) == len(values)
    return Claim(claim, measured[0] == max(measured) if decided else None, _listed(values))


def _medians_rise(rates: Sequence[RateNumbers]) -> Claim:
    claim = "a higher rate certifies at least as many words (MCB of ranmask-gap)"
    medians = {entry.rate: entry.certificates.sound.median_radius for entry in rates}
    numbers = ", ".join(f"{rate:g}: {number(radius, 0)}" for rate, radius in medians.items())
    if len(medians) < 2 or all(radius is None for radius in medians.values()):
        return Claim(claim, None, numbers)
    radii = [-1 if radius is None else radius for radius in medians.values()]
    return Claim(claim, all(low <= high for low, high in pairwise(radii)), numbers)


def _divergence_is_small(rates: Sequence[RateNumbers]) -> Claim:
    claim = f"the divergence of β and p is below {DIVERGENCE:.1e} (which proves nothing)"
    divergences = {entry.rate: list(entry.check.divergence.values())[-1] for entry in rates}
    numbers = ", ".join(
        f"{rate:g}: {NOT_AVAILABLE if value is None else f'{value:.1e}'}" for rate, value in divergences.items()
    )
    measured = [value for value in divergences.values() if value is not None]
    return Claim(claim, max(measured) < DIVERGENCE if measured else None, numbers)


def _logit_rises(rates: Sequence[RateNumbers], attack: str) -> Claim:
    claim = f"{attack}: robust accuracy by logit is best at the highest rate"
    values = {entry.rate: robust_accuracy(entry, "logit", attack) for entry in rates}
    measured = [value for value in values.values() if value is not None]
    decided = len(values) > 1 and len(measured) == len(values)
    return Claim(claim, measured[-1] == max(measured) if decided else None, _listed(values))


def _votes_lead(rates: Sequence[RateNumbers], attack: str) -> Iterator[Claim]:
    for entry in rates:
        vote, logit = (robust_accuracy(entry, ensemble, attack) for ensemble in ("vote", "logit"))
        yield Claim(
            f"{attack} at {entry.rate:g}: vote leaves at least as much accuracy as logit",
            None if vote is None or logit is None else vote >= logit,
            f"{plain_percent(vote)} against {plain_percent(logit)}",
        )


def robust_accuracy(entry: RateNumbers, ensemble: str, attack: str) -> float | None:
    """The accuracy that an attack leaves an ensemble; None if it was not measured."""
    numbers = entry.attacks.get(ensemble, {}).get(attack)
    return None if numbers is None else numbers.robust_accuracy["value"]


def _listed(values: dict[float, float | None]) -> str:
    return ", ".join(f"{rate:g}: {plain_percent(value)}" for rate, value in values.items())
