"""The ground of a certificate in short sentences: votes, what they prove at least, and what more would need."""

from __future__ import annotations

from collections.abc import Sequence

from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import read_evidence


def ground(certificate: Certificate, labels: Sequence[str]) -> list[str]:
    """What was counted for a text and what follows from it; nothing where there is no evidence."""
    if certificate.evidence is None:
        return []
    counted, *proved = read_evidence(certificate.evidence).explain(labels)
    selection = certificate.selection
    chose = [f"{sum(selection):,} votes of other copies chose the class"] if selection else []
    return [counted, *chose, *proved]
