"""The tables of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.studies.masking.changed_sets import SIZES
from stockade.studies.tables import NOT_KNOWN, Table, plain_share, ranged, share, value

NOT_A_CERTIFICATE = "not a certificate"
Numbers = Mapping[str, Any]


def masked(numbers: Numbers) -> list[Numbers]:
    """The rates above 0."""
    return [one for one in numbers["rates"] if one["certificates"] is not None]


def certificate_table(numbers: Numbers) -> Table:
    """Tables 2 and 3."""
    rows = []
    for one in masked(numbers):
        found = one["certificates"]
        sound, claimed, corrected = found["sound"], found["claimed"], found["corrected"]
        rows.append(
            (
                rate(one),
                share(found["accuracy"]),
                share(sound["accuracy"]),
                words(sound["median_radius"]),
                part(sound["median_rate"]),
                words(claimed["median_radius"]),
                part(claimed["median_rate"]),
                words(corrected["median_radius"]),
                part(corrected["median_rate"]),
                f"{found['claimed_more']:,} of {found['texts']:,}",
            )
        )
    columns = ("mask rate", "accuracy", "right and certain", "MCB", "MCR")
    legacy = (f"MCB printed ({NOT_A_CERTIFICATE})", "MCR printed", "MCB − 1", "MCR, one less", "claims too much")
    return Table((*columns, *legacy), tuple(rows))


def curve_table(numbers: Numbers) -> Table:
    """The share of texts that are certified at each radius, soundly."""
    curves = [(one, one["certificates"]["sound"]["curve"]) for one in masked(numbers)]
    longest = max((len(curve) for _, curve in curves), default=0)
    rows = [
        (rate(one), *(f"{100 * curve[d]['share']:.1f} %" if d < len(curve) else "0 %" for d in range(longest)))
        for one, curve in curves
    ]
    return Table(("mask rate", *(_changed(d) for d in range(longest))), tuple(rows))


def attack_table(numbers: Numbers) -> Table | None:
    """Figure 3 as numbers; None without attacks."""
    if not numbers["attacks"]:
        return None
    rows = []
    for one in numbers["rates"]:
        for ensemble, attacks in one["attacks"].items():
            told = [attacks.get(attack) for attack in numbers["attacks"]]
            clean = next((found["clean_accuracy"] for found in told if found is not None), None)
            robust = [NOT_KNOWN if found is None else share(found["robust_accuracy"]) for found in told]
            queries = [NOT_KNOWN if found is None else value(found["mean_queries"]) for found in told]
            name = "undefended" if ensemble == "none" else ensemble
            rows.append((rate(one), name, NOT_KNOWN if clean is None else plain_share(clean), *robust, *queries))
    robust_columns = (f"robust, {attack}" for attack in numbers["attacks"])
    query_columns = (f"queries, {attack}" for attack in numbers["attacks"])
    return Table(("mask rate", "ensemble", "clean", *robust_columns, *query_columns), tuple(rows))


def vote_table(numbers: Numbers) -> Table:
    rows = []
    for one in masked(numbers):
        votes = one["certificates"]["votes"]
        unanimous = votes["unanimous"]
        rows.append(
            (rate(one), value(votes["entropy"], 3), NOT_KNOWN if unanimous is None else f"{100 * unanimous:.0f} %")
        )
    return Table(("mask rate", "mean entropy of the votes", "texts on which all copies agree"), tuple(rows))


def check_table(numbers: Numbers) -> Table:
    """The published check, and what one word does."""
    rows = []
    for one in masked(numbers):
        found = one["check"]
        divergences = [_small(found["divergence"][str(size)]) for size in SIZES]
        rows.append(
            (
                rate(one),
                *divergences,
                _small(found["divergence_if_fatal"]),
                ranged(found["random_excess"], 4),
                ranged(found["excess"], 3),
                NOT_KNOWN if found["largest"] is None else f"{found['largest']['excess']:.3f}",
                f"{found['broken_claims']:,} of {found['claims']:,}",
            )
        )
    sizes = tuple(f"JS, {_plural(size)}" for size in SIZES)
    honest = ("β − p, random word", "β − p, chosen word", "largest", "claims for one word that fail then")
    return Table(("mask rate", *sizes, "JS if β were p + 0.05", *honest), tuple(rows))


def risk_table(numbers: Numbers) -> Table:
    """Equation 10."""
    rows = []
    for one in masked(numbers):
        found = one["risk"]
        rows.append(
            (
                rate(one),
                value(found["mean"], 3),
                share(found["safe"]),
                NOT_KNOWN
                if found["at_median"] is None
                else f"{found['at_median']:.3f} ({found['median_words']} words)",
                NOT_KNOWN if found["lowest_rate"] is None else f"{100 * found['lowest_rate']:.0f} %",
            )
        )
    columns = ("mask rate", "mean risk", "texts with a risk below 0.5", "at the median length", "lowest rate for that")
    return Table(columns, tuple(rows))


def shown_tables(numbers: Numbers) -> list[tuple[str, Table]]:
    """What the terminal shows."""
    found = certificate_table(numbers)
    bare = Table(found.columns, tuple(tuple(cell.partition(" (")[0] for cell in row) for row in found.rows))
    told = [(f"Certificates, {numbers['texts']:,} texts:", bare)]
    attacks = attack_table(numbers)
    if attacks is not None:
        told.append(("Under attack:", attacks))
    return [*told, ("Risk if a tenth of the words is attacked:", risk_table(numbers))]


def rate(one: Numbers) -> str:
    return f"{100 * one['rate']:g} %"


def words(radius: int | None) -> str:
    return NOT_KNOWN if radius is None else str(radius)


def part(found: float | None) -> str:
    return NOT_KNOWN if found is None else f"{100 * found:.1f} %"


def _changed(words_changed: int) -> str:
    return "certain" if not words_changed else _plural(words_changed)


def _plural(count: int) -> str:
    return "1 word" if count == 1 else f"{count} words"


def _small(found: float | None) -> str:
    return NOT_KNOWN if found is None else f"{found:.1e}"
