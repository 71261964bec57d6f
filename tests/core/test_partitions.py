"""Words in groups: every word in one, whatever its neighbours are; and words that are deleted by chance."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.partitions import (
    Layout,
    Votes,
    deletion_group_size,
    group_texts,
    hash_groups,
    keep_antithetic_words,
    keep_words,
    position_groups,
)

LAYOUTS: tuple[Layout, ...] = ("blocks", "interleaved")
words_lists = st.lists(st.sampled_from(["a", "A", "film", "Film", "good", "bad", "\u0130", "\ud83d"]), max_size=12)


@pytest.mark.parametrize(
    ("words", "groups", "layout", "of_words"),
    [
        (7, 3, "interleaved", [0, 1, 2, 0, 1, 2, 0]),
        (7, 3, "blocks", [0, 0, 0, 1, 1, 2, 2]),
        (6, 2, "blocks", [0, 0, 0, 1, 1, 1]),
        (2, 5, "interleaved", [0, 1]),
        (2, 5, "blocks", [0, 1]),
        (3, 1, "interleaved", [0, 0, 0]),
    ],
)
def test_groups_by_position(words: int, groups: int, layout: Layout, of_words: list[int]) -> None:
    found = position_groups(words, groups, layout)
    assert found.argmax(0).tolist() == of_words
    assert len(found) == max(of_words) + 1


@given(st.integers(0, 60), st.integers(1, 20), st.sampled_from(LAYOUTS))
def test_every_position_is_in_one_group_and_no_group_is_empty(words: int, groups: int, layout: Layout) -> None:
    keep = position_groups(words, groups, layout)
    assert keep.dtype == np.bool_
    assert keep.shape == (min(groups, words), words)
    assert (keep.sum(0) == 1).all()
    if words:
        sizes = keep.sum(1)
        assert sizes.min() >= 1
        assert sizes.max() - sizes.min() <= 1
    if layout == "blocks":
        assert all(np.flatnonzero(row).tolist() == list(range(row.argmax(), row.argmax() + row.sum())) for row in keep)


@given(words_lists, st.integers(1, 9), st.text(max_size=100))
def test_a_words_group_is_its_own_affair(words: list[str], groups: int, key: str) -> None:
    found = hash_groups(words, groups, key)
    assert found == tuple(hash_groups([word], groups, key)[0] for word in words)
    assert all(0 <= group < groups for group in found)
    assert found == hash_groups([word.lower() for word in words], groups, key)


def test_the_hash_is_written_down() -> None:
    """Certificates are checked elsewhere and later: the groups must never change."""
    key = blake2b(b"stockade").digest()
    digests = [blake2b(word, key=key, digest_size=8).digest() for word in (b"good", b"film", "\u00e9".encode())]
    expected = tuple(int.from_bytes(digest, "big") % 10 for digest in digests)
    assert hash_groups(["Good", "film", "\u00c9"], 10, "stockade") == expected == (9, 9, 0)


def test_keys_give_other_groups_and_groups_are_of_like_size() -> None:
    words = [f"word{number}" for number in range(5000)]
    one, other = hash_groups(words, 10, "one"), hash_groups(words, 10, "other")
    for found in (one, other):
        assert all(abs(count - 500) < 5 * 21.3 for count in Counter(found).values())  # the deviation of each is 21.2
    assert sum(a == b for a, b in zip(one, other, strict=True)) == pytest.approx(500, abs=5 * 21.3)


def test_group_texts_keep_the_order_and_the_spelling() -> None:
    assert group_texts(["A", "good", "film", "A"], [2, 0, 2, 2], 4) == (("good",), (), ("A", "film", "A"), ())
    assert group_texts([], [], 2) == ((), ())
    with pytest.raises(ValueError, match="shorter"):
        group_texts(["a", "b"], [0], 1)


@given(words_lists, st.integers(1, 6), st.data())
def test_edits_reach_as_few_groups_as_promised(words: list[str], groups: int, data: st.DataObject) -> None:
    def texts(of: list[str]) -> tuple[tuple[str, ...], ...]:
        return group_texts(of, hash_groups(of, groups, "k"), groups)

    place, new = data.draw(st.integers(0, len(words))), data.draw(st.sampled_from(["new", "good", "x"]))

    def altered(other: list[str]) -> int:
        return sum(a != b for a, b in zip(texts(words), texts(other), strict=True))

    assert altered([*words[:place], new, *words[place:]]) == 1
    if place < len(words):
        assert altered(words[:place] + words[place + 1 :]) == 1
        assert altered([*words[:place], new, *words[place + 1 :]]) <= 2


def test_words_stay_independently_of_each_other() -> None:
    """Three words at 0.3: the eight outcomes have the chances of three throws."""
    keep = keep_words(np.random.default_rng(0), 3, 0.3, 40_000)
    counts = Counter(map(tuple, keep.tolist()))
    for outcome in np.ndindex(2, 2, 2):
        chance = np.prod([0.3 if stays else 0.7 for stays in outcome])
        deviation = np.sqrt(40_000 * chance * (1 - chance))
        assert abs(counts[tuple(map(bool, outcome))] - 40_000 * chance) < 5 * deviation
    assert keep_words(np.random.default_rng(0), 0, 0.3, 4).shape == (4, 0)


def test_votes_by_hand() -> None:
    votes = Votes((1, 2, 2))
    assert (votes.voters, votes.label) == (5, 1)  # the first of two in a tie
    assert votes.shares().probabilities == (0.2, 0.4, 0.4)
    assert votes.shares().label == votes.label
    assert Votes((0, 0)).voters == 0


@given(st.lists(st.integers(0, 30), min_size=2, max_size=5).filter(any))
def test_shares_never_decide_otherwise_than_counts(counts: list[int]) -> None:
    votes = Votes(tuple(counts))
    assert votes.shares().label == votes.label


@pytest.mark.parametrize("chance", [0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_every_copy_of_an_antithetic_group_loses_words_like_any_other(chance: float) -> None:
    size = deletion_group_size(chance)
    groups = keep_antithetic_words(np.random.default_rng(0), 6, chance, 4000).reshape(4000, size, 6)
    chosen = groups if chance <= 0.5 else ~groups
    assert (chosen.sum(1) <= 1).all()
    assert np.abs(groups.mean(0) - chance).max() < 0.04
    together = (groups[:, :, 0] & groups[:, :, 1]).mean(0)
    assert np.abs(together - chance**2).max() < 0.04, "words of one copy do not know each other"
