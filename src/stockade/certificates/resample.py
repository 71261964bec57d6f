"""Ask the model again, with fresh copies: does anything speak against what was certified?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stockade.certificates.certificate import Certificate
from stockade.certificates.documents import alpha_of
from stockade.certificates.evidence import read_evidence
from stockade.certificates.job import recorded_methods
from stockade.certificates.method import CertificationInput, Resampling
from stockade.certificates.registry import NamedMethod
from stockade.certificates.run import CertificateRun
from stockade.core.errors import ModelError, SearchStopped
from stockade.core.protocols import Classifier, Fingerprinted
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.engine.scheduler import Scheduler, Search, innermost
from stockade.engine.scoring import ScoringService
from stockade.jobs import ModelOptions

UNLIKELY = 1e-6
"""Copies refute a certificate if they would speak against a true one like this with a smaller chance."""


@dataclass(frozen=True, slots=True)
class Resampled:
    """How many certificates were put to the model again, and which of them fresh copies speak against.

    `allowed` is how many may be wrong in the mean, by the alpha of the certificates; `certain` is how many of the
    refuted ones had left nothing to chance, and none of those may be wrong.
    """

    checked: int
    refuted: tuple[str, ...]
    allowed: float
    certain: int = 0

    @property
    def holds(self) -> bool:
        return not self.certain and len(self.refuted) <= self.allowed


def load_again(run: CertificateRun, model: str | None, options: ModelOptions) -> Classifier:
    """The model of a run, from where it is now; another one is refused."""
    classifier = options.load(model or run.manifest["model"]["reference"], seed=run.manifest["config"]["seed"])
    found = classifier.fingerprint() if isinstance(classifier, Fingerprinted) else None
    if found != run.manifest["model"]["fingerprint"]:
        raise ModelError("The model is not the one that was certified: its fingerprint differs.")
    return classifier


def resample(
    run: CertificateRun, classifier: Classifier, seed: int = 1, observer: Callable[[int], None] | None = None
) -> Resampled:
    """Draw copies of every certified text anew, as many as its method may, and compare."""
    methods = {named.key: named for named in recorded_methods(run.manifest)}
    scheduler = Scheduler.for_classifier(ScoringService(innermost(classifier)), 32)
    certified = [one for one in run.iterate() if one.status == "certified"]
    refuted, allowed, certain = [], 0.0, 0
    searches = (_search(one, methods[one.method], classifier, seed) for one in certified)
    for number, ended in enumerate(scheduler.run(searches), 1):
        if isinstance(ended.result, SearchStopped):
            raise ended.result
        certificate, problem = ended.result
        alpha = alpha_of(certificate)
        allowed += alpha or 0.0
        if problem is not None:
            refuted.append(f"{certificate.method}, example {certificate.id}: {problem}")
            certain += alpha is None
        if observer is not None:
            observer(number)
    return Resampled(len(certified), tuple(sorted(refuted)), allowed, certain)


def _search(
    certificate: Certificate, named: NamedMethod, classifier: Classifier, seed: int
) -> Search[tuple[Certificate, str | None]]:
    method = named.method.for_resampling(UNLIKELY) if isinstance(named.method, Resampling) else named.method
    chosen = read_evidence(certificate.evidence or {}).chosen
    fresh = derive_seed("resample", seed, certificate.seed)
    inputs = CertificationInput(Text.parse(certificate.text, certificate.premise), chosen, fresh)

    async def outcome() -> tuple[Certificate, str | None]:
        evidence = (await method.certify(inputs, classifier)).evidence
        if evidence is None or certificate.radius is None:
            return certificate, "no copies could be drawn"
        refuted = evidence.refutation(chosen=chosen, radius=certificate.radius, insertions=certificate.insertions)
        return certificate, refuted

    return Search(outcome, weight=len(certificate.text) * 1000)
