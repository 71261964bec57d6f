"""What decides the transfer study: models, a pool of the zoo, data, and how much is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from stockade.attacks.registry import make_attacks
from stockade.core.errors import OptionError, unknown_name
from stockade.experiment.spec import Attacks, Count, Reference
from stockade.models.zoo.names import parse_zoo_name, pool_names
from stockade.studies.frame import Option, StudySpec
from stockade.studies.transferability.roster import name_pairs
from stockade.workflows.attack.spec import AttackSpec

_VECTORS = ("glove", "word2vec", "fasttext")


def _pairs(flag: str, example: str) -> Any:
    return BeforeValidator(lambda value: name_pairs(value, flag, example))


class TransferSpec(StudySpec):
    """What decides the transfer study: models or a pool of the zoo, data, and the options below."""

    kind: ClassVar[str] = "study-transfer"
    summary: ClassVar[str] = (
        "Which adversarial texts fool other models too: the transfer matrix, what it depends on, universal examples."
    )
    several_models: ClassVar[bool] = True
    uses_workers: ClassVar[bool] = True
    free: ClassVar[frozenset[str]] = StudySpec.free | {
        *("models", "second", "pool", "train_data", "pool_folder", "vectors", "checkpoints"),
        *("importance", "maps", "map_text"),
    }
    """Models may be added on a resume; what the store records of each must stay the same."""

    attacks: Annotated[Attacks, Option("--attack", "NAME[@PRESET][:OPTION=VALUE,…]")] = Field(
        default_factory=lambda: make_attacks("pwws")
    )
    """An attack on every source; repeat for several.  [default: pwws]"""
    pool: str | None = None
    """Models of the zoo, trained twice each if they are missing: default (20 models) or full (66)."""
    train_data: Annotated[Reference, Option(metavar="DATA")] = None
    """What the pool is trained on."""
    pool_folder: Annotated[str | None, Option(metavar="FOLDER")] = None
    """Where the pool is, for several studies.  [default: models/ in the study's folder]"""
    vectors: Annotated[Mapping[str, str], _pairs("--vectors", "glove=FILE"), Option("--vectors", "KIND=FILE")] = Field(
        default_factory=dict
    )
    """Word vectors for the pool: glove, word2vec or fasttext; repeat for several."""
    checkpoints: Annotated[
        Mapping[str, str], _pairs("--checkpoint", "BERT=FOLDER"), Option("--checkpoint", "NAME=MODEL")
    ] = Field(default_factory=dict)
    """A pre-trained transformer for a member of the pool, such as BERT=bert-base-uncased; repeat for several."""
    second: Annotated[Mapping[str, Reference], _pairs("--second", "NAME=MODEL"), Option("--second", "NAME=MODEL")] = (
        Field(default_factory=dict)
    )
    """A second training of a model, for its base rate; repeat for several. Pools have theirs."""
    attacked: Count = 1_000
    """How many texts are attacked on each source, unless --limit is smaller."""
    sampled: Count = 500
    """How many of the adversarial texts of each source the targets are given."""
    importance: Annotated[int, Field(ge=0, strict=True)] = 100
    """On how many texts the importance of every word is measured; 0 for none."""
    maps: Annotated[int, Field(ge=0, strict=True)] = 2
    """How many texts get a map of what their words are worth to each model."""
    map_text: Annotated[str | None, Option(metavar="TEXT")] = None
    """A text of yours to make a map of."""

    @classmethod
    def find_inputs(cls, models: object, data: object, options: Mapping[str, Any]) -> tuple[object, object]:
        """The models and data; with a pool a single name is that of the data."""
        if options.get("pool") is None:
            return super().find_inputs(models, data, options)
        if data is None and isinstance(models, list) and len(models) == 1:
            data, models = models[0], None
        if data is None:
            example = "stockade study transfer test.csv --pool default --train-data train.csv"
            raise OptionError(f"DATA is missing, as in: {example}")
        return models or {}, data

    @field_validator("models")
    @classmethod
    def _as_many_as_it_takes(cls, models: Mapping[str, object]) -> Mapping[str, object]:
        return models

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.pool is not None and self.train_data is None:
            pool_names(self.pool)
            raise OptionError(f"--pool {self.pool} needs data to train on: name them with --train-data DATA.")
        if not self.names:
            raise OptionError("The study transfer needs models before the data, or a --pool.")
        transformers = [name for name in self.pool_members if not parse_zoo_name(name).unit]
        for kind, given, existing in (
            ("model in this study", self.second, self.names),
            ("kind of word vectors", self.vectors, _VECTORS),
            ("transformer in the pool", self.checkpoints, transformers),
        ):
            for name in given:
                if name not in existing:
                    raise unknown_name(kind, name, existing)
        return self

    @property
    def pool_members(self) -> tuple[str, ...]:
        """The models of the pool; one that was named takes the place of a member of that name."""
        members = () if self.pool is None else pool_names(self.pool)
        return tuple(name for name in members if name not in self.models)

    @property
    def names(self) -> tuple[str, ...]:
        """The models that were named, and those of the pool."""
        return (*self.models, *self.pool_members)

    @property
    def size(self) -> int:
        """The most texts that are studied."""
        return self.attacked if self.limit is None else min(self.limit, self.attacked)

    def attack(self, model: object) -> AttackSpec:
        """What decides the attacks on one source."""
        shared = {name: getattr(self, name) for name in StudySpec.model_fields if name not in ("models", "limit")}
        return AttackSpec.of(model=model, attacks=self.attacks, limit=self.size, similarity=False, **shared)
