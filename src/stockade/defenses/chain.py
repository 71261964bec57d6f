"""Several defenses together: their training, and the model folder that remembers them.

A model folder's `defense.json` lists the defenses that it was trained with and that stand around it whenever it is
asked, from the outside in. Other libraries ignore the file and see the bare model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.core.errors import ModelError, OptionError
from stockade.core.files import write_json
from stockade.core.text import TextInput
from stockade.defenses.registry import NamedDefense, check_order, make_defense

if TYPE_CHECKING:
    from stockade.training.objective import MakeObjective, Objective, Rewrite, TrainingKit

FILE_NAME = "defense.json"
SCHEMA = 1


def combined_objective(named: Sequence[NamedDefense]) -> MakeObjective | None:
    """What makes the objective of those defenses that have one, the outermost first; None if there is none.

    Those that add texts to a batch come before all others, which then change the added texts as well.
    """
    check_order(named)
    training = [item.defense for item in named if hasattr(item.defense, "objective")]
    training.sort(key=lambda defense: not getattr(defense, "adds_texts", False))
    if not training:
        return None

    def make(kit: TrainingKit) -> Objective:
        for defense in reversed(training):
            kit = replace(kit, plain=defense.objective(kit))
        return kit.plain

    return make


def combined_rewrite(named: Sequence[NamedDefense]) -> Rewrite | None:
    """What rewrites the training texts, the innermost defense first; None if no defense rewrites them."""
    rewriting = [item.defense for item in named if hasattr(item.defense, "rewrite")]
    if not rewriting:
        return None

    def rewrite(
        inputs: Sequence[TextInput], labels: Sequence[int], classes: tuple[str, ...], seed: int
    ) -> tuple[Sequence[TextInput], Sequence[int]]:
        for defense in reversed(rewriting):
            inputs, labels = defense.rewrite(inputs, labels, classes, seed)
        return inputs, labels

    return rewrite


def save_defenses(folder: Path, named: Sequence[NamedDefense]) -> None:
    """Write the defenses of a model into its folder, if there are any."""
    if named:
        write_json(folder / FILE_NAME, {"schema": SCHEMA, "defenses": [item.described() for item in named]})


def load_defenses(folder: Path) -> list[NamedDefense]:
    """The defenses of a model folder; none for a folder without the file, or for a path that is no folder."""
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"format {content['schema']}")
        return [make_defense(f"{item['name']}@{item['preset']}", **item["options"]) for item in content["defenses"]]
    except OptionError as error:
        raise ModelError(f"{path} names what this version does not have. {error} Or use --defense none.") from None
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} cannot be read ({error}). Restore it, or use --defense none.") from None
