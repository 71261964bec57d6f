"""Which words may stand for which, and how much two sets have in common."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.text import Text
from stockade.lexicon import perturbation_sets
from stockade.lexicon.neighbours import Neighbours, load_neighbours, use_neighbours
from stockade.lexicon.perturbation_sets import (
    PerturbationSets,
    WordSet,
    joint_overlap,
    load_perturbation_sets,
    refined,
    similar_pairs,
    usable_pairs,
)


def on_a_circle(*degrees: float) -> np.ndarray:
    """Vectors at these angles of a plane, as whole numbers."""
    radians = np.deg2rad(degrees)
    return np.rint(2000 * np.stack([np.cos(radians), np.sin(radians)], 1)).astype(np.float32)


def chain(maximum: int) -> PerturbationSets:
    """Five words 30 degrees apart, so that each is a synonym of the next (cosine 0.87); one far away; one pair."""
    words = ("one", "two", "three", "four", "five", "far", "near", "nearby")
    vectors = on_a_circle(0, 30, 60, 90, 120, 200, 270, 280)
    return PerturbationSets(words, vectors, similar_pairs(vectors, 0.8), maximum)


def test_a_small_component_is_everybodys_set() -> None:
    sets = chain(maximum=5)
    for word in ("one", "three", "Five"):
        assert sets.of(word) == ("one", "two", "three", "four", "five")
        assert sets.overlap(word) == 1.0
    assert sets.synonyms("three") == ("two", "four")
    assert sets.of("NEAR") == ("near", "nearby")
    assert sets.of("far") == sets.of("unknown") == sets.synonyms("far") == ()
    assert sets.overlap("far") == 1.0


def test_of_a_large_component_the_nearest_words_are_the_set() -> None:
    sets = chain(maximum=3)
    assert sets.of("one") == ("one", "two", "three")
    assert sets.of("two") == ("one", "two", "three")
    assert sets.of("three") == ("two", "three", "four")
    assert sets.of("four") == ("three", "four", "five")
    assert sets.overlap("one") == 1.0  # its only synonym, two, has the same set
    assert sets.overlap("two") == pytest.approx(2 / 3)  # three's set lacks one
    assert sets.overlap("three") == pytest.approx(2 / 3)
    assert sets.overlap("near") == 1.0


def test_the_sets_of_a_text() -> None:
    text = Text.parse("Two, far or near!")
    assert chain(maximum=3).in_text(text) == (
        WordSet(0, ("one", "two", "three"), 2 / 3),
        WordSet(3, ("near", "nearby"), 1.0),
    )


def test_the_joint_overlap_is_the_product_of_the_least() -> None:
    sets = [WordSet(0, (), 0.9), WordSet(1, (), 0.5), WordSet(2, (), 0.8)]
    assert joint_overlap(sets, 0) == 1.0
    assert joint_overlap(sets, 2) == pytest.approx(0.4)
    assert joint_overlap(sets, 9) == pytest.approx(0.36)
    assert joint_overlap([], 3) == 1.0


matrices = st.integers(2, 12).flatmap(
    lambda words: st.lists(st.tuples(*[st.integers(-60, 60)] * 3).filter(any), min_size=words, max_size=words)
)


@given(matrices, st.sampled_from([0.5, 0.8, 0.95]))
def test_pairs_are_exactly_those_with_the_cosine(rows: list[tuple[int, ...]], least: float) -> None:
    vectors = np.rint(np.array([np.array(row) / np.linalg.norm(row) * 2000 for row in rows])).astype(np.float32)
    exact = vectors.astype(np.int64)
    expected = {
        (a, b)
        for a, b in combinations(range(len(rows)), 2)
        if exact[a] @ exact[b] >= least * np.sqrt(float(exact[a] @ exact[a])) * np.sqrt(float(exact[b] @ exact[b]))
    }
    assert set(map(tuple, similar_pairs(vectors, least).tolist())) == expected


@given(matrices, st.integers(1, 4))
def test_sets_are_closed_under_what_certificates_need(rows: list[tuple[int, ...]], maximum: int) -> None:
    """Synonyms have sets of equal size, a word is in its own, being synonyms is mutual, and overlaps are shares."""
    vectors = np.rint(np.array([np.array(row) / np.linalg.norm(row) * 2000 for row in rows])).astype(np.float32)
    words = tuple(f"w{number}" for number in range(len(rows)))
    sets = PerturbationSets(words, vectors, similar_pairs(vectors, 0.8), maximum)
    for word in words:
        others = sets.synonyms(word)
        assert bool(others) == bool(sets.of(word))
        if not others:
            continue
        members = set(sets.of(word))
        assert word in members
        assert word not in others
        for other in others:
            assert word in sets.synonyms(other)
            assert len(sets.of(other)) == len(members)
        assert sets.overlap(word) == min(len(members & set(sets.of(other))) / len(members) for other in others)


def test_blocks_do_not_change_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = refined(np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32), 0)
    whole = similar_pairs(vectors, 0.8).tolist()
    assert len(whole) > 20
    monkeypatch.setattr(perturbation_sets, "_BLOCK", 7)
    assert sorted(similar_pairs(vectors, 0.8).tolist()) == sorted(whole)


def test_mean_and_first_directions_are_gone() -> None:
    rng = np.random.default_rng(1)
    raw = rng.normal(size=(500, 6)) * np.array([9, 5, 1, 1, 1, 1]) + 3
    unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    vectors = refined(raw.astype(np.float32), 2)
    assert (vectors == np.rint(vectors)).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(2000, abs=2)
    centred = unit - unit.mean(0)
    axes = np.linalg.svd(centred)[2]
    assert np.abs(vectors @ axes[:2].T).max() < 2  # what rounding leaves
    remaining = centred @ axes[2:].T
    cosines = ((vectors @ axes[2:].T) * remaining).sum(1) / np.linalg.norm(remaining, axis=1) / 2000
    assert cosines.min() > 0.999
    assert np.abs(refined(raw.astype(np.float32), 0) @ axes[:2].T).max() > 1000


def test_vectors_of_nothing_are_near_to_nothing() -> None:
    raw = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]], dtype=np.float32)
    vectors = refined(raw, 1)  # the only direction there is is taken away
    assert not vectors.any()
    assert len(similar_pairs(vectors, 0.8)) == 0


def test_files_and_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(2)
    words = [f"word{chr(97 + number)}" for number in range(12)]
    lines = [f"{word} " + " ".join(f"{x:.4f}" for x in rng.normal(size=3)) for word in words]
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(lines))
    perturbation_sets._sets_of.cache_clear()
    first = load_perturbation_sets(str(path), 0.8, 0, 4)
    expected = {word: first.of(word) for word in words}
    assert sum(map(len, expected.values())) > 6
    (cached,) = (tmp_path / "cache").iterdir()

    def never(*_: object) -> None:
        raise AssertionError("the pairs were computed again")

    with monkeypatch.context() as patched:
        patched.setattr(perturbation_sets, "similar_pairs", never)
        perturbation_sets._sets_of.cache_clear()
        again = load_perturbation_sets(str(path), 0.8, 0, 4)
    assert {word: again.of(word) for word in words} == expected
    cached.write_bytes(b"broken")
    perturbation_sets._sets_of.cache_clear()
    assert {word: load_perturbation_sets(str(path), 0.8, 0, 4).of(word) for word in words} == expected
    perturbation_sets._sets_of.cache_clear()


def test_the_table_of_a_run_does_not_change_the_defense(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path))
    table = Neighbours(("good", "fine"), np.array([[100, 1], [100, 2]], dtype=np.int8))
    package = Neighbours(("calm", "quiet", "loud"), np.array([[100, 1], [100, 2], [-100, 0]], dtype=np.int8))
    monkeypatch.setattr("stockade.lexicon.neighbours._built_in", lambda: package)
    perturbation_sets._sets_of.cache_clear()
    with use_neighbours(table):
        sets = load_perturbation_sets(None, 0.8, 0)
    perturbation_sets._sets_of.cache_clear()
    assert sets.of("calm") == ("calm", "quiet")
    assert sets.of("good") == ()


def test_words_that_do_not_tell_their_case_have_no_synonyms() -> None:
    words = ("good", "fine", "i", "1990s", "straße", "好", "棒", "goª")
    pairs = np.array([(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (5, 6), (0, 7)], dtype=np.int32)
    assert usable_pairs(words, pairs).tolist() == [[0, 1], [5, 6]]


def test_only_single_words_that_stand_in_the_table_once_have_synonyms() -> None:
    words = ("good", "nice", "u.s.", "nice", "好", "高兴", "棒", "x-", "\u200d7", "7")
    pairs = np.array([(0, 1), (0, 2), (0, 3), (4, 5), (4, 6), (4, 9), (7, 0), (8, 9)], dtype=np.int32)
    assert usable_pairs(words, pairs).tolist() == [[0, 3], [4, 6], [4, 9]]  # the last "nice" is the one that is found


def touching() -> PerturbationSets:
    """日 and 일 are synonyms, 月 and 火 are, か and a lone mark are."""
    words = ("日", "일", "月", "火", "か", "\u3099")
    vectors = on_a_circle(0, 10, 120, 130, 240, 250)
    return PerturbationSets(words, vectors, similar_pairs(vectors, 0.8))


@pytest.mark.parametrize(
    ("text", "overlaps"),
    [
        ("日 日", [1, 1]),
        ("日.日", [1, 1]),
        ("日日", [0, 0]),  # 일일 is one word
        ("日-日", [0, 0]),
        ("日月日", [1, 1, 1]),  # 일月일 is three
        ("日月-日日", [1, 1, 0, 0]),
        ("日7", [0]),
        ("7日", [0]),
        ("日月7", [1, 1]),
        ("月か", [0, 0]),  # the mark is read with 月
        ("か月", [1, 1]),
        ("月-か", [1, 1]),
        ("月😀か", [1, 1]),
    ],
)
def test_words_that_may_be_read_together_have_nothing_in_common(text: str, overlaps: list[int]) -> None:
    assert [word_set.overlap for word_set in touching().in_text(Text.parse(text))] == overlaps


def test_no_word_of_the_shipped_table_is_lost_to_its_case() -> None:
    words = load_neighbours().words
    pairs = np.array([(0, row) for row in range(1, len(words))], dtype=np.int32)
    lost = set(range(1, len(words))) - set(usable_pairs(words, pairs)[:, 1].tolist())
    assert {words[row] for row in lost} == set()


def test_a_file_that_was_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "vectors.txt"
    path.write_text("good 1 0\nfine 1 0.1\nfilm -1 0.5\n")
    assert load_perturbation_sets(str(path), 0.8, 0).of("film") == ()
    path.write_text("good 1 0\nfilm 1 0.1\nfine -1 0.5\nstory 0 -1\n")
    assert load_perturbation_sets(str(path), 0.8, 0).of("film") == ("good", "film")
