"""TextAttack's recipes, built by TextAttack, with the parts that must be downloaded replaced by Stockade's.

A recipe names its parts in its module (`WordSwapEmbedding`, `UniversalSentenceEncoder`, …). Those names are bound to
the same class with our resource filled in while `build` runs, so every number in the recipe stays TextAttack's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import components
import textattack
from textattack.constraints.pre_transformation import StopwordModification
from textattack.constraints.semantics import WordEmbeddingDistance
from textattack.transformations import WordSwapEmbedding, WordSwapMaskedLM

from stockade.lexicon.stopwords import ENGLISH_FUNCTION_WORDS

RECIPES = {
    "pwws": "PWWSRen2019",
    "deepwordbug": "DeepWordBugGao2018",
    "textfooler": "TextFoolerJin2019",
    "bae-r": "BAEGarg2019",
    "bert-attack": "BERTAttackLi2020",
    "genetic": "GeneticAlgorithmAlzantot2018",
}
WITH_VECTORS = ("textfooler", "genetic")


@dataclass(frozen=True)
class Resources:
    """What the recipes use instead of downloads."""

    encoder: Path | None
    masked_lm: Path | None
    function_words: bool
    """Whether Stockade's list of function words stands for the recipe's stop words."""
    careful: bool = False
    """Whether strings are encoded once, and texts padded no further than the longest for the masked LM."""


def build(recipe: str, wrapper: Any, resources: Resources, texts: Iterable[str]) -> Any:
    """The attack of a recipe on the victim behind the wrapper, ready for `texts`."""
    maker = getattr(textattack.attack_recipes, RECIPES[recipe])
    module = sys.modules[maker.__module__]
    parts = replacements(recipe, resources, texts)
    present = {name: part for name, part in parts.items() if hasattr(module, name)}
    with patch.multiple(module, **present) if present else nullcontext():
        attack = maker.build(wrapper)
    attack.constraints = [part for part in attack.constraints if not isinstance(part, components.NoLanguageModel)]
    return attack


def replacements(recipe: str, resources: Resources, texts: Iterable[str]) -> dict[str, Any]:
    """By name, what is put in the place of the parts that a recipe builds."""
    parts: dict[str, Any] = {"Google1BillionWordsLanguageModel": components.NoLanguageModel}
    if resources.encoder is not None:
        encoder = components.RememberingEncoder if resources.careful else components.PackagedEncoder
        parts["UniversalSentenceEncoder"] = partial(encoder, resources.encoder)
    if resources.masked_lm is not None:
        masked_lm = components.TightMaskedLM if resources.careful else WordSwapMaskedLM
        parts["WordSwapMaskedLM"] = partial(masked_lm, masked_language_model=str(resources.masked_lm))
    if recipe in WITH_VECTORS:
        vectors = components.packaged_vectors(texts)
        parts["WordSwapEmbedding"] = partial(WordSwapEmbedding, embedding=vectors)
        parts["WordEmbeddingDistance"] = partial(WordEmbeddingDistance, embedding=vectors)
    if resources.function_words:
        parts["StopwordModification"] = lambda stopwords=None: StopwordModification(ENGLISH_FUNCTION_WORDS)
    components.use_packaged_tagger()
    return parts
