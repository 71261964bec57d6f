"""How many words stay, and which: every choice as likely as it should be."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.masks import (
    antithetic_group_size,
    draw_antithetic_masks,
    draw_masks,
    draw_weighted_masks,
    kept_words,
    masks_by_number,
)


@pytest.mark.parametrize(
    ("words", "rate", "minimum", "kept"),
    [
        (10, 0.3, 1, 7),
        (10, 0.9, 1, 1),
        (10, 0.9, 2, 2),
        (5, 0.5, 1, 3),  # 2.5 is rounded to the even 2
        (15, 0.5, 1, 7),  # 7.5 to 8
        (3, 0.99, 1, 1),
        (1, 0.9, 2, 1),
        (4, 0.0, 1, 4),
        (4, 1.0, 1, 1),
        (0, 0.5, 1, 0),
    ],
)
def test_how_many_words_stay(words: int, rate: float, minimum: int, kept: int) -> None:
    assert kept_words(words, rate, minimum) == kept


def test_no_more_words_stay_than_the_most() -> None:
    assert [kept_words(words, 0.7, 1, 5) for words in (3, 10, 20, 100)] == [1, 3, 5, 5]
    assert kept_words(2, 0.5, 3, 3) == 2


@given(st.integers(1, 30), st.data())
def test_every_copy_keeps_as_many_as_asked(words: int, data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, words))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    weights = np.array(data.draw(st.lists(st.floats(0, 20), min_size=words, max_size=words)))
    for keep in (draw_masks(rng, words, kept, 7), draw_weighted_masks(rng, weights, kept, 7)):
        assert keep.shape == (7, words)
        assert (keep.sum(1) == kept).all()


def test_every_subset_is_as_likely_as_any_other() -> None:
    keep = draw_masks(np.random.default_rng(0), 5, 2, 20_000)
    found = [int(keep[:, list(pair)].all(1).sum()) for pair in combinations(range(5), 2)]
    assert sum(found) == 20_000
    assert all(abs(count - 2_000) < 5 * 42.5 for count in found)  # ten subsets; the deviation of each is 42.4


def test_weights_are_those_of_draws_one_after_another() -> None:
    """Two of three words of weights 1, 2 and 5 are hidden: the chances by hand."""
    keep = draw_weighted_masks(np.random.default_rng(1), np.array([1.0, 2.0, 5.0]), 1, 40_000)
    first_stays = 2 / 8 * 5 / 6 + 5 / 8 * 2 / 3
    second_stays = 1 / 8 * 5 / 7 + 5 / 8 * 1 / 3
    assert keep.mean(0) == pytest.approx([first_stays, second_stays, 1 - first_stays - second_stays], abs=0.012)


def test_words_of_no_weight_are_hidden_last() -> None:
    weights = np.array([0.0, 3.0, 0.0, 1.0])
    assert draw_weighted_masks(np.random.default_rng(2), weights, 2, 500)[:, [0, 2]].all()
    assert (draw_weighted_masks(np.random.default_rng(2), weights, 1, 500)[:, [1, 3]] == 0).all()


@given(st.integers(1, 30), st.data())
def test_the_copies_of_an_antithetic_group_share_no_word_of_a_block(words: int, data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, words))
    size, rng = antithetic_group_size(words, kept), np.random.default_rng(data.draw(st.integers(0, 99)))
    groups = draw_antithetic_masks(rng, words, kept, 6).reshape(6, size, words)
    assert (groups.sum(2) == kept).all()
    blocks = groups if kept <= words - kept else ~groups
    assert (blocks.sum(1) <= 1).all()
    assert size == 1 or words - blocks[0].sum() < min(kept, words - kept)  # too few words are left for one more block


@pytest.mark.parametrize("kept", [2, 3])
def test_every_copy_of_an_antithetic_group_is_a_uniform_draw(kept: int) -> None:
    groups = draw_antithetic_masks(np.random.default_rng(0), 5, kept, 20_000).reshape(20_000, 2, 5)
    for copy in (0, 1):
        counts = [int(groups[:, copy][:, list(choice)].all(1).sum()) for choice in combinations(range(5), kept)]
        assert sum(counts) == 20_000
        assert all(abs(count - 2_000) < 5 * 42.5 for count in counts)


def test_masks_by_number_are_all_combinations_in_order() -> None:
    for words, kept in ((5, 2), (6, 6), (4, 1), (7, 3)):
        masks = masks_by_number(np.arange(comb(words, kept)), words, kept)
        assert [tuple(np.flatnonzero(row)) for row in masks] == list(combinations(range(words), kept))
    assert masks_by_number(np.array([3, 0]), 5, 2).tolist() == [
        [True, False, False, False, True],
        [True, True, False, False, False],
    ]


@pytest.mark.parametrize(("words", "kept"), [(70, 67), (100, 98), (200, 199)])
def test_masks_that_hide_little_have_numbers_too(words: int, kept: int) -> None:
    """There are few of them, and far more ways to keep half of the words than an integer of 64 bits can count."""
    masks = masks_by_number(np.arange(comb(words, kept)), words, kept)
    assert [tuple(np.flatnonzero(row)) for row in masks] == list(combinations(range(words), kept))
