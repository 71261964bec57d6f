"""The table of neighbours: a toy with known angles, the shipped one, and the command that makes one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.cli.lexicon import command
from stockade.core.errors import DataError, OptionError
from stockade.lexicon.neighbours import (
    Neighbours,
    Recipe,
    load_neighbours,
    read_neighbours,
    use_neighbours,
    write_neighbours,
)
from stockade.lexicon.vectors import WordVectors, normalised
from stockade.lexicon.wordnet import load_wordnet

# Pythagorean vectors: cosines with "east" are 1, 0.96, 0.8, 0.6, 0, exactly.
TOY = Neighbours(
    ("east", "warm", "far", "twin", "high", "north"),
    np.array([[1, 0], [24, 7], [3, 4], [24, 7], [4, 3], [0, 1]], dtype=np.int8),
)


def test_neighbours_come_nearest_first_with_their_cosine_and_ties_in_table_order() -> None:
    assert TOY.neighbours("EAST") == (("warm", 0.96), ("twin", 0.96), ("high", 0.8), ("far", 0.6), ("north", 0.0))
    assert [near.word for near in TOY.neighbours("east", count=2)] == ["warm", "twin"]
    assert TOY.neighbours("unheard-of") == TOY.neighbours("east", count=0) == ()


def test_the_bound_on_cosine_is_closed_and_the_one_on_distance_open() -> None:
    assert [near.word for near in TOY.neighbours("east", min_cosine=0.8)] == ["warm", "twin", "high"]
    squared = 2 - 2 * 0.8
    assert [near.word for near in TOY.neighbours("east", max_squared_distance=squared)] == ["warm", "twin"]
    assert [near.word for near in TOY.neighbours("east", max_squared_distance=squared + 1e-9)] == [
        "warm",
        "twin",
        "high",
    ]


def test_cosine_of_two_words() -> None:
    assert TOY.cosine("east", "High") == 0.8
    assert TOY.cosine("warm", "twin") == 1.0
    assert TOY.cosine("east", "unheard-of") is None
    assert "EAST" in TOY
    assert "unheard-of" not in TOY
    with pytest.raises(OptionError, match="cannot be -1"):
        TOY.neighbours("east", count=-1)


def test_a_table_of_one_word_has_no_neighbours() -> None:
    assert Neighbours(("alone",), np.ones((1, 2), dtype=np.int8)).neighbours("alone") == ()


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(load_neighbours().words), st.integers(1, 80))
def test_shipped_neighbours_are_sorted_different_other_words_within_their_bounds(word: str, count: int) -> None:
    table = load_neighbours()
    near = table.neighbours(word, count=count)
    assert len(near) == count
    assert len({name for name, _ in near} | {word}) == count + 1
    assert [cosine for _, cosine in near] == sorted((cosine for _, cosine in near), reverse=True)
    assert all(cosine == table.cosine(word, name) == table.cosine(name, word) for name, cosine in near)
    assert near[: count // 2] == table.neighbours(word, count=count // 2)
    assert table.neighbours(word, min_cosine=0.75 + 1e-12) == table.neighbours(word, max_squared_distance=0.5 - 2e-12)


def test_shipped_neighbours_of_words_in_reviews_are_what_a_reader_expects() -> None:
    table = load_neighbours()
    assert len(table) == 40_000
    for word, expected in {"great": "outstanding", "movie": "film", "terrible": "awful", "quickly": "rapidly"}.items():
        assert expected in [near.word for near in table.neighbours(word, count=10)]


ADJECTIVES = """good bad great happy sad big small old new young hot cold fast slow strong weak easy hard
    rich poor right wrong true false high low long short dark light boring interesting beautiful ugly clean dirty
    loved hated better worse"""


@pytest.mark.parametrize("word", ADJECTIVES.split())
def test_no_antonym_is_near_a_frequent_adjective(word: str) -> None:
    antonyms = load_wordnet().antonyms(word)
    near = {near.word for near in load_neighbours().neighbours(word, count=10)}
    assert not near & antonyms
    assert (word, "bad" in near) != ("good", True)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Vectors in which "good" and "bad" have the same place, and so have "film" and "actor"."""
    rows = {
        "good": "1 0.1 0",
        "bad": "1 -0.1 0",
        "film": "0 1 0.1",
        "actor": "0 1 -0.1",
        "movie": "0 0.2 1",
        "Film": "1 1 1",
    }
    path = tmp_path / "tiny.txt"
    path.write_text("".join(f"{word} {row}\n" for word, row in rows.items()), encoding="utf-8")
    return path


