"""Check a run of certificates: every radius must follow from its evidence, by arithmetic alone and without the model.

With fresh copies (`resample`) it can also be seen whether the evidence itself still stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import comb
from typing import Any

from stockade.certify.certificate import Certificate, text_fingerprint
from stockade.certify.dealing import deal_plans, toss
from stockade.certify.deals import DealPlan
from stockade.certify.dealt import Dealt
from stockade.certify.evidence import Claimed, Enumerated, Evidence, Sampled, read_evidence
from stockade.certify.job import recorded_methods
from stockade.certify.laws import DeletionLaw, MaskingLaw
from stockade.certify.medians import corrected_alpha
from stockade.certify.run import CertificateRun
from stockade.certify.sampling import SampledMethod
from stockade.certify.sequential import Plan
from stockade.core.errors import StockadeError
from stockade.core.masks import kept_words
from stockade.runs.verification import Verification, wrong_summary


def recompute(run: CertificateRun) -> Verification:
    """Compute every certificate of a run again from its evidence, and the summary from the certificates."""
    problems, checked = [], 0
    for certificate in run.iterate():
        told = run.methods[certificate.method]
        problems += [
            f"{certificate.method}, example {certificate.id}: {problem}"
            for problem in _problems(certificate, told, run.manifest)
        ]
        checked += 1
    problems += wrong_summary(run.folder, "methods", run.summary, "certificates")
    return Verification(checked, tuple(problems))


def _problems(certificate: Certificate, method: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[str]:
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
    except StockadeError as error:
        yield f"the evidence makes no sense: {error}"
        return
    if radius != certificate.radius:
        yield f"recorded radius {_shown(certificate.radius)}, the evidence gives {_shown(radius)}"
    inserted = evidence.insertions() if isinstance(evidence, Sampled | Dealt) else None
    if inserted != certificate.insertions:
        yield f"recorded {_shown(certificate.insertions)} insertions, the evidence gives {_shown(inserted)}"
    if certificate.copies < evidence.copies + sum(certificate.selection or ()):
        yield f"recorded {certificate.copies} copies, the evidence has more"
    labels = manifest["model"]["labels"]
    if certificate.predicted != labels[evidence.chosen]:
        yield f"recorded {certificate.predicted}, the evidence is about {labels[evidence.chosen]}"
    expected = "abstained" if radius is None else "certified" if method["sound"] else "claimed"
    if certificate.status != expected:
        yield f"recorded as {certificate.status}, the evidence says {expected}"
    yield from _other_law(certificate, evidence, method, manifest)


def _other_law(
    certificate: Certificate, evidence: Evidence, method: Mapping[str, Any], manifest: Mapping[str, Any]
) -> Iterator[str]:
    """Evidence of other copies than those of the defense, or with more alpha than was allowed, proves nothing here."""
    defense = manifest["model"]["defenses"][0]["options"]
    law = evidence.law if isinstance(evidence, Sampled | Dealt | Claimed) else None
    if isinstance(evidence, Enumerated):
        law = MaskingLaw(evidence.table.words, evidence.table.kept)
    if isinstance(law, MaskingLaw | DeletionLaw) and law.words != certificate.words:
        yield f"the evidence is of a text of {law.words} words, this one has {certificate.words}"
    if isinstance(law, MaskingLaw):
        kept = kept_words(certificate.words, defense["rate"], defense["kept"])
        if law.kept != kept:
            yield f"the evidence is of copies with {law.kept} words, the defense shows {kept}"
    if isinstance(law, DeletionLaw) and law.kept_chance != defense["kept_chance"]:
        yield f"the evidence is of another chance to stay ({law.kept_chance}), not {defense['kept_chance']}"
    if isinstance(evidence, Dealt) and evidence.coin != toss(certificate.seed):
        yield f"the coin {evidence.coin} is not the one of the seed"
    if isinstance(evidence, Sampled | Dealt):
        yield from _other_plan(evidence, method, manifest)


def _other_plan(evidence: Sampled | Dealt, method: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[str]:
    """Looks that were not fixed beforehand prove nothing: the plan must be the one that the run's options make."""
    made = next(one.method for one in recorded_methods(manifest) if one.key == method["key"])
    if manifest["config"]["whole_set"]:
        made = replace(made, alpha=corrected_alpha(made.alpha, manifest["data"]["size"]))
    if evidence.plan.alpha > made.alpha:
        yield f"the evidence is read with alpha {evidence.plan.alpha}, the run allows {made.alpha}"
    elif evidence.plan not in _planned(evidence, made):
        yield "the evidence was looked at by another plan than the run's"
    if evidence.rule != made.rule:
        yield f"the evidence is read by the rule {evidence.rule}, the method has {made.rule}"
    if isinstance(evidence, Sampled) and isinstance(evidence.law, MaskingLaw):
        number, found = comb(evidence.law.words, evidence.law.kept), evidence.plan.population
        if found not in (None, number):
            yield f"the evidence is of {found} different copies, the text has {number}"


def _planned(evidence: Sampled | Dealt, method: SampledMethod) -> Sequence[Plan | DealPlan]:
    if isinstance(evidence, Dealt):
        return deal_plans(method, evidence.law) if method.scheme == "dealt" else ()
    return (method.plan(evidence.plan.population),)


def _shown(radius: int | None) -> str:
    return "none" if radius is None else str(radius)
