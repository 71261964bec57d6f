"""An immutable text that is edited by word and never forgets what it was.

A `Text` is the words of a string and the exact gaps between them (`gaps[i]` stands before `words[i]`, the last gap
ends the text), so that the user's spacing, case and punctuation come back to the letter. Every edit gives a new
`Text` that knows, for each of its words, which original word it came from; the difference to the original is read off
that map, not guessed.

A word is a run of letters, digits and marks of any script, with apostrophes and hyphens inside it; each Han or kana
character is a word of its own because those scripts are written without blanks. Emoji and punctuation belong to the
gaps.

The words of a pair (premise and hypothesis) are those of its hypothesis, of its premise or of both, as `Text.parse` is
asked for; what is not among them cannot be edited. Whatever they are, `Text.input` is the whole pair.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from operator import add, sub
from typing import Literal

import regex

from stockade.core.pairs import SEAM, Pair, Side, Sides, Stretch

TextInput = str | tuple[str, str]
"""The input of a model: a string, or `(premise, hypothesis)` for pair tasks."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}"
_LETTER = rf"[\p{{L}}\p{{N}}\p{{M}}_--[{_UNSPACED}]]"
_JOINERS = r"'’*@\-‐‑\u200c\u200d"
_WORD = regex.compile(rf"[{_UNSPACED}]\p{{M}}*|{_LETTER}+(?:[{_JOINERS}]+{_LETTER}+)*", regex.V1)
_SEPARATOR = regex.compile(rf"[^{_UNSPACED}\p{{L}}\p{{N}}\p{{M}}_{_JOINERS}]", regex.V1)
_UNSPACED_START = regex.compile(rf"[{_UNSPACED}]", regex.V1)
_MARK_START = regex.compile(r"\p{M}")

