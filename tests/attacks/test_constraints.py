from __future__ import annotations

from functools import partial

import pytest

from stockade.attacks.constraints import (
    Both,
    Constraint,
    KeepStopWords,
    MaxChanged,
    MaxEditDistance,
    SamePos,
    Similarity,
    edit_distance,
    parse_constraint,
)
from stockade.attacks.registry import make_attack
from stockade.core.errors import OptionError, StockadeError
from stockade.core.text import Text
from stockade.engine.language import EmbeddingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from tests.toys import BagEncoder, WeightVictim

FILM = Text.parse("we saw the good film today")


def kept(constraint: Constraint, words: list[str], index: int = 3, encoder: BagEncoder | None = None) -> list[str]:
    """Which replacements of one word of FILM a constraint keeps."""

    async def ask() -> list[str]:
        texts = [FILM.replace(index, word) for word in words]
        return [text.words[index] for text in await constraint.keep(texts, FILM, index)]

    embedding = EmbeddingService(lambda: encoder or BagEncoder())
    scheduler = Scheduler.for_classifier(ScoringService(WeightVictim({})), embedding=embedding)
    (finished,) = scheduler.run([Search(ask)])
    assert isinstance(finished.result, list), finished.result
    return finished.result


def test_edit_distance_counts_letters_and_whole_words_with_their_blank() -> None:
    assert edit_distance(FILM.replace(3, "goad")) == 1
    assert edit_distance(FILM.replace(3, "goad").insert_after(3, "old")) == 1 + 4
    assert edit_distance(FILM.delete(3)) == 5
    assert kept(MaxEditDistance(2), ["goad", "gold", "great", "mood"]) == ["goad", "gold", "mood"]


def test_the_share_of_changed_words_is_rounded_down() -> None:
    once = FILM.replace(0, "they")
    assert MaxChanged(0.34).allowed(once.original) == 2
    assert MaxChanged(0.33).allowed(once.original) == 1
    assert MaxChanged(0.34, words=1).allowed(once.original) == 1
    assert kept(MaxChanged(0.16), ["nice"]) == []
    assert kept(MaxChanged(words=1), ["nice"]) == ["nice"]


def test_stop_words_are_neither_replaced_nor_written() -> None:
    assert kept(KeepStopWords(), ["nice", "the"]) == ["nice"]
    assert kept(KeepStopWords(), ["nice"], index=2) == []


def test_part_of_speech_is_kept_and_insertions_pass() -> None:
    assert kept(SamePos(), ["bad", "of"]) == ["bad"]

    async def insert() -> list[Text]:
        return await SamePos().keep([FILM.insert_before(3, "of")], FILM, 3)

    scheduler = Scheduler.for_classifier(ScoringService(WeightVictim({})))
    (finished,) = scheduler.run([Search(insert)])
    assert [str(text) for text in finished.result] == ["we saw the of good film today"]  # type: ignore[union-attr]


@pytest.mark.parametrize(("index", "words"), [(3, 4), (7, 4)])
def test_of_both_sides_only_the_edited_one_is_compared(index: int, words: int) -> None:
    """Of four words one is another: a cosine of 3/4, in the premise as in the hypothesis. Over all eight it would be
    7/8, and pass.
    """
    both = Text.parse("the long winter ends", premise="we saw good film", sides="both")
    encoder = BagEncoder()

    async def ask(threshold: float) -> list[Text]:
        return await Similarity("cosine", threshold).keep([both.replace(index, "zebra")], both, index)

    embedding = EmbeddingService(lambda: encoder)
    scheduler = Scheduler.for_classifier(ScoringService(WeightVictim({})), embedding=embedding)
    refused, kept = (finished.result for finished in scheduler.run([Search(partial(ask, t)) for t in (0.8, 0.7)]))
    assert (refused, kept) == ([], [both.replace(index, "zebra")])
    assert sorted(encoder.embedded, key=len)[-1] in ("we saw good zebra", "the long winter zebra")
    assert {len(string.split()) for string in encoder.embedded} == {words}


def test_a_conjunction_keeps_what_all_keep_and_asks_the_encoder_last() -> None:
    encoder = BagEncoder({"awful": 9.0})
    both = Similarity("cosine", 0.7) & MaxEditDistance(4) & SamePos()
    assert kept(both, ["bad", "goodness", "awful"], encoder=encoder) == ["bad"]
    assert "we saw the goodness film today" not in encoder.embedded
    assert isinstance(both, Both)
    assert [part.name for part in both.parts] == ["edit-distance", "same-pos", "similarity"]


@pytest.mark.parametrize(
    "written",
    [
        "same-pos",
        "same-pos(noun_verb_exchange=True)",
        "similarity(cosine, 0.9)",
        "similarity(angular, 0.84, window=15, short=none)",
        "edit-distance(30) & max-changed(words=3) & stop-words(function)",
    ],
)
def test_an_expression_comes_back_from_what_was_read(written: str) -> None:
    constraint = parse_constraint(written)
    assert parse_constraint(str(constraint)) == constraint


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "is not of the form"),
        ("same-pos &", "is not of the form"),
        ("similarity(cosine, 0.9", "is not of the form"),
        ("similar(0.9)", 'no constraint "similar"'),
        ("similarity(cosine)", "needs threshold"),
        ("similarity(cosine, much)", "threshold of similarity cannot be 'much'"),
        ("similarity(euclid, 0.9)", "scale of similarity cannot be 'euclid'"),
        ("edit-distance(1, 2)", "takes at most 1 value"),
        ("edit-distance(-1)", "must not be negative"),
        ("max-changed", "needs a share"),
        ("max-changed(-0.5)", "cannot be negative"),
        ("same-pos(fine=true)", "fine"),
    ],
)
def test_a_wrong_expression_is_explained(written: str, message: str) -> None:
    with pytest.raises(StockadeError, match=r".") as error:
        parse_constraint(written)
    assert message in str(error.value)


def test_an_attack_takes_a_constraint_as_an_option_and_describes_it_as_text() -> None:
    named = make_attack("pwws:constraint=similarity(cosine, 0.9) & edit-distance(5),stop_words=nltk")
    described = "edit-distance(limit=5) & similarity(scale=cosine, threshold=0.9, reference=original)"
    assert named.options["constraint"] == described
    assert named.options["stop_words"] == "nltk"
    again = make_attack("pwws", **named.options)
    assert again.attack == named.attack
    with pytest.raises(OptionError):
        make_attack("pwws", constraint=7)
