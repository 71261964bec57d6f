"""Defenses that act when the model is trained, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stockade.defenses.registry import NamedDefense, check_order

if TYPE_CHECKING:
    from stockade.training.kit import MakeObjective, TrainingKit
    from stockade.training.objective import Objective


def combined_objective(named: Sequence[NamedDefense]) -> MakeObjective | None:
    """What makes the objective of those defenses that train, the outermost first; None if there is none."""
    check_order(named)
    training = [one.defense for one in named if one.entry.trains]
    if not training:
        return None

    def make(kit: TrainingKit) -> Objective:
        for defense in reversed(training):
            kit = replace(kit, plain=defense.objective(kit))
        return kit.plain

    return make