EditKind = Literal["replace", "insert", "delete"]
PieceKind = Literal["same", "replace", "insert", "delete"]
Case = Literal["capitals", "capitalised", "plain"]
"""The case that a word shows, as `match_case` reads it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One difference to the original. `index` counts original words, those of the `side` in a pair; an insertion stands
    before that word.
    """

    op: EditKind
    index: int
    before: str
    after: str
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text beside its original, for highlighting: `before` is struck out, `after` is what stands there
    now.
    """

    kind: PieceKind
    before: str
    after: str


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A text in words and gaps; make one with `Text.parse`, change it with `replace`, `insert_*` and `delete`."""

    words: tuple[str, ...]
    gaps: tuple[str, ...]
    origins: tuple[int | None, ...]
    pair: Pair | None = None
    _root: Text | None = field(default=None, repr=False)
    _string: str | None = field(default=None, repr=False)
    _starts: tuple[int, ...] | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, string: str, premise: str | None = None, sides: Sides = "hypothesis") -> Text:
        """The text of a string; `str(Text.parse(s)) == s` for every `s`.

        Parameters
        ----------
        string
            The text, or the hypothesis of a pair.
        premise
            The premise of a pair.
        sides
            The sides of a pair whose words the text has.
        """
        if premise is None:
            return cls._single(string, None)
        if sides == "hypothesis":
            return cls._single(string, Pair(sides, premise))
        if sides == "premise":
            return cls._single(premise, Pair(sides, string))
        first, second = cls._single(premise, None), cls._single(string, None)
        words = first.words + second.words
        gaps = (*first.gaps[:-1], first.gaps[-1] + SEAM + second.gaps[0], *second.gaps[1:])
        pair = Pair(sides, split=len(first), cut=len(first.gaps[-1]))
        return cls(words, gaps, tuple(range(len(words))), pair, None, premise + SEAM + string)

    @classmethod
    def _single(cls, string: str, pair: Pair | None) -> Text:
        words, gaps, end = [], [], 0
        for match in _WORD.finditer(string):
            words.append(match.group())
            gaps.append(string[end : match.start()])
            end = match.end()
        gaps.append(string[end:])
        return cls(tuple(words), tuple(gaps), tuple(range(len(words))), pair, None, string)

    @classmethod
    def of(cls, item: TextInput, sides: Sides = "hypothesis") -> Text:
        """The text of a model's input; `Text.of(item).input == item`."""
        return cls.parse(item) if isinstance(item, str) else cls.parse(item[1], item[0], sides)

    def with_sides(self, sides: Sides) -> Text:
        """The text as a new original with the words of these sides of the pair; itself if it has them already, or if it
        is a single text.
        """
        return self if self.pair is None or self.pair.sides == sides else Text.of(self.input, sides)

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        if self._string is None:
            parts = [""] * (2 * len(self.words) + 1)
            parts[::2] = self.gaps
            parts[1::2] = self.words
            object.__setattr__(self, "_string", "".join(parts))
        assert self._string is not None
        return self._string

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.input == other.input

    def __hash__(self) -> int:
        return hash(self.input)

    @property
    def input(self) -> TextInput:
        """The input of a model: the string, or `(premise, hypothesis)`."""
        if self.pair is None:
            return str(self)
        if self.pair.sides == "hypothesis":
            return self.pair.other, str(self)
        if self.pair.sides == "premise":
            return str(self), self.pair.other
        string, seam = str(self), self._seam
        return string[:seam], string[seam + len(SEAM) :]

    @property
    def premise(self) -> str | None:
        """The premise of a pair as it is now; None for a single text."""
        return None if isinstance(self.input, str) else self.input[0]

    @property
    def hypothesis(self) -> str:
        """The hypothesis of a pair as it is now; a single text itself."""
        return self.input if isinstance(self.input, str) else self.input[1]

    @property
    def _seam(self) -> int:
        """Where the premise ends in the string of both sides."""
        assert self.pair is not None
        split = self.pair.split
        end = self.starts[split] if split < len(self.words) else len(str(self))
        return end - len(self.gaps[split]) + self.pair.cut

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The words of each side, from the premise."""
        if self.pair is None:
            return (Stretch(None, self.indices),)
        if self.pair.sides != "both":
            return (Stretch(self.pair.sides, self.indices),)
        premise, hypothesis = range(self.pair.split), range(self.pair.split, len(self.words))
        return Stretch("premise", premise), Stretch("hypothesis", hypothesis, self._seam + len(SEAM))

    def stretch_of(self, index: int) -> Stretch:
        """The words of the side that a word is of."""
        return next(stretch for stretch in self.stretches if index < stretch.words.stop)

    def alone(self, index: int) -> tuple[Text, int]:
        """The side that a word is of, by itself, and the word's index there: what is guessed about a word from its
        neighbours looks no farther.
        """
        stretch = self.stretch_of(index)
        return self.of_side(stretch.side), index - stretch.words.start

    def of_side(self, side: Side | None) -> Text:
        """The words of one side by themselves, as a new original; the text itself unless its words are of both."""
        if self.pair is None or self.pair.sides != "both":
            return self
        split, (left, right) = self.pair.split, self._seam_gaps
        if side == "premise":
            return Text(self.words[:split], (*self.gaps[:split], left), tuple(range(split)))
        words = self.words[split:]
        return Text(words, (right, *self.gaps[split + 1 :]), tuple(range(len(words))))

    @property
    def _seam_gaps(self) -> tuple[str, str]:
        """What ends the premise and what begins the hypothesis, around the seam."""
        assert self.pair is not None
        gap, cut = self.gaps[self.pair.split], self.pair.cut
        return gap[:cut], gap[cut + len(SEAM) :]

    @property
    def starts(self) -> tuple[int, ...]:
        """Where in the string each word begins."""
        if self._starts is None:
            lengths = tuple(map(len, self.words))
            ends = accumulate(map(add, map(len, self.gaps), lengths))
            object.__setattr__(self, "_starts", tuple(map(sub, ends, lengths)))
        assert self._starts is not None
        return self._starts

    @property
    def original(self) -> Text:
        """The text this one was made from by edits; an unedited text is its own original."""
        return self if self._root is None else self._root

    @property
    def indices(self) -> range:
        """The indices of the words that may be edited."""
        return range(len(self.words))

    def _with(self, words: tuple[str, ...], gaps: tuple[str, ...], origins: tuple[int | None, ...]) -> Text:
        return Text(words, gaps, origins, self.pair, self.original, None)

    def _moved(self, index: int, words: int) -> Pair | None:
        """The pair after so many words more (or fewer) stand where the word at `index` stands."""
        if self.pair is None or index >= self.pair.split:
            return self.pair
        return replace(self.pair, split=self.pair.split + words)

    def replace(self, index: int, word: str) -> Text:
        """This text with another word at `index`."""
        self._check(index, word)
        words, string, start = self.words, str(self), self.starts[index]
        return Text(
            words[:index] + (word,) + words[index + 1 :],
            self.gaps,
            self.origins,
            self.pair,
            self if self._root is None else self._root,
            string[:start] + word + string[start + len(words[index]) :],
        )

    def replace_all(self, replacements: Mapping[int, str]) -> Text:
        """This text with several words replaced at once."""
        words = list(self.words)
        for index, word in replacements.items():
            self._check(index, word)
            words[index] = word
        return self._with(tuple(words), self.gaps, self.origins)

    def insert_before(self, index: int, word: str) -> Text:
        """This text with a new word in front of the word at `index`."""
        self._check(index, word)
        return self._insert(index, index + 1, word, self._moved(index, 1))

    def insert_after(self, index: int, word: str) -> Text:
        """This text with a new word right behind the word at `index`, before any punctuation that follows it."""
        self._check(index, word)
        return self._insert(index + 1, index + 1, word, self._moved(index, 1))

    def _insert(self, at: int, gap_at: int, word: str, pair: Pair | None) -> Text:
        return Text(
            (*self.words[:at], word, *self.words[at:]),
            (*self.gaps[:gap_at], " ", *self.gaps[gap_at:]),
            (*self.origins[:at], None, *self.origins[at:]),
            pair,
            self.original,
        )

    def delete(self, index: int) -> Text:
        """This text without the word at `index`; one of the blanks around it goes too."""
        self._check(index)
        left, right = self.gaps[index], self.gaps[index + 1]
        stretch, pair = self.stretch_of(index), self._moved(index, -1)
        first, last = index == stretch.words.start, index == stretch.words.stop - 1
        other_end = other_start = ""  # what of the gaps is of the other side of a pair, and the seam
        if pair is not None and pair.sides == "both":
            if first and stretch.side == "hypothesis":
                other_end, left = left[: pair.cut + len(SEAM)], left[pair.cut + len(SEAM) :]
            if last and stretch.side == "premise":
                right, other_start = right[: pair.cut], right[pair.cut :]
        gap = left.rstrip() + right if left != left.rstrip() else left + right.lstrip()
        if not gap and not first and not last and _WORD.fullmatch(self.words[index - 1] + self.words[index + 1]):
            gap = " "
        if other_start and pair is not None:
            pair = replace(pair, cut=len(gap))
        return Text(
            self.words[:index] + self.words[index + 1 :],
            (*self.gaps[:index], other_end + gap + other_start, *self.gaps[index + 2 :]),
            self.origins[:index] + self.origins[index + 1 :],
            pair,
            self.original,
        )

    def part(self, start: int, end: int) -> Text:
        """The words from `start` up to `end` with what stands between them; a part of the original, not a list of
        deletions.
        """
        words = self.words[start:end]
        gaps = ["", *self.gaps[start + 1 : start + len(words)], ""] if words else [""]
        pair = self.pair
        if pair is not None and pair.sides == "both":
            pair = replace(pair, split=max(0, min(pair.split - start, len(words))))
            if pair.split in (0, len(words)):  # the other side is empty
                gaps[pair.split], pair = SEAM, replace(pair, cut=0)
        return Text(words, tuple(gaps), tuple(range(len(words))), pair)

    def _check(self, index: int, word: str | None = None) -> None:
        if not 0 <= index < len(self.words):
            raise IndexError(f"word {index} of a text of {len(self.words)} words")
        if word == "":
            raise ValueError("a word cannot be replaced by nothing: use delete")

    def position_of(self, origin: int) -> int | None:
        """Where the original word number `origin` stands now; None if it was deleted."""
        try:
            return self.origins.index(origin)
        except ValueError:
            return None

    def rewritten(self, string: str) -> Text:
        """`string` as an edited version of this text, its words aligned with this text's by the longest common runs.

        Where the words are those of both sides of a pair, the line break between them is looked for behind as many line
        breaks as the premise has.
        """
        other = Text._single(string, self.pair)
        if self.pair is not None and self.pair.sides == "both":
            parts = string.split(SEAM)
            lines = self.input[0].count(SEAM) + 1
            if len(parts) <= lines:
                raise ValueError("a text of both sides of a pair must keep the line break between them")
            other = Text.parse(SEAM.join(parts[lines:]), SEAM.join(parts[:lines]), "both")
        origins: list[int | None] = [None] * len(other.words)
        matcher = difflib.SequenceMatcher(None, self.words, other.words, autojunk=False)
        for op, a, a_end, b, b_end in matcher.get_opcodes():
            if op in ("equal", "replace"):
                for old, new in zip(range(a, a_end), range(b, b_end), strict=False):
                    origins[new] = self.origins[old]
        return Text(other.words, other.gaps, tuple(origins), other.pair, self.original, string)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Every difference to the original, in order of the original's words."""
        return tuple(_edits(self))

    @property
    def perturbed_percent(self) -> float:
        """Edited words (replaced, inserted or deleted) in percent of the original's words."""
        return 100.0 * len(self.edits) / max(1, len(self.original.words))

    def diff(self) -> tuple[Piece, ...]:
        """The text in pieces, each the same as in the original or marked as replaced, inserted or deleted."""
        return tuple(_pieces(self))


