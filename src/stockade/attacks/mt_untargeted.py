"""The untargeted attack on translators of Hsieh et al. (On the Robustness of Self-Attentive Models, ACL 2019, §6): the
source is changed so that the BLEU of its translation, against the reference, falls. The paper does it with typos
(`mt-typo`); this is the same aim with the greedy search of their GS attacks.

    where   the word whose zeroed vectors (a black box: whose deletion) lower the sentence's BLEU most
    what    the word of the vocabulary with which it is lowest

Rounds end when the sentence has lost enough, or after Δ words; where that is not enough, the source with the lowest
BLEU is still what the attack ends with, and counts in the BLEU of the corpus. It only reads translations.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from stockade.attacks.substitution import SubstitutionAttack
from stockade.attacks.translation_goals import LowerBleu
from stockade.core.attacked_translation import TranslationExample
from stockade.core.errors import OptionError
from stockade.core.registry import published


@published("mt-untargeted", paper="Hsieh et al. 2019", presets={"paper": {}})
@dataclass(frozen=True, slots=True, kw_only=True)
class MtUntargeted(SubstitutionAttack):
    """Lowers the BLEU of the translation by replacing up to three words of the source.

    Parameters
    ----------
    share : float
        A success has at most this share of the BLEU that the sentence had.
    words, exhaustive, sample, most, caution
        As for every `SubstitutionAttack`.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    ends_with_best: ClassVar[bool] = True

    share: float = 0.5

    def __post_init__(self) -> None:
        SubstitutionAttack.__post_init__(self)
        if not 0 <= self.share < 1:
            raise OptionError(f"share is {self.share}, expected from 0 to below 1, such as 0.5 for half of the BLEU.")

    def goal_for(self, example: TranslationExample, rng: Random) -> LowerBleu:
        return LowerBleu.of(example.translation, example.reference, self.share)
