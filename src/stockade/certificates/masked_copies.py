"""The copies of one text with words hidden at random, numbered, so that the same number is always the same copy."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from stockade.certificates.distributions import MaskingDistribution
from stockade.certificates.sampling import Rows, Stream
from stockade.core.masks import Keep, draw_antithetic_masks, draw_masks, masks_by_number
from stockade.core.seeds import derive_seed
from stockade.engine.requests import Masked

FINITE = 50_000
"""Of so many different copies or fewer none is drawn twice: a sample then says more. Of more it makes no difference."""


@dataclass(frozen=True, slots=True)
class MaskedCopies:
    """All ways to hide all but `kept` words of a text."""

    words: tuple[str, ...]
    premise: str | None
    kept: int
    mask: str
    seed: int
    finite: bool = True
    """Whether copies are drawn without replacement where there are few."""

    @property
    def distribution(self) -> MaskingDistribution:
        return MaskingDistribution(len(self.words), self.kept)

    @property
    def number(self) -> int:
        """How many different copies there are."""
        return comb(len(self.words), self.kept)

    @property
    def population(self) -> int | None:
        return self.number if self.finite and self.number <= FINITE else None

    def masks(self, stream: Stream, start: int, stop: int) -> Keep:
        """Which words the copies with these numbers show."""
        words = len(self.words)
        if self.population is not None:
            order = np.random.default_rng(derive_seed(self.seed, stream)).permutation(self.population)
            return masks_by_number(order[start:stop], words, self.kept)
        rng = np.random.default_rng(derive_seed(self.seed, stream, start))
        return draw_masks(rng, words, self.kept, stop - start)

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        return await Masked(self.words, self.premise, self.masks(stream, start, stop), self.mask)

    async def score_groups(self, stream: Stream, start: int, stop: int) -> Rows:
        rng = np.random.default_rng(derive_seed(self.seed, stream, "deals", start))
        keep = draw_antithetic_masks(rng, len(self.words), self.kept, stop - start)
        return await Masked(self.words, self.premise, keep, self.mask)

    async def score_all(self) -> Rows:
        """Every copy there is, in the order of `masks_by_number`."""
        keep = masks_by_number(np.arange(self.number), len(self.words), self.kept)
        return await Masked(self.words, self.premise, keep, self.mask)
