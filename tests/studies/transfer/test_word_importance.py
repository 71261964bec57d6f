"""The importance of words and substitutes, by hand on a victim of weights."""

from __future__ import annotations

import math

import pytest

from stockade.core.text import Text
from stockade.experiment.progress import Runtime
from stockade.studies.transfer import word_importance
from stockade.studies.transfer.word_importance import (
    IMPORTANCES,
    SUBSTITUTES,
    Importances,
    can_be_measured,
    measure_importances,
    measure_substitutes,
    unknown_word,
)
from stockade.studies.transferability.cross_scoring import LabelledText, TextScorer
from tests.studies.transferability.test_cross_scoring import Picky
from tests.toys import WeightVictim

TEXT = LabelledText("7", Text.parse("a good film"), 1)


def log_likelihood(odds: float) -> float:
    return -math.log1p(math.exp(-odds))


def test_a_word_is_as_important_as_the_likelihood_that_goes_with_it() -> None:
    victim = WeightVictim({"good": 2, "film": -1, "[unk]": 0})
    (measured,) = measure_importances(TextScorer(victim, Runtime()), [TEXT], "[UNK]")
    with_all, without_good, without_film = log_likelihood(1), log_likelihood(-1), log_likelihood(2)
    assert measured.right
    expected = [0.0, with_all - without_good, with_all - without_film]
    assert list(measured.drops) == pytest.approx(expected, abs=1e-5)
    assert measured.drops[2] is not None
    assert measured.drops[2] < 0
    assert measured.spread == 0.0  # a single word matters
    assert len(victim.asked) == 4
    assert IMPORTANCES.read(IMPORTANCES.encode(measured)) == measured


def test_spread_is_one_where_all_words_matter_alike() -> None:
    assert Importances("0", True, (0.5, 0.5, 0.5)).spread == pytest.approx(1.0)
    assert Importances("0", True, (0.5, 0.5, -2.0, None)).spread == pytest.approx(0.5)
    assert Importances("0", True, (-0.5, 0.0)).spread is None
    assert Importances("0", True, (0.5,)).spread is None


def test_substitutes_stand_in_the_place_of_every_word_that_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    synonyms = {1: ["fine", "bad"], 2: []}
    monkeypatch.setattr(word_importance, "same_pos_synonyms", lambda words: synonyms)
    victim = WeightVictim({"good": 2, "fine": 1, "bad": -2})
    (measured,) = measure_substitutes(TextScorer(victim, Runtime()), [TEXT])
    assert set(measured.words) == {1}
    assert measured.words[1]["fine"] == pytest.approx(log_likelihood(2) - log_likelihood(1), abs=1e-5)
    assert measured.words[1]["bad"] == pytest.approx(log_likelihood(2) - log_likelihood(-2), abs=1e-5)
    assert SUBSTITUTES.read(SUBSTITUTES.encode(measured)) == measured


def test_what_the_model_has_no_answer_for_is_none_or_left_out() -> None:
    scorer = TextScorer(Picky({"good": 1}), Runtime())
    (measured,) = measure_importances(scorer, [TEXT], "ugly")
    assert measured.drops == (None, None, None)
    ugly = LabelledText("8", Text.parse("an ugly film"), 0)
    assert measure_importances(scorer, [ugly], "[UNK]") == []
    assert measure_substitutes(scorer, [ugly]) == []


def test_the_unknown_word_is_the_tokenizers() -> None:
    class Tokenizer:
        unk_token = "<unk>"

    victim = WeightVictim({})
    assert unknown_word(victim) == "[UNK]"
    victim.tokenizer = Tokenizer()  # type: ignore[attr-defined]
    assert unknown_word(victim) == "<unk>"


def test_texts_of_one_word_and_very_long_ones_are_not_measured() -> None:
    assert [can_be_measured(Text.parse("word " * count)) for count in (1, 2, 60, 61)] == [False, True, True, False]
