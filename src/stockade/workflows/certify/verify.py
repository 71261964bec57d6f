"""Check certificates: every radius must follow from its evidence, by arithmetic alone and without the model.

Whoever has the model can also ask it about fresh random copies: does anything speak against what was certified?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stockade.certificates.certificate import Certificate, seed_of_text, text_fingerprint
from stockade.certificates.evidence import Evidence, read_evidence
from stockade.certificates.method import CertificationInput, CertificationMethod, Resampling
from stockade.core.errors import ModelError, SearchStopped, StockadeError
from stockade.core.protocols import Classifier
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.engine.services import innermost
from stockade.experiment.inputs import fingerprint_of
from stockade.experiment.integrity import RowFields, check_rows
from stockade.experiment.pool import asking, recorded_model
from stockade.experiment.result import Verification
from stockade.workflows.certify.result import CertifyResult, Context

UNLIKELY = 1e-6
"""Copies refute a certificate if they would speak against a true one like this with a smaller probability."""

_FIELDS = RowFields(part="method", text="text")


def recompute(result: CertifyResult) -> Verification:
    """Compute every certificate of a run again from its evidence, and the summary from the certificates; check that no
    text is missing or was exchanged.
    """
    by_method = result.contexts
    rows = {method: result.store.rows(method) for method in by_method}
    stored = check_rows(rows, _FIELDS, result.manifest.inputs["data"], result.store.parts())
    problems = [*_misnamed_methods(result, by_method), *stored.problems]
    for method in by_method:
        for certificate in result.records(method):
            wrong = certificate_problems(certificate, by_method[method])
            problems += [f"{method}, example {certificate.id}: {problem}" for problem in wrong]
    return result.verified(stored.checked, problems, stored.incomplete)


def _misnamed_methods(result: CertifyResult, by_method: Mapping[str, Context]) -> Iterator[str]:
    """What a radius means is part of a certificate."""
    for key, recorded in result.methods.items():
        method = by_method[key].named.method
        if recorded["sound"] != method.sound:
            yield f"{key}: recorded as {_sound(recorded['sound'])}, and it is {_sound(method.sound)}"
        if recorded["threat"] != method.threat:
            yield f'{key}: recorded to be against "{recorded["threat"]}", and it is against "{method.threat}"'


def certificate_problems(certificate: Certificate, context: Context) -> Iterator[str]:
    """Where a certificate does not follow from its evidence, or its evidence not from the run's method and defense."""
    words = len(certificate.text.split())
    if certificate.fingerprint != text_fingerprint(certificate.text, certificate.premise):
        yield "the text is not the one that was certified: its fingerprint differs"
    if certificate.words != words:
        yield f"recorded {certificate.words} words, the text has {words}"
    if certificate.evidence is None:
        if certificate.radius is not None or certificate.status in ("certified", "claimed"):
            yield "a certificate without evidence"
        return
    try:
        evidence = read_evidence(certificate.evidence)
        radius, insertions = evidence.radius(), evidence.insertions()
        deviations = [*_deviations(certificate, evidence, context)]
    except StockadeError as error:
        yield f"the evidence makes no sense: {error}"
        return
    if radius != certificate.radius:
        yield f"recorded radius {_shown(certificate.radius)}, the evidence gives {_shown(radius)}"
    if insertions != certificate.insertions:
        yield f"recorded {_shown(certificate.insertions)} insertions, the evidence gives {_shown(insertions)}"
    if certificate.copies < evidence.copies + sum(certificate.selection or ()):
        yield f"recorded {certificate.copies} copies, the evidence has more"
    about = dict(enumerate(context.labels)).get(evidence.chosen, "no class of the model")
    if certificate.predicted != about:
        yield f"recorded {certificate.predicted}, the evidence is about {about}"
    expected = "abstained" if radius is None else "certified" if context.named.method.sound else "claimed"
    if certificate.status != expected:
        yield f"recorded as {certificate.status}, the evidence says {expected}"
    yield from deviations


