"""A certificate in words: what it says, against whom, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import read_evidence


def statement(certificate: Certificate, method: Mapping[str, Any]) -> str:
    """What was proved of a text, in a sentence.

    Parameters
    ----------
    certificate
        The certificate.
    method
        Its method as the manifest records it: `sound`, `threat`, `options`.
    """
    if certificate.radius is None:
        why = f": {certificate.reason}" if certificate.reason else ""
        return ("No answer of the model" if certificate.status == "error" else "No certificate") + why
    if not method["sound"]:
        return f"NOT A CERTIFICATE. Claimed: {certificate.predicted}, radius {certificate.radius}"
    alpha = alpha_of(certificate)
    chance = "" if alpha is None else f" (wrong with probability at most {alpha:g} over the draws)"
    if certificate.radius == 0:
        return f"The class is {certificate.predicted}; nothing is said of changed texts{chance}"
    threat = _with_radius(threat_in_words(method, certificate.premise is not None), certificate.radius)
    return f"The class stays {certificate.predicted} under {threat}{chance}"


def threat_in_words(method: Mapping[str, Any], pair: bool) -> str:
    """What an attacker may do; of a pair only to the hypothesis, as nothing of the premise is ever hidden."""
    threat = str(method["threat"])
    return f"{threat}, in the hypothesis alone, the premise as it is" if pair else threat


def _with_radius(threat: str, radius: int) -> str:
    """A threat with the radius in the place of d."""
    words = threat.replace(" d ", f" {radius} ")
    return words.replace("up to 1 words", "1 word") if radius == 1 else words


def alpha_of(certificate: Certificate) -> float | None:
    """The probability of error that a certificate allows; None if nothing is left to chance."""
    return None if certificate.evidence is None else read_evidence(certificate.evidence).alpha
