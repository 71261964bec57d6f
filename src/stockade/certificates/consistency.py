"""Whether the evidence of a certificate is what its run's method makes of its text, with the run's defense.

All of this follows from the manifest and the text, without the model: how copies are drawn, when they are looked at,
where rounds end, how many groups vote, the seed. The votes themselves follow from the model alone: whoever invents
them in keeping with all the rest is found out by asking it again, and by nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stockade.certificates.certificate import Certificate, seed_of_text
from stockade.certificates.evidence import Evidence
from stockade.certificates.registry import NamedMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyCheck:
    """What a run says of one of its methods, to hold evidence against.

    Parameters
    ----------
    named : NamedMethod
        The method, with the alpha that each text has.
    defense : object
        The defense around the model.
    labels : tuple[str, ...]
        The classes of the model.
    seed : int
        The seed of the run.
    """

    named: NamedMethod
    defense: object
    labels: tuple[str, ...]
    seed: int

    def deviations(self, certificate: Certificate, evidence: Evidence) -> Iterator[str]:
        """Where the evidence of a certificate is not what it should be."""
        method = self.named.method
        if certificate.seed != seed_of_text(self.seed, self.named.name, certificate.id):
            yield "the seed is not the one that the run gives this text"
        if not isinstance(self.defense, method.certifies):
            yield f"{self.named.name} does not certify the defense of the run"
        elif evidence.classes != len(self.labels) or not 0 <= evidence.chosen < evidence.classes:
            yield f"the evidence is of class {evidence.chosen} of {evidence.classes}, the model has {len(self.labels)}"
        else:
            yield from method.deviations(certificate, evidence, self.defense)
