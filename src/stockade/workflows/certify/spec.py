"""What decides the results of a certification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo, model_validator

from stockade.certificates.medians import corrected_alpha
from stockade.certificates.registry import NamedMethod, make_methods
from stockade.core.errors import OptionError
from stockade.experiment.spec import Defenses, ModelSpec, Reference


def _methods(value: object, info: ValidationInfo) -> tuple[NamedMethod, ...]:
    if value is None or value == () or value == []:
        return ()
    if isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
        return tuple(NamedMethod.from_description(item) for item in value)
    if isinstance(value, tuple) and all(isinstance(item, NamedMethod) for item in value):
        return value
    return make_methods(value)


def _described(methods: tuple[NamedMethod, ...]) -> list[dict[str, Any]]:
    return [{**method.described(), "sound": method.method.sound, "threat": method.method.threat} for method in methods]


Methods = Annotated[tuple[NamedMethod, ...], BeforeValidator(_methods), PlainSerializer(_described)]


class CertifySpec(ModelSpec):
    """A model, data, methods, and every option that decides what is certified.

    Parameters
    ----------
    model
        A reference or the model itself, in a certifiable defense.
    methods
        The methods, each with every option; empty: the one for the model's defense.
    alpha
        The probability that a certificate may be wrong; None leaves each method its own.
    defenses
        What stands around the model; None: what its folder records.
    familywise
        Whether alpha is for all texts of the run together instead of for each.
    unlabelled
        Whether the data have no labels: the class that the model gives is certified, right or wrong.
    """

    kind: ClassVar[str] = "certify"
    by_key: ClassVar[tuple[str, ...]] = ("methods",)

    model: Reference
    methods: Methods = ()
    alpha: float | None = None
    defenses: Defenses = None
    familywise: bool = False
    unlabelled: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.alpha is not None and not 0 < self.alpha < 1:
            raise OptionError(f"--alpha is {self.alpha:g}, expected a probability between 0 and 1, such as 0.05.")
        if self.unlabelled and any(getattr(named.method, "choose", None) == "label" for named in self.methods):
            raise OptionError("choose=label gives the method the true class, and the data are said to have no labels.")
        if self.unlabelled and (self.data_options.label_column or self.data_options.label_map):
            raise OptionError("The data are said to have no labels: leave out --label-column and --label-map.")
        return self

    def with_methods(self, methods: tuple[NamedMethod, ...]) -> Self:
        """The spec with these methods, each with the alpha that was asked for."""
        return self.model_copy(update={"methods": tuple(_with_alpha(named, self.alpha) for named in methods)})

    def methods_per_text(self, texts: int) -> dict[str, NamedMethod]:
        """The methods by key, with the alpha that each single text has."""
        if not self.familywise:
            return {named.key: named for named in self.methods}
        return {named.key: _familywise(named, texts) for named in self.methods}


def _with_alpha(named: NamedMethod, alpha: float | None) -> NamedMethod:
    """The method with another alpha, where it has one."""
    if alpha is None or not hasattr(named.method, "alpha"):
        return named
    return replace(named, method=replace(named.method, alpha=alpha))


def _familywise(named: NamedMethod, texts: int) -> NamedMethod:
    if not hasattr(named.method, "alpha"):
        return named
    return replace(named, method=replace(named.method, alpha=corrected_alpha(named.method.alpha, texts)))
