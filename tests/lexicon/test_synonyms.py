"""Substitution sets: same part of speech, the case of the word, single words."""

from __future__ import annotations

from stockade.core.text import Text, is_single_word
from stockade.lexicon.synonyms import same_pos_synonyms, usable_synonyms


def test_synonyms_share_the_part_of_speech_and_the_case() -> None:
    words = Text.parse("The FILM was Funny").words
    synonyms = same_pos_synonyms(words)
    assert set(synonyms) == {0, 1, 2, 3}
    assert synonyms[0] == []
    assert "MOVIE" in synonyms[1]
    assert "Laughable" in synonyms[3]
    assert all(is_single_word(word) for candidates in synonyms.values() for word in candidates)


def test_the_same_word_as_a_noun_and_as_a_verb_has_other_synonyms() -> None:
    noun = same_pos_synonyms("the film was long".split(), [1])[1]  # noqa: SIM905
    verb = same_pos_synonyms("they film the long war".split(), [1])[1]  # noqa: SIM905
    assert "movie" in noun
    assert "movie" not in verb
    assert "shoot" in verb


def test_usable_synonyms_are_single_words_each_once_and_never_the_word() -> None:
    assert usable_synonyms("Film", ["film", "picture show", "movie", "Movie", "flick"]) == ["Movie", "Flick"]
