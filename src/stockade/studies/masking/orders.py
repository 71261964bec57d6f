"""What the paper says about the mask rate, held against the study: reported, never enforced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from stockade.studies.masking.published import DIVERGENCE
from stockade.studies.orders import Order
from stockade.studies.tables import plain_share

Numbers = Mapping[str, Any]


def check_orders(rates: Sequence[Numbers], attacks: Sequence[str]) -> list[Order]:
    """The claims of Tables 2 and 3 and of Figures 2 and 3. `rates` rise."""
    masked = [one for one in rates if one["certificates"] is not None]
    orders = [_accuracy_falls(masked), _medians_rise(masked), _divergence_is_small(masked)]
    for attack in attacks:
        orders += [_logit_rises(masked, attack), *_votes_lead(masked, attack)]
    return orders


def _accuracy_falls(masked: Sequence[Numbers]) -> Order:
    claim = "the clean accuracy is highest at the lowest rate"
    found = [(one["rate"], one["certificates"]["accuracy"]) for one in masked]
    told = ", ".join(f"{rate:g}: {plain_share(accuracy)}" for rate, accuracy in found)
    values = [accuracy["value"] for _, accuracy in found]
    if len(values) < 2 or None in values:
        return Order(claim, None, told)
    return Order(claim, values[0] == max(values), told)


def _medians_rise(masked: Sequence[Numbers]) -> Order:
    claim = "a higher rate certifies at least as many words (MCB of ranmask-gap)"
    medians = [(one["rate"], one["certificates"]["sound"]["median_radius"]) for one in masked]
    told = ", ".join(f"{rate:g}: {'n/a' if radius is None else radius}" for rate, radius in medians)
    if len(medians) < 2 or all(radius is None for _, radius in medians):
        return Order(claim, None, told)
    values = [-1 if radius is None else radius for _, radius in medians]
    return Order(claim, all(low <= high for low, high in pairwise(values)), told)


def _divergence_is_small(masked: Sequence[Numbers]) -> Order:
    claim = f"the divergence of β and p is below {DIVERGENCE:.1e} (which proves nothing)"
    found = [(one["rate"], list(one["check"]["divergence"].values())[-1]) for one in masked if one["check"]]
    told = ", ".join(f"{rate:g}: {'n/a' if value is None else f'{value:.1e}'}" for rate, value in found)
    values = [value for _, value in found if value is not None]
    return Order(claim, max(values) < DIVERGENCE if values else None, told)


def _logit_rises(masked: Sequence[Numbers], attack: str) -> Order:
    claim = f"{attack}: robust accuracy by logit is best at the highest rate"
    found = [(one["rate"], _robust(one, "logit", attack)) for one in masked]
    told = ", ".join(f"{rate:g}: {plain_share(robust)}" for rate, robust in found)
    values = [robust["value"] for _, robust in found]
    if len(values) < 2 or None in values:
        return Order(claim, None, told)
    return Order(claim, values[-1] == max(values), told)


def _votes_lead(masked: Sequence[Numbers], attack: str) -> Iterator[Order]:
    for one in masked:
        vote, logit = _robust(one, "vote", attack), _robust(one, "logit", attack)
        known = vote["value"] is not None and logit["value"] is not None
        yield Order(
            f"{attack} at {one['rate']:g}: vote leaves at least as much accuracy as logit",
            vote["value"] >= logit["value"] if known else None,
            f"{plain_share(vote)} against {plain_share(logit)}",
        )


def _robust(one: Numbers, ensemble: str, attack: str) -> Any:
    found = one["attacks"].get(ensemble, {}).get(attack)
    return {"value": None} if found is None else found["robust_accuracy"]
