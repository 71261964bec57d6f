"""The models of the study: each with the mask rate it was trained at, one perhaps without any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stockade.certificates.method import check_repeats
from stockade.certificates.registry import make_method
from stockade.core.errors import ModelError, OptionError, RunError
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet
from stockade.defenses.chain import FILE_NAME, load_defenses
from stockade.defenses.combine import Combination
from stockade.defenses.defended import Defended
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import make_defense
from stockade.engine.services import innermost
from stockade.experiment.inputs import describe_data, describe_model, fingerprint_of
from stockade.experiment.pool import DataPool, ModelPool

if TYPE_CHECKING:
    from stockade.studies.masking.study import MaskingSpec

ENSEMBLES: tuple[Combination, ...] = ("vote", "logit", "probability")
BARE = "none"
"""What stands for an ensemble where nothing is masked."""
SOUND, LEGACY = "ranmask-gap", "ranmask-legacy"
"""The sound certificate, and the published procedure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """One model of the study.

    Parameters
    ----------
    name, reference, fingerprint, labels
        What the study calls it, where it came from, and what it is.
    masking
        What it was trained with; None for the undefended model.
    """

    name: str
    reference: str
    fingerprint: str | None
    labels: tuple[str, ...]
    masking: RanMask | None

    @property
    def rate(self) -> float:
        """The share of words that it hides; 0 for the undefended model."""
        return 0.0 if self.masking is None else self.masking.rate

    @property
    def ensembles(self) -> tuple[str, ...]:
        """The ways in which the answers to its copies become one."""
        return (BARE,) if self.masking is None else ENSEMBLES

    @classmethod
    def read(cls, name: str, described: Mapping[str, Any]) -> Victim:
        """The model that a manifest records."""
        masking = [
            make_defense(defense["name"], **defense["options"]).defense for defense in described.get("defenses", ())
        ]
        return cls(
            name=name,
            reference=described["reference"],
            fingerprint=described["fingerprint"],
            labels=tuple(described["labels"]),
            masking=masking[0] if masking else None,
        )


def masking_of(name: str, model: object) -> RanMask | None:
    """The masking that a model was trained with, as its folder or the object says; None if there is none.

    Parameters
    ----------
    name
        What the study calls the model, for errors.
    model
        A reference, or the model itself.
    """
    if isinstance(model, Defended):
        names, masking = [model.name], cast(Any, model.defense)
        if isinstance(model.inner, Defended):
            names.append(model.inner.name)
    else:
        recorded = load_defenses(Path(model)) if isinstance(model, str | Path) else []
        answering = [defense for defense in recorded if defense.entry.answers]
        names, masking = [defense.name for defense in answering], answering[0].defense if answering else None
    if not names:
        return None
    if len(names) > 1 or not isinstance(masking, RanMask):
        raise ModelError(
            f"The model {name} stands in {', '.join(names)}, and this study is about ranmask alone: give models that "
            "were trained with it, as in stockade train DATA --arch … --defense ranmask:rate=0.5 --out models/m"
        )
    return masking


def check_rates(maskings: Mapping[str, RanMask | None], attacked: bool) -> None:
    """Refuse models of one rate that mask in other ways, several that mask nothing, and none that masks anything.

    Several models of one rate are several trainings of it.

    Parameters
    ----------
    maskings
        What each model was trained with.
    attacked
        Whether there are attacks, without which an undefended model has nothing to do.
    """
    by_rate: dict[float, str] = {}
    for name, masking in maskings.items():
        rate = 0.0 if masking is None else masking.rate
        first = by_rate.setdefault(rate, name)
        if masking is None and first != name:
            raise OptionError(
                f"The models {first} and {name} both have no ranmask in {FILE_NAME}: give at most one such."
            )
        if masking != maskings[first]:
            others = [field.name for field in fields(RanMask) if _differs(field.name, masking, maskings[first])]
            raise OptionError(
                f"The models {first} and {name} were both trained at the mask rate {rate:g}, but with other "
                f"{', '.join(others)} of ranmask: several models of one rate must be trainings that differ in their "
                "seed alone."
            )
    if not any(by_rate):
        raise OptionError(
            f"No model was trained with ranmask (found: {', '.join(maskings)}, without it in {FILE_NAME}). Train one "
            "for each rate: stockade train DATA --arch … --defense ranmask:rate=0.5 --out models/m05"
        )
    if 0.0 in by_rate and not attacked:
        raise OptionError(
            f"The model {by_rate[0.0]} has no ranmask and is only there to be attacked: name an --attack, or leave it "
            "out."
        )


