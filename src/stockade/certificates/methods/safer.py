"""Certificates for synonym smoothing (SAFER): no replacement of up to d words by synonyms changes the class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stockade.certificates.distributions import SynonymDistribution
from stockade.certificates.registry import CertificationInput, MethodResult
from stockade.certificates.sampling import Rows, SampledMethod, Stream
from stockade.certificates.smoothed import smoothing
from stockade.certificates.synonyms import synonym_distribution
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.safer import Safer
from stockade.engine.requests import Score


@published(
    "safer",
    paper="Ye et al. 2020, SAFER",
    presets={"default": {}, "fixed": {"scheme": "fixed", "selection": 1000}},
)
@dataclass(frozen=True, slots=True)
class SaferCertificate(SampledMethod):
    """The lead over the strongest other class must be more than twice what d synonyms can alter in the draws.

    Differences to the paper: confidence bounds in place of a constant, and a radius in words instead of all words or
    none.
    """

    threat: ClassVar[str] = (
        "up to d words (words are what blanks separate) replaced by their synonyms, those that the table of the "
        "defense joins to them directly, in the same case, and nothing else: no typos, no words outside the table"
    )

    def check(self, classifier: Classifier) -> None:
        smoothing(classifier, Safer, "safer", "safer")

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        safer = smoothing(classifier, Safer, "safer", "safer")
        copies = SynonymCopies(inputs.text, safer, inputs.seed)
        return await self.sampled(copies, inputs, len(classifier.labels))


@dataclass(frozen=True, slots=True)
class SynonymCopies:
    """Copies of a text with every word that has a set drawn from it. Without such a word there is one copy."""

    text: Text
    safer: Safer
    seed: int

    @property
    def distribution(self) -> SynonymDistribution:
        return synonym_distribution(self.text, self.safer.word_sets(self.text))

    @property
    def population(self) -> int | None:
        return None if self.safer.word_sets(self.text) else 1

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        rng = np.random.default_rng(derive_seed(self.seed, stream, start))
        copies = self.safer.perturbed(self.text, rng, stop - start)
        return np.array([scores.probabilities for scores in await Score(copies)])
