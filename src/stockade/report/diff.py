"""Word diffs that follow the edits an attack made.

An attack records every word that it replaced, inserted or deleted. Read off those edits, a diff pairs each new word
with the word it really stands for; aligning the two texts again would have to guess, and guesses wrongly as soon as
several neighbours change. Only where the edits do not lead from one text to the other (a file edited by hand) are the
texts aligned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, takewhile

from stockade.core.records import Record
from stockade.core.text import Edit, Piece, PieceKind, Text

_LONGEST = 4_000
"""A text that was not changed is cut behind so many characters."""


def record_pieces(record: Record) -> tuple[Piece, ...]:
    """The diff of a record; its text in one piece if nothing was changed.

    Parameters
    ----------
    record
        A result of an attack.
    """
    if record.adversarial is None:
        text = record.original if len(record.original) <= _LONGEST else record.original[:_LONGEST] + "…"
        return (Piece("same", text, text),)
    return diff_pieces(record.original, record.adversarial, record.edits)


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
            yield Piece("same" if word == changed else "replace", word, changed)
        yield from _between(_stretch(before, old + 1, next_old), _stretch(after, new + 1, next_new))


def _stretch(text: Text, start: int, end: int) -> list[str]:
    """The words from `start` up to `end` with the gaps around them: gap, word, gap, …, gap."""
    inner = chain.from_iterable(zip(text.gaps[start:end], text.words[start:end], strict=True))
    return [*inner, text.gaps[end]]


def _between(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    """What changed between two words; the punctuation and blanks that both texts share at its ends stay outside."""
    old, new = "".join(before), "".join(after)
    if len(before) == len(after) == 1 and not (old + new).strip():
        yield Piece("same", old, new)
        return
    head = _shared(before[0], after[0])
    room = min(len(side[-1]) - (head if len(side) == 1 else 0) for side in (before, after))
    tail = min(room, _shared(before[-1][::-1], after[-1][::-1]))
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    kind: PieceKind = "replace" if inner_old and inner_new else "delete" if inner_old else "insert"
    yield Piece("same", old[:head], new[:head])
    yield Piece(kind, inner_old, inner_new)
    yield Piece("same", old[len(old) - tail :], new[len(new) - tail :])


def _shared(text: str, other: str) -> int:
    """How many characters two strings share at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))


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
