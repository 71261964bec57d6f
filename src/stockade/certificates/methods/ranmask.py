"""Certificates for random masking (RanMASK): no change of up to d words changes the class that most masked copies of a
text vote for.

Masked copies are drawn at random here; `ranmask_exact` asks about all of them, `ranmask_legacy` computes what the paper
publishes (see docs/certificates.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import ClassVar

import numpy as np

from stockade.certificates.bounds import Number, Rule, masking_losses
from stockade.certificates.evidence import DISTRIBUTIONS, Losses, SmoothingDistribution
from stockade.certificates.method import CertificationInput, certified_defense
from stockade.certificates.sampled_method import SampledMethod
from stockade.certificates.sampling import Rows, Stream
from stockade.certificates.sequential import Scheme
from stockade.core.errors import ModelError
from stockade.core.masks import (
    Keep,
    antithetic_group_size,
    draw_antithetic_masks,
    draw_masks,
    masks_by_number,
)
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.seeds import derive_seed
from stockade.defenses.ranmask import RanMask
from stockade.engine.requests import Masked

THREAT = "any change of up to d words, the number of words unchanged (words are what blanks separate)"
PAPER = "Zeng et al. 2021, RanMASK; Levine and Feizi 2020, (De)Randomized Smoothing"
_FIXED = {"scheme": "fixed", "selection": 1000}
_FINITE = 50_000
"""Of so many different copies or fewer none is drawn twice: a sample then says more. Of more it makes no difference."""


@DISTRIBUTIONS.register("masking")
@dataclass(frozen=True, slots=True)
class MaskingDistribution:
    """`kept` of the words stay, every choice of them as likely as any other; the others are hidden in their places."""

    words: int
    kept: int

    @property
    def distinct_copies(self) -> int:
        """How many different copies there are."""
        return comb(self.words, self.kept)

    @property
    def group_size(self) -> int:
        """How many copies an antithetic group has."""
        return antithetic_group_size(self.words, self.kept)

    def losses(self) -> Losses:
        return masking_losses(self.words, self.kept)

    def insertion_leads(self) -> tuple[Number, ...]:
        return ()

    def difference(self, recorded: SmoothingDistribution) -> str:
        if not isinstance(recorded, MaskingDistribution):
            return "the evidence is of other copies than the defense makes of this text"
        if recorded.words != self.words:
            return f"the evidence is of a text of {recorded.words} words, this one has {self.words}"
        return f"the evidence is of copies with {recorded.kept} words, the defense shows {self.kept}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedCopies:
    """All ways to hide all but `kept` words of a text.

    Parameters
    ----------
    words : tuple[str, ...]
        The words of the text.
    premise : str or None
        The premise of a pair, which is never hidden.
    kept : int
        How many words each copy shows.
    mask : str
        What stands for a hidden word.
    seed : int
        Names the random copies.
    finite : bool
        Whether copies are drawn without replacement where there are few.
    """

    words: tuple[str, ...]
    premise: str | None
    kept: int
    mask: str
    seed: int
    finite: bool = True

    @property
    def distribution(self) -> MaskingDistribution:
        return MaskingDistribution(len(self.words), self.kept)

    @property
    def population(self) -> int | None:
        copies = self.distribution.distinct_copies
        return copies if self.finite and copies <= _FINITE else None

    def independent(self) -> MaskedCopies:
        return replace(self, finite=False)

    def masks(self, stream: Stream, start: int, stop: int) -> Keep:
        """Which words the copies of a chunk of a stream show.

        Without replacement a stream is one permutation of all copies, and any chunk of it can be had by itself.
        Independent copies are drawn for each chunk by its start: chunks that begin alike agree as far as both go.
        """
        words = len(self.words)
        if self.population is not None:
            order = np.random.default_rng(derive_seed(self.seed, stream)).permutation(self.population)
            return masks_by_number(order[start:stop], words, self.kept)
        rng = np.random.default_rng(derive_seed(self.seed, stream, start))
        return draw_masks(rng, words, self.kept, stop - start)

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        return await self._score(self.masks(stream, start, stop))

    async def score_groups(self, stream: Stream, start: int, stop: int) -> Rows:
        rng = np.random.default_rng(derive_seed(self.seed, stream, "deals", start))
        return await self._score(draw_antithetic_masks(rng, len(self.words), self.kept, stop - start))

    async def score_all(self) -> Rows:
        """Class probabilities of every copy there is, in the order of `masks_by_number`."""
        numbers = np.arange(self.distribution.distinct_copies)
        return await self._score(masks_by_number(numbers, len(self.words), self.kept))

    async def _score(self, keep: Keep) -> Rows:
        return await Masked(self.words, self.premise, keep, self.mask)


class Masking:
    """Random masking as all its certificates see it."""

    def defense_of(self, classifier: Classifier) -> RanMask:
        defense = certified_defense(classifier, RanMask, "ranmask", "ranmask:rate=0.7")
        if defense.sampling != "uniform":
            raise ModelError(
                "ranmask hides words by what a language model expects (sampling=lm): which words are hidden then "
                "depends on the words, and no certificate holds. Use sampling=uniform."
            )
        return defense

    def distribution(self, defense: RanMask, words: int) -> MaskingDistribution:
        """How a defense draws copies of a text of so many words."""
        return MaskingDistribution(words, defense.kept_of(words))

    def copies(self, defense: RanMask, inputs: CertificationInput, classes: int) -> MaskedCopies | None:
        words = tuple(str(inputs.text).split())
        if not words:
            return None
        kept = self.distribution(defense, len(words)).kept
        return MaskedCopies(words=words, premise=inputs.text.premise, kept=kept, mask=defense.mask, seed=inputs.seed)


@published("ranmask-gap", paper=PAPER, presets={"default": {}, "fixed": _FIXED})
@dataclass(frozen=True, slots=True)
class RanMaskGap(SampledMethod):
    """The lead over the strongest other class must be more than twice the share of copies that d words can touch."""

    default: ClassVar[bool] = True
    certifies: ClassVar[type] = RanMask
    smoothing: ClassVar[Masking] = Masking()
    antithetic: ClassVar[bool] = True
    threat: ClassVar[str] = THREAT
    scheme: Scheme = "betting"


@published("ranmask-lf", paper=PAPER, presets={"default": {}, "fixed": _FIXED})
@dataclass(frozen=True, slots=True)
class RanMaskMajority(SampledMethod):
    """The share of copies for the class must be more than a half and the share of copies that d words can touch."""

    certifies: ClassVar[type] = RanMask
    smoothing: ClassVar[Masking] = Masking()
    antithetic: ClassVar[bool] = True
    rule: ClassVar[Rule] = "majority"
    threat: ClassVar[str] = THREAT
    scheme: Scheme = "betting"
