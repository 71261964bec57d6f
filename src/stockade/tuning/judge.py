"""What options are worth: the defended model under an attack, on the same texts for every trial."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from stockade.attacks.registry import make_attack
from stockade.core.errors import StockadeError
from stockade.core.protocols import Classifier
from stockade.datasets import ExampleSet, prepare_examples
from stockade.defenses.defended import Defended
from stockade.defenses.registry import make_defense, wrap
from stockade.jobs import DataOptions, ModelOptions
from stockade.models.language import LanguageModels
from stockade.runs.attack import AttackSettings, run_attacks
from stockade.runs.metrics import summarise_attack
from stockade.runs.store import Store
from stockade.tuning.space import Value
from stockade.tuning.trials import Goal, Trial, reference


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the attack in each trial; the last two change how fast it is, never its results."""

    budget: int | None = None
    max_words: int = 5_000
    concurrency: int = 64
    batch_tokens: int | None = None


@dataclass(frozen=True)
class Judge:
    """A model, texts, an attack, and the defense whose options are tried; sent to other processes as it is.

    Searches see the defense's twin where it has one (see `stockade.defenses.defended`): votes would hide from the
    attack how close it is, and options that only do that would win.
    """

    model: object
    data: object
    attack: str
    defense: str
    preset: str
    fixed: Mapping[str, Value]
    seed: int
    goal: Goal
    limits: Limits
    data_options: DataOptions
    model_options: ModelOptions
    language: LanguageModels

    @cached_property
    def bare(self) -> Classifier:
        return self.model_options.load_bare(self.model)

    @cached_property
    def examples(self) -> ExampleSet:
        source = self.data_options.load(self.data)
        limit, label_map = self.data_options.limit, self.data_options.label_map
        return prepare_examples(source, self.bare.labels, limit=limit, seed=self.seed, label_map=label_map)

    @cached_property
    def settings(self) -> AttackSettings:
        limits = self.limits
        speed = limits.concurrency, limits.batch_tokens
        return AttackSettings((make_attack(self.attack),), self.seed, limits.budget, limits.max_words, *speed)

    def check(self) -> None:
        """What no trial could do without is an error before the first: the attack, the model, the texts, and what the
        defense needs of the model.
        """
        _ = self.settings, self.examples
        self.language.check()
        wrap(self.bare, [make_defense(reference(self.defense, self.preset, dict(self.fixed), {}))], seed=self.seed)

    def unloaded(self) -> Judge:
        """The same without the model and the texts, light enough for another process."""
        return replace(self)

    def try_options(self, number: int, options: dict[str, Value]) -> Trial:
        """The trial of these options; options that do not fit together are a trial with an error."""
        started = time.monotonic()
        try:
            trial = self._measured(number, options)
        except StockadeError as error:
            return Trial(number, options, seconds=round(time.monotonic() - started, 3), error=str(error))
        return trial

    def _measured(self, number: int, options: dict[str, Value]) -> Trial:
        started = time.monotonic()
        named = make_defense(reference(self.defense, self.preset, dict(self.fixed), options))
        model = wrap(self.bare, [named], seed=self.seed, language=self.language)
        twin = model.twin() if isinstance(model, Defended) else None
        with tempfile.TemporaryDirectory(prefix="stockade-tune-") as folder:
            run_attacks(model, self.examples, self.settings, Path(folder), language=self.language, through=twin)
            with Store(Path(folder)) as store:
                key = self.settings.attacks[0].key
                numbers = summarise_attack(store.records(key), store.effort(key))
                reasons = [record.reason for record in store.records(key, "error")]
        seconds = round(time.monotonic() - started, 3)
        if not numbers["n"]:
            return Trial(number, options, seconds=seconds, error=reasons[0] if reasons else "the data has no texts")
        clean, robust = numbers["clean_accuracy"]["value"], numbers["robust_accuracy"]["value"]
        return Trial(number, options, numbers["n"], clean, robust, self.goal.value(clean, robust), seconds)
