"""Check a run of certificates: every radius must follow from its evidence, by arithmetic alone and without the model.

With fresh copies (`resample`) it can also be seen whether the evidence itself still stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stockade.certificates.certificate import Certificate, seed_of_text, text_fingerprint
from stockade.certificates.evidence import Evidence, read_evidence
from stockade.certificates.job import used_methods
from stockade.certificates.registry import NamedMethod
from stockade.certificates.run import CertificateRun
from stockade.core.errors import StockadeError
from stockade.defenses.registry import make_defense
from stockade.runs.verification import Verification, wrong_summary


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


def recompute(run: CertificateRun) -> Verification:
    """Compute every certificate of a run again from its evidence, and the summary from the certificates."""
    promised = _checks(run.manifest)
    problems, checked = [*_misnamed(run.methods, promised)], 0
    ids = run.manifest["data"]["ids"]
    for certificate in run.iterate():
        found = [*_problems(certificate, promised[certificate.method])]
        if ids is not None and certificate.id not in ids:
            found.append("the run has no text of this number")
        problems += [f"{certificate.method}, example {certificate.id}: {problem}" for problem in found]
        checked += 1
    problems += wrong_summary(run.folder, "methods", run.summary, "certificates")
    return Verification(checked, tuple(problems))


def _checks(manifest: Mapping[str, Any]) -> dict[str, ConsistencyCheck]:
    recorded = manifest["model"]["defenses"][0]
    defense = make_defense(recorded["name"], **recorded["options"]).defense
    labels, seed = tuple(manifest["model"]["labels"]), manifest["config"]["seed"]
    return {
        key: ConsistencyCheck(named=named, defense=defense, labels=labels, seed=seed)
        for key, named in used_methods(manifest).items()
    }


def _misnamed(methods: Mapping[str, Mapping[str, Any]], promised: Mapping[str, ConsistencyCheck]) -> Iterator[str]:
    """What a radius means is part of a certificate."""
    for key, told in methods.items():
        method = promised[key].named.method
        if told["sound"] != method.sound:
            yield f"{key}: told to be {_sound(told['sound'])}, and it is {_sound(method.sound)}"
        if told["threat"] != method.threat:
            yield f'{key}: told to be against "{told["threat"]}", and it is against "{method.threat}"'


def _problems(certificate: Certificate, promise: ConsistencyCheck) -> Iterator[str]:
    if certificate.fingerprint != text_fingerprint(certificate.text, certificate.premise):
        yield "the text is not the one that was certified: its fingerprint differs"
    if certificate.words != len(certificate.text.split()):
        yield f"recorded {certificate.words} words, the text has {len(certificate.text.split())}"
    if certificate.evidence is None:
        if certificate.radius is not None or certificate.status in ("certified", "claimed"):
            yield "a certificate without evidence"
        return
    try:
        evidence = read_evidence(certificate.evidence)
        radius = evidence.radius()
        inserted = evidence.insertions()
        deviations = [*promise.deviations(certificate, evidence)]
    except StockadeError as error:
        yield f"the evidence makes no sense: {error}"
        return
    if radius != certificate.radius:
        yield f"recorded radius {_shown(certificate.radius)}, the evidence gives {_shown(radius)}"
    if inserted != certificate.insertions:
        yield f"recorded {_shown(certificate.insertions)} insertions, the evidence gives {_shown(inserted)}"
    if certificate.copies < evidence.copies + sum(certificate.selection or ()):
        yield f"recorded {certificate.copies} copies, the evidence has more"
    about = dict(enumerate(promise.labels)).get(evidence.chosen, "no class of the model")
    if certificate.predicted != about:
        yield f"recorded {certificate.predicted}, the evidence is about {about}"
    expected = "abstained" if radius is None else "certified" if promise.named.method.sound else "claimed"
    if certificate.status != expected:
        yield f"recorded as {certificate.status}, the evidence says {expected}"
    yield from deviations


def _shown(radius: int | None) -> str:
    return "none" if radius is None else str(radius)


def _sound(sound: bool) -> str:
    return "sound" if sound else "not sound"
