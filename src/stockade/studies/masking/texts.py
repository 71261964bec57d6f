"""What became of each text at one mask rate, so that rates and ensembles can be compared text by text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stockade.studies.claims import PairedTest
from stockade.studies.masking.victims import LEGACY, SOUND
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.certify.result import CertifyResult

_UNCERTIFIED = -1


@dataclass(frozen=True, slots=True)
class RateTexts:
    """What became of each text at one mask rate, by its id.

    Parameters
    ----------
    right
        Whether most copies vote for the true class: 1 or 0; of several models of a rate the mean, as of all others.
    radii
        How many words may change by `ranmask-gap`; -1 where the true class is not certified.
    robust
        By ensemble and attack: 1 where the answer is right and survives, else 0. As in the paper, one wrong answer of a
        randomised model is enough.
    """

    right: Mapping[str, float] = field(default_factory=dict)
    radii: Mapping[str, float] = field(default_factory=dict)
    robust: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    def compare(self, other: RateTexts, what: Literal["right", "radii"]) -> PairedTest:
        """This rate against another one, on the texts that both have."""
        return _compare(getattr(self, what), getattr(other, what))

    def compare_robust(self, other: RateTexts, attack: str, first: str, second: str) -> PairedTest:
        """An ensemble of this rate against one of another rate, or of this one, under an attack."""
        return _compare(self.robust.get(first, {}).get(attack, {}), other.robust.get(second, {}).get(attack, {}))


def _compare(first: Mapping[str, float], second: Mapping[str, float]) -> PairedTest:
    return PairedTest.of([value - second[text] for text, value in first.items() if text in second])


def read_texts(certificates: CertifyResult, runs: Mapping[str, AttackResult]) -> RateTexts:
    """What became of each text at one mask rate.

    Parameters
    ----------
    certificates
        By both methods.
    runs
        The attacks on each ensemble.
    """
    return RateTexts(
        right={
            claim.id: int(claim.status != "error" and claim.predicted == claim.label)
            for claim in certificates.records(LEGACY)
        },
        radii={
            proof.id: _UNCERTIFIED if proof.radius is None or not proof.correct else proof.radius
            for proof in certificates.records(SOUND)
        },
        robust={
            ensemble: {
                attack: {
                    record.id: int(record.status == "failed" and not record.first_flip)
                    for record in run.records(attack)
                    if record.status != "error"
                }
                for attack in run.attacks
            }
            for ensemble, run in runs.items()
        },
    )
