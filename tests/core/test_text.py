"""A text comes back to the letter, is edited by word, and knows what it was."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.text import Edit, Text, boundary_of, is_single_word, match_case, read_apart, separates

ANY_UNICODE = st.text(st.characters(codec=None) | st.sampled_from("👩‍👩‍👧é\u0301\u00a0\u200d\u202eشलि电ー'’-_ \t\n.,"))


@given(ANY_UNICODE)
def test_every_string_comes_back_to_the_letter(string: str) -> None:
    text = Text.parse(string)
    assert str(text) == string
    assert len(text.gaps) == len(text.words) + 1
    assert all(text.words)


@given(ANY_UNICODE | st.tuples(ANY_UNICODE, ANY_UNICODE))
def test_the_input_of_a_model_comes_back(item: str | tuple[str, str]) -> None:
    assert Text.of(item).input == item


@given(ANY_UNICODE, st.data())
def test_replacing_a_word_changes_that_word_and_nothing_else(string: str, data: st.DataObject) -> None:
    text = Text.parse(string)
    if not text.words:
        return
    index = data.draw(st.sampled_from(text.indices))
    changed = text.replace(index, "xyzzy")
    start = text.starts[index]
    assert str(changed) == string[:start] + "xyzzy" + string[start + len(text.words[index]) :]
    assert changed.origins == text.origins
    assert changed.replace(index, text.words[index]) == text


@given(ANY_UNICODE, st.lists(st.tuples(st.sampled_from("rbad"), st.integers(0, 50)), max_size=8))
def test_edits_explain_the_difference_whatever_was_done(string: str, steps: list[tuple[str, int]]) -> None:
    original = text = Text.parse(string)
    for kind, at in steps:
        if not text.words:
            break
        index = at % len(text.words)
        if kind == "r":
            text = text.replace(index, f"new{at}")
        elif kind == "b":
            text = text.insert_before(index, f"ins{at}")
        elif kind == "a":
            text = text.insert_after(index, f"ins{at}")
        else:
            text = text.delete(index)
    assert text.original == original
    assert _applied(original.words, text.edits) == text.words
    shown = [piece for piece in text.diff() if piece.kind != "same"]
    assert len(shown) == len(text.edits)
    assert "".join(piece.after for piece in text.diff()) == str(text)


def _applied(words: tuple[str, ...], edits: tuple[Edit, ...]) -> tuple[str, ...]:
    result: list[str] = []
    at = 0
    for edit in edits:
        result += words[at : edit.index]
        at = edit.index
        if edit.op != "insert":
            assert words[at] == edit.before
            at += 1
        if edit.op != "delete":
            result.append(edit.after)
    return (*result, *words[at:])


@pytest.mark.parametrize(
    ("string", "words"),
    [
        ("", ()),
        ("  \n ", ()),
        ("A  great, film!", ("A", "great", "film")),
        ("don't stop—it’s well-made", ("don't", "stop", "it’s", "well-made")),
        ("ca\u0301fe\u0301 nai\u0308ve", ("ca\u0301fe\u0301", "nai\u0308ve")),
        ("no\u00a0break", ("no", "break")),
        ("फिल्म अच्छी है", ("फिल्म", "अच्छी", "है")),
        ("فیلم می‌خواهم", ("فیلم", "می‌خواهم")),
        ("电影好看 ok", ("电", "影", "好", "看", "ok")),
        ("👩‍👩‍👧 loved it 👍🏽", ("loved", "it")),
        ("-- 'quoted' --", ("quoted",)),
    ],
)
def test_what_a_word_is(string: str, words: tuple[str, ...]) -> None:
    assert Text.parse(string).words == words


@pytest.mark.parametrize(
    ("string", "index", "left"),
    [
        ("a great film", 1, "a film"),
        ("great film", 0, "film"),
        ("great film.", 1, "great."),
        ("a great, film", 1, "a, film"),
        ("so (very) good", 1, "so () good"),
        ("one", 0, ""),
        ("好看", 0, "看"),
        ("abc电def", 1, "abc def"),
    ],
)
def test_deleting_a_word_takes_one_blank_with_it(string: str, index: int, left: str) -> None:
    assert str(Text.parse(string).delete(index)) == left


def test_inserting_stands_before_or_right_behind_the_word() -> None:
    text = Text.parse("Good, bad.")
    assert str(text.insert_before(0, "very")) == "very Good, bad."
    assert str(text.insert_after(0, "luck")) == "Good luck, bad."
    assert str(text.insert_after(1, "luck")) == "Good, bad luck."


def test_every_word_is_mapped_to_its_original() -> None:
    text = Text.parse("a very great film").delete(1).insert_before(1, "truly").replace(2, "grand")
    assert text.words == ("a", "truly", "grand", "film")
    assert text.origins == (0, None, 2, 3)
    assert text.position_of(2) == 2
    assert text.position_of(1) is None
    assert text.edits == (
        Edit("insert", 1, "", "truly"),
        Edit("delete", 1, "very", ""),
        Edit("replace", 2, "great", "grand"),
    )
    assert text.perturbed_percent == 75.0


def test_a_text_changed_back_has_no_edits() -> None:
    text = Text.parse("a great film").replace(1, "bad").replace(1, "great")
    assert text.edits == ()
    assert text == text.original


def test_the_premise_of_a_pair_is_given_to_the_model_but_cannot_be_edited() -> None:
    pair = Text.parse("A man sleeps.", premise="A man runs.")
    assert pair.input == ("A man runs.", "A man sleeps.")
    assert pair.replace(2, "eats").input == ("A man runs.", "A man eats.")
    assert pair.words == ("A", "man", "sleeps")
    assert pair != Text.parse("A man sleeps.")


def test_a_foreign_rewriting_is_aligned_by_words() -> None:
    text = Text.parse("a really great film .").rewritten("a realy grand movie .")
    assert [(edit.before, edit.after) for edit in text.edits] == [
        ("really", "realy"),
        ("great", "grand"),
        ("film", "movie"),
    ]


def test_a_part_is_the_words_between_and_what_stands_between_them() -> None:
    text = Text.parse("One, two; three.")
    assert str(text.part(0, 2)) == "One, two"
    assert str(text.part(1, 3)) == "two; three"
    assert str(text.part(1, 1)) == ""


def test_a_megabyte_is_parsed_and_edited_in_a_blink() -> None:
    text = Text.parse("word " * 200_000)
    assert len(text) == 200_000
    assert len(str(text.replace(199_999, "other"))) == 1_000_001


def test_a_text_shows_itself_without_its_history() -> None:
    shown = repr(Text.parse("a film").replace(0, "the"))
    assert shown == "Text(words=('the', 'film'), gaps=('', ' ', ''), origins=(0, 1), pair=None)"


def test_wrong_edits_are_refused() -> None:
    text = Text.parse("one two")
    with pytest.raises(IndexError, match="word 2 of a text of 2 words"):
        text.replace(2, "x")
    with pytest.raises(IndexError):
        text.delete(-1)
    with pytest.raises(ValueError, match="use delete"):
        text.replace(0, "")


@pytest.mark.parametrize(
    ("word", "like", "cased"),
    [
        ("film", "Movie", "Film"),
        ("film", "MOVIE", "FILM"),
        ("film", "movie", "film"),
        ("Paris", "city", "Paris"),
        ("i", "A", "I"),
    ],
)
def test_a_replacement_takes_the_case_of_the_word_it_replaces(word: str, like: str, cased: str) -> None:
    assert match_case(word, like) == cased


def test_a_single_word_keeps_the_word_count() -> None:
    assert is_single_word("well-made")
    assert not is_single_word("motion picture")
    assert not is_single_word("")


pieces = st.text("aÉ7_日かカ々ー일२ดी\u0301\u3099\ufe0f\U00016ff0-'’@\u200d", min_size=1, max_size=3)
gaps = st.text("-'\u200d", max_size=2) | st.text("-' .😀\u200b\u200d", max_size=2)


@given(st.lists(st.tuples(pieces.filter(is_single_word), gaps), min_size=2, max_size=5), gaps)
def test_which_words_are_read_apart(parts: list[tuple[str, str]], end: str) -> None:
    """A row of words is read as these words if each one is from the next: the rule says what reading it again says."""
    words = [word for word, _ in parts]
    text = Text.parse("".join(gap + word for word, gap in parts) + end)
    apart = all(
        separates(gap) or read_apart(boundary_of(left), gap, boundary_of(right))
        for (left, _), (right, gap) in pairwise(parts)
    )
    assert apart == (list(text.words) == words and text.gaps == (*(gap for _, gap in parts), end))


def test_neighbours_that_would_be_one_word() -> None:
    def apart(left: str, gap: str, right: str) -> bool:
        return read_apart(boundary_of(left), gap, boundary_of(right))

    assert apart("日", "", "日")
    assert apart("日", "", "일")
    assert apart("일", "'", "日")
    assert not apart("일", "", "일")
    assert not apart("일", "-", "일")
    assert not apart("か", "", "\u3099")
    assert apart("か", "-", "\u3099")
    assert separates("-.")
    assert not separates("-")
