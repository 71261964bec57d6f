"""The views that a search may have of a defended model; what it finds must fool that model itself in all of them.

    direct      searches query the defended model, with fresh random choices each time
    eot         searches see the mean of several answers of a randomised model (expectation over its randomness)
    surrogate   searches see a surrogate of the defense: mean probabilities in place of votes or logits
    transfer    searches see the bare model
    source      searches see another model, the one that texts are transferred from

A defense whose answers starve or confuse a search looks robust in the direct view and is not: the others show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, CompositeClassifier, Fingerprinted, Probabilities
from stockade.core.text import Text, TextInput
from stockade.defenses.defended import Defended, probabilities_of
from stockade.engine.requests import Score
from stockade.engine.services import innermost
from stockade.models.language import LanguageModels

DIRECT, EOT, SURROGATE, TRANSFER, SOURCE = "direct", "eot", "surrogate", "transfer", "source"
VIEWS = (DIRECT, EOT, SURROGATE, TRANSFER, SOURCE)
DEFAULT_LANGUAGE = LanguageModels()


@dataclass(frozen=True, slots=True)
class Averaged:
    """The mean of several answers of a randomised classifier: what an attacker sees who asks more than once.

    Athalye et al. 2018, "Obfuscated Gradients Give a False Sense of Security", section 4.3: a search that takes a
    single draw for the truth follows noise; the mean is what the defense does.

    Parameters
    ----------
    inner
        The randomised classifier.
    draws
        How often it is asked about each text; one averaged answer costs an attack one query.
    language
        The masked LM and sentence encoder that a defense may ask.
    """

    inner: Classifier
    draws: int
    language: LanguageModels = DEFAULT_LANGUAGE

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise OptionError(f"A mean is over {self.draws} draws, expected at least 1.")

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    @property
    def deterministic(self) -> bool:
        return self.inner.deterministic

    async def answer(self, text: Text, draw: int) -> Scores:
        """The mean answer; its random choices are those of the search inside, which is named by `draw`."""
        rows = await Score([text] * self.draws)
        return Scores(tuple(np.mean([row.probabilities for row in rows], axis=0).tolist()))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """Class probabilities of each text; the same text has the same answer whatever else is asked with it."""
        return probabilities_of(self, inputs, self.language, "averaged")


def views_of(
    classifier: Classifier, eot_samples: int, language: LanguageModels, source: Classifier | None = None
) -> dict[str, Classifier | None]:
    """What searches query in each view; None is the classifier itself. A view that would show the same is left out.

    Parameters
    ----------
    classifier
        The model in its defenses.
    eot_samples
        How many answers of a randomised model are averaged; 1 leaves that view out.
    language
        The masked LM and sentence encoder that a defense may ask.
    source
        Another model, whose adversarial texts are tried on this one.
    """
    queried: dict[str, Classifier | None] = {DIRECT: None}
    if not classifier.deterministic and eot_samples > 1:
        queried[EOT] = Averaged(classifier, eot_samples, language)
    surrogate = surrogate_of(classifier)
    if surrogate is not None:
        queried[SURROGATE] = surrogate
    if isinstance(classifier, CompositeClassifier):
        queried[TRANSFER] = innermost(classifier)
    if source is not None and not _same(source, innermost(classifier)):
        queried[SOURCE] = source
    return queried


def _same(first: Classifier, second: Classifier) -> bool:
    if isinstance(first, Fingerprinted) and isinstance(second, Fingerprinted):
        return first.fingerprint() == second.fingerprint()
    return first is second


def surrogate_of(classifier: Classifier) -> Defended | None:
    """The classifier with surrogates of all its defenses; None if no defense has one that differs from it."""
    if not isinstance(classifier, Defended):
        return None
    inner, outer = surrogate_of(classifier.inner), classifier.surrogate()
    if outer is not None and outer.defense == classifier.defense:
        outer = None
    if inner is None and outer is None:
        return None
    return replace(outer or classifier, inner=inner or classifier.inner)


def counts_votes(classifier: Classifier) -> bool:
    """Whether a defense around the model counts votes."""
    while isinstance(classifier, Defended):
        if getattr(classifier.defense, "combine", None) == "vote":
            return True
        classifier = classifier.inner
    return False
