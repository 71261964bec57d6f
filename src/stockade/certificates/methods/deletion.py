"""Certificates for random deletion: no insertions, deletions and substitutions of up to d words change the class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stockade.certificates.betting_sampler import sample_by_betting, worth_betting
from stockade.certificates.distributions import DeletionDistribution
from stockade.certificates.registry import NO_WORDS, CertificationInput, MethodResult
from stockade.certificates.sampling import Rows, SampledMethod, Stream
from stockade.certificates.sequential import Scheme
from stockade.certificates.smoothed import smoothing
from stockade.core.masks import Keep
from stockade.core.partitions import keep_antithetic_words, keep_words
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.deletion import Deletion
from stockade.engine.requests import Score


@published(
    "deletion",
    paper="Huang et al. 2023, RS-Del: Edit Distance Robustness Certificates via Randomized Deletion",
    presets={"default": {}, "fixed": {"scheme": "fixed", "selection": 1000}},
)
@dataclass(frozen=True, slots=True)
class DeletionCertificate(SampledMethod):
    """The lead over the strongest other class must be more than twice the share of copies that d edits can alter."""

    antithetic: ClassVar[bool] = True
    threat: ClassVar[str] = (
        "any insertions, deletions and substitutions of words, up to d in all (words are what blanks separate)"
    )
    scheme: Scheme = "betting"

    def check(self, classifier: Classifier) -> None:
        _smoothing(classifier)

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        words = tuple(str(inputs.text).split())
        if not words:
            return NO_WORDS
        chance = _smoothing(classifier).kept_chance
        copies = ShortenedCopies(words, inputs.text.premise, chance, inputs.seed, len(classifier.labels))
        if worth_betting(self, copies.distribution):
            return await sample_by_betting(self, copies, inputs, len(classifier.labels))
        return await self.sampled(copies, inputs, len(classifier.labels))


@dataclass(frozen=True, slots=True)
class ShortenedCopies:
    """Copies of a text in which each word stays with the same chance. One without words votes for no class."""

    words: tuple[str, ...]
    premise: str | None
    kept_chance: float
    seed: int
    classes: int

    @property
    def distribution(self) -> DeletionDistribution:
        return DeletionDistribution(len(self.words), self.kept_chance)

    @property
    def population(self) -> int | None:
        return None

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        rng = np.random.default_rng(derive_seed(self.seed, stream, start))
        return await self._rows(keep_words(rng, len(self.words), self.kept_chance, stop - start))

    async def score_groups(self, stream: Stream, start: int, stop: int) -> Rows:
        rng = np.random.default_rng(derive_seed(self.seed, stream, "deals", start))
        return await self._rows(keep_antithetic_words(rng, len(self.words), self.kept_chance, stop - start))

    async def _rows(self, keep: Keep) -> Rows:
        strings = [" ".join(word for word, stays in zip(self.words, row, strict=True) if stays) for row in keep]
        shown = [at for at, string in enumerate(strings) if string]
        answers = await Score([Text.parse(strings[at], self.premise) for at in shown]) if shown else []
        rows = np.zeros((len(strings), self.classes))
        if answers:
            rows[shown] = [scores.probabilities for scores in answers]
        return rows


def _smoothing(classifier: Classifier) -> Deletion:
    return smoothing(classifier, Deletion, "deletion", "deletion:kept_chance=0.3")