def test_build_writes_a_table_that_info_and_python_read(tmp_path: Path, tiny: Path) -> None:
    out = tmp_path / "table.npz"
    built = CliRunner().invoke(command, ["build", str(out), "--vectors", str(tiny)], catch_exceptions=False)
    assert built.exit_code == 0
    assert "5 words written to" in built.output  # "Film" is not lower-case
    table = read_neighbours(out)
    assert table.words == ("good", "bad", "film", "actor", "movie")
    assert [near.word for near in table.neighbours("film", count=1)] == ["movie"]  # WordNet's synonyms
    assert (table.cosine("good", "bad") or 0) < 0.2  # and antonyms
    assert table.about["synonyms"] == ["WordNet 3.0"]
    assert table.about["vectors"] == "tiny.txt"
    shown = CliRunner().invoke(command, ["info", str(out), "--word", "film", "--word", "table"], catch_exceptions=False)
    assert "sha256" in shown.output
    assert "film\n    movie 1.00  actor 0.98" in shown.output
    assert "not in the table" in shown.output


def test_constraints_of_the_user_replace_wordnet_s_and_the_same_input_gives_the_same_bytes(
    tmp_path: Path, tiny: Path
) -> None:
    (tmp_path / "s.txt").write_text("film actor\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("film movie\n", encoding="utf-8")
    arguments = ["--vectors", str(tiny), "--synonyms", str(tmp_path / "s.txt"), "--antonyms", str(tmp_path / "a.txt")]
    for name in ("one.npz", "two.npz"):
        CliRunner().invoke(command, ["build", str(tmp_path / name), *arguments], catch_exceptions=False)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    table = read_neighbours(tmp_path / "one.npz")
    assert [near.word for near in table.neighbours("film", count=1)] == ["actor"]
    assert (table.cosine("good", "bad") or 0) > 0.9


def test_vectors_counter_fitted_by_others_are_read_as_they_are(tiny: Path) -> None:
    assert [near.word for near in read_neighbours(tiny).neighbours("good", count=1)] == ["bad"]


def test_a_written_table_keeps_every_cosine_within_a_hundredth_and_a_half(tmp_path: Path) -> None:
    matrix = normalised(np.random.default_rng(0).normal(size=(60, 50)).astype(np.float32))
    words = tuple(f"w{i}" for i in range(60))
    write_neighbours(WordVectors(words, matrix), tmp_path / "t.npz", {"vectors": "none"})
    table, exact = read_neighbours(tmp_path / "t.npz"), matrix @ matrix.T
    assert (
        max(abs((table.cosine(a, b) or 0) - exact[i, j]) for i, a in enumerate(words) for j, b in enumerate(words))
        < 0.015
    )


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 cut"])
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(DataError, match="no neighbour table"):
        read_neighbours(tmp_path / "t.npz")


def test_a_damaged_or_missing_table_is_refused(tmp_path: Path) -> None:
    words, about = np.frombuffer(b"a\nb", dtype=np.uint8), np.frombuffer(b"{}", dtype=np.uint8)
    np.savez(tmp_path / "t.npz", words=words, about=about, matrix=np.zeros((2, 3), dtype=np.int8))
    with pytest.raises(DataError, match=r"damaged: 2 words, but vectors of shape \(2, 3\)"):
        read_neighbours(tmp_path / "t.npz")
    with pytest.raises(DataError, match="make one with stockade lexicon build"):
        read_neighbours(tmp_path / "nowhere.npz")


def test_options_that_cannot_work_are_refused_before_any_work(tmp_path: Path, tiny: Path) -> None:
    with pytest.raises(OptionError, match="--words 1 or more"):
        Recipe(vectors=tiny, words=0).build()
    for out, message in ((tmp_path / "t.txt", r"give t\.npz"), (tmp_path / "no" / "t.npz", "There is no folder")):
        with pytest.raises(OptionError, match=message):
            CliRunner().invoke(command, ["build", str(out), "--vectors", str(tiny)], catch_exceptions=False)


def test_a_table_in_use_is_what_attacks_load_and_the_built_in_one_returns_afterwards(tiny: Path) -> None:
    built_in, table = load_neighbours(), read_neighbours(tiny)
    with use_neighbours(table):
        assert load_neighbours() is table
        with use_neighbours(None):
            assert load_neighbours() is built_in
        with pytest.raises(KeyError), use_neighbours(built_in):
            raise KeyError
        assert load_neighbours() is table
    assert load_neighbours() is built_in


def test_the_fingerprint_tells_tables_apart_and_not_files(tmp_path: Path, tiny: Path) -> None:
    table = read_neighbours(tiny)
    same = tmp_path / "same.vec"
    same.write_text("6 3\n" + tiny.read_text(encoding="utf-8"), encoding="utf-8")
    assert read_neighbours(same).fingerprint() == table.fingerprint()
    for old, new in (("movie", "cinema"), ("0.2 1", "0.9 1")):
        tiny.write_text(same.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        assert read_neighbours(tiny).fingerprint() != table.fingerprint()