def _deviations(certificate: Certificate, evidence: Evidence, context: Context) -> Iterator[str]:
    """Where the evidence is not what the run's method makes of the text on copies of the run's defense."""
    if certificate.seed != seed_of_text(context.seed, context.named.name, certificate.id):
        yield "the seed is not the one that the run gives this text"
    if evidence.classes != len(context.labels) or not 0 <= evidence.chosen < evidence.classes:
        yield f"the evidence is of class {evidence.chosen} of {evidence.classes}, the model has {len(context.labels)}"
    elif not isinstance(context.defense, context.named.method.certifies):
        yield f"{context.named.name} does not certify the defense that the run records"
    else:
        yield from context.named.method.deviations(certificate, evidence, context.defense)


@dataclass(frozen=True, slots=True)
class Resampled:
    """What fresh random copies say of certificates.

    Parameters
    ----------
    checked
        How many certificates the model was asked about again.
    refuted
        Those that fresh copies speak against.
    allowed
        How many may be wrong on average, by their alpha.
    certain
        How many of the refuted ones had left nothing to chance; none of those may be wrong.
    """

    checked: int
    refuted: tuple[str, ...]
    allowed: float
    certain: int = 0

    @property
    def holds(self) -> bool:
        return not self.certain and len(self.refuted) <= self.allowed

    @property
    def sentence(self) -> str:
        """The outcome in a sentence."""
        return (
            f"{self.checked} certificates put to the model again with fresh copies: {len(self.refuted)} refuted; by "
            f"their alpha about {self.allowed:.3g} may be wrong"
        )


def resample_certificates(
    result: CertifyResult, model: object = None, *, trust: bool = False, seed: int = 1
) -> Resampled:
    """Draw copies of every certified text anew, as many as its method may, and compare.

    Parameters
    ----------
    result
        The certificates.
    model
        The model, if it is not where the run found it.
    trust
        Whether code that the folder names may be run.
    seed
        Names the fresh copies.
    """
    spec = result.spec
    result.check_trust(trust, model)
    classifier = recorded_model(
        spec.model if model is None else model,
        spec.model_options,
        spec.defenses,
        result.manifest.inputs["model"],
        seed=spec.seed,
        language=spec.language,
    )
    if fingerprint_of(classifier) != result.manifest.inputs["model"]["fingerprint"]:
        raise ModelError("The model is not the one that was certified: its fingerprint differs.")
    with asking():
        return resample(result, classifier, seed)


def resample(result: CertifyResult, classifier: Classifier, seed: int = 1) -> Resampled:
    """What fresh copies of a loaded model say of the certificates of a run."""
    methods = {named.key: named.method for named in result.spec.methods}
    scheduler = Scheduler.for_classifier(ScoringService(innermost(classifier)), 32)
    certified = list(result.records(None, "certified"))
    refuted, allowed, certain = [], 0.0, 0
    searches = (_search(certificate, methods[certificate.method], classifier, seed) for certificate in certified)
    for ended in scheduler.run(searches):
        if isinstance(ended.result, SearchStopped):
            raise ended.result
        certificate, alpha, problem = ended.result
        allowed += alpha or 0.0
        if problem is not None:
            refuted.append(f"{certificate.method}, example {certificate.id}: {problem}")
            certain += alpha is None
    return Resampled(len(certified), tuple(sorted(refuted)), allowed, certain)


def _search(
    certificate: Certificate, method: CertificationMethod, classifier: Classifier, seed: int
) -> Search[tuple[Certificate, float | None, str | None]]:
    recorded = read_evidence(certificate.evidence or {})
    inputs = CertificationInput(
        Text.parse(certificate.text, certificate.premise),
        recorded.chosen,
        derive_seed("resample", seed, certificate.seed),
    )
    fresh_method = method.for_resampling(UNLIKELY) if isinstance(method, Resampling) else method

    async def compared() -> tuple[Certificate, float | None, str | None]:
        evidence = (await fresh_method.certify(inputs, classifier)).evidence
        if evidence is None or certificate.radius is None:
            return certificate, recorded.alpha, "no copies could be drawn"
        problem = evidence.refutation(
            chosen=recorded.chosen, radius=certificate.radius, insertions=certificate.insertions
        )
        return certificate, recorded.alpha, problem

    return Search(compared, weight=len(certificate.text) * 1000)


def _shown(radius: int | None) -> str:
    return "none" if radius is None else str(radius)


def _sound(sound: bool) -> str:
    return "sound" if sound else "not sound"
