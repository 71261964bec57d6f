"""A certificate: what was proved of one text, and everything needed to compute it again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

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
    """The certificate again, from what `described` made."""
    selection = description["selection"]
    return Certificate(**{**description, "selection": None if selection is None else tuple(selection)})


def seed_of_text(seed: int, method: str, example: str) -> int:
    """Names the random copies of one text, by the seed of the run."""
    return derive_seed(seed, "certify", method, example)
