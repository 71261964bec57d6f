"""Whose 1 is whose "positive": the data's labels matched to the model's classes, by name wherever there are names.

The first rule that applies to a label decides; none of them guesses, and what no rule covers is an error.

1. `--label-map DATA=MODEL`: DATA is a label of the data or the data's own name for it, MODEL a class of the model or
   its number.
2. A number, and the data has names for its numbers (a `ClassLabel`): that name is matched to the model's names. Only
   if the model's names say nothing (`LABEL_0`, `0`) and both sides have as many is the number itself the class.
3. A number, and the model's names are numbers too ("1" … "5"): matched as a name.
4. A number without a name: the class of that number, counted from 0. Numbers from 1 to C are an error, never shifted.
5. A string: matched to the model's names; if those say nothing, an error that asks for a map.

Names match without case, blanks, underscores and hyphens; a few abbreviations of one name count as that name
(`_SAME_NAME`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stockade.core.errors import DataError, OptionError
from stockade.datasets.source import Label
from stockade.datasets.wording import listing, quote

_SAME_NAME = (
    ("negative", "neg"),
    ("neutral", "neu"),
    ("positive", "pos"),
    ("ham", "notspam", "nospam", "nonspam"),
    ("nontoxic", "nottoxic"),
    ("entailment", "entails", "entail"),
    ("contradiction", "contradicts", "contradict"),
    ("notentailment", "nonentailment"),
)
_FIRST_SPELLING = {spelling: group[0] for group in _SAME_NAME for spelling in group}
_SAYS_NOTHING = re.compile(r"(label|class)?[\s_\-]*[0-9]+", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?[0-9]+")


def align_labels(
    labels: Iterable[Label],
    label_names: tuple[str, ...] | None,
    classes: Sequence[str],
    label_map: Mapping[str, str] | None = None,
    *,
    data_name: str = "The data",
    first_rows: Mapping[Label, str] | None = None,
) -> dict[Label, int]:
    """The class of the model for every label of the data, by the rules above.

    Parameters
    ----------
    labels : iterable of str or int
        The different labels of the data.
    label_names : tuple of str, optional
        The data's own names of its integer labels.
    classes : sequence of str
        The model's names of its classes, in order.
    label_map : mapping, optional
        The class that the user gives a label of the data.
    data_name : str
        What errors call the data.
    first_rows : mapping, optional
        The first row of each label, for the error about a label that fits nowhere.
    """
    alignment = _Alignment(list(labels), label_names, tuple(classes), data_name, first_rows or {})
    mapped = alignment.explicit(label_map or {})
    return {label: mapped[label] if label in mapped else alignment.classify(label) for label in alignment.labels}


def canonical(name: str) -> str:
    """A label name without case, blanks, underscores and hyphens, in the first spelling of its group."""
    key = re.sub(r"[\s_\-]+", "", name).casefold()
    return _FIRST_SPELLING.get(key, key)


def says_nothing(labels: Sequence[str]) -> bool:
    """Whether a model's labels are only numbers in disguise: `LABEL_0`, `class 1`, `2`."""
    return all(_SAYS_NOTHING.fullmatch(label.strip()) for label in labels)


