"""Several models as one classifier: the softmax of the mean of their logits.

"Generating universal language adversarial examples by understanding and enhancing the transferability across neural
models" (ICLR 2021 submission, section 4.1) attacks such ensembles, because what fools all of them often fools others.

Differences to the paper: the logits of a member may be divided by a temperature, because members with large logits
dominate the mean (`calibration.py` finds temperatures); off by default. Members are bare models, and a defense stands
around the ensemble.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Classifier, CompositeClassifier, EncodingClassifier, MaskingClassifier
from stockade.models.adapters import LoadOptions, load_with
from stockade.models.ensemble_reference import SCHEME, EnsembleReference
from stockade.models.mean_logits import EncodingEnsemble, Ensemble, MaskingEnsemble


class EnsembleAdapter:
    """Reads `ensemble:A,B,…`."""

    def matches(self, model: object) -> bool:
        """True for references of the scheme."""
        return isinstance(model, str | Path) and str(model).startswith(SCHEME)

    def load(self, model: object, options: LoadOptions) -> Classifier:
        """The ensemble of the bare models that the reference names, each loaded with the options."""
        reference = EnsembleReference.parse(str(model))
        members: dict[str, Classifier] = {}
        for name in dict.fromkeys(reference.members):
            try:
                members[name] = load_with(name, options)
            except ModelError as problem:
                raise _cannot_load(name, reference, problem) from problem
        return combine([members[name] for name in reference.members], reference.temperatures, names=reference.members)


def ensemble(
    members: Sequence[object],
    temperatures: Sequence[float] | None = None,
    *,
    labels: Sequence[str] | None = None,
    device: str | None = None,
    outputs: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Classifier:
    """Average the logits of several models: a classifier that is attacked, defended and certified like any other.

    Parameters
    ----------
    members : sequence of str, Path or object
        The models, as `st.load_model` takes them. Defenses that their folders record are left out.
    temperatures : sequence of float, optional
        What the logits of each member are divided by; 1 by default.
    labels : sequence of str, optional
        Names of the classes in the order of each member's columns, in place of the members' own.
    device : str, optional
        Where neural models are computed: "auto", "cpu", "cuda" or "mps".
    outputs : {"probabilities", "logits"}, optional
        What the members answer with.
    allow_pickle, trust_remote_code : bool
        Allow pickled weights; allow code that comes with a model.

    Returns
    -------
    Classifier
        Its classes are in the order of the first member's.
    """
    options = LoadOptions(
        labels=labels, device=device, outputs=outputs, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
    )
    names = [name_of(member) for member in members]
    return combine([load_with(member, options) for member in members], temperatures, names=names)


def combine(
    members: Sequence[Classifier], temperatures: Sequence[float] | None = None, *, names: Sequence[str] | None = None
) -> Ensemble:
    """The ensemble of classifiers that are loaded already; it tokenises and masks apart from predicting if they do.

    Parameters
    ----------
    members
        The classifiers.
    temperatures
        What the logits of each are divided by; 1 if None.
    names
        What errors call the members.
    """
    if not members:
        raise ModelError("An ensemble has no member: give at least one model, as in ensemble:A,B.")
    names = names or [name_of(member) for member in members]
    for name, member in zip(names, members, strict=True):
        if hasattr(member, "answer") and isinstance(member, CompositeClassifier):
            raise ModelError(
                f"{name} is a model inside a defense, and an ensemble averages bare models: give the model itself, and "
                "put the defense around the ensemble."
            )
    kind = Ensemble
    if any(isinstance(member, EncodingClassifier) for member in members):
        all_mask = all(isinstance(member, MaskingClassifier) for member in members)
        kind = MaskingEnsemble if all_mask else EncodingEnsemble
    return kind(tuple(members), _checked(temperatures, len(members)), aligned_columns(members, names))


def aligned_columns(members: Sequence[Classifier], names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """For each member its column of each class of the first member; other classes are refused.

    Parameters
    ----------
    members
        The classifiers.
    names
        What the error calls them.
    """
    labels = members[0].labels
    for name, member in zip(names, members, strict=True):
        if sorted(member.labels) != sorted(labels):
            raise ModelError(
                f"The members of an ensemble need the same classes, but {names[0]} has {', '.join(labels)} and {name} "
                f"has {', '.join(member.labels)}: name the classes alike (--labels), or leave one of them out."
            )
    return tuple(tuple(member.labels.index(label) for label in labels) for member in members)


def name_of(member: object) -> str:
    """What errors call a member: its reference, or the name of the function or class."""
    return str(member) if isinstance(member, str | Path) else getattr(member, "__name__", type(member).__name__)


def _cannot_load(name: str, reference: EnsembleReference, problem: ModelError) -> ModelError:
    """The error for a member that cannot be loaded; perhaps a comma in a path has cut it in two."""
    for first, second in pairwise(reference.members):
        if name in (first, second) and Path(f"{first},{second}").exists():
            return ModelError(
                f'"{first},{second}" holds a comma, which separates the members of an ensemble: put it into double '
                "quotes."
            )
    return ModelError(f"The member {name} of an ensemble cannot be loaded. {problem}")


def _checked(temperatures: Sequence[float] | None, members: int) -> tuple[float, ...]:
    if temperatures is None:
        return (1.0,) * members
    if len(temperatures) != members:
        raise OptionError(
            f"An ensemble of {members} has {len(temperatures)} temperatures, expected one for each member."
        )
    for temperature in temperatures:
        if not 0 < temperature < math.inf:
            raise OptionError(f"A temperature of an ensemble is {temperature:g}, expected a number above 0.")
    return tuple(map(float, temperatures))
