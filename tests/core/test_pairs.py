"""A pair comes back to the letter whichever sides are edited, and no edit crosses from one side to the other."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.pairs import Sides
from stockade.core.text import Edit, Text

SIDES: tuple[Sides, ...] = get_args(Sides)
ANY_STRING = st.text(st.sampled_from("ab cé'-.\n 电é!"), max_size=20)
STEPS = st.lists(st.tuples(st.sampled_from("rbad"), st.integers(0, 50)), max_size=8)


@given(ANY_STRING, ANY_STRING, st.sampled_from(SIDES))
def test_a_pair_comes_back_whichever_sides_it_shows(premise: str, hypothesis: str, sides: Sides) -> None:
    text = Text.parse(hypothesis, premise, sides)
    assert text.input == (premise, hypothesis)
    assert (text.premise, text.hypothesis) == (premise, hypothesis)
    assert len(text.gaps) == len(text.words) + 1
    expected = {"hypothesis": [hypothesis], "premise": [premise], "both": [premise, hypothesis]}[sides]
    assert text.words == tuple(word for string in expected for word in Text.parse(string).words)
    assert text.with_sides("hypothesis").input == text.input


@given(ANY_STRING, ANY_STRING, STEPS)
def test_editing_both_sides_is_editing_each_by_itself(
    premise: str, hypothesis: str, steps: list[tuple[str, int]]
) -> None:
    both = Text.parse(hypothesis, premise, "both")
    single = [Text.parse(premise), Text.parse(hypothesis)]
    for kind, at in steps:
        if not both.words:
            break
        index = at % len(both.words)
        side = 0 if index < len(single[0]) else 1
        both = _edited(both, kind, index, at)
        single[side] = _edited(single[side], kind, index - side * len(single[0]), at)
        assert both.input == (str(single[0]), str(single[1]))
        assert both.words == single[0].words + single[1].words
    assert both.original.input == (premise, hypothesis)
    for name, text in zip(("premise", "hypothesis"), single, strict=True):
        plain = [(edit.op, edit.index, edit.before, edit.after) for edit in text.edits]
        assert [(e.op, e.index, e.before, e.after) for e in both.edits if e.side == name] == plain


def _edited(text: Text, kind: str, index: int, number: int) -> Text:
    if kind == "r":
        return text.replace(index, f"new{number}")
    if kind == "b":
        return text.insert_before(index, f"ins{number}")
    return text.insert_after(index, f"ins{number}") if kind == "a" else text.delete(index)


def test_edits_say_which_side_they_are_in_and_count_its_words() -> None:
    both = Text.parse("Some workers strike.", "Workers are also represented.", "both")
    changed = both.replace(2, "never").replace(4, "All")
    assert changed.input == ("Workers are never represented.", "All workers strike.")
    assert changed.edits == (
        Edit("replace", 2, "also", "never", "premise"),
        Edit("replace", 0, "Some", "All", "hypothesis"),
    )
    assert changed.perturbed_percent == pytest.approx(100 * 2 / 7)
    premise = Text.parse("Some workers strike.", "Workers are also represented.", "premise").replace(2, "never")
    assert premise.edits == (Edit("replace", 2, "also", "never", "premise"),)
    assert premise.input == ("Workers are never represented.", "Some workers strike.")
    assert Text.parse("a film").replace(0, "the").edits[0].side is None


@given(ANY_STRING, ANY_STRING, st.integers(0, 8), st.integers(0, 8))
def test_a_part_of_both_sides_is_a_part_of_each(premise: str, hypothesis: str, start: int, end: int) -> None:
    both = Text.parse(hypothesis, premise, "both")
    part, split = both.part(start, end), len(Text.parse(premise))
    assert part.words == both.words[start:end]
    first, second = part.premise or "", part.hypothesis
    assert Text.parse(first).words == Text.parse(premise).part(start, end).words
    assert Text.parse(second).words == Text.parse(hypothesis).part(max(0, start - split), max(0, end - split)).words


def test_a_word_alone_is_the_word_in_its_side() -> None:
    both = Text.parse("! A bad day.", "A good\nday, ", "both")
    for index, (string, place) in enumerate(
        [("A good\nday, ", i) for i in range(3)] + [("! A bad day.", i) for i in range(3)]
    ):
        side, at = both.alone(index)
        assert (str(side), at) == (string, place)
    hypothesis = Text.parse("A bad day.", "A good day.")
    assert hypothesis.alone(1) == (hypothesis, 1)


def test_a_rewritten_pair_keeps_its_two_sides() -> None:
    both = Text.parse("A bad day.", "A good\nday", "both")
    changed = both.rewritten("A fine\nday\nA very bad day.")
    assert changed.input == ("A fine\nday", "A very bad day.")
    assert [(edit.op, edit.side, edit.index) for edit in changed.edits] == [
        ("replace", "premise", 1),
        ("insert", "hypothesis", 1),
    ]
    with pytest.raises(ValueError, match="must keep the line break"):
        both.rewritten("A good day")