def _edits(text: Text) -> Iterable[Edit]:
    source, expected = text.original.words, 0
    for at, (word, origin) in enumerate(zip(text.words, text.origins, strict=True)):
        if origin is None:
            yield _edit(text, "insert", expected, "", word, at)
            continue
        for lost in range(expected, origin):
            yield _edit(text, "delete", lost, source[lost], "")
        if word != source[origin]:
            yield _edit(text, "replace", origin, source[origin], word)
        expected = origin + 1
    for lost in range(expected, len(source)):
        yield _edit(text, "delete", lost, source[lost], "")


def _edit(text: Text, op: EditKind, index: int, before: str, after: str, at: int | None = None) -> Edit:
    """An edit of the original's word `index`; of an insertion, where the new word stands says which side it is in."""
    pair, original = text.pair, text.original.pair
    if pair is None or original is None:
        return Edit(op, index, before, after)
    if pair.sides != "both":
        return Edit(op, index, before, after, pair.sides)
    in_premise = index < original.split if at is None else at < pair.split
    return (
        Edit(op, min(index, original.split), before, after, "premise")
        if in_premise
        else Edit(op, max(0, index - original.split), before, after, "hypothesis")
    )


def _pieces(text: Text) -> Iterable[Piece]:
    source, expected = text.original.words, 0
    for gap, word, origin in zip(text.gaps, text.words, text.origins, strict=False):
        for lost in range(expected, origin if origin is not None else expected):
            yield Piece("delete", source[lost], "")
        if gap:
            yield Piece("same", gap, gap)
        if origin is None:
            yield Piece("insert", "", word)
            continue
        kind: PieceKind = "same" if word == source[origin] else "replace"
        yield Piece(kind, source[origin], word)
        expected = origin + 1
    for lost in range(expected, len(source)):
        yield Piece("delete", source[lost], "")
    if text.gaps[-1]:
        yield Piece("same", text.gaps[-1], text.gaps[-1])


