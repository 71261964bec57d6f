"""What an edited text must keep. Constraints compose with `&`:

    SamePos() & Similarity("cosine", 0.9) & MaxEditDistance(30)

and are written the same way on a command line: `same-pos & similarity(cosine, 0.9) & edit-distance(30)`. In a
conjunction the cheap ones go first, and the sentence encoder is only asked about what they leave.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np

from stockade.attacks.misspellings import levenshtein
from stockade.attacks.similarity import Scale, to_cosine, window_bounds
from stockade.core.errors import OptionError, unknown_name
from stockade.core.options import validated
from stockade.core.shares import at_most
from stockade.core.text import Text
from stockade.engine.requests import Embed
from stockade.lexicon.pos import compatible, load_tagger
from stockade.lexicon.stopwords import StopList, is_stop_word

Reference = Literal["original", "previous"]


class Constraint(ABC):
    """A filter of edited texts.

    `keep` gets candidates that all come from `before` by an edit at the word `index` (for an insertion, its anchor),
    and returns those that hold, in order. A constraint that awaits requests of the engine is `costly`.
    """

    name: ClassVar[str]
    costly: ClassVar[bool] = False
    __slots__ = ()

    @classmethod
    def from_text(cls, text: str) -> Constraint:
        """The constraint of an expression such as `same-pos & similarity(cosine, 0.9)`."""
        return parse_constraint(text)

    @abstractmethod
    async def keep(self, candidates: Sequence[Text], before: Text, index: int) -> list[Text]: ...

    def __and__(self, other: Constraint) -> Constraint:
        return Both.of(self, other)

    @property
    def cheap_part(self) -> Constraint | None:
        """What of it can be checked without a model."""
        return None if self.costly else self

    @property
    def costly_part(self) -> Constraint | None:
        """What of it asks a model."""
        return self if self.costly else None

    def __str__(self) -> str:
        values = [(field.name, getattr(self, field.name)) for field in fields(self)]  # type: ignore[arg-type]
        arguments = ", ".join(f"{name}={value}" for name, value in values if value is not None)
        return f"{self.name}({arguments})" if arguments else self.name


@dataclass(frozen=True, slots=True)
class Both(Constraint):
    """Several constraints at once, the cheap ones first."""

    name: ClassVar[str] = "&"
    parts: tuple[Constraint, ...]

    @classmethod
    def of(cls, *constraints: Constraint) -> Constraint:
        parts = [part for item in constraints for part in (item.parts if isinstance(item, Both) else (item,))]
        return cls(tuple(sorted(parts, key=lambda part: part.costly)))

    async def keep(self, candidates: Sequence[Text], before: Text, index: int) -> list[Text]:
        remaining = list(candidates)
        for part in self.parts:
            if not remaining:
                break
            remaining = await part.keep(remaining, before, index)
        return remaining

    @property
    def cheap_part(self) -> Constraint | None:
        return conjunction(*(part for part in self.parts if not part.costly))

    @property
    def costly_part(self) -> Constraint | None:
        return conjunction(*(part for part in self.parts if part.costly))

    def __str__(self) -> str:
        return " & ".join(str(part) for part in self.parts)


def conjunction(*constraints: Constraint | None) -> Constraint | None:
    """All of the constraints that there are, in one; None if there is none."""
    parts = [constraint for constraint in constraints if constraint is not None]
    return parts[0] if len(parts) == 1 else Both.of(*parts) if parts else None


@dataclass(frozen=True, slots=True)
class SamePos(Constraint):
    """A replacement is of the same part of speech as the word it replaces, tagged in its place.

    An insertion replaces nothing and passes. `noun_verb_exchange` lets nouns and verbs replace each other.
    """

    name: ClassVar[str] = "same-pos"
    noun_verb_exchange: bool = False

    async def keep(self, candidates: Sequence[Text], before: Text, index: int) -> list[Text]:
        swapped = [text.words[index] if len(text) == len(before) else None for text in candidates]
        words = [word for word in swapped if word is not None]
        if not words:
            return list(candidates)
        tagger, (side, place) = load_tagger(), before.alone(index)
        tag = tagger.tag_word(side.words, place)
        tags = dict(zip(words, tagger.tag_candidates(side.words, place, words), strict=True))
        return [
            text
            for text, word in zip(candidates, swapped, strict=True)
            if word is None or compatible(tag, tags[word], self.noun_verb_exchange)
        ]


@dataclass(frozen=True, slots=True)
class KeepStopWords(Constraint):
    """Stop words are not replaced, and no word is replaced by a stop word; `words` names the list."""

    name: ClassVar[str] = "stop-words"
    words: StopList = "nltk"

    async def keep(self, candidates: Sequence[Text], before: Text, index: int) -> list[Text]:
        replaces = is_stop_word(before.words[index], self.words)
        return [text for text in candidates if len(text) != len(before) or not (replaces or self._writes(text, index))]

    def _writes(self, text: Text, index: int) -> bool:
        return is_stop_word(text.words[index], self.words)


@dataclass(frozen=True, slots=True)
class MaxEditDistance(Constraint):
    """The Levenshtein distances of all edits add up to no more than `limit`.

    An inserted or deleted word costs its letters and a blank.
    """

    name: ClassVar[str] = "edit-distance"
    limit: int

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise OptionError(f"edit-distance must not be negative, as {self.limit} is.")

    async def keep(self, candidates: Sequence[Text], before: Text, index: int) -> list[Text]:
        return [text for text in candidates if edit_distance(text) <= self.limit]


def edit_distance(text: Text) -> int:
    """How many letters were typed or taken away, over all edits of a text."""
    return sum(
        levenshtein(edit.before, edit.after) if edit.op == "replace" else len(edit.before or edit.after) + 1
        for edit in text.edits
    )


@dataclass(frozen=True, slots=True)
class MaxChanged(Constraint):
    """At most so many words are replaced, inserted or deleted.

    A `share` of the original's words (rounded down), a number of `words`, or the smaller of both.
    """

    name: ClassVar[str] = "max-changed"
    share: float | None = None
    words: int | None = None

    def __post_init__(self) -> None:
        if self.share is None and self.words is None:
            raise OptionError("max-changed needs a share, as in max-changed(0.2), or max-changed(words=3).")
        if min(self.share or 0, self.words or 0) < 0:
            raise OptionError("max-changed cannot be negative.")

    def allowed(self, original: Text) -> int:
        limits = [] if self.words is None else [self.words]
        limits += [] if self.share is None else [at_most(self.share, len(original))]
        return min(limits)

    async def keep(self, candidates: Sequence[Text], before: Text, index: int) -> list[Text]:
        allowed = self.allowed(before.original)
        return [text for text in candidates if len(text.edits) <= allowed]


@dataclass(frozen=True, slots=True)
class Similarity(Constraint):
    """An edited text stays similar: at least `threshold`, on the whole text or in a window around the edit.

    Of a pair only the side with the edit is compared: the other one would make every edit look smaller.

    Parameters
    ----------
    scale : {"cosine", "angular", "tf"}
        The scale of `threshold` and `short`; see `similarity.py`.
    threshold : float
        The least similarity.
    window : int, optional
        Compare only so many words around the edit; None compares whole texts.
    reference : {"original", "previous"}
        Compare with the original, or with the text before this edit (then drift adds up).
    short : float, optional
        The threshold for texts shorter than the window; None does not compare them.
    """

    name: ClassVar[str] = "similarity"
    costly: ClassVar[bool] = True
    scale: Scale
    threshold: float
    window: int | None = None
    reference: Reference = "original"
    short: float | None = None

    def limit(self, words: int) -> float | None:
        """The least cosine for a text of that many words; None where nothing is compared."""
        if self.window is not None and words < self.window:
            return None if self.short is None else to_cosine(self.short, self.scale)
        return to_cosine(self.threshold, self.scale)

    async def keep(self, candidates: Sequence[Text], before: Text, index: int) -> list[Text]:
        """The candidates that are similar enough; `index` is the edited word in `before` (the anchor of an
        insertion).
        """
        limit = self.limit(len(self._base(before, index)))
        cosines = await self.cosines(candidates, before, index)
        if limit is None or cosines is None:
            return list(candidates)
        return [text for text, cosine in zip(candidates, cosines, strict=True) if cosine >= limit - 1e-6]

    def _base(self, before: Text, index: int) -> Text:
        base = before.original if self.reference == "original" else before
        return base.of_side(before.stretch_of(index).side)

    async def cosines(self, candidates: Sequence[Text], before: Text, index: int) -> list[float] | None:
        """The cosine of each candidate with what it is compared with; None where nothing is compared."""
        base, stretch = self._base(before, index), before.stretch_of(index)
        if self.limit(len(base)) is None or not candidates:
            return None
        place = anchor = index - stretch.words.start
        origin = before.origins[index]
        if self.reference == "original" and origin is not None:
            anchor = origin - before.original.stretch_of(origin).words.start
        strings = [self._part(base, anchor, 0)]
        strings += [self._part(text.of_side(stretch.side), place, len(text) - len(before)) for text in candidates]
        vectors = await Embed(strings)
        cosines: list[float] = np.clip(vectors[1:] @ vectors[0], -1.0, 1.0).tolist()
        return cosines

    def _part(self, text: Text, index: int, longer: int) -> str:
        if self.window is None:
            return str(text)
        start, end = window_bounds(len(text) - longer, min(index, len(text) - 1), self.window)
        return str(text.part(start, end + longer))


CONSTRAINTS: Mapping[str, type[Any]] = {
    kind.name: kind for kind in (KeepStopWords, MaxChanged, MaxEditDistance, SamePos, Similarity)
}
_PART = re.compile(r"\s*([A-Za-z-]+)\s*(?:\(([^()]*)\))?\s*")


def parse_constraint(written: str) -> Constraint:
    """The constraint of an expression; `str` of a constraint gives the expression back."""
    constraint = conjunction(*(_parse_part(part, written) for part in written.split("&")))
    assert constraint is not None
    return constraint


def _parse_part(part: str, written: str) -> Constraint:
    match = _PART.fullmatch(part)
    if match is None:
        raise OptionError(
            f'"{part.strip()}" in the constraint "{written}" is not of the form name(value, option=value), '
            "such as similarity(cosine, 0.9)."
        )
    name, arguments = match.group(1), match.group(2) or ""
    kind = CONSTRAINTS.get(name)
    if kind is None:
        raise unknown_name("constraint", name, CONSTRAINTS)
    options = validated(name, kind, _arguments(name, kind, arguments))
    required = [field.name for field in fields(kind) if field.default is MISSING]
    missing = [option for option in required if option not in options]
    if missing:
        raise OptionError(f"The constraint {name} needs {' and '.join(missing)}: {name}({', '.join(required)}).")
    constraint: Constraint = kind(**options)
    return constraint


def _arguments(name: str, kind: Any, written: str) -> dict[str, str]:
    order = [field.name for field in fields(kind)]
    arguments: dict[str, str] = {}
    for place, item in enumerate(filter(None, (item.strip() for item in written.split(",")))):
        option, equals, value = item.partition("=")
        if not equals:
            if place >= len(order):
                raise OptionError(f"The constraint {name} takes at most {len(order)} values ({', '.join(order)}).")
            option, value = order[place], item
        arguments[option.strip().replace("-", "_")] = value.strip()
    return arguments
