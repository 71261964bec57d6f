"""Outcomes made by hand: which targets the texts of which sources fool."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stockade.studies.claims import Claim
from stockade.studies.transfer.analysis import TransferNumbers, analyse_attack
from stockade.studies.transfer.claims import check_claims
from stockade.studies.transfer.importance_maps import Spread
from stockade.studies.transfer.rates import Outcomes, Resampled

TEXTS = 60
Rate = Callable[[str, str], float]
"""The rate of a source to a target, by their names."""


def make_outcomes(models: Sequence[str], rate: Rate, *, texts: int = TEXTS) -> Outcomes:
    """Every model is right on every original; each pair has its rate, on texts that are drawn once for all pairs."""
    luck = np.random.default_rng(0).permutation(texts)
    fooled = np.array([[luck < round(texts * rate(s, t)) for t in models] for s in models], dtype=np.bool_)
    scored = np.ones_like(fooled)
    ids = tuple(map(str, range(texts)))
    return Outcomes(tuple(models), ids, fooled, scored, scored, np.ones((len(models), texts), dtype=np.bool_))


def without_second_trainings(outcomes: Outcomes) -> Outcomes:
    """The same, with nothing on the diagonal."""
    scored = outcomes.scored & ~np.eye(len(outcomes.models), dtype=np.bool_)[:, :, None]
    return Outcomes(outcomes.models, outcomes.ids, outcomes.fooled, scored, outcomes.right, outcomes.knows)


def claims_of(outcomes: dict[str, Outcomes], spread: Spread | None = None) -> dict[str, Claim]:
    """The claims about attacks with these outcomes, by what they say."""
    raw = {attack: Resampled(entry) for attack, entry in outcomes.items()}
    clean = {attack: Resampled(entry, clean=True) for attack, entry in outcomes.items()}
    numbers = TransferNumbers(
        texts=len(next(iter(outcomes.values())).ids),
        models={},
        attacks={name: analyse_attack(outcomes[name], raw[name], clean[name], {}, {}) for name in outcomes},
        spread=spread,
        maps=(),
    )
    return {claim.claim: claim for claim in check_claims(raw, clean, numbers)}
