"""The tagger on sentences whose tags a person knows, and the agreement of its ways to ask."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.lexicon.pos import (
    PENN_TO_UNIVERSAL,
    UNIVERSAL_TAGS,
    Tagger,
    compatible,
    letter_ids,
    load_tagger,
    shape,
    universal_tag,
    window_ids,
    wordnet_pos,
)
from tests.lexicon.nltk_tagger import needs_nltk, nltk_tagger

SENTENCES = {
    "the film is a great success": "DT NN VBZ DT JJ NN",
    "The film is a great success": "DT NN VBZ DT JJ NN",
    "she quickly watched two boring movies": "PRP RB VBD CD JJ NNS",
    "i don't like the director's films": "PRP VBP VB DT NN NNS",
    "they play well": "PRP VBP RB",
    "the play was written by him": "DT NN VBD VBN IN PRP",
    "he wants to play the guitar": "PRP VBZ TO VB DT NN",
}
COMMON = ["the", "a", "film", "play", "great", "don't", "Paris", "I", "1999", "well-made", "to", "don’t", "naïve"]
WORDS = st.sampled_from(COMMON) | st.text(max_size=8)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_plain_sentences_get_the_tags_a_person_gives(sentence: str) -> None:
    assert load_tagger().tag(sentence.split()) == SENTENCES[sentence].split()


def test_context_decides_between_noun_and_verb() -> None:
    tagger = load_tagger()
    assert tagger.tag_word(["we", "love", "this", "movie"], 1) == "VBP"
    assert tagger.tag_word(["a", "story", "about", "love"], 3) == "NN"


def test_candidates_in_a_place() -> None:
    words = ["it", "was", "a", "beautiful", "film"]
    tagger = load_tagger()
    assert tagger.tag_candidates(words, 3, ["terrible", "german", "extremely"]) == ["JJ", "JJ", "RB"]
    assert tagger.tag_candidates(words, 4, ["movie", "films", "quickly"]) == ["NN", "NNS", "RB"]
    assert tagger.tag_candidates(words, 1, ["is", "seemed", "might"]) == ["VBZ", "VBD", "MD"]


def test_a_word_alone_gets_its_most_frequent_tag_and_is_no_sentence() -> None:
    tagger = load_tagger()
    words = {"film": "NN", "movie": "NN", "actors": "NNS", "quickly": "RB", "wonderful": "JJ", "watched": "VBD"}
    assert {word: tagger.tag_alone(word) for word in words} == words


@needs_nltk
def test_words_alone_are_tagged_as_in_the_dictionary_of_nltk() -> None:
    """Its words have a single tag nearly everywhere in the Wall Street Journal; elsewhere "rose" is also a flower."""
    tags = nltk_tagger().dictionary
    alike = sum(load_tagger().tag_alone(word) == tag for word, tag in tags.items())
    assert len(tags) > 1_000
    assert alike / len(tags) > 0.95


@settings(max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=9), st.lists(WORDS, max_size=4), st.data())
def test_a_candidate_has_the_tag_it_has_when_put_into_the_text(
    words: list[str], candidates: list[str], data: st.DataObject
) -> None:
    tagger, index = load_tagger(), data.draw(st.integers(0, len(words) - 1))
    replaced = [[*words[:index], candidate, *words[index + 1 :]] for candidate in candidates]
    expected = [tagger.tag(text)[index] for text in replaced]
    assert tagger.tag_candidates(words, index, candidates) == expected
    assert tagger.tag_word(words, index) == tagger.tag(words)[index] == tagger.tag_word(words, index - len(words))


@settings(max_examples=40)
@given(st.lists(WORDS, max_size=12), st.data())
def test_a_word_is_tagged_from_its_window_alone(words: list[str], data: st.DataObject) -> None:
    tagger = load_tagger()
    tags = tagger.tag(words)
    assert len(tags) == len(words)
    assert tagger.universal(words) == [universal_tag(tag) for tag in tags]
    far = data.draw(st.lists(WORDS, max_size=3))
    edge = ["of", "the"]
    assert tagger.tag([*far, *edge, *words])[len(far) + 2 :] == tagger.tag([*edge, *words])[2:]


def test_curly_and_straight_apostrophes_are_the_same_word() -> None:
    tagger = load_tagger()
    assert np.array_equal(tagger.windows(["don’t"]), tagger.windows(["don't"]))
    assert tagger.tag(["I", "don’t", "know"]) == tagger.tag(["I", "don't", "know"]) == ["PRP", "VBP", "VB"]


def test_features_are_the_same_numbers_on_every_machine() -> None:
    assert letter_ids("a", 1 << 14).tolist() == [11264, 6557, 2580, 8163, 13934]
    windows = np.arange(50, dtype=np.uint64).reshape(2, 25)
    ids = window_ids(windows, 1 << 16)[:, :4].tolist()
    assert ids == [[41715, 51191, 42100, 15643], [29971, 32245, 31068, 12326]]


@pytest.mark.parametrize(
    ("word", "expected"),
    [("film", "x"), ("Film", "Xx"), ("FILM", "XX"), ("I", "X"), ("iPod", "xX"), ("1999", "0"), ("90s", "x0")]
    + [("well-made", "x-"), ("don't", "x'"), ("", "."), ("?", ".")],
)
def test_shape(word: str, expected: str) -> None:
    assert shape(word) == expected


def test_a_toy_tagger_adds_up_its_two_layers() -> None:
    """The letters of "run" say NN by 1, a "to" before says VB by 2: "to run" is a verb, "run" alone is not."""
    letters = np.zeros((1 << 10, 2), dtype=np.int8)
    letters[letter_ids("run", 1 << 10)[0]] = [1, 0]
    draft = Tagger(["NN", "VB"], letters, np.zeros((1 << 12, 2), dtype=np.int8), doubt=1)
    window = np.zeros((1 << 12, 2), dtype=np.int8)
    window[window_ids(draft.windows(["to", "run"]), 1 << 12)[1, 0]] = [0, 2]  # template 0 is the word before
    tagger = Tagger(["NN", "VB"], letters, window, doubt=1)
    assert tagger.tag(["run"]) == ["NN"]
    assert tagger.tag(["to", "run"])[1] == "VB"
    assert tagger.tag_candidates(["to", "run"], 1, ["run", "runs"]) == ["VB", "VB"]


def test_every_tag_of_the_tagger_has_a_universal_tag() -> None:
    assert set(load_tagger().tags) <= set(PENN_TO_UNIVERSAL)
    assert set(PENN_TO_UNIVERSAL.values()) == set(UNIVERSAL_TAGS)
    assert len(UNIVERSAL_TAGS) == 12


def test_universal_and_wordnet_tags() -> None:
    penn = ["NNP", "MD", "JJR", "WRB", "PRP$", "EX", "IN", "TO", "CD", "CC", "UH", "NOUN", "nonsense"]
    expected = ["NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "PRT", "NUM", "CONJ", "X", "NOUN", "X"]
    assert [universal_tag(tag) for tag in penn] == expected
    assert [wordnet_pos(tag) for tag in ("NNS", "VBG", "JJS", "RB", "DT", "ADJ")] == ["n", "v", "a", "r", None, "a"]


def test_compatible_allows_noun_for_verb_only_when_asked() -> None:
    assert all(compatible(a, b) for a, b in [("NN", "NNS"), ("VBZ", "VBD"), ("NN", "VB"), ("VERB", "NNP")])
    assert not any(compatible(a, b) for a, b in [("JJ", "RB"), ("NN", "JJ"), ("DT", "VB")])
    assert not compatible("NN", "VB", noun_verb_exchange=False)
    assert compatible("VB", "VBZ", noun_verb_exchange=False)
