"""Predictions that say nothing where the copies of a text do not agree enough (Cohen et al. 2019, PREDICT; an option of
the released code of RanMASK).

The two leading classes' counts are compared by an exact two-sided binomial test: if an even split would give such
counts with a chance of more than `alpha`, there is no answer. So an answer is another than that of infinitely many
copies with a chance of at most `alpha`. That holds for copies that are drawn at random, each without regard to the
others: copies that are all alike would agree the better the more there are of them, and prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.core.statistics import even_split_p
from stockade.core.text import Text, TextInput
from stockade.defenses.defended import Defended


class Abstention(Enum):
    """The answer that is none; never mistaken for a class of that name."""

    ABSTAIN = "abstain"


ABSTAIN = Abstention.ABSTAIN


def predict_or_abstain(
    classifier: Classifier, inputs: Sequence[TextInput], alpha: float = 0.05
) -> list[str | Abstention]:
    """The class of each text, or `ABSTAIN`; for a model inside a defense whose copies are drawn one by one: ranmask,
    safer, deletion, hull with copies.
    """
    if not 0 < alpha < 1:
        raise OptionError(f"alpha is {alpha}, expected a chance between 0 and 1, such as 0.05.")
    voting, copies = _voting(classifier)
    answers: list[str | Abstention] = []
    for one, row in zip(inputs, voting.predict_proba(inputs), strict=True):
        shares: list[float] = row.tolist()
        # Without words every copy is the text itself, and all agree.
        sure = not str(Text.of(one)).split() or _is_decided(shares, copies, alpha)
        answers.append(voting.labels[int(row.argmax())] if sure else ABSTAIN)
    return answers


def _is_decided(shares: Sequence[float], copies: int, alpha: float) -> bool:
    """Whether the votes for the first class are too many more than those for the second to be an even split."""
    votes = [share * copies for share in shares]
    if any(abs(count - round(count)) > 1e-6 for count in votes):
        return False  # no copy had words, so none voted, and this is the model's answer to the text itself
    first, second = sorted(map(round, votes), reverse=True)[:2]
    return even_split_p(first, second) <= alpha


def _voting(classifier: Classifier) -> tuple[Defended, int]:
    """The same model with the copies' votes counted, whatever it does with them otherwise, and how many there are."""
    if not isinstance(classifier, Defended):
        raise OptionError(
            "Only a model inside a defense whose copies vote can abstain, such as st.defend(model, 'ranmask')."
        )
    defense: Any = classifier.defense
    if not getattr(defense, "independent_copies", False) or not defense.copies:
        raise OptionError(
            f"{classifier.name} does not draw the copies of a text at random, each without regard to the others, so "
            "their votes cannot be tested: only ranmask, safer, deletion and hull with copies can abstain."
        )
    return replace(classifier, defense=replace(defense, combine="vote")), defense.copies