def case_of(word: str) -> Case:
    """The case that a word shows: all capitals (of more than one letter), capitalised, or neither."""
    if len(word) > 1 and word.isupper():
        return "capitals"
    return "capitalised" if word[:1].isupper() else "plain"


def in_case(word: str, case: Case) -> str:
    """A word in capitals, capitalised, or as it is."""
    if case == "capitals":
        return word.upper()
    return word[:1].upper() + word[1:] if case == "capitalised" else word


def match_case(word: str, like: str) -> str:
    """`word` in the case of `like`: all capitals, capitalised, or as it is."""
    return in_case(word, case_of(like))


def valid_unicode(string: str) -> str:
    """The string with question marks for halves of surrogate pairs, which tokenizers refuse."""
    return string if string.isascii() else string.encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=65536)
def is_single_word(string: str) -> bool:
    """Whether a string would be read as exactly one word, so that putting it into a text keeps the word count."""
    return _WORD.fullmatch(string) is not None


@dataclass(frozen=True, slots=True)
class Boundary:
    """What a single word shows to its neighbours: with the gap it decides whether two words are read as two.

    `unspaced` is whether the word is one Han or kana character, `marked` whether it begins with a combining mark.
    """

    unspaced: bool
    marked: bool


def boundary_of(word: str) -> Boundary:
    """What a single word shows to its neighbours."""
    return Boundary(_UNSPACED_START.match(word) is not None, _MARK_START.match(word) is not None)


def separates(gap: str) -> bool:
    """Whether words on both sides of a gap are read alike whatever they are: it holds a blank, a full stop, an emoji …

    No word holds such a character, and none is looked beyond for the end of a word.
    """
    return _SEPARATOR.search(gap) is not None


def read_apart(left: Boundary, gap: str, right: Boundary) -> bool:
    """Whether two single words with this gap between them, which does not separate, are read as these two words.

    Such a gap is empty or made of apostrophes, hyphens and the like. Across it a run of letters goes on with whatever
    letter comes next, but never into a Han or kana character. One of those ends after its marks, so it only takes marks
    that stand right behind it. What comes after the first character of the second word makes no difference, so the
    words of a longer row are all read apart if each is from the next.
    """
    if left.unspaced:
        return bool(gap) or not right.marked
    return right.unspaced
