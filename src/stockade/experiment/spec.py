"""A job's specification: all that decides its results, as a pydantic model that round-trips through the manifest.

A subclass names the fields of one kind of job. Models and data may be Python objects; the manifest then records what
they were, and whoever resumes the job gives them again. Fields in `free` may differ when a job is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import PydanticSerializationError

from stockade.attacks.registry import NamedAttack, make_attacks
from stockade.core.attacked_translation import Task
from stockade.core.errors import OptionError, StockadeError
from stockade.core.files import unreadable
from stockade.defenses.registry import NamedDefense, make_defenses
from stockade.experiment.inputs import DataOptions, ModelOptions, is_lost_object, reference_of
from stockade.models.code import code_in, is_service
from stockade.models.ensemble_reference import single_models
from stockade.models.language import LanguageModels


def _recorded(value: object) -> str | None:
    return None if value is None else reference_of(value)


Reference = Annotated[object, PlainSerializer(_recorded)]
"""A model or data: a reference such as `builtin:sentiment-cnn`, or the Python object itself; None if there is none."""


def _trust(info: ValidationInfo) -> bool:
    """Whether the user trusts the folder that a spec is read from."""
    return bool((info.context or {}).get("trust"))


def _attacks(value: object, info: ValidationInfo) -> tuple[NamedAttack, ...]:
    if isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        return tuple(NamedAttack.from_description(item, trust=_trust(info)) for item in value)
    if isinstance(value, tuple) and all(isinstance(item, NamedAttack) for item in value):
        return value
    return make_attacks(value)


def _attacks_or_none(value: object, info: ValidationInfo) -> tuple[NamedAttack, ...]:
    return () if value is None or (isinstance(value, list | tuple) and not value) else _attacks(value, info)


def _defenses(value: object, info: ValidationInfo) -> tuple[NamedDefense, ...] | None:
    if value is None:
        return None
    if value == "none" or value in (["none"], ("none",)):
        return ()
    items: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
    if all(isinstance(item, Mapping) for item in items):
        return tuple(NamedDefense.from_description(item, trust=_trust(info)) for item in items)
    if all(isinstance(item, NamedDefense) for item in items):
        return tuple(items)
    return make_defenses(items)


def check_task(attacks: tuple[NamedAttack, ...], task: Task) -> tuple[NamedAttack, ...]:
    """The attacks, if all are made for models that do this; else an error that names one that is not."""
    for attack in attacks:
        if attack.task == "translation" != task:
            raise OptionError(
                f"{attack.key} attacks translators, and this job is about classifiers. Choose another attack (stockade "
                f"ls attacks), or give a translator and parallel sentences to: stockade attack … --attack {attack.key}"
            )
        if attack.task != task:
            raise OptionError(
                f"{attack.key} attacks classifiers, and this job is about translators. Choose attacks for translators, "
                "such as mt-keyword (stockade ls attacks)."
            )
    return attacks


def _described(items: tuple[Any, ...] | None) -> list[dict[str, Any]] | None:
    return None if items is None else [item.described() for item in items]


Attacks = Annotated[
    tuple[NamedAttack, ...],
    BeforeValidator(_attacks),
    AfterValidator(lambda attacks: check_task(attacks, "classification")),
    PlainSerializer(_described),
]
"""Names, instances or a list of them; recorded with every option."""
OptionalAttacks = Annotated[
    tuple[NamedAttack, ...],
    BeforeValidator(_attacks_or_none),
    AfterValidator(lambda attacks: check_task(attacks, "classification")),
    PlainSerializer(_described),
]
"""The same where there may be none."""
TranslationAttacks = Annotated[
    tuple[NamedAttack, ...],
    BeforeValidator(_attacks),
    AfterValidator(lambda attacks: check_task(attacks, "translation")),
    PlainSerializer(_described),
]
"""The same for attacks on translators."""
Defenses = Annotated[tuple[NamedDefense, ...] | None, BeforeValidator(_defenses), PlainSerializer(_described)]
"""Names, instances or a list of them, from the outside in. None: those of the model's folder; (): the bare model."""
Count = Annotated[int, Field(ge=1, strict=True)]
Seed = Annotated[int, Field(ge=0, strict=True)]
_PLAIN = str | int | float | None


