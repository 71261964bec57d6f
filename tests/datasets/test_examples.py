"""Examples: checked, aligned, sampled fairly and the same every time."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.core.errors import DataError, OptionError
from stockade.core.example import Example
from stockade.core.text import Text
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.datasets.source import Row

LABELS = ("negative", "positive")


def numbered(count: int) -> list[tuple[str, int]]:
    """Sorted by label, as many files are."""
    return [(f"film number {number}", int(number >= count // 2)) for number in range(count)]


def test_all_rows_become_examples_of_the_models_classes() -> None:
    examples = prepare_examples(load_data([("a fine film", "pos"), ("a dull film", "neg")]), LABELS)
    assert (
        list(examples)
        == list(examples)
        == [
            Example("0", Text.parse("a fine film"), 1),
            Example("1", Text.parse("a dull film"), 0),
        ]
    )
    assert (examples.size, len(examples), examples.total, examples.ids) == (2, 2, 2, None)
    assert examples.labels == LABELS
    assert examples.label_counts == {"negative": 1, "positive": 1}
    assert examples.target is None


def test_pairs_keep_their_premise_beside_the_text() -> None:
    data = [(("A man sleeps.", "A man is awake."), "contradiction")]
    (example,) = prepare_examples(load_data(data), ("entailment", "contradiction"))
    assert example.text.input == ("A man sleeps.", "A man is awake.")
    assert example.label == 1


def test_a_sample_of_a_sorted_file_has_both_classes_and_stays_in_order() -> None:
    examples = prepare_examples(load_data(numbered(1000)), LABELS, limit=100)
    ids = [example.id for example in examples]
    assert examples.ids == tuple(ids)
    assert ids == sorted(ids, key=int)
    assert len(set(ids)) == examples.size == 100
    assert examples.total == 1000
    assert examples.label_counts == {
        "negative": sum(example.label == 0 for example in examples),
        "positive": sum(example.label == 1 for example in examples),
    }
    assert min(examples.label_counts.values()) > 30  # 50 expected, 30 is five standard deviations away


@settings(max_examples=50)
@given(st.integers(1, 60), st.integers(1, 70), st.integers(1, 70), st.integers())
def test_a_sample_repeats_and_is_part_of_every_larger_one(count: int, limit: int, other_limit: int, seed: int) -> None:
    source = load_data(numbered(count))
    small, large = sorted((limit, other_limit))
    ids = [example.id for example in prepare_examples(source, LABELS, limit=small, seed=seed)]
    assert ids == [
        example.id for example in prepare_examples(load_data(numbered(count)), LABELS, limit=small, seed=seed)
    ]
    assert len(ids) == min(small, count)
    assert set(ids) <= {example.id for example in prepare_examples(source, LABELS, limit=large, seed=seed)}


def test_another_seed_is_another_sample() -> None:
    source = load_data(numbered(1000))
    samples = {prepare_examples(source, LABELS, limit=20, seed=seed).ids for seed in range(20)}
    assert len(samples) == 20


def test_every_row_has_the_same_chance() -> None:
    source, chosen = load_data(numbered(10)), [0] * 10
    for seed in range(1000):
        for row_id in prepare_examples(source, LABELS, limit=3, seed=seed).ids or ():
            chosen[int(row_id)] += 1
    assert sum(chosen) == 3000
    assert all(abs(count - 300) < 75 for count in chosen)  # standard deviation 14.5: five of them


def test_the_sample_is_the_rows_with_the_smallest_hashes() -> None:
    def priority(number: int) -> bytes:
        return blake2b(f"sample 7 {number}".encode(), digest_size=8).digest()

    smallest = sorted(sorted(range(1000), key=priority)[:50])
    ids = prepare_examples(load_data(numbered(1000)), LABELS, limit=50, seed=7).ids
    assert ids == tuple(map(str, smallest))


def test_a_limit_above_the_number_of_rows_takes_all_of_them() -> None:
    examples = prepare_examples(load_data(numbered(3)), LABELS, limit=10)
    assert (examples.size, examples.total, examples.ids) == (3, 3, None)
    assert prepare_examples(load_data(numbered(3)), LABELS, limit=3).ids is None


@pytest.mark.parametrize("limit", [0, -1, True, 2.5])
def test_a_limit_below_one_is_an_option_error(limit: int) -> None:
    with pytest.raises(OptionError, match=r"^--limit is .*, expected a whole number of examples from 1 up"):
        prepare_examples(load_data(numbered(3)), LABELS, limit=limit)


def test_a_target_is_given_to_every_example_and_must_be_a_class() -> None:
    examples = prepare_examples(load_data(numbered(4)), LABELS, target=1)
    assert examples.target == 1
    assert {example.target for example in examples} == {1}
    with pytest.raises(
        OptionError, match=r"^The target is class 2, expected a number from 0 to 1 \(negative, positive\)"
    ):
        prepare_examples(load_data(numbered(4)), LABELS, target=2)


def test_rows_outside_the_sample_are_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\n" + "a film,1\n" * 500 + "a film,mixed\n")
    with pytest.raises(DataError, match=r'^reviews\.csv has the label "mixed" \(first in row 500, counted from 0\)'):
        prepare_examples(load_data(path), LABELS, limit=1)


def test_a_label_column_that_holds_no_classes_is_found_out_early() -> None:
    data = [("a film", f"label {number}") for number in range(10_001)]
    with pytest.raises(DataError, match=r"has more than 10,000 different labels .* --label-column\.$"):
        prepare_examples(load_data(data), LABELS)


def test_data_that_changes_under_the_examples_is_an_error_not_a_wrong_row() -> None:
    data = numbered(4)
    examples = prepare_examples(load_data(data), LABELS)
    data.pop()
    with pytest.raises(DataError, match=r"^the list has changed since it was checked \(found: 3 of 4 examples\)"):
        list(examples)


@dataclass(frozen=True)
class OwnSource:
    """A source of a user's own making."""

    ids: tuple[str, ...]
    name: str = "mine"
    label_names: tuple[str, ...] | None = None

    def rows(self) -> Iterator[Row]:
        return (Row(row_id, "a film", None, 0) for row_id in self.ids)

    def fingerprint(self) -> str:
        return "mine"


def test_a_source_of_ones_own_is_taken_as_it_is() -> None:
    source = OwnSource(("x", "y", "z"))
    assert load_data(source) is source
    assert [example.id for example in prepare_examples(source, LABELS)] == ["x", "y", "z"]


@pytest.mark.parametrize("ids", [("x", "x"), ("0", "1", "0"), ("0", "2", "2"), ("0", "2", "1", "0")])
def test_two_rows_of_one_id_are_refused(ids: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match=r"^mine has two rows with the id"):
        prepare_examples(OwnSource(ids), LABELS)


def test_a_source_without_rows_is_refused() -> None:
    with pytest.raises(DataError, match=r"^mine has no rows"):
        prepare_examples(OwnSource(()), LABELS)


def test_a_source_can_be_sent_to_another_process(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\na film,1\n")
    source = load_data(path)
    assert list(pickle.loads(pickle.dumps(source)).rows()) == list(source.rows())


def test_a_targeted_set_leaves_out_what_has_the_target_already() -> None:
    source = load_data([("good", 1), ("bad", 0), ("fine", 1)])
    examples = prepare_examples(source, ("negative", "positive"), target=1)
    assert [(example.id, example.target) for example in examples] == [("1", 1)]
    assert (examples.size, examples.total) == (1, 3)
    with pytest.raises(DataError, match="target class positive already"):
        prepare_examples(load_data([("good", 1)]), ("negative", "positive"), target=1)
