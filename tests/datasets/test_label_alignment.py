"""The data's labels and the model's classes: matched by name, by number where there are no names, never guessed."""

from __future__ import annotations

import pytest

from stockade.core.errors import DataError, OptionError
from stockade.datasets.labels import align_labels

SENTIMENT = ("negative", "positive")
GENERIC = ("LABEL_0", "LABEL_1")
NLI = ("contradiction", "neutral", "entailment")


def test_strings_match_names_whatever_their_spelling() -> None:
    assert align_labels(["Positive", " NEGATIVE"], None, SENTIMENT, None) == {"Positive": 1, " NEGATIVE": 0}
    assert align_labels(["neg", "pos"], None, SENTIMENT, None) == {"neg": 0, "pos": 1}
    assert align_labels(["negative", "positive"], None, ("POS", "NEG"), None) == {"negative": 1, "positive": 0}
    assert align_labels(["not_entailment"], None, ("entailment", "Not Entailment"), None) == {"not_entailment": 1}
    assert align_labels(["ham", "spam"], None, ("spam", "not spam"), None) == {"ham": 1, "spam": 0}


def test_strings_match_the_letter_before_the_spelling() -> None:
    assert align_labels(["us", "US"], None, ("US", "us"), None) == {"us": 1, "US": 0}
    with pytest.raises(DataError, match='the label "Us"'):
        align_labels(["Us"], None, ("US", "us"), None)


def test_numbers_without_names_are_the_classes_of_those_numbers() -> None:
    assert align_labels([1, 0], None, SENTIMENT, None) == {1: 1, 0: 0}
    assert align_labels([1], None, SENTIMENT, None) == {1: 1}
    assert align_labels([1, 2], None, NLI, None) == {1: 1, 2: 2}


def test_numbers_with_names_are_matched_by_name_not_by_number() -> None:
    names = ("entailment", "neutral", "contradiction")
    assert align_labels([0, 1, 2], names, NLI, None) == {0: 2, 1: 1, 2: 0}
    assert align_labels([0, 1], ("neg", "pos"), ("POSITIVE", "NEGATIVE"), None) == {0: 1, 1: 0}


def test_named_numbers_are_taken_as_numbers_only_by_a_model_without_names() -> None:
    assert align_labels([0, 1], ("neg", "pos"), GENERIC, None) == {0: 0, 1: 1}
    assert align_labels([0, 1], ("1", "0"), ("0", "1"), None) == {0: 1, 1: 0}
    assert align_labels([0, 1], ("1", "2"), ("0", "1"), None) == {0: 0, 1: 1}
    with pytest.raises(DataError, match=r"calls its labels neg, pos, the model has LABEL_0, LABEL_1, LABEL_2"):
        align_labels([0, 1], ("neg", "pos"), (*GENERIC, "LABEL_2"), None)
    with pytest.raises(DataError, match=r"calls its labels World, Sports, the model has negative, positive"):
        align_labels([0, 1], ("World", "Sports"), SENTIMENT, None)


def test_stars_from_1_match_classes_named_from_1() -> None:
    assert align_labels([1, 5], None, ("1", "2", "3", "4", "5"), None) == {1: 0, 5: 4}
    with pytest.raises(DataError, match=r"has the label 0"):
        align_labels([0], None, ("1", "2", "3", "4", "5"), None)


def test_numbers_from_1_are_never_shifted_in_silence() -> None:
    with pytest.raises(DataError) as caught:
        align_labels([2, 1], None, SENTIMENT, None, data_name="news.csv")
    assert str(caught.value) == (
        "news.csv numbers its labels from 1 to 2, expected numbers from 0 for the classes of the model "
        "(negative, positive, numbered from 0 to 1). "
        "Say which is which with --label-map 1=negative --label-map 2=positive."
    )


def test_strings_and_a_model_without_names_need_a_map() -> None:
    with pytest.raises(DataError) as caught:
        align_labels(["spam", "ham"], None, GENERIC, None, data_name="sms.csv")
    assert str(caught.value) == (
        "sms.csv has the labels ham, spam, the model has LABEL_0, LABEL_1, and those names cannot be matched. "
        "Say which is which with --label-map ham=0 --label-map spam=1."
    )
    assert align_labels(["spam", "ham"], None, GENERIC, {"spam": "1", "ham": "0"}) == {"spam": 1, "ham": 0}
    assert align_labels(["LABEL_1"], None, GENERIC, None) == {"LABEL_1": 1}


def test_an_unknown_label_is_named_with_its_first_row() -> None:
    with pytest.raises(DataError) as caught:
        align_labels(["pos", "mixed"], None, SENTIMENT, None, data_name="r.csv", first_rows={"pos": "0", "mixed": "17"})
    assert str(caught.value) == (
        'r.csv has the label "mixed" (first in row 17, counted from 0), which is no class of the model '
        "(found: negative, positive). Say what it means with --label-map mixed=CLASS."
    )
    with pytest.raises(DataError, match=r"has the label 7 \(first in row 3, counted from 0\), expected a class"):
        align_labels([0, 7], None, SENTIMENT, None, first_rows={7: "3"})


def test_minus_one_is_explained() -> None:
    with pytest.raises(DataError, match=r"has the label -1.*-1 often marks rows without a label: choose another split"):
        align_labels([-1], ("neg", "pos"), SENTIMENT, None)
    with pytest.raises(DataError, match=r"--label-map -1=CLASS"):
        align_labels([-1, 1], None, SENTIMENT, None)
    assert align_labels([-1, 1], None, SENTIMENT, {"-1": "negative", "1": "positive"}) == {-1: 0, 1: 1}


def test_a_map_wins_over_every_other_rule_and_leaves_other_labels_to_them() -> None:
    assert align_labels([0, 1], None, SENTIMENT, {"0": "positive"}) == {0: 1, 1: 1}
    assert align_labels([1, 2], None, SENTIMENT, {"1": "neg", "2": "pos"}) == {1: 0, 2: 1}
    assert align_labels([0, 1], ("bad", "good"), SENTIMENT, {"Bad": "negative", "good": "1"}) == {0: 0, 1: 1}
    assert align_labels(["pos"], None, SENTIMENT, {"unused": "negative"}) == {"pos": 1}


@pytest.mark.parametrize("value", ["good", "2", "-1", ""])
def test_a_map_to_no_class_is_an_option_error(value: str) -> None:
    with pytest.raises(OptionError, match=r"names no class of the model \(found: negative, positive\)"):
        align_labels(["x"], None, SENTIMENT, {"x": value})
