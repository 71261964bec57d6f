"""Defenses that act when the model is trained, put together: those that rewrite its texts before it is built, and those
that change its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stockade.core.text import TextInput
from stockade.defenses.registry import NamedDefense, check_order

if TYPE_CHECKING:
    from stockade.training.kit import MakeObjective, Rewrite, TrainingKit
    from stockade.training.objective import Objective


def combined_objective(named: Sequence[NamedDefense]) -> MakeObjective | None:
    """What makes the objective of those defenses that have one, the outermost first; None if there is none.

    Those that add texts to a batch come before all others, which then change the added texts as well.
    """
    check_order(named)
    training = [one.defense for one in named if hasattr(one.defense, "objective")]
    training.sort(key=lambda defense: not getattr(defense, "adds_texts", False))
    if not training:
        return None

    def make(kit: TrainingKit) -> Objective:
        for defense in reversed(training):
            kit = replace(kit, plain=defense.objective(kit))
        return kit.plain

    return make


def combined_rewrite(named: Sequence[NamedDefense]) -> Rewrite | None:
    """What rewrites the training texts as those defenses do that rewrite them, the innermost first; None if there is
    none.
    """
    rewriting = [one.defense for one in named if hasattr(one.defense, "rewrite")]
    if not rewriting:
        return None

    def rewrite(
        inputs: Sequence[TextInput], labels: Sequence[int], classes: tuple[str, ...], seed: int
    ) -> tuple[Sequence[TextInput], Sequence[int]]:
        for defense in reversed(rewriting):
            inputs, labels = defense.rewrite(inputs, labels, classes, seed)
        return inputs, labels

    return rewrite