def _differs(option: str, first: RanMask | None, second: RanMask | None) -> bool:
    return bool(getattr(first, option, None) != getattr(second, option, None))


def in_ensemble(model: object, ensemble: str) -> Any:
    """A model in its masking, with the answers to its copies combined in that way; any other model as it is.

    Parameters
    ----------
    model
        A reference, or the model itself.
    ensemble
        One of `ENSEMBLES`.
    """
    if not isinstance(model, Defended) or not isinstance(model.defense, RanMask):
        return model
    return replace(model, defense=replace(model.defense, combine=cast(Combination, ensemble)))


class MaskingInputs:
    """The models and data of a study, loaded when a job needs them; one model is held at a time.

    Parameters
    ----------
    spec
        Names or objects, and how they are loaded.
    """

    def __init__(self, spec: MaskingSpec) -> None:
        self._spec = spec
        self._models = ModelPool(spec.models, spec.model_options, language=spec.language)
        self._data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed)

    def describe(self) -> dict[str, Any]:
        """Look at every model and all data once, and say what the manifest records of them, by rising mask rate."""
        spec, models, weights = self._spec, {}, dict[str, str | None]()
        maskings = {name: masking_of(name, model) for name, model in spec.models.items()}
        check_rates(maskings, bool(spec.attacks))
        spec.language.check()
        for name in sorted(maskings, key=lambda name: getattr(maskings[name], "rate", 0.0)):
            classifier = self._models.defended(name, seed=spec.seed)
            self._data.check_answers(classifier)
            if maskings[name] is not None:
                make_method(SOUND).method.check(classifier)
                for row in islice(self._data.source().rows(), 1):
                    check_repeats(innermost(classifier), row.input)
            models[name] = describe_model(spec.models[name], classifier)
            weights[name] = fingerprint_of(innermost(classifier))
            examples = self._data.examples(classifier.labels)
        _check_runs(maskings, weights)
        return {"models": models, "data": describe_data(spec.data, examples)}

    def load(self, victim: Victim, fingerprint: str) -> tuple[Classifier, ExampleSet]:
        """A model in its masking, and the texts with its classes, which must be those that the study began with.

        Parameters
        ----------
        victim
            What the manifest records of the model.
        fingerprint
            Of the data.
        """
        classifier = self._models.defended(victim.name, seed=self._spec.seed)
        if fingerprint_of(classifier) != victim.fingerprint:
            raise RunError(
                f"The model {victim.name} is not the one the study was begun with (another fingerprint): start again "
                "with another folder."
            )
        self._data.hold_to(fingerprint)
        return classifier, self._data.examples(classifier.labels)


def _check_runs(maskings: Mapping[str, RanMask | None], weights: Mapping[str, str | None]) -> None:
    """Refuse the same weights twice: their spread would be that of the random masks alone."""
    seen: dict[tuple[float, str], str] = {}
    for name, fingerprint in weights.items():
        masking = maskings[name]
        if masking is not None and fingerprint is not None:
            first = seen.setdefault((masking.rate, fingerprint), name)
            if first != name:
                raise OptionError(
                    f"The models {first} and {name} are the same, weights and all: train one of them again with "
                    "another seed, as in stockade train … --seed 1, or leave it out."
                )
