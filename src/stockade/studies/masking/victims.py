"""The models of the study: each with the mask rate it was trained at, one perhaps without any."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from stockade.certificates.registry import make_method
from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Classifier, Fingerprinted
from stockade.defenses.chain import FILE_NAME, load_defenses
from stockade.defenses.combine import Combination
from stockade.defenses.defended import Defended
from stockade.defenses.ranmask import RanMask
from stockade.jobs import ModelOptions

ENSEMBLES: tuple[Combination, ...] = ("vote", "logit", "probability")
BARE = "none"
"""What stands for an ensemble where nothing is masked."""
_TRAINING_ONLY = ("curriculum",)


@dataclass(frozen=True, slots=True)
class Victim:
    """One model. `rate` is the share of words that it hides, 0 for the undefended one; `kept` the fewest that stay."""

    name: str
    reference: str
    fingerprint: str | None
    labels: tuple[str, ...]
    rate: float
    kept: int

    @property
    def masks(self) -> bool:
        return self.rate > 0

    @property
    def ensembles(self) -> tuple[str, ...]:
        return ENSEMBLES if self.masks else (BARE,)


def masking_of(name: str, given: object) -> RanMask | None:
    """The masking that a model was trained with, as its folder or the object says; None if there is none."""
    if isinstance(given, Defended):
        answering, masking = [given.name], cast(Any, given.defense)
        if isinstance(given.inner, Defended):
            answering.append(given.inner.name)
    else:
        kept = load_defenses(Path(given)) if isinstance(given, str | Path) else []
        named = [one for one in kept if one.entry.answers]
        answering, masking = [one.name for one in named], named[0].defense if named else None
    if not answering:
        return None
    if len(answering) > 1 or not isinstance(masking, RanMask):
        raise ModelError(
            f"The model {name} stands in {', '.join(answering)}, and this study is about ranmask alone: give models "
            "that were trained with it, as in stockade train DATA --arch … --defense ranmask:rate=0.5 --out models/m"
        )
    return masking


def describe_victim(name: str, reference: str, given: object, classifier: Classifier) -> Victim:
    """What the plan records of a model; one that no certificate speaks of is refused."""
    masking = masking_of(name, given)
    if masking is not None:
        make_method("ranmask-gap").method.check(classifier)
    return Victim(
        name,
        reference,
        classifier.fingerprint() if isinstance(classifier, Fingerprinted) else None,
        classifier.labels,
        0.0 if masking is None else masking.rate,
        1 if masking is None else masking.kept,
    )


def check_rates(maskings: Mapping[str, RanMask | None], attacked: bool) -> None:
    """Refuse models that cannot be told apart by their rate, or of which none masks anything."""
    by_rate: dict[float, str] = {}
    for name, masking in maskings.items():
        rate = 0.0 if masking is None else masking.rate
        if rate in by_rate:
            told = f"were both trained at the mask rate {rate:g}" if rate else f"both have no ranmask in {FILE_NAME}"
            raise OptionError(
                f"The models {by_rate[rate]} and {name} {told}: give one model for each rate, and at most one without."
            )
        by_rate[rate] = name
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


def in_ensemble(name: str, given: object, ensemble: str, options: ModelOptions) -> tuple[object, ModelOptions]:
    """The model with its copies taken together in that way, and how to load it."""
    masking = masking_of(name, given)
    if masking is None:
        return given, options
    changed = replace(masking, combine=ensemble)  # type: ignore[arg-type]  # one of ENSEMBLES
    if isinstance(given, Defended):
        return replace(given, defense=changed), options
    return given, replace(options, defenses=(reference_of_masking(changed),))


def reference_of_masking(masking: RanMask) -> str:
    """The masking as `--defense` takes it: the rate, and whatever else is not as usual."""
    told: dict[str, Any] = {"rate": masking.rate}
    for field in dataclasses.fields(masking):
        value = getattr(masking, field.name)
        if field.name not in ("rate", *_TRAINING_ONLY) and value != field.default:
            told[field.name] = value
    return "ranmask:" + ",".join(f"{name}={value}" for name, value in told.items())