@dataclass(frozen=True, slots=True)
class _Alignment:
    """Both sides of one match."""

    labels: list[Label]
    names: tuple[str, ...] | None
    classes: tuple[str, ...]
    data_name: str
    first_rows: Mapping[Label, str]
    _by_name: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, name in enumerate(self.classes):
            self._by_name.setdefault(canonical(name), []).append(index)

    def explicit(self, label_map: Mapping[str, str]) -> dict[Label, int]:
        """What the user's map says about the labels of the data; entries about other labels are left alone."""
        mapped: dict[Label, int] = {}
        targets = {str(key): self._class_named_by_user(str(key), str(value)) for key, value in label_map.items()}
        by_key = {canonical(key): index for key, index in targets.items()}
        for label in self.labels:
            for spelling in (str(label), self._own_name(label)):
                index = targets.get(spelling or "", by_key.get(canonical(spelling or "")))
                if spelling and index is not None:
                    mapped[label] = index
                    break
        return mapped

    def classify(self, label: Label) -> int:
        if isinstance(label, str):
            index = self._match(label)
            if index is None:
                raise self._no_names_to_match() if says_nothing(self.classes) else self._unknown(label)
            return index
        if self.names is not None:
            return self._by_data_name(label)
        if all(_NUMBER.fullmatch(name.strip()) for name in self.classes):
            index = self._match(str(label))
            if index is None:
                raise self._unknown(label)
            return index
        if not 0 <= label < len(self.classes):
            raise self._out_of_range(label)
        return label

    def _by_data_name(self, label: int) -> int:
        """Rule 2: the data says what its number means."""
        assert self.names is not None
        name = self._own_name(label)
        if name is None:
            raise self._out_of_range(label)
        index, generic = self._match(name), says_nothing(self.classes)
        if index is not None and (not generic or None not in map(self._match, self.names)):
            return index
        if generic and len(self.names) == len(self.classes):
            return label
        raise DataError(
            f"{self.data_name} calls its labels {listing(self.names)}, the model has {listing(self.classes)}, and "
            f"{quote(name)} is none of those. Say which is which with {self._suggest([label])}."
        )

    def _match(self, name: str) -> int | None:
        """The class of that name: to the letter, or the only one that is spelled alike."""
        if name in self.classes:
            return self.classes.index(name)
        alike = self._by_name.get(canonical(name), [])
        return alike[0] if len(alike) == 1 else None

    def _own_name(self, label: Label) -> str | None:
        if self.names is None or isinstance(label, str) or not 0 <= label < len(self.names):
            return None
        return self.names[label]

    def _class_named_by_user(self, key: str, value: str) -> int:
        index = self._match(value.strip())
        if index is None and _NUMBER.fullmatch(value.strip()) and 0 <= int(value) < len(self.classes):
            index = int(value)
        if index is None:
            raise OptionError(
                f"--label-map {shlex.quote(f'{key}={value}')} names no class of the model (found: "
                f"{listing(self.classes)}), expected one of those names or a number from 0 to {len(self.classes) - 1}."
            )
        return index

    def _unknown(self, label: Label) -> DataError:
        return DataError(
            f"{self.data_name} has the label {quote(label)}{self._where(label)}, which is no class of the model "
            f"(found: {listing(self.classes)}). Say what it means with {self._suggest([label])}."
        )

    def _out_of_range(self, label: int) -> DataError:
        numbers = [number for number in self.labels if isinstance(number, int)]
        classes = f"{listing(self.classes)}, numbered from 0 to {len(self.classes) - 1}"
        if min(numbers) == 1 and max(numbers) == len(self.classes):
            return DataError(
                f"{self.data_name} numbers its labels from 1 to {len(self.classes)}, expected numbers from 0 for "
                f"the classes of the model ({classes}). Say which is which with {self._suggest(sorted(numbers))}."
            )
        hint = f"Say what it means with {self._suggest([label])}."
        if label == -1 and 1 not in numbers:
            hint = "-1 often marks rows without a label: choose another split, or remove them."
        return DataError(
            f"{self.data_name} has the label {label}{self._where(label)}, expected a class of the model ({classes}). "
            f"{hint}"
        )

    def _no_names_to_match(self) -> DataError:
        words = sorted(label for label in self.labels if isinstance(label, str))
        return DataError(
            f"{self.data_name} has the labels {listing(words)}, the model has {listing(self.classes)}, and those "
            f"names cannot be matched. Say which is which with {self._suggest(words)}."
        )

    def _where(self, label: Label) -> str:
        row = self.first_rows.get(label)
        return f" (first in row {row}, counted from 0)" if row is not None else ""

    def _suggest(self, labels: Sequence[Label]) -> str:
        """Options that could be copied; several labels are given the classes in order, a single one is left open."""
        if len(labels) == 1 or len(labels) > len(self.classes):
            return f"--label-map {shlex.quote(f'{labels[0]}=')}CLASS" if labels else "--label-map LABEL=CLASS"
        numbered = says_nothing(self.classes)
        pairs = [f"{label}={index if numbered else self.classes[index]}" for index, label in enumerate(labels[:10])]
        return " ".join(f"--label-map {shlex.quote(pair)}" for pair in pairs)
