"""Certificates for synonym smoothing (SAFER): no replacement of up to d words by synonyms changes the class.

Radii count words by the blanks between them. SAFER draws for each run of letters by itself, and blanks may separate
fewer words than there are such runs: "good/bad" is one word to whoever counts changes, and both of its parts may then
be replaced. So the overlap of a word is the product of those of its parts. A text whose words are replaced by synonyms
is read as the same words in the same places, or one of the replaced words has overlap 0 and nothing is promised
(`stockade.lexicon.perturbation_sets` says why): 日日 is two parts of one word, and 일일 would be a single one.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from stockade.certificates.bounds import Number, synonym_losses
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import DISTRIBUTIONS, Losses, SampledEvidence, SmoothingDistribution, read_evidence
from stockade.certificates.method import CertificationInput, certified_defense
from stockade.certificates.sampled_method import SampledMethod
from stockade.certificates.sampling import Rows, Stream
from stockade.core.errors import StockadeError
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.safer import Safer
from stockade.engine.requests import Score
from stockade.lexicon.perturbation_sets import WordSet

_WORD = re.compile(r"\S+")


@DISTRIBUTIONS.register("synonyms")
@dataclass(frozen=True, slots=True)
class SynonymDistribution:
    """Each word that has synonyms is drawn from its set; `overlaps` are what such sets have in common, at worst."""

    overlaps: tuple[float, ...]

    @classmethod
    def of(cls, text: Text, sets: Sequence[WordSet]) -> SynonymDistribution:
        """How copies of a text with these sets are drawn."""
        return cls(tuple(_joint_overlap(parts) for parts in _sets_by_word(text, sets).values()))

    def losses(self) -> Losses:
        return synonym_losses(self.overlaps)

    def insertion_leads(self) -> tuple[Number, ...]:
        return ()

    def difference(self, recorded: SmoothingDistribution) -> str:
        return "the evidence is of other copies than the defense makes of this text"


@dataclass(frozen=True, slots=True)
class SynonymCopies:
    """Copies of a text with every word that has a set drawn from it. Without such a word there is one copy.

    Parameters
    ----------
    text : Text
        The text.
    defense : Safer
        Draws the words.
    seed : int
        Names the random copies.
    """

    text: Text
    defense: Safer
    seed: int

    @property
    def distribution(self) -> SynonymDistribution:
        return SynonymDistribution.of(self.text, self.defense.word_sets(self.text))

    @property
    def population(self) -> int | None:
        return None if self.defense.word_sets(self.text) else 1

    def independent(self) -> SynonymCopies:
        return self

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        rng = np.random.default_rng(derive_seed(self.seed, stream, start))
        copies = self.defense.perturbed(self.text, rng, stop - start)
        return np.array([scores.probabilities for scores in await Score(copies)])


class SynonymSmoothing:
    """SAFER as its certificates see it."""

    def defense_of(self, classifier: Classifier) -> Safer:
        return certified_defense(classifier, Safer, "safer", "safer")

    def copies(self, defense: Safer, inputs: CertificationInput, classes: int) -> SynonymCopies:
        return SynonymCopies(inputs.text, defense, inputs.seed)


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

    default: ClassVar[bool] = True
    certifies: ClassVar[type] = Safer
    smoothing: ClassVar[SynonymSmoothing] = SynonymSmoothing()
    threat: ClassVar[str] = (
        "up to d words (words are what blanks separate) replaced by their synonyms, those that the table of the "
        "defense joins to them directly, in the same case, and nothing else: no typos, no words outside the table, no "
        "entries of the table that are not a single word"
    )

    def allowed_changes(self, certificate: Certificate) -> str:
        """What the radius of a certificate allows, in short."""
        with_synonyms = len(_recorded_overlaps(certificate))
        return f"any {certificate.radius} of {with_synonyms} words with synonyms, of {certificate.words} in all"

    def changeable_words(self, certificate: Certificate, defense: Safer) -> tuple[bool, ...] | None:
        """Those that have synonyms; None if the table is not here, or not the one that was certified with."""
        text = Text.parse(certificate.text)
        try:
            sets = defense.word_sets(text)
        except StockadeError:
            return None
        if SynonymDistribution.of(text, sets).overlaps != _recorded_overlaps(certificate):
            return None
        with_synonyms = _sets_by_word(text, sets)
        return tuple(word in with_synonyms for word in range(certificate.words))


def _recorded_overlaps(certificate: Certificate) -> tuple[float, ...]:
    evidence = None if certificate.evidence is None else read_evidence(certificate.evidence)
    if isinstance(evidence, SampledEvidence) and isinstance(evidence.distribution, SynonymDistribution):
        return evidence.distribution.overlaps
    return ()


def _sets_by_word(text: Text, sets: Sequence[WordSet]) -> dict[int, list[WordSet]]:
    """For each word of `text.split()` that can be replaced, by its number: the sets of its parts."""
    starts = [match.start() for match in _WORD.finditer(str(text))]
    by_word: dict[int, list[WordSet]] = {}
    for word_set in sets:
        by_word.setdefault(bisect_right(starts, text.starts[word_set.index]) - 1, []).append(word_set)
    return by_word


def _joint_overlap(parts: Sequence[WordSet]) -> float:
    """The product of the overlaps, not rounded up beyond what a single one may be (see `synonym_losses`)."""
    if len(parts) == 1:
        return parts[0].overlap
    product = math.prod(_below(part.overlap) for part in parts)
    near = float(product)
    return near if near <= product else math.nextafter(near, 0.0)


def _below(overlap: float) -> Fraction:
    return Fraction(math.nextafter(overlap, 0.0) if 0 < overlap < 1 else overlap)
