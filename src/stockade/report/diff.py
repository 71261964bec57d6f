"""Word diffs that follow the edits an attack made.

An attack records every word that it replaced, inserted or deleted. Read off those edits, a diff pairs each new word
with the word it really stands for; aligning the two texts again would have to guess, and guesses wrongly as soon as
several neighbours change. Only where the edits do not lead from one text to the other (a file edited by hand) are the
texts aligned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise, zip_longest

from stockade.core.records import Record
from stockade.core.text import Edit, Piece, Text

_LONGEST = 4_000
"""A text that was not changed is cut behind so many characters."""


def record_pieces(record: Record) -> tuple[Piece, ...]:
    """The diff of a record; its text in one piece if nothing was changed. Of a pair it is that of the hypothesis.

    Parameters
    ----------
    record
        A result of an attack.
    """
    if record.adversarial is None:
        text = record.original if len(record.original) <= _LONGEST else record.original[:_LONGEST] + "…"
        return (Piece("same", text, text),)
    return diff_pieces(record.original, record.adversarial, record.edits_of("hypothesis"))


def premise_pieces(record: Record) -> str | tuple[Piece, ...] | None:
    """The premise of a pair as it is, or its diff if it was edited; None for a single text.

    Parameters
    ----------
    record
        A result of an attack.
    """
    if record.premise is None or record.adversarial_premise is None:
        return record.premise
    return diff_pieces(record.premise, record.adversarial_premise, record.edits_of("premise"))


def diff_pieces(original: str, adversarial: str, edits: Sequence[Edit] = ()) -> tuple[Piece, ...]:
    """Two texts as one row of pieces: all `before` together are the original, all `after` the adversarial text.

    Parameters
    ----------
    original
        The text before the attack.
    adversarial
        The text after it.
    edits
        What leads from one to the other, in the order of the original's words.
    """
    before = Text.parse(original)
    after = _edited(before, adversarial, edits) or before.rewritten(adversarial)
    return tuple(_merged(_pieces(before, after)))


def _edited(original: Text, adversarial: str, edits: Sequence[Edit]) -> Text | None:
    """The adversarial text in words that know where they come from; None if the edits do not lead there."""
    sequence = _apply(original.words, edits)
    if sequence is None:
        return None
    words, origins = sequence
    gaps, end = [], 0
    for word in words:
        start = adversarial.find(word, end)
        if start < 0 or Text.parse(adversarial[end:start]).words:
            return None
        gaps.append(adversarial[end:start])
        end = start + len(word)
    if Text.parse(adversarial[end:]).words:
        return None
    return Text(tuple(words), (*gaps, adversarial[end:]), tuple(origins))


def _apply(words: Sequence[str], edits: Sequence[Edit]) -> tuple[list[str], list[int | None]] | None:
    """The words after the edits, each with the index of its original word, None for an inserted one."""
    edited: list[str] = []
    origins: list[int | None] = []
    at = 0
    for edit in edits:
        if not at <= edit.index <= len(words) or (
            edit.op != "insert" and words[edit.index : edit.index + 1] != (edit.before,)
        ):
            return None
        edited += words[at : edit.index]
        origins += range(at, edit.index)
        at = edit.index
        if edit.op != "delete":
            edited.append(edit.after)
            origins.append(None if edit.op == "insert" else at)
        if edit.op != "insert":
            at += 1
    return [*edited, *words[at:]], [*origins, *range(at, len(words))]


def _pieces(before: Text, after: Text) -> Iterator[Piece]:
    """The words that stand in both texts, and between each two of them what was inserted or deleted there."""
    both = [(origin, at) for at, origin in enumerate(after.origins) if origin is not None]
    ends = (len(before.words), len(after.words))
    for (old, new), (next_old, next_new) in pairwise([(-1, -1), *both, ends]):
        if old >= 0:
            word, changed = before.words[old], after.words[new]
            yield _piece(word, changed, word == changed)
        yield from _between(_Stretch.of(before, old + 1, next_old), _Stretch.of(after, new + 1, next_new))


def _between(before: _Stretch, after: _Stretch) -> Iterator[Piece]:
    """What changed between two words that stand in both texts; punctuation and blanks of both are the same again."""
    gap, new_gap = before.gaps[0], after.gaps[0]
    if not (before.words or after.words) and (gap == new_gap or not (gap + new_gap).strip()):
        yield Piece("same", gap, new_gap)
        return
    old, new = before.tokens("before"), after.tokens("after")
    for _, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield _piece(_string(old[start:end]), _string(new[new_start:new_end]), old[start:end] == new[new_start:new_end])


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Some words in a row with the gaps around them."""

    words: tuple[str, ...]
    gaps: tuple[str, ...]

    @classmethod
    def of(cls, text: Text, start: int, end: int) -> _Stretch:
        return cls(text.words[start:end], text.gaps[start : end + 1])

    def tokens(self, side: str) -> list[tuple[str, str]]:
        """Words in one, gaps by character. A deleted word is not an inserted one, even if they are spelled alike."""
        words = [[(side, word)] for word in self.words]
        gaps = [[("gap", character) for character in gap] for gap in self.gaps]
        return [token for pair in zip_longest(gaps, words, fillvalue=()) for part in pair for token in part]


def _string(tokens: Sequence[tuple[str, str]]) -> str:
    return "".join(text for _, text in tokens)


def _piece(before: str, after: str, same: bool) -> Piece:
    if same:
        return Piece("same", before, after)
    return Piece("replace" if before and after else "delete" if before else "insert", before, after)


def _merged(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Without empty pieces, and neighbours that did not change in one."""
    before = after = ""
    for piece in pieces:
        if piece.kind == "same":
            before, after = before + piece.before, after + piece.after
        elif piece.before or piece.after:
            if before or after:
                yield Piece("same", before, after)
            before = after = ""
            yield piece
    if before or after:
        yield Piece("same", before, after)
