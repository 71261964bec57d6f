"""How much a model needs a word, by what it says without it."""

from __future__ import annotations

from stockade.core.example import Scores


def importance(clean: Scores, hidden: Scores, label: int) -> float:
    """TextFooler's formula: the fall of the true class, and the rise of the class the model turns to, if
    any.
    """
    fall = clean.probabilities[label] - hidden.probabilities[label]
    turned_to = hidden.label
    if turned_to == label:
        return fall
    return fall + hidden.probabilities[turned_to] - clean.probabilities[turned_to]
