"""Which columns are read: by name, by content where names say nothing, and the sentence where neither decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.core.errors import DataError, OptionError
from stockade.datasets.columns import Columns, choose_columns
from stockade.datasets.load import load_data


def choose(header: str, *rows: str, **options: str) -> Columns:
    columns = [column.strip() for column in header.split(",")]
    cells = [row.split(",") for row in rows]
    return choose_columns(
        "reviews.csv",
        columns,
        lambda column: [row[columns.index(column)] for row in cells],
        has_header=True,
        text=options.get("text"),
        label=options.get("label"),
        premise=options.get("premise"),
    )


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("text,label", Columns("text", "label")),
        ("id,Sentence,LABEL", Columns("Sentence", "LABEL")),
        ("review,sentiment", Columns("review", "sentiment")),
        ("title,text,label,label_text", Columns("text", "label")),
        ("Class Index,Title,Description", Columns("Description", "Class Index")),
        ("id,comment_text,toxic,severe_toxic", Columns("comment_text", "toxic")),
        ("premise,hypothesis,label", Columns("hypothesis", "label", "premise")),
        ("gold_label,sentence1,sentence2,text", Columns("sentence2", "gold_label", "sentence1")),
        ("Sentence 1,Sentence 2,Label", Columns("Sentence 2", "Label", "Sentence 1")),
        ("question1,question2,is_duplicate,label", Columns("question2", "label", "question1")),
        ("question,sentence,label", Columns("sentence", "label", "question")),
        ("text_a,text_b,class", Columns("text_b", "class", "text_a")),
    ],
)
def test_known_names_are_found_in_the_documented_order(header: str, expected: Columns) -> None:
    assert choose(header) == expected


def test_columns_named_by_the_user_come_first() -> None:
    assert choose("text,title,label,stars", text="title", label="stars") == Columns("title", "stars")
    assert choose("Text,Stars,id", label="stars") == Columns("Text", "Stars")


def test_the_text_column_of_a_pair_is_the_hypothesis() -> None:
    header = "premise,hypothesis,label,genre"
    assert choose(header, text="hypothesis") == Columns("hypothesis", "label", "premise")
    assert choose(header, text="premise") == Columns("premise", "label")
    assert choose(header, text="hypothesis", premise="") == Columns("hypothesis", "label")
    assert choose(header, premise="premise") == Columns("hypothesis", "label", "premise")
    assert choose(header, premise="genre", text="hypothesis") == Columns("hypothesis", "label", "genre")
    assert choose("context,text,label", premise="context") == Columns("text", "label", "context")


def test_unknown_names_are_judged_by_content() -> None:
    rows = ("ham,see you at noon", "spam,win a prize now", "ham,how are you", "ham,at home now")
    assert choose("v1,v2", *rows) == Columns("v2", "v1")
    assert choose("number,v1,v2", *(f"{n},{row}" for n, row in enumerate(rows))) == Columns("v2", "v1")


def test_a_missing_label_column_is_named_with_what_was_found() -> None:
    with pytest.raises(DataError) as caught:
        choose("text,mood,id", "a film,good,1", "a play,bad,2", "a song,so so,3")
    assert str(caught.value) == (
        'reviews.csv has no column "label" (found: text, mood, id). Name it with --label-column NAME.'
    )


def test_a_wrong_column_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(DataError) as caught:
        choose("text,sentiment,id", label="sentimet")
    assert str(caught.value) == (
        'reviews.csv has no column "sentimet" (found: text, sentiment, id). Name it with --label-column sentiment.'
    )


def test_two_columns_of_texts_are_not_guessed_between() -> None:
    with pytest.raises(
        DataError, match=r'has no column "text" \(found: german, english, label\)\. .*--text-column german'
    ):
        choose("german,english,label", "ein film,a film,1", "ein stück,a play,0")


def test_one_column_cannot_be_two_things() -> None:
    with pytest.raises(OptionError, match=r'"text" of reviews\.csv is named for two different things'):
        choose("text,label", text="text", label="text")


@pytest.mark.parametrize(
    "lines",
    [
        ["I loved it,1", "I hated it,0"],
        ["great film,positive", "bad film,negative", "fine film,positive"],
        ["one of the best films that I have seen,good", "a waste of time,bad"],
    ],
)
def test_a_file_without_a_header_line_is_told_to_add_one(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"^reviews\.csv has no header line .* Add a first line such as: text,label$"):
        load_data(path)


def test_unnamed_columns_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "spam.csv"
    path.write_text("v1,v2,,\nham,see you at noon,,\nspam,win a prize now,,\nham,are you home,,\n")
    assert [(row.text, row.label) for row in load_data(path).rows()][:2] == [
        ("see you at noon", "ham"),
        ("win a prize now", "spam"),
    ]


def test_pairs_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "nli.tsv"
    path.write_text("premise\thypothesis\tlabel\nA man sleeps.\tA man is awake.\tcontradiction\n")
    (row,) = load_data(path).rows()
    assert (row.premise, row.text, row.label) == ("A man sleeps.", "A man is awake.", "contradiction")
    path.write_text("premise\thypothesis\tlabel\n\tA man is awake.\tcontradiction\n")
    with pytest.raises(DataError, match=r'^nli\.tsv row 0 \(line 2\) has no text in column "premise"'):
        list(load_data(path).rows())
