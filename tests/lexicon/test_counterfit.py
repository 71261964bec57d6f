"""Counter-fitting on spaces small enough to compute by hand, and what holds in any space."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.core.errors import DataError, OptionError
from stockade.lexicon.counterfit import (
    CounterFitting,
    counterfit,
    read_pairs,
    whitened,
    wordnet_antonyms,
    wordnet_synonyms,
)
from stockade.lexicon.vectors import WordVectors, normalised
from stockade.lexicon.wordnet import WordNet, load_wordnet


def space(**rows: tuple[float, ...]) -> WordVectors:
    return WordVectors(tuple(rows), normalised(np.array(list(rows.values()), dtype=np.float32)))


def cosine(vectors: WordVectors, a: str, b: str) -> float:
    return float(vectors.matrix[vectors.index[a]] @ vectors.matrix[vectors.index[b]])


# Good and bad share their places; fine stands apart; film and movie are near each other, and so is table to nothing.
SIX = space(
    good=(1, 0.1, 0, 0),
    bad=(1, -0.1, 0, 0),
    fine=(0.3, 1, 0, 0),
    film=(0, 0, 1, 0.1),
    movie=(0, 0, 1, -0.1),
    table=(0, 0, 0, 1),
)
SYNONYMS, ANTONYMS = [("good", "fine"), ("good", "unheard-of")], [("bad", "good")]


def test_antonyms_are_pushed_to_the_margin_synonyms_attracted_and_the_rest_stays() -> None:
    fitted = counterfit(SIX, SYNONYMS, ANTONYMS, CounterFitting(epochs=200))
    assert cosine(SIX, "good", "bad") > 0.95
    assert cosine(fitted, "good", "bad") == pytest.approx(0, abs=0.1)  # distance 1: the margin, and no farther
    assert cosine(SIX, "good", "fine") < 0.5
    assert cosine(fitted, "good", "fine") > 0.95
    np.testing.assert_allclose(
        fitted.matrix[3:], SIX.matrix[3:], atol=1e-6
    )  # film, movie, table: no constraint names them
    assert fitted.words == SIX.words


def test_one_step_for_one_pair_is_the_one_computed_by_hand() -> None:
    """At a right angle the gradient of cos(u, v) in u is v itself: u becomes (1, 0.1), scaled to length one."""
    fitted = counterfit(space(u=(1, 0), v=(0, 1)), [("u", "v")], [], CounterFitting(epochs=1))
    expected = np.array([[1, 0.1], [0.1, 1]]) / np.sqrt(1.01)
    np.testing.assert_allclose(fitted.matrix, expected, rtol=1e-6)


def test_a_step_is_the_mean_over_the_active_pairs() -> None:
    """u is pulled to v and to w by 0.1 each, halved."""
    fitted = counterfit(
        space(u=(1, 0, 0), v=(0, 1, 0), w=(0, 0, 1)), [("u", "v"), ("u", "w")], [], CounterFitting(epochs=1)
    )
    np.testing.assert_allclose(fitted.matrix[0], np.array([1, 0.05, 0.05]) / np.sqrt(1.005), rtol=1e-6)


def test_a_near_word_follows_one_that_is_pulled_away_when_neighbourhoods_are_preserved() -> None:
    near = space(film=(1, 0.1, 0), movie=(1, -0.1, 0), opposite=(1, 0.2, 0.1))
    pulled = [("film", "opposite")]
    preserved = counterfit(near, [], pulled, CounterFitting(epochs=5))
    free = counterfit(near, [], pulled, CounterFitting(epochs=5, neighbourhood=1.0))
    assert cosine(preserved, "film", "movie") > cosine(free, "film", "movie")
    np.testing.assert_allclose(free.matrix[1], near.matrix[1], atol=1e-6)
    unweighted = counterfit(near, [], pulled, CounterFitting(epochs=5, preserve=0))
    np.testing.assert_array_equal(unweighted.matrix, free.matrix)


def test_a_pair_on_both_lists_counts_as_antonyms() -> None:
    both = counterfit(SIX, [("good", "bad")], [("good", "bad")])
    np.testing.assert_array_equal(both.matrix, counterfit(SIX, [], [("good", "bad")]).matrix)


pairs = st.lists(st.tuples(*[st.sampled_from([*SIX.words, "unheard-of"])] * 2), max_size=8)


@settings(max_examples=40, deadline=None)
@given(pairs, pairs, st.integers(0, 30))
def test_in_any_space_vectors_keep_length_one_and_neither_order_nor_repetition_matters(
    synonyms: list[tuple[str, str]], antonyms: list[tuple[str, str]], epochs: int
) -> None:
    options = CounterFitting(epochs=epochs)
    fitted = counterfit(SIX, synonyms, antonyms, options)
    np.testing.assert_allclose(np.linalg.norm(fitted.matrix, axis=1), 1, rtol=1e-5)
    shuffled = [(b, a) for a, b in reversed(synonyms)] + synonyms
    np.testing.assert_array_equal(counterfit(SIX, shuffled, antonyms, options).matrix, fitted.matrix)
    named = {word for pair in synonyms + antonyms for word in pair if pair[0] != pair[1] and "unheard-of" not in pair}
    for row, word in enumerate(SIX.words):
        near = (
            {"good", "bad"} if word in ("good", "bad") else {"film", "movie"} if word in ("film", "movie") else {word}
        )
        if not near & named:  # neither the word nor what is near it is asked to move
            np.testing.assert_allclose(fitted.matrix[row], SIX.matrix[row], atol=1e-6)


def test_no_constraints_and_no_epochs_change_nothing() -> None:
    np.testing.assert_allclose(counterfit(SIX, [], []).matrix, SIX.matrix, atol=1e-6)
    assert counterfit(SIX, SYNONYMS, ANTONYMS, CounterFitting(epochs=0)).matrix is SIX.matrix


def test_every_epoch_is_told() -> None:
    epochs: list[tuple[int, int]] = []
    counterfit(SIX, SYNONYMS, ANTONYMS, CounterFitting(epochs=3), observe=lambda *step: epochs.append(step))
    assert epochs == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("option", [{"epochs": -1}, {"repel": 1.5}, {"antonym_margin": 2.1}, {"neighbourhood": -0.1}])
def test_options_out_of_range_are_refused(option: dict[str, float]) -> None:
    (name,) = option
    with pytest.raises(OptionError, match=f"{name} must be between 0 and"):
        CounterFitting(**option)  # type: ignore[arg-type]


def test_whitening_turns_down_the_direction_in_which_synonyms_differ() -> None:
    """Meaning lies in the first direction, register in the second, and synonyms differ in register alone."""
    rng = np.random.default_rng(0)
    meaning = np.repeat(rng.normal(size=100), 2)
    noise = rng.normal(size=(200, 3)) * [0.05, 1, 0.05]
    words = tuple(f"w{i}" for i in range(200))
    raw = WordVectors(words, normalised((np.stack([meaning, 0 * meaning, 0 * meaning], 1) + noise).astype(np.float32)))
    synonyms = [(f"w{i}", f"w{i + 1}") for i in range(0, 200, 2)]
    before, after = (np.mean([cosine(v, a, b) for a, b in synonyms]) for v in (raw, whitened(raw, synonyms)))
    assert after > before + 0.2
    assert whitened(raw, synonyms[:29]) is raw  # fewer than ten pairs for each of three dimensions


TOY = WordNet(
    b"big\ta=big,large,great,grown,Adult\ta!small\ta~bantam\n"
    b"film\tn=movie,film\n"
    b"large\ta=large,big\n"
    b"movie\tn=movie,film\n"
    b"small\ta=small\ta!big\n"
)


def test_wordnet_synonyms_are_first_names_and_the_forms_of_one_base() -> None:
    pairs = wordnet_synonyms(TOY, ["big", "larger", "large", "adult", "grown", "film", "films", "movie"])
    assert pairs == [("big", "grown"), ("big", "large"), ("film", "films"), ("film", "movie"), ("large", "larger")]


def test_wordnet_antonyms_hold_for_every_form() -> None:
    assert wordnet_antonyms(TOY, ["big", "smaller", "small"]) == [("big", "small"), ("big", "smaller")]
    pairs = wordnet_antonyms(load_wordnet(), ["love", "loved", "hate", "hated", "awful", "good", "bad"])
    assert {("hated", "loved"), ("hate", "loved"), ("bad", "good")} <= set(pairs)
    assert ("hate", "hated") not in pairs


def test_pairs_are_read_from_text_and_gzip(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("Good bad \n\nold\tnew\n", encoding="utf-8")
    (tmp_path / "pairs.txt.gz").write_bytes(gzip.compress(b"good bad\nold new\n"))
    assert (
        read_pairs(tmp_path / "pairs.txt") == read_pairs(tmp_path / "pairs.txt.gz") == [("good", "bad"), ("old", "new")]
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.txt", b"good bad\none two three\n", "Line 2 of .* has 3 words"),
        ("p.txt", b"alone\n", "Line 1 of .* has 1 words"),
        ("p.txt", b"\n", "is empty"),
        ("p.txt", b"\xff\xfe", "cannot be read"),
        ("p.txt.gz", b"no gzip", "cannot be read"),
    ],
)
def test_faulty_constraint_files_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_pairs(tmp_path / name)


def test_a_missing_constraint_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no constraint file"):
        read_pairs(tmp_path / "nowhere")
