"""Lists, dictionaries, data frames, Arrow tables and the built-in reviews as data."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from stockade.core.errors import DataError, OptionError
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.datasets.source import Row

EXPECTED = [Row("0", "a fine film", None, 1), Row("1", "a dull film", None, 0)]
RECORDS = [{"id": 7, "text": "a fine film", "label": 1}, {"id": 8, "text": "a dull film", "label": 0}]


@pytest.mark.parametrize(
    "data",
    [
        [("a fine film", 1), ("a dull film", 0)],
        (["a fine film", "1"], ["a dull film", 0.0]),
        [("a fine film", True), (np.str_("a dull film"), np.int64(0))],
        RECORDS,
        pd.DataFrame(RECORDS),
        pd.DataFrame(RECORDS, index=[5, 5]),
        pd.DataFrame({"text": ["a fine film", "a dull film"], "label": pd.Series([1, 0], dtype="Int64")}),
        pa.Table.from_pylist(RECORDS),
    ],
    ids=["pairs", "tuple of lists", "numpy", "dictionaries", "frame", "frame index", "nullable frame", "arrow"],
)
def test_python_objects_give_the_same_rows_as_files(data: object) -> None:
    source = load_data(data)
    assert list(source.rows()) == list(source.rows()) == EXPECTED
    assert [type(row.label) for row in source.rows()] == [int, int]
    assert [type(row.text) for row in source.rows()] == [str, str]


def test_premise_and_hypothesis_are_a_tuple_or_columns() -> None:
    expected = [Row("0", "A man is awake.", "A man sleeps.", "no")]
    assert list(load_data([(("A man sleeps.", "A man is awake."), "no")]).rows()) == expected
    columns = {"premise": "A man sleeps.", "hypothesis": "A man is awake.", "label": "no"}
    assert list(load_data([columns]).rows()) == expected
    assert list(load_data(pd.DataFrame([columns])).rows()) == expected


def test_fingerprints_of_objects_follow_their_content() -> None:
    def fingerprint(*items: tuple[object, object]) -> str:
        return load_data(list(items)).fingerprint()

    assert fingerprint(("a", 1), ("b", 0)) == fingerprint(("a", 1), ("b", 0))
    different = {
        fingerprint(("a", 1), ("b", 0)),
        fingerprint(("b", 0), ("a", 1)),
        fingerprint(("a", 1), ("b", 1)),
        fingerprint(("a", "x"), ("b", 0)),
        fingerprint(("ab", 1), ("b", 0)),
        fingerprint((("a", "b"), 1)),
    }
    assert len(different) == 6


def test_missing_values_of_every_library_are_missing() -> None:
    for text in (None, math.nan, pd.NA, pd.NaT, "", " \n"):
        with pytest.raises(DataError, match=r'^the list row 1 \(counted from 0\) has no text in column "text"'):
            list(load_data([("a", 1), (text, 0)]).rows())
    for label in (None, math.nan, np.float64("nan"), pd.NA, ""):
        with pytest.raises(DataError, match=r'^the list row 1 \(counted from 0\) has no label in column "label"'):
            list(load_data([("a", 1), ("b", label)]).rows())
    with pytest.raises(DataError, match=r"^the DataFrame row 1 \(counted from 0\) has no text"):
        list(load_data(pd.DataFrame({"text": ["a", None], "label": [1, 0]})).rows())


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], "The list of data is empty"),
        (["a film", "a play"], 'the list row 0 (counted from 0) is "a film", expected (text, label)'),
        ([("a", "b", 1)], "expected (text, label), ((premise, hypothesis), label) or a dictionary of columns"),
        ([("a", 1), ("b",)], "the list row 1 (counted from 0) is ('b',), expected (text, label)"),
        ([("a", 1), (("b", "c"), 1)], "has (premise, hypothesis) where the first has a single text"),
        ([(("b", "c"), 1), ("a", 1)], "has a single text where the first has (premise, hypothesis)"),
        ([{"text": "a", "label": 1}, ("b", 1)], "the list row 1 (counted from 0) is ('b', 1), expected"),
        ([{"text": "a", "mood": "x", "id": 1}], 'the list has no column "label" (found: text, mood, id)'),
        (pd.DataFrame([["a b", "c d", 1]], columns=["text", "text", "label"]), 'has 2 columns named "text"'),
        (pd.DataFrame({"text": [], "label": []}), "the DataFrame has columns but no rows (found: text, label)"),
        (pa.table({"text": [], "label": []}), "the Table has columns but no rows"),
        (iter([("a", 1)]), "Wrap it in list(…): data is read more than once."),
        (3, "Data cannot be read from an object of type int, expected a path, hf:NAME[:SPLIT]"),
        (b"reviews.csv", "Data cannot be read from an object of type bytes"),
        ({"text": ["a"], "label": [1]}, "Data cannot be read from an object of type dict"),
        ("https://example.org/reviews.csv", "is an address, expected a path"),
        (" ", "The name of the data is empty, expected a path"),
        ("reviews", "The built-in data set is named builtin:reviews."),
    ],
)
def test_objects_that_are_no_data(data: object, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        list(load_data(data).rows())
    assert sentence in str(caught.value)


def test_frames_with_numbered_columns_can_be_named() -> None:
    frame = pd.DataFrame([["a fine film", 1]])
    assert list(load_data(frame, text_column="0", label_column="1").rows()) == EXPECTED[:1]


def test_the_built_in_reviews_are_the_test_split_unless_another_is_named() -> None:
    source = load_data("builtin:reviews")
    assert source.name == "builtin:reviews:test"
    assert source.label_names == ("negative", "positive")
    assert list(source.rows()) == list(load_data("builtin:reviews:test").rows())
    assert {row.label for row in source.rows()} == {0, 1}
    other = load_data("builtin:reviews:validation")
    assert other.fingerprint() != source.fingerprint()
    assert not {row.id for row in source.rows()} & {row.id for row in other.rows()}


def test_built_in_reviews_become_examples_by_name() -> None:
    examples = prepare_examples(load_data("builtin:reviews"), ("POS", "NEG"), limit=50)
    by_id = {row.id: row for row in load_data("builtin:reviews").rows()}
    assert all(example.label == 1 - int(by_id[example.id].label) for example in examples)


def test_unknown_built_in_names_and_columns_are_refused() -> None:
    with pytest.raises(OptionError, match=r'no built-in data set "review" .*Did you mean "reviews"\?'):
        load_data("builtin:review")
    with pytest.raises(OptionError, match=r'no split of builtin:reviews "tset" .*Did you mean "test"\?'):
        load_data("builtin:reviews:tset")
    with pytest.raises(OptionError, match=r"^builtin:reviews has no columns to choose from"):
        load_data("builtin:reviews", text_column="text")


def test_importing_the_loader_imports_nothing_heavy() -> None:
    code = (
        "import sys, stockade.datasets.load\n"
        "heavy = {'pyarrow', 'pandas', 'datasets', 'torch', 'transformers', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
