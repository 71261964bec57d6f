"""SWITCH: alternatives with the important words replaced, exactly where they stood."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from stockade.core.errors import ModelError, OptionError
from stockade.core.text import Text
from stockade.defenses.neighbours import NEAREST, neighbour_table, replacements
from stockade.defenses.registry import make_defense
from stockade.defenses.switch import Switch, check_importance, order_of, ranked_words
from stockade.lexicon.neighbours import Neighbours, load_neighbours, use_neighbours, write_neighbours
from stockade.lexicon.vectors import WordVectors
from stockade.models.huggingface import HuggingFaceClassifier
from tests.lexicon.nltk_tagger import needs_nltk, nltk_tagger
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import BagEncoder, WeightVictim

from .firebert_kit import OpenVictim, run, write_table

VICTIM = OpenVictim({"great": 3.0, "film": 2.0, "plot": 1.0, "the": 9.0, "zebra": 8.0})
TEXT = Text.parse("  Great film, the (zebra) -- 'plot'!")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_table(tmp_path_factory.mktemp("table"))


def switch(table: str, **options: Any) -> Switch:
    plain = {"candidates": 1, "match_pos": False, "similarity": "off", "total_alternatives": 50, "neighbours": table}
    return Switch(**{**plain, **options})


def alternatives(options: Switch, text: Text = TEXT, seed: int = 0, **kit: Any) -> list[str]:
    (texts,) = run(kit.pop("victim", VICTIM), options.alternatives(text, Random(seed)), **kit)
    return [str(text_) for text_ in texts]


def test_every_combination_of_the_two_most_important_words_but_the_text_itself(table: str) -> None:
    """ "the" is a stop word and "zebra" has no neighbours, though both matter most."""
    assert sorted(alternatives(switch(table))) == [
        "  Good film, the (zebra) -- 'plot'!",
        "  Good movie, the (zebra) -- 'plot'!",
        "  Great movie, the (zebra) -- 'plot'!",
    ]


def test_candidates_are_the_nearest_and_the_word_itself(table: str) -> None:
    strings = alternatives(switch(table, perturb_words=1, candidates=2), Text.parse("GREAT film"))
    assert sorted(strings) == ["FINE film", "GOOD film"]


def test_leave_alone_skips_the_most_important(table: str) -> None:
    strings = alternatives(switch(table, perturb_words=1, leave_alone=2))
    assert strings == ["  Great film, the (zebra) -- 'story'!"]


def test_words_drawn_at_random_stay_in_their_places(table: str) -> None:
    options = switch(table, perturb_words=1, random_out_of=2)
    strings = {string for seed in range(20) for string in alternatives(options, seed=seed)}
    assert strings == {"  Good film, the (zebra) -- 'plot'!", "  Great movie, the (zebra) -- 'plot'!"}


@given(
    seed=some.integers(0, 2**32), words=some.integers(1, 3), count=some.integers(1, 8), candidates=some.integers(1, 3)
)
def test_alternatives_differ_from_the_text_and_each_other_and_only_at_the_chosen_words(
    table: str, seed: int, words: int, count: int, candidates: int
) -> None:
    options = switch(table, perturb_words=words, total_alternatives=count, candidates=candidates)
    (texts,) = run(VICTIM, options.alternatives(TEXT, Random(seed)))
    assert len(texts) == min(count, (candidates + 1) ** words - 1)
    assert len({str(text) for text in texts} - {str(TEXT)}) == len(texts)
    chosen = {0: "Great", 1: "film", 4: "plot"}
    for text in texts:
        assert text.gaps == TEXT.gaps
        changed = {index for index, word in enumerate(text.words) if word != TEXT.words[index]}
        assert changed <= set(list(chosen)[:words])
        for index in changed:
            near = replacements(neighbour_table(table), chosen[index].lower(), candidates, False)
            assert text.words[index].lower() in near


def test_many_words_have_more_combinations_than_fit_an_integer() -> None:
    text = Text.parse(" ".join(["film", "story", "actor", "scene", "script", "music"] * 6))
    options = Switch(perturb_words=36, similarity="off", total_alternatives=3, stop_words="none", match_pos=False)
    assert len(set(alternatives(options, text, victim=OpenVictim({})))) == 3


# Of the package's neighbours: some of the same part of speech, and some of another, as a person would say.
PARTS_OF_SPEECH = {
    "film": ({"movie", "cinema", "picture"}, {"films", "filmed"}),
    "movie": ({"film", "cinema", "picture"}, {"movies", "filmed"}),
    "quickly": ({"rapidly", "swiftly", "promptly"}, {"proceed", "move", "continue"}),
    "wonderful": ({"marvelous", "fantastic", "splendid"}, {"marvelously", "pleasure", "thrills"}),
    "loved": ({"liked", "wished"}, {"loves", "love", "honey", "me"}),
}


@pytest.mark.parametrize("word", PARTS_OF_SPEECH)
def test_parts_of_speech_are_kept(word: str) -> None:
    table, (same, others) = neighbour_table(None), PARTS_OF_SPEECH[word]
    every, kept = set(replacements(table, word, 100, False)), set(replacements(table, word, 100, True))
    assert same | others <= every
    assert same <= kept
    assert not others & kept


def test_a_film_is_a_movie_and_no_name() -> None:
    """Tagged as sentences of one word, "film" would be a name ("broadway" would do) and "movie" would not."""
    table = neighbour_table(None)
    assert replacements(table, "film", 10, True)[0] == "movie"
    assert replacements(table, "movie", 10, True)[0] == "film"
    names = {"broadway", "hollywood", "disney"}
    assert names <= set(table.words)
    assert not names & {*replacements(table, "film", 100, True), *replacements(table, "movie", 100, True)}


@needs_nltk
def test_parts_of_speech_are_those_of_the_dictionary_of_nltk() -> None:
    """Of pairs of words whose tag it knows: nearly all that are kept have the same, nearly all of the same are kept."""
    table, tags = neighbour_table(None), nltk_tagger().dictionary
    right = kept = same = 0
    for word, tag in tags.items():
        near = [other for other in replacements(table, word, NEAREST, False) if other in tags]
        passed = set(replacements(table, word, NEAREST, True)) & set(near)
        alike = {other for other in near if tags[other] == tag}
        right, kept, same = right + len(passed & alike), kept + len(passed), same + len(alike)
    assert same > 4_000
    assert right / kept > 0.98
    assert right / same > 0.92


@needs_nltk
@pytest.mark.parametrize("word", PARTS_OF_SPEECH)
def test_the_hand_made_pairs_are_those_of_the_tagger_of_nltk(word: str) -> None:
    """But for "wonderful", which it takes for a noun when it stands alone."""
    tag, (same, others) = nltk_tagger().tag, PARTS_OF_SPEECH[word]
    if word == "wonderful":
        assert tag(word) == "NN"
        return
    assert {tag(other) for other in same} == {tag(word)}
    assert tag(word) not in {tag(other) for other in others}


ENCODER = BagEncoder({"film": 2.0})
PAIR = Text.parse("great film")
"""Its cosines: "good film" 4/5; "great movie" 1/(√5 √2) = 0.32; "good movie" 0."""


def test_the_filter_of_tf_0_is_a_cosine_of_054(table: str) -> None:
    assert alternatives(switch(table, similarity="filter"), PAIR, encoder=ENCODER) == ["good film"]
    low = switch(table, similarity="filter", scale="cosine", threshold=0.3)
    assert sorted(alternatives(low, PAIR, encoder=ENCODER)) == ["good film", "great movie"]
    high = switch(table, similarity="filter", scale="cosine", threshold=0.81)
    assert alternatives(high, PAIR, encoder=ENCODER) == []


def test_rank_takes_the_most_similar(table: str) -> None:
    options = switch(table, similarity="rank", total_alternatives=2)
    for seed in range(5):
        assert alternatives(options, PAIR, seed, encoder=ENCODER) == ["good film", "great movie"]


def test_the_filter_keeps_the_order_it_drew_and_compares_no_more_than_it_needs(table: str) -> None:
    """What passes is what would pass if everything were compared first."""
    text = Text.parse("great film")
    for seed in range(10):
        encoder = BagEncoder({"film": 2.0})
        wide = switch(table, similarity="off", candidates=2, total_alternatives=8)
        drawn = alternatives(wide, text, seed)
        options = switch(table, similarity="filter", candidates=2, total_alternatives=2, multiplier=4)
        passed = alternatives(options, text, seed, encoder=encoder)
        assert passed == [string for string in drawn if string.endswith("film")]
    assert len(passed) == 2
    every = switch(table, similarity="filter", candidates=2, total_alternatives=2, multiplier=4, threshold=-2.0)
    encoder = BagEncoder()
    alternatives(every, text, encoder=encoder)
    assert len(encoder.embedded) == 3


def test_the_multiplier_says_how_many_are_compared(table: str) -> None:
    encoder = BagEncoder()
    options = switch(table, similarity="rank", candidates=2, total_alternatives=2, multiplier=3)
    alternatives(options, PAIR, encoder=encoder)
    assert len(encoder.embedded) == 1 + 2 * 3


def test_a_text_with_nothing_to_replace_has_no_alternatives(table: str) -> None:
    for string in ("", "the of", "!?", "zebra"):
        assert alternatives(switch(table, similarity="filter"), Text.parse(string)) == []


def test_many_texts_together_have_the_alternatives_each_has_alone(table: str) -> None:
    """With a real tokenizer and real gradients: every alternative is of its own text, at its own words."""
    model = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer())
    strings = ["The film, was great!", "(great) -- film", "a bad film... not great", "film", "is it? great; film"]
    texts = [Text.parse(string) for string in strings]
    options = switch(table, candidates=2, total_alternatives=3)
    together = run(model, *(options.alternatives(text, Random(4)) for text in texts))
    for text, texts_ in zip(texts, together, strict=True):
        assert texts_ == run(model, options.alternatives(text, Random(4)))[0]
        for alternative in texts_:
            assert alternative.original == text
            assert alternative.gaps == text.gaps
            for before, after in zip(text.words, alternative.words, strict=True):
                assert before == after or {before, after} <= {"great", "good", "fine", "film", "movie", "picture"}


def test_the_premise_is_never_changed(table: str) -> None:
    pair = Text.parse("great film", premise="great film")
    (texts,) = run(VICTIM, switch(table).alternatives(pair, Random(0)))
    assert {text.premise for text in texts} == {"great film"}
    assert len(texts) == 3


def test_an_attackers_table_does_not_change_the_defense(table: str) -> None:
    packaged = load_neighbours()
    with use_neighbours(neighbour_table(table)):
        assert neighbour_table(None) is packaged
    assert isinstance(neighbour_table(table), Neighbours)
    assert len(neighbour_table(table)) == 8


def test_a_word_is_as_important_as_its_most_important_token() -> None:
    """Stop words do not count, nor does what the model does not read."""
    scores = ((9.0,), (0.1, 0.8), (0.5, 0.6), (), (0.7,))
    text = Text.parse("The plot thickens slowly, FILM")
    assert ranked_words(text, scores, "function") == [1, 4, 2]
    assert ranked_words(text, scores, "none") == [0, 1, 4, 2]


def test_equal_up_to_rounding_is_equal() -> None:
    assert order_of({3: 1.00001, 1: 1.0, 2: 1.00002, 0: 2.0, 9: 0.0}) == [0, 3, 1, 2, 9]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"perturb_words": 0}, "perturb_words is 0, expected a number of at least 1"),
        ({"total_alternatives": 0}, "total_alternatives is 0"),
        ({"leave_alone": -1}, "leave_alone is -1, expected a number of at least 0"),
        ({"perturb_words": 3, "random_out_of": 2}, "random_out_of is 2, expected 0 or at least perturb_words"),
        ({"similarity": "sometimes"}, "similarity of fuse cannot be 'sometimes'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_defense("fuse", **options)


def test_a_black_box_is_told_what_is_missing() -> None:
    with pytest.raises(ModelError, match=r"fuse needs the model's gradients.*choose a defense that needs scores only"):
        check_importance("fuse", WeightVictim({}))
    check_importance("fuse", VICTIM)


def test_a_filter_that_refuses_some_still_keeps_no_more_than_it_wants(table: str) -> None:
    """ "picture" is far from "film", all else is near: five of the eight alternatives pass."""
    text = Text.parse("zebra film plot")
    encoder = BagEncoder({"film": 0.1, "movie": 0.1, "picture": 3.0, "plot": 0.1, "story": 0.1, "great": 0.1})
    wanted = {"similarity": "filter", "candidates": 2, "total_alternatives": 2, "multiplier": 4}
    for seed in range(10):
        drawn = alternatives(switch(table, candidates=2), text, seed)
        near = [string for string in drawn if "picture" not in string]
        assert (len(drawn), len(near)) == (8, 5)
        assert alternatives(switch(table, **wanted), text, seed, encoder=encoder) == near[:2]


def test_words_of_another_part_of_speech_are_left_out_if_that_is_wanted(tmp_path: Path) -> None:
    """ "greatly" is nearer to "great" than "good" is, but an adverb."""
    words = ("great", "greatly", "good")
    angles = np.radians([0.0, 3.0, 6.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    path = tmp_path / "neighbours.npz"
    write_neighbours(WordVectors(words, vectors), path, {})
    strings = [alternatives(switch(str(path), match_pos=same), Text.parse("great film")) for same in (True, False)]
    assert strings == [["good film"], ["greatly film"]]
