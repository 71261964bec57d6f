"""How the answers to several copies of a text become one (votes, mean logits, mean probabilities), or none.

A logarithm of a probability is a logit up to a constant of its row, which moves the mean of every class alike: so means
of logits are computed from probabilities alone, of any model. Only the length of a logit row depends on that constant:
`normalised-logit` needs the logits themselves (`combine_normalised`); from probabilities it takes those that sum to
zero.

A classifier may abstain where the copies do not agree enough (Cohen et al. 2019, PREDICT; an option of the released
code of RanMASK). The two leading classes' counts are compared by an exact two-sided binomial test: if an even split
would give such counts with a chance of more than `alpha`, there is no answer. So an answer differs from that of
infinitely many copies with a chance of at most `alpha`. That holds for copies that are drawn at random, independently
of each other: copies that are all alike would agree the better the more there are of them, and prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.statistics import even_split_p
from stockade.core.text import Text, TextInput
from stockade.defenses.defended import Defended

Combination = Literal["vote", "logit", "normalised-logit", "probability"]
Draws = Literal["fresh", "fixed"]
"""Whether a defense makes new random choices for every question, or always the same ones."""
Rows = NDArray[np.float64]
_LEAST = 1e-300


def combine(rows: Rows, how: Combination) -> Scores:
    """The class probabilities that rows of probabilities, one per copy, give together.

    Parameters
    ----------
    rows
        A row of class probabilities for each copy.
    how
        `vote` (the share of copies whose most probable class it is), `probability` (their mean), `logit` (the softmax
        of the mean logit), or `normalised-logit` (the same with every row of logits brought to length 1).
    """
    if how == "vote":
        counts = np.bincount(rows.argmax(1), minlength=rows.shape[1])
        return Scores(tuple((counts / len(rows)).tolist()))
    if how == "probability":
        return Scores(tuple(rows.mean(0).tolist()))
    logits = np.log(np.maximum(rows, _LEAST))
    if how == "normalised-logit":
        return combine_normalised(logits - logits.mean(1, keepdims=True))
    return _softmax(logits.mean(0))


def combine_normalised(logits: Rows) -> Scores:
    """The class probabilities that rows of logits give together when each is brought to length 1 first."""
    lengths = np.linalg.norm(logits, axis=1, keepdims=True)
    return _softmax((logits / np.maximum(lengths, 1e-12)).mean(0))


def _softmax(logits: Rows) -> Scores:
    shares = np.exp(logits - logits.max())
    return Scores(tuple((shares / shares.sum()).tolist()))


class Abstention(Enum):
    """The answer that is none; never mistaken for a class of that name."""

    ABSTAIN = "abstain"


ABSTAIN = Abstention.ABSTAIN


def predict_or_abstain(
    classifier: Classifier, inputs: Sequence[TextInput], alpha: float = 0.05
) -> list[str | Abstention]:
    """The class of each text, or `ABSTAIN` where the copies of the text do not agree enough.

    Parameters
    ----------
    classifier
        A model inside a defense whose copies are drawn independently: ranmask, safer, deletion, hull with copies.
    inputs
        The texts.
    alpha
        The chance of an answer other than that of infinitely many copies.
    """
    if not 0 < alpha < 1:
        raise OptionError(f"alpha is {alpha}, expected a chance between 0 and 1, such as 0.05.")
    voting, copies = _voting(classifier)
    answers: list[str | Abstention] = []
    for text, row in zip(inputs, voting.predict_proba(inputs), strict=True):
        shares: list[float] = row.tolist()
        # Without words every copy is the text itself, and all agree.
        sure = not str(Text.of(text)).split() or _is_decided(shares, copies, alpha)
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
    """The same model with the copies' votes counted, whatever it does with them otherwise, and how many copies."""
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
