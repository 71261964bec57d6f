"""Diffs follow the edits of an attack, whichever words stand beside each other."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stockade.core.records import Record
from stockade.core.text import Edit, Piece, Text
from stockade.report.diff import diff_pieces, record_pieces
from stockade.report.examples import record_example


def marks(text: Text) -> list[tuple[str, str]]:
    """What the diff of an edited text marks, as pairs of before and after."""
    return _marks(diff_pieces(str(text.original), str(text), text.edits))


def _marks(pieces: tuple[Piece, ...]) -> list[tuple[str, str]]:
    return [(piece.before, piece.after) for piece in pieces if piece.kind != "same"]


def test_replaced_neighbours_stand_for_their_own_words_when_another_is_gone() -> None:
    text = Text.parse("so ultracompact or allows her in").delete(0).replace(0, "ujltracompact").replace(2, "alolws")
    assert str(text) == "ujltracompact or alolws her in"
    assert marks(text) == [("so ", ""), ("ultracompact", "ujltracompact"), ("allows", "alolws")]


def test_a_row_of_replaced_words_with_one_inserted_among_them() -> None:
    text = Text.parse("a truly great film").replace(1, "tru1y").replace(2, "gr3at").insert_before(2, "very")
    assert marks(text) == [("truly", "tru1y"), ("", "very "), ("great", "gr3at")]
    guessed = _marks(diff_pieces("a truly great film", str(text)))
    assert ("great", "very") in guessed  # what an alignment makes of it


def test_inserted_words_take_their_blank_along_and_leave_punctuation_alone() -> None:
    assert marks(Text.parse("Good, bad.").insert_after(0, "luck")) == [("", " luck")]
    assert marks(Text.parse("Good, bad.").insert_before(1, "very")) == [("", "very ")]
    assert marks(Text.parse("Good").insert_before(0, "So").insert_after(1, "now")) == [("", "So "), ("", " now")]


def test_deleted_words_are_struck_where_they_stood() -> None:
    text = Text.parse("a very, very great film.").delete(1).delete(1)
    assert str(text) == "a, great film."
    assert marks(text) == [(" very", ""), ("very ", "")]
    assert marks(Text.parse("a very great film").delete(1)) == [("very ", "")]
    assert marks(Text.parse("a very great film").delete(1).delete(1)) == [("very great ", "")]


def test_a_word_deleted_and_another_inserted_at_the_same_place() -> None:
    text = Text.parse("a very great film").delete(1).insert_before(1, "truly")
    assert marks(text) == [("very", "truly")]


def test_everything_deleted() -> None:
    text = Text.parse("gone!").delete(0)
    assert diff_pieces("gone!", str(text), text.edits) == (Piece("delete", "gone", ""), Piece("same", "!", "!"))


def test_a_replacement_may_hold_blanks_and_punctuation() -> None:
    text = Text.parse("a great film").replace(1, "gr eat!").replace(2, "f*lm")
    assert marks(text) == [("great", "gr eat!"), ("film", "f*lm")]


def test_edits_that_do_not_lead_to_the_text_are_not_believed() -> None:
    original, adversarial = "a great film", "a grand film"
    aligned = diff_pieces(original, adversarial)
    assert _marks(aligned) == [("great", "grand")]
    for edits in (
        [Edit("replace", 0, "great", "grand")],  # another word stands there
        [Edit("replace", 7, "great", "grand")],  # there is no such word
        [Edit("replace", 1, "great", "big")],  # leads elsewhere
        [Edit("replace", 1, "great", "grand"), Edit("insert", 3, "", "indeed")],  # leads further
        [Edit("replace", 1, "great", "grand"), Edit("replace", 0, "a", "the")],  # out of order
        [Edit("delete", 2, "film", "")],
    ):
        assert diff_pieces(original, adversarial, edits) == aligned


def test_a_word_is_not_looked_for_inside_of_another() -> None:
    assert _marks(diff_pieces("a film", "great film")) == [("a", "great")]
    assert _marks(diff_pieces("a", "apple")) == [("a", "apple")]


def test_a_word_deleted_and_inserted_again_is_marked_as_the_edits_say() -> None:
    text = Text.parse("very great").insert_before(0, "very").delete(1)
    assert str(text) == "very great"
    assert marks(text) == [("very", "very")]


@given(st.data())
def test_all_pieces_together_are_both_texts_and_every_edit_is_marked(data: st.DataObject) -> None:
    parts = st.lists(st.sampled_from(["a", "bb", "c-d", " ", "  ", ", ", "!", "'", "电", "é"]), min_size=1, max_size=12)
    text = Text.parse("".join(data.draw(parts)))
    for _ in range(data.draw(st.integers(0, 4))):
        if not len(text):
            break
        at = data.draw(st.integers(0, len(text) - 1))
        word = data.draw(st.sampled_from(["x", "a", "bb", "f!lm", "x y", "!", "a-"]))
        text = data.draw(
            st.sampled_from(
                [text.replace(at, word), text.insert_before(at, word), text.insert_after(at, word), text.delete(at)]
            )
        )
    pieces = diff_pieces(str(text.original), str(text), text.edits)
    assert "".join(piece.before for piece in pieces) == str(text.original)
    assert "".join(piece.after for piece in pieces) == str(text)
    marked = _marks(pieces)
    for edit in text.edits:
        if edit.op == "replace":
            assert (edit.before, edit.after) in marked
        else:
            assert any(edit.before in before and edit.after in after for before, after in marked)


def record(adversarial: str | None, edits: tuple[Edit, ...] = (), premise: str | None = None) -> Record:
    succeeded = adversarial is not None
    return Record(
        id="7",
        attack="pwws",
        status="success" if succeeded else "failed",
        reason=None if succeeded else "no word helps",
        label="pos",
        original="a great film",
        adversarial=adversarial,
        original_prediction="pos",
        adversarial_prediction="neg" if succeeded else None,
        original_scores=(0.1, 0.9),
        adversarial_scores=(0.7, 0.3) if succeeded else None,
        queries=12,
        rows=10,
        edits=edits,
        perturbed_percent=33.3 if succeeded else None,
        similarity=0.912 if succeeded else None,
        premise=premise,
    )


def test_a_record_of_a_pair_is_a_diff_of_the_hypothesis() -> None:
    edited = Text.parse("a great film", premise="A man films.").replace(1, "grand")
    example = record_example(record(str(edited), edited.edits, "A man films."))
    assert example.premise == "A man films."
    assert _marks(record_pieces(record(str(edited), edited.edits))) == [("great", "grand")]
    assert example.text == record_pieces(record(str(edited), edited.edits))
    assert example.verdict == "pos 0.90 → neg 0.70"
    assert example.details == (
        *("example 7", "true label pos", "12 queries", "33.3 % of words changed", "similarity 0.912"),
    )
    assert (example.status, example.tone, example.facets) == ("success", "bad", {"status": "success", "attack": "pwws"})


def test_a_record_without_an_adversarial_text_is_the_text_and_the_reason() -> None:
    example = record_example(record(None))
    assert example.text == (Piece("same", "a great film", "a great film"),)
    assert (example.verdict, example.notes, example.tone) == ("pos 0.90", ("no word helps",), "good")


def test_a_very_long_text_that_was_not_changed_is_cut() -> None:
    (piece,) = record_pieces(replace(record(None), original="x" * 9_000))
    assert piece.after == "x" * 4_000 + "…"
