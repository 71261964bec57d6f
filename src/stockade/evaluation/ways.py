"""The ways in which an attack may look at a defended model; what it finds must fool that model itself in all of them.

direct       searches ask the defended model, with fresh random choices each time
expectation  searches see the mean of several answers of a randomised model
twin         searches see the twin of a defense, which answers with mean probabilities in place of votes or logits
transfer     searches see the bare model
source       searches see another model, the one that texts are to be transferred from

A defense whose answers starve or confuse a search looks robust the direct way and is not: the other ways show it.
"""

from __future__ import annotations

from dataclasses import replace

from stockade.core.protocols import Classifier, CompositeClassifier, Fingerprinted
from stockade.defenses.defended import Defended
from stockade.engine.scheduler import innermost
from stockade.evaluation.averaged import Averaged
from stockade.models.language import LanguageModels

DIRECT, EXPECTATION, TWIN, TRANSFER, SOURCE = "direct", "expectation", "twin", "transfer", "source"
WAYS = (DIRECT, EXPECTATION, TWIN, TRANSFER, SOURCE)


def views(
    classifier: Classifier, expectation: int, language: LanguageModels, source: Classifier | None = None
) -> dict[str, Classifier | None]:
    """What searches see, by way; None is the classifier itself. A way that would show the same is left out."""
    found: dict[str, Classifier | None] = {DIRECT: None}
    if not classifier.deterministic and expectation > 1:
        found[EXPECTATION] = Averaged(classifier, expectation, language)
    twin = twin_of(classifier)
    if twin is not None:
        found[TWIN] = twin
    if isinstance(classifier, CompositeClassifier):
        found[TRANSFER] = innermost(classifier)
    if source is not None and not _same(source, innermost(classifier)):
        found[SOURCE] = source
    return found


def _same(one: Classifier, other: Classifier) -> bool:
    if isinstance(one, Fingerprinted) and isinstance(other, Fingerprinted):
        return one.fingerprint() == other.fingerprint()
    return one is other


def twin_of(classifier: Classifier) -> Defended | None:
    """The classifier with the twins of all its defenses; None if no defense has one that differs from it."""
    if not isinstance(classifier, Defended):
        return None
    inner, own = twin_of(classifier.inner), classifier.twin()
    if own is not None and own.defense == classifier.defense:
        own = None
    if inner is None and own is None:
        return None
    return replace(own or classifier, inner=inner or classifier.inner)


def lets_vote(classifier: Classifier) -> bool:
    """Whether a defense around the model counts votes."""
    while isinstance(classifier, Defended):
        if getattr(classifier.defense, "combine", None) == "vote":
            return True
        classifier = classifier.inner
    return False
