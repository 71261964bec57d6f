"""Partition: split the words of a text into groups, ask about each group alone, let them vote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from random import Random
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.masks import Keep
from stockade.core.partitions import (
    Layout,
    Votes,
    cell_offsets,
    group_texts,
    hash_groups,
    overlapping_groups,
    position_groups,
)
from stockade.core.registry import published
from stockade.core.text import Text
from stockade.defenses.combine import combine
from stockade.defenses.text_perturbation import PerturbedTexts, with_changed_texts, with_masked_words
from stockade.engine.requests import ClassNames, Masked, Score

if TYPE_CHECKING:
    from stockade.training.objective import Batch, Objective, TrainingKit


@published(
    "partition",
    paper="Levine and Feizi 2020, (De)Randomized Smoothing for Certifiable Defense against Patch Attacks; "
    "Pei et al. 2024, TextGuard (hash); Wang et al. 2022, Improved Certified Defenses against Data Poisoning with "
    "(Deterministic) Finite Aggregation (overlap)",
    presets={"paper": {}, "hash": {"by": "hash"}},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Split the words into groups: train on single groups, answer with the votes of all.

    Words are what blanks separate, of a pair those of the hypothesis. A group without words does not vote. Ties go to
    the first class. In training every text shows one group, all as likely; a text of which an empty group was drawn is
    shown whole.

    Differences to the papers: Levine and Feizi show parts of images; TextGuard has a model for every group, against
    poisoned training data. Here one model, trained on single groups, is asked about every group of a text.

    Parameters
    ----------
    by
        What decides a word's group. `position`: its place and the number of words; all other words are hidden, each by
        one mask. `hash`: its lower-cased form; all other words are removed.
    groups
        How many groups there are.
    overlap
        How many groups each word is in. The words are then split into so many times more cells, each group is made of
        so many cells, and there are as many groups as cells: more votes on parts of the same size. By position fewer
        where a text has few words, so that no cell is without a word.
    layout
        Whether the words of a group stand side by side (`blocks`) or apart (`interleaved`), with `by=position`.
    key
        Is hashed together with every word, with `by=hash`.
    mask
        What hides a word from a model without a mask token.
    combine
        `vote`, or `probability` for the mean of the groups' probabilities, which shows attackers a score to follow;
        certificates need votes.
    """

    innermost: ClassVar[bool] = True
    randomised: ClassVar[bool] = False
    by: Literal["position", "hash"] = "position"
    groups: int = 10
    overlap: int = 1
    layout: Layout = "interleaved"
    key: str = "stockade"
    mask: str = "[MASK]"
    combine: Literal["vote", "probability"] = "vote"

    def __post_init__(self) -> None:
        if self.groups < 2:
            raise OptionError(
                f"The groups of partition are {self.groups}, expected at least 2, such as 10: a single group is the "
                "whole text."
            )

        if self.overlap < 1:
            raise OptionError(f"The overlap of partition is {self.overlap}, expected at least 1 group for each word.")

    def surrogate(self) -> Partition:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        if not str(text).split():
            return (await Score([text]))[0]
        if self.combine == "probability":
            return combine(await self.group_rows(text), "probability")
        return (await self.votes(text)).shares()

    async def votes(self, text: Text) -> Votes:
        """How many groups vote for each class: what a certificate is computed from.

        A text without words has no votes.
        """
        rows = await self.group_rows(text)
        return Votes(tuple(np.bincount(rows.argmax(1), minlength=rows.shape[1]).tolist()))

    async def group_rows(self, text: Text) -> NDArray[np.float64]:
        """The class probabilities of each group that has words, a row each."""
        words = str(text).split()
        if not words:
            return np.empty((0, len(await ClassNames())))
        if self.by == "position":
            return await Masked(words, text.premise, self.positions(len(words)), self.mask)
        texts = [Text.parse(" ".join(group), text.premise) for group in self.hashed(words) if group]
        return np.array([scores.probabilities for scores in await Score(texts)])

    def positions(self, words: int) -> Keep:
        """Which of so many words each group shows, by position."""
        cells = position_groups(words, self.groups * len(self.position_offsets(words)), self.layout)
        return overlapping_groups(cells, self.position_offsets(words))

    def hashed(self, words: list[str]) -> tuple[tuple[str, ...], ...]:
        """The words of each group, by hash."""
        cells, offsets = self.groups * self.overlap, self.hash_offsets
        if len(offsets) == 1:
            return group_texts(words, hash_groups(words, cells, self.key), cells)
        of_words = hash_groups(words, cells, self.key)
        shown = overlapping_groups(np.array(of_words, dtype=np.int64)[None, :] == np.arange(cells)[:, None], offsets)
        return tuple(tuple(compress(words, row)) for row in shown.tolist())

    def position_offsets(self, words: int) -> tuple[int, ...]:
        """The cells of the first group by position; that of (0,) alone where groups do not overlap."""
        overlap = max(1, min(self.overlap, words // self.groups))
        return cell_offsets(self.groups * overlap, overlap)

    @property
    def hash_offsets(self) -> tuple[int, ...]:
        """The cells of the first group by hash, which must not depend on the number of words."""
        return cell_offsets(self.groups * self.overlap, self.overlap)

    def objective(self, kit: TrainingKit) -> Objective:
        def show_group(batch: Batch) -> Batch:
            if self.by == "position":
                return with_masked_words(batch, kit.encoder, self._drawn_positions)
            return with_changed_texts(batch, self._drawn_words)

        return PerturbedTexts(show_group, kit.plain)

    def _drawn_positions(self, generator: np.random.Generator, words: int) -> Keep:
        return generator.choice(self.positions(words), 1)

    def _drawn_words(self, string: str, rng: Random) -> str:
        return " ".join(rng.choice(self.hashed(string.split()))) or string
