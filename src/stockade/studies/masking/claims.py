"""What the paper says about the mask rate: its claims, held against a study, and its own numbers, to be read beside.

Reported, never enforced: the paper had other models and data. Rates and ensembles are compared text by text, by exact
tests of the pairs; the divergence by an interval from resampled texts. Under attack the first wrong answer counts, as
in the paper, and what fools repeatedly stands beside it. The radii of its Tables 2 and 3 are printed by a procedure
that returns the first number of words that fails its test, and that takes p_c for a bound on β: one less is what the
test says, and that is no certificate either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stockade.report.document import Table
from stockade.report.numbers import NOT_AVAILABLE, Interval, number, p_value, plain_percent
from stockade.studies.claims import Claim, PairedTest, all_of, by_interval
from stockade.studies.masking.analysis import RateNumbers
from stockade.studies.masking.texts import RateTexts

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


def check_claims(rates: Sequence[RateNumbers], texts: Sequence[RateTexts], attacks: Sequence[str]) -> tuple[Claim, ...]:
    """The claims of Tables 2 and 3 and of Figures 2 and 3.

    Parameters
    ----------
    rates
        The numbers by rising mask rate.
    texts
        What became of each text, in the same order: all rates are compared on the same texts.
    attacks
        The attacks of the study.
    """
    claims = [_accuracy_falls(rates, texts), _medians_rise(rates, texts), _divergence_is_small(rates)]
    for attack in attacks:
        claims += [_logit_rises(rates, texts, attack), *_votes_lead(rates, texts, attack)]
    return tuple(claims)


def _accuracy_falls(rates: Sequence[RateNumbers], texts: Sequence[RateTexts]) -> Claim:
    claim = "the clean accuracy is highest at the lowest rate"
    values = {entry.rate: entry.certificates.accuracy["value"] for entry in rates}
    tests = {entry.rate: texts[0].compare(other, "right") for entry, other in zip(rates[1:], texts[1:], strict=True)}
    return Claim(claim, all_of(test.positive for test in tests.values()), _listed(values) + _tested(tests))


def _medians_rise(rates: Sequence[RateNumbers], texts: Sequence[RateTexts]) -> Claim:
    claim = "a higher rate certifies more words (ranmask-gap)"
    medians = {entry.rate: entry.certificates.sound.median_radius for entry in rates}
    tests = {
        entry.rate: higher.compare(lower, "radii")
        for entry, (lower, higher) in zip(rates[1:], pairwise(texts), strict=True)
    }
    numbers = "MCB " + ", ".join(f"{rate:g}: {number(radius, 0)}" for rate, radius in medians.items())
    verdict = all_of(test.positive for test in tests.values())
    return Claim(claim, verdict, numbers + _tested(tests, "radii against the next lower rate"))


def _divergence_is_small(rates: Sequence[RateNumbers]) -> Claim:
    claim = f"the divergence of β and p is below {DIVERGENCE:.1e} (which proves nothing)"
    intervals = {entry.rate: entry.check.largest_sets for entry in rates}
    numbers = ", ".join(f"{rate:g}: {_divergence(value)}" for rate, value in intervals.items())
    above = [by_interval(value, DIVERGENCE) for value in intervals.values()]
    return Claim(claim, all_of(None if verdict is None else not verdict for verdict in above), numbers)


def _divergence(interval: Interval) -> str:
    value, low, high = (interval[part] for part in ("value", "low", "high"))
    if value is None:
        return NOT_AVAILABLE
    return f"{value:.1e}" + ("" if low is None or high is None else f" ({low:.1e} to {high:.1e})")


def _logit_rises(rates: Sequence[RateNumbers], texts: Sequence[RateTexts], attack: str) -> Claim:
    claim = f"{attack}: robust accuracy by logit is best at the highest rate"
    values = {entry.rate: robust_accuracy(entry, "logit", attack) for entry in rates}
    repeatable = {entry.rate: robust_accuracy(entry, "logit", attack, published=False) for entry in rates}
    tests = {
        entry.rate: texts[-1].compare_robust(other, attack, "logit", "logit")
        for entry, other in zip(rates[:-1], texts[:-1], strict=True)
    }
    beside = f" (repeatable {_listed(repeatable)})" if repeatable != values else ""
    return Claim(claim, all_of(test.positive for test in tests.values()), _listed(values) + beside + _tested(tests))


def _votes_lead(rates: Sequence[RateNumbers], texts: Sequence[RateTexts], attack: str) -> Iterator[Claim]:
    for entry, of_rate in zip(rates, texts, strict=True):
        vote, logit = (robust_accuracy(entry, ensemble, attack) for ensemble in ("vote", "logit"))
        others = [robust_accuracy(entry, ensemble, attack, published=False) for ensemble in ("vote", "logit")]
        beside = f" (repeatable {' against '.join(map(plain_percent, others))})" if others != [vote, logit] else ""
        test = of_rate.compare_robust(of_rate, attack, "vote", "logit")
        yield Claim(
            f"{attack} at {entry.rate:g}: vote leaves at least as much accuracy as logit",
            test.positive,
            f"{plain_percent(vote)} against {plain_percent(logit)}{beside}; {test}",
        )


def _tested(tests: Mapping[float, PairedTest], against: str = "against the others") -> str:
    """What the tests say, behind the numbers."""
    p_values = ", ".join(
        f"{rate:g}: {'no test' if test.p is None else p_value(test.p)}" for rate, test in tests.items()
    )
    return f"; {against} by text {p_values}" if p_values else ""


def robust_accuracy(entry: RateNumbers, ensemble: str, attack: str, *, published: bool = True) -> float | None:
    """The accuracy that an attack leaves an ensemble; None if it was not measured.

    Parameters
    ----------
    entry, ensemble, attack
        Of which model, how its copies answer together, and under what.
    published
        Whether the first flip counts, as in the paper; if not, what fools the model repeatedly.
    """
    numbers = entry.attacks.get(ensemble, {}).get(attack)
    if numbers is None:
        return None
    return (numbers.published_robust_accuracy if published else numbers.robust_accuracy)["value"]


def _listed(values: Mapping[float, float | None]) -> str:
    return ", ".join(f"{rate:g}: {plain_percent(value)}" for rate, value in values.items())
