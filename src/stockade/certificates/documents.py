"""A certificate as a document: what it says, of which model and text, against whom, and how to check it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.certificates.certificate import Certificate, described
from stockade.certificates.evidence import read_evidence


def document(certificate: Certificate, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The certificate with what the run's manifest knows of its model, method and seeds."""
    method = next(one for one in manifest["config"]["methods"] if one["key"] == certificate.method)
    return {
        "statement": statement(certificate, method),
        **described(certificate),
        "selection": None if certificate.selection is None else list(certificate.selection),
        "sound": method["sound"],
        "threat": threat_in_words(method, certificate.premise is not None),
        "alpha": alpha_of(certificate),
        "options": method["options"],
        "model": manifest["model"]["reference"],
        "model_fingerprint": manifest["model"]["fingerprint"],
        "defenses": manifest["model"].get("defenses", []),
        "classes": manifest["model"]["labels"],
        "run_seed": manifest["config"]["seed"],
        "version": manifest["versions"]["stockade"],
    }


def statement(certificate: Certificate, method: Mapping[str, Any]) -> str:
    """What was found, in a sentence."""
    if certificate.radius is None:
        why = f": {certificate.reason}" if certificate.reason else ""
        return ("No answer of the model" if certificate.status == "error" else "No certificate") + why
    if not method["sound"]:
        return f"NOT A CERTIFICATE. Claimed: {certificate.predicted}, radius {certificate.radius}"
    alpha = alpha_of(certificate)
    chance = "" if alpha is None else f" (wrong with a chance of at most {alpha:g} over the draws)"
    threat = _with_radius(threat_in_words(method, certificate.premise is not None), certificate.radius)
    if certificate.radius == 0:
        return f"The class is {certificate.predicted}; nothing is said of changed texts{chance}"
    return f"The class stays {certificate.predicted} under {threat}{chance}"


def threat_in_words(method: Mapping[str, Any], pair: bool) -> str:
    """What an attacker may do; of a pair only to the hypothesis, as nothing of the premise is ever hidden."""
    told = str(method["threat"])
    return f"{told}, in the hypothesis alone, the premise as it is" if pair else told


def _with_radius(threat: str, radius: int) -> str:
    """What a radius of d says, of this one."""
    told = threat.replace(" d ", f" {radius} ")
    return told.replace("up to 1 words", "1 word") if radius == 1 else told


def alpha_of(certificate: Certificate) -> float | None:
    """The probability that it may be wrong; none if every copy there is was asked."""
    return None if certificate.evidence is None else read_evidence(certificate.evidence).alpha