class Spec(BaseModel):
    """Everything that decides the results of one job."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    kind: ClassVar[str]
    free: ClassVar[frozenset[str]] = frozenset({"model_options"})
    """How a model is loaded may differ when a job is resumed (another device, say); its fingerprint may not."""
    by_key: ClassVar[tuple[str, ...]] = ("attacks",)
    """Lists that are compared by the key of their items, so that their order does not matter on resume."""

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Make a spec from what a user gave; what it cannot be is an `OptionError` of one sentence."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise option_error(error) from None

    @classmethod
    def read(cls, described: Mapping[str, Any], path: Path, *, trust: bool = False) -> Self:
        """The spec that a manifest records.

        Parameters
        ----------
        described
            What `described` has told the manifest.
        path
            The manifest, for errors.
        trust
            Whether classes that the manifest names, and that are not registered, may be imported.
        """
        try:
            return cls.model_validate(dict(described), context={"trust": trust})
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, problem["loc"]))
            raise unreadable(path, f"{place}: {problem['msg']}") from None
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise unreadable(path, f"a value of the wrong kind: {type(error).__name__}, {error}") from None

    def changed(self, values: Mapping[str, object]) -> Self:
        """The spec with other values of some fields, checked like those that a user gives."""
        if not values:
            return self
        return type(self).of(**{**{name: getattr(self, name) for name in type(self).model_fields}, **values})

    def described(self) -> dict[str, Any]:
        """The spec as the manifest records it."""
        try:
            plain = self.model_dump(mode="python")
        except PydanticSerializationError as error:  # a file that an attack or a defense reads is not there, say
            cause = error.__cause__ or error.__context__
            raise (cause if isinstance(cause, StockadeError) else error) from None
        described: dict[str, Any] = json.loads(json.dumps(plain, default=_plain))
        return described

    @classmethod
    def decisive(cls, described: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a described spec that must be the same for a job to be resumed.

        A field that an older version did not record has its default, which is what that version did.
        """
        defaults = {name: field.get_default() for name, field in cls.model_fields.items() if not field.is_required()}
        missing = {
            name: value for name, value in defaults.items() if name not in described and isinstance(value, _PLAIN)
        }
        decisive = {name: value for name, value in {**missing, **described}.items() if name not in cls.free}
        for name in cls.by_key:
            if decisive.get(name) is not None:
                decisive[name] = {item["key"]: item for item in decisive[name]}
        return decisive

    def lost_objects(self) -> list[str]:
        """Names of the fields that were Python objects when the job was begun and have to be given again."""
        return [
            name for name in type(self).model_fields for value in _flat(getattr(self, name)) if is_lost_object(value)
        ]

    def runs_code(self, vouched: Collection[str] = ()) -> str | None:
        """What a job of this spec would run that is not Stockade's own code, named by its folder alone.

        Every text in the spec is looked at, however deep: which of them is loaded as a model is for others to know.

        Parameters
        ----------
        vouched
            Fields that the user has given again and so vouches for. Whoever names a model does not say that its
            pickles and its code may run: for that `model_options` must be given again as well.
        """
        for name in type(self).model_fields:
            if name in vouched:
                continue
            value = getattr(self, name)
            if isinstance(value, ModelOptions) and value.runs_code:
                return "loads models with --allow-pickle or --trust-remote-code"
            for text in _texts(value):
                code = code_in(text)
                if code is not None:
                    return f"{'asks' if is_service(code) else 'runs'} {code}"
        return None


class ModelSpec(Spec):
    """What every job asks that reads models and data: the fields are the same everywhere.

    Parameters
    ----------
    data
        A reference or the data themselves.
    limit
        A seeded sample of this many rows; all rows if None.
    seed
        Decides the sample and every random choice.
    max_words
        Longer texts are recorded as errors.
    mlm, encoder
        Another masked LM or sentence encoder than the ones that come with the installation.
    data_options, model_options
        How data are read and models are loaded.
    """

    data: Reference
    limit: Count | None = None
    seed: Seed = 0
    max_words: Count = 5_000
    mlm: str | None = None
    encoder: str | None = None
    data_options: DataOptions = DataOptions()
    model_options: ModelOptions = ModelOptions()

    @property
    def language(self) -> LanguageModels:
        """The masked LM and the sentence encoder."""
        return LanguageModels(self.mlm, self.encoder)


def option_error(error: ValidationError) -> OptionError:
    """The first problem of a spec as a sentence for the person who gave the option."""
    problem = error.errors()[0]
    option = "--" + str(problem["loc"][0] if problem["loc"] else "option").replace("_", "-")
    value, context = problem["input"], problem.get("ctx", {})
    if problem["type"] == "greater_than_equal" or (problem["type"].startswith("int") and "ge" not in context):
        return OptionError(f"{option} is {value}, expected a whole number from {context.get('ge', 1)} up.")
    if problem["type"] == "extra_forbidden":
        return OptionError(f"There is no option {option}.")
    return OptionError(f"{option} cannot be {value!r}: {problem['msg'][:1].lower()}{problem['msg'][1:]}.")


def _flat(value: object) -> list[object]:
    """A field's values one by one, so that lists and mappings of references are looked at as well."""
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else [value]


def references_in(value: object) -> Iterator[str]:
    """The references of all single models in a value that a user gave."""
    for text in _texts(value):
        yield from single_models(text)


def _texts(value: object) -> Iterator[str]:
    """Every text in a value, however deep in lists, mappings and options of methods."""
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _texts(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _texts(getattr(value, field.name, None))


def _plain(value: object) -> Any:
    """What JSON does not know: mappings that are no dictionaries, paths, tuples inside dataclasses."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    return str(value)
