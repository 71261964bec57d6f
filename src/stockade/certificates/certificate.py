"""A certificate: what was proved of one text, and everything needed to compute it again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from pydantic import TypeAdapter

from stockade.certificates.evidence import read_evidence
from stockade.core.seeds import derive_seed

Status = Literal["certified", "claimed", "abstained", "error"]
"""certified: the radius is proved. claimed: a published procedure says so, and it proves nothing. abstained: no class
can be shown to win, or the method does not reach this text. error: the model had no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was proved of one text by one method.

    `radius` is how many changes of the method's kind cannot change the class; 0 means that the class itself is certain,
    and nothing more. It is None unless the status is certified or claimed.
    """

    method: str
    id: str
    status: Status
    reason: str | None
    label: str | None
    """The true class, where the data tell it."""
    predicted: str | None
    """The class that the certificate is about."""
    radius: int | None
    insertions: int | None
    """For methods that know it: how many words may be inserted, if nothing else is changed."""
    words: int
    truncated: bool
    """Whether the text is longer than what the model reads, so that it cuts every copy alike."""
    selection: tuple[int, ...] | None
    """Votes by class of the copies that chose the class, none of which are counted again."""
    evidence: Mapping[str, Any] | None
    copies: int
    """Forward passes: copies that chose the class and copies that were counted."""
    seed: int
    """Names the random copies."""
    text: str
    premise: str | None
    fingerprint: str
    """Of the text."""

    @property
    def correct(self) -> bool:
        """Whether the certificate is about the true class; not, if nobody has said which that is."""
        return self.radius is not None and self.predicted == self.label

    def recomputed(self) -> int | None:
        """The radius, from the evidence alone."""
        return None if self.evidence is None else read_evidence(self.evidence).radius()


_READER = TypeAdapter(Certificate)


def text_fingerprint(text: str, premise: str | None) -> str:
    """Tells one text from another."""
    digest = hashlib.sha256()
    for part in ("" if premise is None else premise, text):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def described(certificate: Certificate) -> dict[str, Any]:
    """A certificate as a file holds it."""
    return {field.name: getattr(certificate, field.name) for field in fields(certificate)}


def from_description(description: Mapping[str, Any]) -> Certificate:
    """The certificate again, from what `described` made; a `ValueError` if that is something else."""
    return _READER.validate_python(description)


def seed_of_text(seed: int, method: str, example: str) -> int:
    """Names the random copies of one text, by the seed of the run."""
    return derive_seed(seed, "certify", method, example)


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
