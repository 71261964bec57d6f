"""Several defenses together: their order, around a model, in training, and in the folder that remembers them.

A model folder's `defense.json` lists the defenses that it was trained with and that stand around it whenever it is
asked, from the outside in. Other libraries ignore the file and see the bare model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.core.errors import ModelError, OptionError
from stockade.core.files import write_json
from stockade.core.protocols import Classifier
from stockade.core.text import TextInput
from stockade.defenses.defended import AnsweringDefense, Defended, HasResources
from stockade.defenses.registry import NamedDefense
from stockade.models.language import LanguageModels

if TYPE_CHECKING:
    from stockade.training.objective import MakeObjective, Objective, Rewrite, TrainingKit

FILE_NAME = "defense.json"
SCHEMA = 1


def check_order(named: Sequence[NamedDefense]) -> None:
    """Refuse defenses in the wrong order: from the outside in, those that only train last, nearest to the model."""
    for outer, inner in combinations(named, 2):
        right = (
            f"name defenses from the outside in, as in --defense {inner.name} --defense {outer.name} "
            f"(one column of evaluate: {inner.name}+{outer.name})."
        )
        if not outer.entry.answers and inner.entry.answers:
            raise OptionError(
                f"{outer.name} changes how the model is trained, so it cannot stand around {inner.name}: {right}"
            )
        if outer.entry.innermost and inner.entry.answers:
            alone = f"{outer.name} and {inner.name} cannot be combined: both alter what the model reads."
            raise OptionError(
                alone
                if inner.entry.innermost
                else f"{outer.name} alters what the model reads, so {inner.name} cannot stand between them: {right}"
            )


def wrap(
    classifier: Classifier,
    named: Sequence[NamedDefense],
    *,
    seed: int = 0,
    language: LanguageModels | None = None,
) -> Classifier:
    """Put a classifier inside those of the defenses that act when it is asked.

    Parameters
    ----------
    classifier
        A model, or a model inside other defenses.
    named
        The defenses, the outermost first.
    seed
        Decides the random choices of randomised defenses.
    language
        The masked LM and the sentence encoder that they may ask.
    """
    check_order(named)
    for item in reversed(named):
        if item.entry.answers:
            if not isinstance(item.defense, AnsweringDefense):
                raise OptionError(
                    f"{item.name} does not say whether two of its answers to the same text may differ: give it an "
                    "attribute randomised, True or False."
                )
            classifier = Defended(
                name=item.name, defense=item.defense, inner=classifier, seed=seed, language=language or LanguageModels()
            )
    return classifier


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


def training_files(named: Sequence[NamedDefense]) -> dict[str, dict[str, str]]:
    """The fingerprints of the files that defenses read in training, by the defense's name; only of those that do."""
    reading = [item for item in named if item.entry.trains and isinstance(item.defense, HasResources)]
    files = {item.name: dict(item.defense.resources()) for item in reading}
    return {name: fingerprints for name, fingerprints in files.items() if fingerprints}


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
        return [NamedDefense.from_description(description) for description in content["defenses"]]
    except OptionError as error:
        raise ModelError(f"{path} names what this version does not have. {error} Or use --defense none.") from None
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read ({error}). Restore it, or use --defense none.") from None
