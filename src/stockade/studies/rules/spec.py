"""What decides the study of rules: models, the texts that rules are mined from and applied to, and how much."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from stockade.attacks.random_synonyms import RandomSynonyms
from stockade.attacks.registry import make_attacks
from stockade.attacks.rules import Judge, Rules
from stockade.core.errors import OptionError, unknown_name
from stockade.experiment.spec import Count, Reference
from stockade.experiment.store import Codec
from stockade.studies.ensemble.published import HUMAN, PUBLISHED
from stockade.studies.frame import Option, StudySpec
from stockade.studies.rules.analysis import FINAL
from stockade.studies.transferability.folder import TransferFolder
from stockade.studies.transferability.matrix import BERT_FAMILY, traits_of
from stockade.studies.transferability.roster import name_pairs
from stockade.workflows.attack.spec import AttackSpec
from stockade.workflows.mine.spec import MineSpec

BUDGETS = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30)
"""The shares of words of the paper's Table 10."""


def _several(value: object) -> object:
    return value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


@dataclass(frozen=True, slots=True)
class AppliedSet:
    """A rule set of the study.

    Parameters
    ----------
    key
        What it is called.
    file
        Its file; none for random synonyms.
    sha256
        Of the file.
    rules
        How many there are of positive salience.
    models
        What they were mined with, as far as that is recorded.
    size
        How many models that are, for a part of the mined ensemble; 0 for others.
    """

    key: str
    file: str | None
    sha256: str | None
    rules: int
    models: tuple[str, ...] = ()
    size: int = 0


SET_CODEC: Codec[AppliedSet] = Codec(
    dataclasses.asdict, lambda document: AppliedSet(**{**document, "models": tuple(document["models"])})
)


class RulesSpec(StudySpec):
    """What decides the study rules: models, data, and the options below."""

    kind: ClassVar[str] = "study-rules"
    summary: ClassVar[str] = (
        "Word replacement rules mined with some models, on all of them: by family, ensemble size, budget; baselines."
    )
    several_models: ClassVar[bool] = True

    train_data: Annotated[Reference, Option(metavar="DATA")] = None
    """What rules are mined from, and words are counted in; best what the models were trained on."""
    sources: Annotated[tuple[str, ...], Option("--source", "MODEL"), BeforeValidator(_several)] = ()
    """A model to mine with, by its name among MODEL…; repeat in the order in which the ensemble grows.  [default: those
    of the transfer paper's human expert]"""
    stand_ins: Annotated[
        Mapping[str, str],
        BeforeValidator(lambda value: name_pairs(value, "--stand-in", "BERT=MiniLM-L6")),
        Option("--stand-in", "NAME=MODEL"),
    ] = Field(default_factory=dict)
    """A model in place of one of the expert's, such as BERT=MiniLM-L6; repeat for several.  [default: for BERT the
    first of its family]"""
    rules: Annotated[tuple[Path, ...], Option("--rules", "FILE"), BeforeValidator(_several)] = ()
    """Rules to apply in place of mining; repeat for several."""
    max_changed: float = 0.3
    """The largest share of the words that may change."""
    mine_limit: Count | None = 5_000
    """Mine a seeded sample of so many training texts."""
    min_count: Count = 2
    """Leave out rules with fewer places in the training texts."""
    max_count: Count = 2
    """Score a rule at a seeded sample of so many places."""
    transfer: Annotated[Path | None, Option(metavar="FOLDER")] = None
    """The folder of a transfer study, whose models and data are the default."""

    @classmethod
    def find_inputs(cls, models: object, data: object, options: Mapping[str, Any]) -> tuple[object, object]:
        """The models and data; those of a transfer study if it is named, where a single name is that of the data."""
        if options.get("transfer") is None:
            return super().find_inputs(models, data, options)
        study = TransferFolder.of(Path(options["transfer"]))
        if study is None:
            raise OptionError(f"{options['transfer']} is not the folder of a transfer study: name one, or MODEL… DATA.")
        if data is None and isinstance(models, list) and len(models) == 1:
            data, models = models[0], None
        named = models if models else dict(study.models) or None
        return super().find_inputs(named, data if data is not None else study.data, options)

    @field_validator("max_changed")
    @classmethod
    def _a_share(cls, share: float) -> float:
        if not 0 < share <= 1:
            raise OptionError(f"--max-changed is {share:g}, expected a share of the words above 0, at most 1.")
        return share

    @model_validator(mode="after")
    def _something_to_apply(self) -> Self:
        for name in (*self.sources, *self.stand_ins.values()):
            if name not in self.models:
                raise unknown_name("model in this study", name, self.models)
        if len(set(self.sources)) < len(self.sources):
            raise OptionError(f"--source names a model twice: {', '.join(self.sources)}.")
        if self.train_data is None and not self.rules:
            raise OptionError(
                "The study rules needs texts to mine from: name them with --train-data DATA, or rules with --rules."
            )
        if not self.rules and not self.mined_with:
            raise OptionError(
                f"None of the models that the paper mined with ({', '.join(PUBLISHED[HUMAN][7])}) is among "
                f"{', '.join(self.models)}. Name those to mine with: --source {next(iter(self.models))}."
            )
        return self

    @property
    def mined_with(self) -> tuple[str, ...]:
        """The models to mine with, in the order in which the ensemble grows."""
        if self.sources or self.rules:
            return self.sources
        family = (name for name in self.models if traits_of(name).architecture == BERT_FAMILY)
        stand_ins = {"BERT": next(family, "BERT"), **self.stand_ins}
        listed = [name if name in self.models else stand_ins.get(name, name) for name in PUBLISHED[HUMAN][7]]
        return tuple(name for name in dict.fromkeys(listed) if name in self.models)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many models rules are mined with: two and more, or the only one."""
        return tuple(range(min(2, len(self.mined_with)), len(self.mined_with) + 1)) if self.mined_with else ()

    @property
    def budgets(self) -> tuple[float, ...]:
        """The shares of words of Table 10 that the attack allows."""
        return tuple(budget for budget in BUDGETS if budget < self.max_changed) + (self.max_changed,)

    def mining(self, method: str) -> MineSpec:
        """What decides a mining job."""
        models = {name: self.models[name] for name in self.mined_with} if method == "uawr" else {}
        shared = {name: getattr(self, name) for name in ("seed", "max_words", "mlm", "encoder")}
        return MineSpec.of(
            models=models,
            data=self.train_data,
            method=method,
            min_count=self.min_count,
            max_count=self.max_count,
            limit=self.mine_limit,
            data_options=self.data_options,
            model_options=self.model_options,
            **shared,
        )

    def attack(self, model: object, sets: Sequence[AppliedSet], main: str) -> AttackSpec:
        """What decides the attacks on one target: every rule set judged after each replacement; the main one and the
        baselines by the last text too.
        """
        attacks: dict[str, Rules | RandomSynonyms] = {}
        for entry in sets:
            attacks[entry.key] = self._attack(entry, "any-prefix")
            if entry.key == main or not entry.size:
                attacks[entry.key + FINAL] = self._attack(entry, "final")
        shared = {name: getattr(self, name) for name in StudySpec.model_fields if name != "models"}
        return AttackSpec.of(model=model, attacks=make_attacks(attacks), similarity=False, **shared)

    def _attack(self, entry: AppliedSet, judge: Judge) -> Rules | RandomSynonyms:
        if entry.file is None:
            return RandomSynonyms(budget=self.max_changed, judge=judge)
        return Rules(file=entry.file, budget=self.max_changed, judge=judge)
