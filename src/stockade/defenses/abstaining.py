"""Predictions that say nothing where the copies of a text do not agree enough (Cohen et al. 2019, PREDICT; an option of
the released code of RanMASK).

The two leading classes' counts are compared by an exact two-sided binomial test: if an even split would give such
counts with a chance of more than `alpha`, there is no answer. So an answer is another than that of infinitely many
copies with a chance of at most `alpha`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.core.statistics import mcnemar
from stockade.core.text import TextInput
from stockade.defenses.defended import Defended


class Abstention(Enum):
    """The answer that is none; never mistaken for a class of that name."""

    ABSTAIN = "abstain"


ABSTAIN = Abstention.ABSTAIN


def predict_or_abstain(
    classifier: Classifier, inputs: Sequence[TextInput], alpha: float = 0.05
) -> list[str | Abstention]:
    """The class of each text, or `ABSTAIN`; for a model inside a defense that lets copies of a text vote."""
    if not 0 < alpha < 1:
        raise OptionError(f"alpha is {alpha}, expected a chance between 0 and 1, such as 0.05.")
    voting = _voting(classifier)
    copies = voting.defense.copies  # type: ignore[attr-defined]
    shares = voting.predict_proba(inputs)
    answers: list[str | Abstention] = []
    for one, row in zip(inputs, shares, strict=True):
        best = voting.labels[int(row.argmax())]
        counts = sorted((round(share * copies) for share in row.tolist()), reverse=True)
        words = (one if isinstance(one, str) else one[1]).split()
        # Without words every copy is the text itself, and all agree.
        answers.append(ABSTAIN if words and mcnemar(counts[0], counts[1]) > alpha else best)
    return answers


def _voting(classifier: Classifier) -> Defended:
    """The same model with the copies' votes counted, whatever it does with them otherwise."""
    defense: Any = classifier.defense if isinstance(classifier, Defended) else None
    if not isinstance(classifier, Defended) or not (hasattr(defense, "copies") and hasattr(defense, "combine")):
        raise OptionError(
            "Only a model inside a defense whose copies vote can abstain, such as st.defend(model, 'ranmask')."
        )
    return replace(classifier, defense=replace(defense, combine="vote"))
