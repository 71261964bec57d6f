"""Stop words, look-alike characters and the artifacts' records."""

from __future__ import annotations

import hashlib
import string
import unicodedata
from importlib import resources

import pytest

from stockade.lexicon.homoglyphs import homoglyphs
from stockade.lexicon.stopwords import ENGLISH_FUNCTION_WORDS, NLTK_STOP_WORDS, StopList, is_stop_word

SHA256 = {
    "wordnet.txt.gz": "0350cfff9250f20416ddfc276296c15f9ff6f9668c0fd4379211800c8bf88b70",
    "pos_tagger.npz": "0bcebbc2b0722775ec250b33d9e4a25923900e6dc36fde8f2fdf50ecd735285c",
}


def test_nltk_list_has_its_179_words() -> None:
    assert len(NLTK_STOP_WORDS) == 179
    assert {"i", "ma", "should've", "o", "y", "wouldn't", "further"} <= NLTK_STOP_WORDS
    assert not {"film", "would", "could", "upon"} & NLTK_STOP_WORDS


def test_function_words_are_closed_class_words() -> None:
    assert {"the", "upon", "would", "nobody", "although", "can't", "themselves"} <= ENGLISH_FUNCTION_WORDS
    assert not {"film", "good", "like", "well", "make", "really", "great"} & ENGLISH_FUNCTION_WORDS
    assert all(word == word.lower() and word.strip() == word for word in ENGLISH_FUNCTION_WORDS)


@pytest.mark.parametrize("word", ["Don't", "don’t", "THE", "i"])
def test_membership_ignores_case_and_the_form_of_the_apostrophe(word: str) -> None:
    assert is_stop_word(word)
    assert is_stop_word(word, "function")


def test_the_lists_differ() -> None:
    assert is_stop_word("upon", "function")
    assert not is_stop_word("upon", "nltk")
    assert not any(is_stop_word(word, which) for word in ("film", "") for which in ("nltk", "function"))


def test_every_letter_has_a_look_alike_that_survives_normalisation() -> None:
    for char in string.ascii_letters:
        others = homoglyphs(char)
        assert 1 <= len(others) == len(set(others) - {char})
        assert all(len(other) == 1 and unicodedata.normalize("NFKC", other) == other for other in others)
    assert homoglyphs("a")[0] == "\N{CYRILLIC SMALL LETTER A}"
    assert homoglyphs("O")[:2] == ("\N{CYRILLIC CAPITAL LETTER O}", "\N{GREEK CAPITAL LETTER OMICRON}")
    assert homoglyphs("é") == homoglyphs("ab") == homoglyphs("") == ()


@pytest.mark.parametrize("name", SHA256)
def test_artifacts_are_the_recorded_ones(name: str) -> None:
    content = resources.files("stockade.artifacts").joinpath(name).read_bytes()
    assert len(content) < 3_000_000
    assert hashlib.sha256(content).hexdigest() == SHA256[name]


def test_the_notice_that_wordnet_asks_for_is_beside_its_table() -> None:
    notice = resources.files("stockade.artifacts").joinpath("wordnet.LICENSE").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in notice
    assert "appear on ALL copies of the software, database and" in notice


def test_a_cased_list_leaves_capitals_out_and_an_empty_one_everything() -> None:
    lists: tuple[tuple[StopList, StopList], ...] = (("nltk-cased", "nltk"), ("function-cased", "function"))
    for cased, uncased in lists:
        assert is_stop_word("the", cased)
        assert not is_stop_word("The", cased)
        assert is_stop_word("The", uncased)
    assert is_stop_word("upon", "function-cased")
    assert not is_stop_word("upon", "nltk-cased")
    assert not is_stop_word("the", "none")
