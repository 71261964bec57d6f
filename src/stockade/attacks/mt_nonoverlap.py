"""The non-overlapping attack of Seq2Sick (Cheng et al., Evaluating the Robustness of Sequence-to-Sequence Models with
Adversarial Examples, AAAI 2020), with a greedy search over words: no word of the former translation may be in the new
one.

    where   the word whose zeroed vectors (a black box: whose deletion) remove most words of the translation
    what    the word of the vocabulary with which fewest survive

Differences to the paper: it follows gradients of a loss on all steps, with a group lasso that keeps changes few; here
up to Δ words are replaced, and only translations are read. `overlap=position` counts a word as surviving only where it
stood, as the paper's loss does.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from stockade.attacks.substitution import SubstitutionAttack
from stockade.attacks.translation_goals import NoOverlap, Overlap
from stockade.core.attacked_translation import TranslationExample
from stockade.core.registry import published


@published("mt-nonoverlap", paper="Cheng et al. 2020", presets={"paper": {}})
@dataclass(frozen=True, slots=True, kw_only=True)
class MtNonoverlap(SubstitutionAttack):
    """Removes every word of the translation by replacing up to three words of the source.

    Parameters
    ----------
    overlap : {"anywhere", "position"}
        Whether a word survives anywhere in the new translation, or only where it stood.
    words, exhaustive, sample, most, caution
        As for every `SubstitutionAttack`.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    ends_with_best: ClassVar[bool] = True

    overlap: Overlap = "anywhere"

    def goal_for(self, example: TranslationExample, rng: Random) -> NoOverlap:
        return NoOverlap.of(example.translation, self.overlap)
