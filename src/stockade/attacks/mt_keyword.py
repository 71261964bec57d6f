"""The targeted keyword attack of Hsieh et al. (On the Robustness of Self-Attentive Models, ACL 2019, §6): a keyword
must appear in the translation after at most Δ = 3 words of the source were changed. It is their GS-EC, on the loss of
Seq2Sick (Cheng et al. 2018), which the paper names without writing it down:

    L(x) = Σ over the keyword's sub-words k of  min_t max(0, max_{v ≠ k} z_t[v] − z_t[k]),
           where z_t are the logits of step t of the greedy translation; a step counts for one sub-word only

    where   the word whose zeroed vectors lower L most or, if they lower it nowhere, change it most
    what    of all words of the vocabulary with which the keyword appears, the one that moves the encoder's sentence
            vector least (L1); if there is none, of those that lower L the one that moves it least
    again   with the next word, up to Δ times

The preset `strong` takes the word that lowers L most where none succeeds. A translator that shows no logits is attacked
by its translations alone: L is then 1 less the similarity, letter by letter, of the keyword to the most similar word of
the translation; words are deleted instead of zeroed; replacements are random words of the neighbour table, those of
fewest changed letters first.

Differences to the paper: it does not say which keywords it wants. Here each sentence gets one of its own, drawn from
the words (of three letters or more) of the references of other sentences, that neither its reference nor its
translation has; or the one that you name. The keyword itself may not be written into the source: models with one
vocabulary for both sides copy it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from stockade.attacks.substitution import SubstitutionAttack
from stockade.attacks.translation_goals import HasKeyword
from stockade.core.attacked_translation import TranslationExample
from stockade.core.errors import OptionError
from stockade.core.registry import published
from stockade.core.text import Text
from stockade.core.translation import ZeroableSource
from stockade.engine.translation_requests import Attempt, KeywordLoss, TranslationLoss

_DRAWS = 1000


@published("mt-keyword", paper="Hsieh et al. 2019", presets={"paper": {}, "strong": {"descend": "steepest"}})
@dataclass(frozen=True, slots=True, kw_only=True)
class MtKeyword(SubstitutionAttack):
    """Makes a keyword appear in the translation by replacing up to three words of the source.

    Parameters
    ----------
    keyword : str, optional
        The word that must appear; drawn for each sentence from the references of others if None.
    loss : {"auto", "hinge", "characters"}
        By the logits of the keyword, by its letters, or by logits where the model shows them.
    descend : {"nearest", "steepest"}
        Which word is taken where none succeeds: of those that lower the loss the one that moves the sentence vector
        least, or the one that lowers it most.
    words, exhaustive, sample, most, caution
        As for every `SubstitutionAttack`.
    max_changed, constraint, repair_articles
        As for every `WordAttack`.
    """

    keyword: str | None = None
    loss: KeywordLoss = "auto"
    descend: Literal["nearest", "steepest"] = "nearest"

    def __post_init__(self) -> None:
        SubstitutionAttack.__post_init__(self)
        if self.keyword is not None and not Text.parse(self.keyword).words:
            raise OptionError(f'The keyword "{self.keyword}" has no letters; expected a word, such as keyword=Hund.')

    @property
    def steepest(self) -> bool:
        return self.descend == "steepest"

    def goal_for(self, example: TranslationExample, rng: Random) -> HasKeyword | None:
        if self.keyword is not None:
            return HasKeyword(self.keyword)
        present = {word.casefold() for word in Text.parse(f"{example.translation} {example.reference}").words}
        for _ in range(_DRAWS if example.keywords else 0):
            keyword = rng.choice(example.keywords)
            if keyword.casefold() not in present:
                return HasKeyword(keyword)
        return None

    def excluded(self, example: TranslationExample) -> frozenset[str]:
        keyword = example.goal.keyword if example.goal is not None else None
        return frozenset(word.lower() for word in Text.parse(keyword or "").words)

    async def losses(self, example: TranslationExample, sources: Sequence[ZeroableSource]) -> list[Attempt]:
        assert example.goal is not None
        return await TranslationLoss(sources, partial=True, keyword=example.goal.keyword or "", loss=self.loss)
