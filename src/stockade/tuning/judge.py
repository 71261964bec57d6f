"""What options are worth: the defended model under an attack, on the same texts for every trial."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from stockade.attacks.registry import make_attack
from stockade.core.errors import OptionError, StockadeError
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.defenses.chain import wrap
from stockade.defenses.registry import NamedDefense, make_defense
from stockade.jobs import DataOptions, ModelOptions
from stockade.models.language import LanguageModels
from stockade.runs.attack import AttackSettings
from stockade.tuning.attacking import Attacker
from stockade.tuning.space import Value
from stockade.tuning.trials import Goal, Trial, reference


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the attack in each trial; the last two change how fast it is, never its results.

    `expectation` is how many answers of a randomised defense a search averages; 1 leaves that way out.
    """

    budget: int | None = None
    max_words: int = 5_000
    expectation: int = 3
    concurrency: int = 64
    batch_tokens: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.expectation, bool) or not isinstance(self.expectation, int) or self.expectation < 1:
            raise OptionError(f"--expectation is {self.expectation}, expected a whole number from 1 up.")


@dataclass(frozen=True)
class Judge:
    """A model, texts, an attack, and the defense whose options are tried; sent to other processes as it is."""

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

    def check(self, tried: Iterable[NamedDefense]) -> None:
        """What no trial could do without is an error before the first: the attack, the model, the texts, and what the
        defenses need of the model.
        """
        _ = self.settings, self.examples
        self.language.check()
        for named in tried:
            wrap(self.bare, [named], seed=self.seed)

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
        attacker = Attacker(self.examples, self.settings, self.limits.expectation, self.language)
        records = attacker.records(model)
        seconds = round(time.monotonic() - started, 3)
        statuses = Counter(record.status for record in records)
        robust, attacked = statuses["failed"], statuses["failed"] + statuses["success"]
        n = attacked + statuses["skipped"]
        if not n:
            reason = next((record.reason for record in records), "the data has no texts")
            return Trial(number, options, seconds=seconds, error=reason)
        objective = self.goal.value(attacked / n, robust / n)
        return Trial(number, options, n, attacked / n, robust / n, objective, seconds)
