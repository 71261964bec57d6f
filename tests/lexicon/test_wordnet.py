"""WordNet lookups against answers read from WordNet 3.0 by hand, and properties that hold for any word."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.artifacts import read_artifact
from stockade.core.errors import OptionError, ResourceMissing
from stockade.lexicon.wordnet import POS_ORDER, WordNet, load_wordnet

TOY = WordNet(
    b"apes\tv>ape\n"
    b"big\ta=big,large,Big\ta!small,little\ta~bantam\n"
    b"mice\tn>mouse\n"
    b"mouse\tn=mouse,shiner\tv=sneak,mouse\n"
    b"zebu\tn=\n"
)

# Every name of several words is left out; the order is that of senses, then of names within a sense.
SYNONYMS = {
    "mice": ("mouse", "shiner"),
    "films": ("movie", "film", "picture", "pic", "flick", "cinema", "celluloid", "shoot", "take"),
    "movie": ("film", "picture", "pic", "flick"),
    "Movie": ("film", "picture", "pic", "flick"),
    "happy": ("felicitous", "glad", "well-chosen"),
    "comics": ("strip", "funnies", "comedian", "comic"),  # exception list: comics > comic_strip, comic
    "paris": (),
    "zzz": (),
    "": (),
    "the": (),
}


@pytest.mark.parametrize("word", SYNONYMS)
def test_synonyms_are_those_of_wordnet_in_sense_order(word: str) -> None:
    assert load_wordnet().synonyms(word) == SYNONYMS[word]


def test_left_is_a_noun_an_adjective_an_adverb_and_the_past_of_leave() -> None:
    wordnet = load_wordnet()
    assert wordnet.lemmas("left", "v") == ("leave",)
    assert wordnet.synonyms("left", "n") == ("leftfield",)
    assert wordnet.synonyms("left", "r") == ()
    assert wordnet.synonyms("left", "a") == ("leftover", "odd", "remaining", "unexpended", "left-hand")
    assert wordnet.synonyms("left", "v")[:4] == ("leave", "exit", "allow", "provide")
    assert wordnet.synonyms("left")[:2] == ("leftfield", "leave")


def test_running_finds_the_verb_and_keeps_its_base_form_as_a_synonym() -> None:
    assert load_wordnet().synonyms("running")[:3] == ("run", "track", "scat")


def test_base_forms_follow_morphy() -> None:
    wordnet = load_wordnet()
    assert wordnet.lemmas("better", "a") == ("better", "good", "well")
    assert wordnet.lemmas("axes", "n") == ("ax", "axis")
    assert wordnet.lemmas("Films", "n") == ("film",)
    assert wordnet.lemmas("qwertys", "n") == ()


def test_a_spelling_that_differs_in_case_only_is_a_synonym_on_request() -> None:
    wordnet = load_wordnet()
    assert wordnet.synonyms("paris", case_variants=True) == ("Paris",)
    assert wordnet.synonyms("Paris", case_variants=True) == ()
    assert TOY.synonyms("big", case_variants=True) == ("large", "Big")
    assert TOY.synonyms("BIG") == ("large",)


def test_antonyms_direct_and_through_the_head_of_a_satellite() -> None:
    wordnet = load_wordnet()
    assert wordnet.antonyms("good") == {"bad", "evil"}
    assert wordnet.antonyms("happier") == {"unhappy"}
    assert wordnet.antonyms("parched") == frozenset()
    assert "wet" in wordnet.antonyms("parched", indirect=True)
    assert wordnet.antonyms("good", "v") == frozenset()
    assert TOY.antonyms("big") == {"small", "little"}
    assert TOY.antonyms("big", indirect=True) == {"small", "little", "bantam"}


def test_has_knows_inflected_forms_and_words_without_synonyms() -> None:
    assert all(map(load_wordnet().has, ["mice", "Paris", "running", "quickly"]))
    assert not any(map(load_wordnet().has, ["zzz", "", "mice\tn>mouse", "the"]))
    assert TOY.has("zebu")
    assert TOY.synonyms("zebu") == ()
    assert not TOY.has("apes")  # an exception whose base form the table does not hold


@pytest.mark.parametrize("word", ["apes", "big", "mice", "mouse", "zebu"])
def test_bisection_finds_every_line_of_a_small_table(word: str) -> None:
    assert TOY._find_line(word)


@pytest.mark.parametrize("word", ["", "a", "apesa", "bi", "bigg", "zebus", "zz", "~", "é"])
def test_bisection_finds_nothing_between_the_lines(word: str) -> None:
    assert TOY._find_line(word) == []


def test_every_hundredth_line_of_the_real_table_is_found() -> None:
    text = gzip.decompress(read_artifact("wordnet.txt.gz", ""))
    words = [line.split(b"\t")[0].decode() for line in text.splitlines()]
    assert words == sorted(set(words), key=str.encode)
    wordnet = load_wordnet()
    assert all(wordnet._find_line(word) for word in [*words[::100], words[-1]])


@given(st.sampled_from(["run", "Set", "good", "mice", "CLEAR", "play", "best", "left"]) | st.text(max_size=12))
def test_synonyms_are_unique_single_words_and_never_the_word(word: str) -> None:
    wordnet = load_wordnet()
    for pos in (None, *POS_ORDER):
        synonyms = wordnet.synonyms(word, pos)
        assert len(set(synonyms)) == len(synonyms)
        assert word.lower() not in {name.lower() for name in synonyms}
        assert not any("_" in name or " " in name for name in synonyms)
        assert set(synonyms) <= set(wordnet.synonyms(word))
        assert synonyms == WordNet(wordnet._table).synonyms(word, pos)


def test_an_unknown_part_of_speech_is_refused() -> None:
    with pytest.raises(OptionError, match='"s"'):
        load_wordnet().synonyms("good", "s")


def test_a_missing_artifact_says_which_file_and_which_script() -> None:
    with pytest.raises(ResourceMissing, match=r"nothing\.gz.*tools/build_nothing\.py"):
        read_artifact("nothing.gz", "tools/build_nothing.py")
