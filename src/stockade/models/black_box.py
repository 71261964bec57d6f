"""What classifiers of other libraries share: they read single texts, and their classes may be given other names."""

from __future__ import annotations

from collections.abc import Sequence

from stockade.core.errors import ModelError
from stockade.core.text import TextInput, valid_unicode
from stockade.datasets.wording import listing


def single_texts(inputs: Sequence[TextInput], name: str) -> list[str]:
    """The texts as strings that every library can encode; pairs are refused.

    Parameters
    ----------
    inputs
        What the model is asked about.
    name
        What errors call the model.
    """
    if not all(isinstance(item, str) for item in inputs):
        raise ModelError(f"{name} reads single texts, and the data are pairs of a premise and a hypothesis.")
    return [valid_unicode(str(item)) for item in inputs]


def class_names(classes: Sequence[str], labels: Sequence[str] | None, name: str) -> tuple[str, ...]:
    """The names of a model's classes: its own, or those that the user gives in the same order.

    Parameters
    ----------
    classes
        The model's own names.
    labels
        The user's, if any.
    name
        What errors call the model.
    """
    if len(classes) < 2 or len(set(classes)) != len(classes):
        raise ModelError(f"{name} has the classes {listing(classes)}, expected two or more different ones.")
    if labels is None:
        return tuple(classes)
    if len(labels) != len(classes) or len(set(labels)) != len(labels):
        raise ModelError(
            f"{name} has {len(classes)} classes ({listing(classes)}) and the labels are {listing(labels)}: name each "
            "once, in that order."
        )
    return tuple(str(label) for label in labels)
