"""Certificates for random deletion: no insertions, deletions and substitutions of up to d words change the class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stockade.certificates.adaptive_deletion import adaptive_insertion_leads, adaptive_losses
from stockade.certificates.bounds import Number, deletion_losses, insertion_leads
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import DISTRIBUTIONS, Losses, SmoothingDistribution
from stockade.certificates.method import CertificationInput, certified_defense
from stockade.certificates.sampled_method import SampledMethod
from stockade.certificates.sampling import Rows, Stream
from stockade.certificates.sequential import Scheme
from stockade.core.masks import Keep
from stockade.core.partitions import deletion_chance, deletion_group_size, keep_antithetic_words, keep_words
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.deletion import Deletion
from stockade.engine.requests import Score

_INSERTIONS = 1000
"""More inserted words than these are not counted."""


@DISTRIBUTIONS.register("deletion")
@dataclass(frozen=True, slots=True)
class DeletionDistribution:
    """Each word stays with the same chance, whatever becomes of the others; the others are taken out.

    Parameters
    ----------
    words : int
        How many words the text has.
    kept_chance : float
        The chance to stay, at most.
    mean_kept : float, optional
        How many words stay in the mean, where that is less: the chance then depends on the number of words, and edits
        that change that number are those of `adaptive_deletion`.
    """

    words: int
    kept_chance: float
    mean_kept: float | None = None

    @property
    def chance(self) -> float:
        """The chance to stay in a text of so many words."""
        return deletion_chance(self.words, self.kept_chance, self.mean_kept)

    @property
    def distinct_copies(self) -> None:
        """Not counted: copies are drawn independently whatever their number."""
        return None

    @property
    def group_size(self) -> int:
        """How many copies an antithetic group has."""
        return deletion_group_size(self.chance)

    def losses(self) -> Losses:
        if self.mean_kept is None:
            return deletion_losses(self.kept_chance, self.words)
        return adaptive_losses(self.words, self.kept_chance, self.mean_kept)

    def insertion_leads(self) -> tuple[Number, ...]:
        if self.mean_kept is None:
            return insertion_leads(self.kept_chance, _INSERTIONS)
        return adaptive_insertion_leads(self.words, self.kept_chance, self.mean_kept, _INSERTIONS)

    def difference(self, recorded: SmoothingDistribution) -> str:
        if not isinstance(recorded, DeletionDistribution):
            return "the evidence is of other copies than the defense makes of this text"
        if recorded.words != self.words:
            return f"the evidence is of a text of {recorded.words} words, this one has {self.words}"
        rates = [
            f"{rate.kept_chance}" + ("" if rate.mean_kept is None else f" with a mean of {rate.mean_kept} words")
            for rate in (recorded, self)
        ]
        return f"the evidence is of another chance to stay ({rates[0]}), not {rates[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortenedCopies:
    """Copies of a text in which each word stays with the same chance. One without words votes for no class.

    Parameters
    ----------
    words : tuple[str, ...]
        The words of the text.
    premise : str or None
        The premise of a pair, which loses no words.
    distribution : DeletionDistribution
        The chance of each word to stay.
    seed : int
        Names the random copies.
    classes : int
        How many classes the model has.
    """

    words: tuple[str, ...]
    premise: str | None
    distribution: DeletionDistribution
    seed: int
    classes: int

    @property
    def population(self) -> None:
        return None

    def independent(self) -> ShortenedCopies:
        return self

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        rng = np.random.default_rng(derive_seed(self.seed, stream, start))
        return await self._score(keep_words(rng, len(self.words), self.distribution.chance, stop - start))

    async def score_groups(self, stream: Stream, start: int, stop: int) -> Rows:
        rng = np.random.default_rng(derive_seed(self.seed, stream, "deals", start))
        return await self._score(keep_antithetic_words(rng, len(self.words), self.distribution.chance, stop - start))

    async def _score(self, keep: Keep) -> Rows:
        strings = [" ".join(word for word, stays in zip(self.words, row, strict=True) if stays) for row in keep]
        shown = [at for at, string in enumerate(strings) if string]
        answers = await Score([Text.parse(strings[at], self.premise) for at in shown]) if shown else []
        rows = np.zeros((len(strings), self.classes))
        if answers:
            rows[shown] = [scores.probabilities for scores in answers]
        return rows


class RandomDeletion:
    """Random deletion as its certificates see it."""

    def defense_of(self, classifier: Classifier) -> Deletion:
        return certified_defense(classifier, Deletion, "deletion", "deletion:kept_chance=0.3")

    def copies(self, defense: Deletion, inputs: CertificationInput, classes: int) -> ShortenedCopies | None:
        words = tuple(str(inputs.text).split())
        if not words:
            return None
        return ShortenedCopies(
            words=words,
            premise=inputs.text.premise,
            distribution=DeletionDistribution(len(words), defense.kept_chance, defense.mean_kept),
            seed=inputs.seed,
            classes=classes,
        )


@published(
    "deletion",
    paper="Huang et al. 2023, RS-Del: Edit Distance Robustness Certificates via Randomized Deletion; 2025, AdaptDel",
    presets={"default": {}, "fixed": {"scheme": "fixed", "selection": 1000}},
)
@dataclass(frozen=True, slots=True)
class DeletionCertificate(SampledMethod):
    """The lead over the strongest other class must be more than twice the share of copies that d edits can alter."""

    default: ClassVar[bool] = True
    certifies: ClassVar[type] = Deletion
    smoothing: ClassVar[RandomDeletion] = RandomDeletion()
    antithetic: ClassVar[bool] = True
    threat: ClassVar[str] = (
        "any insertions, deletions and substitutions of words, up to d in all (words are what blanks separate)"
    )
    scheme: Scheme = "betting"

    def allowed_changes(self, certificate: Certificate) -> str:
        """What the radius of a certificate allows, in short."""
        plural = "" if certificate.radius == 1 else "s"
        return f"any {certificate.radius} edit{plural}, in {certificate.words} words"
