"""PMI of the paper's Table 6 from counts, saliences by hand, and what the two variants make of absent words."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from stockade.core.errors import DataError, OptionError
from stockade.core.text import Text
from stockade.lexicon.association import WordCounts, count_words, pmi_rules
from stockade.lexicon.rules import RuleSet

OFFSET = 6.478
TABLE_6 = {
    # word: texts of the class positive, of the class negative, tokens
    "average": (15, 9, 25),
    "mediocre": (1, 20, 21),
    "glorious": (9, 0, 9),
    "giddy": (3, 1, 4),
    "woozy": (0, 1, 1),
    "brilliant": (25, 6, 31),
    "brainy": (0, 2, 2),
    "toilet": (0, 3, 3),
    "bathroom": (2, 0, 2),
    "excellent": (21, 8, 29),
    "splendid": (4, 0, 4),
    "bizarre": (7, 7, 14),
    "outlandish": (2, 0, 2),
    "excruciating": (0, 5, 5),
    "harrowing": (6, 1, 7),
    "routine": (1, 18, 19),
    "everyday": (5, 0, 5),
}


def counts_with(offset: float = OFFSET) -> WordCounts:
    """Two classes of 5,000 texts, and as many tokens as give a word of one class only that PMI."""
    tokens = round(2**offset * 10_000 / 4)
    return WordCounts(
        {
            "positive": {word: positive for word, (positive, _, _) in TABLE_6.items() if positive},
            "negative": {word: negative for word, (_, negative, _) in TABLE_6.items() if negative},
        },
        {word: tokens for word, (_, _, tokens) in TABLE_6.items()},
        {"positive": 5_000, "negative": 5_000},
        tokens,
    )


@pytest.mark.parametrize(
    ("word", "positive", "negative"),
    [
        ("average", 5.741, 5.004),
        ("mediocre", 2.086, 6.408),
        ("glorious", 6.478, 0.0),
        ("splendiferous", 0.0, 0.0),
        ("giddy", 6.063, 4.478),
        ("woozy", 0.0, 6.478),
        ("brilliant", 6.168, 4.109),
        ("toilet", 0.0, 6.478),
        ("excellent", 6.013, 4.620),
        ("bizarre", 5.478, 5.478),
        ("excruciating", 0.0, 6.478),
        ("harrowing", 6.256, 3.671),
        ("routine", 2.230, 6.400),
        ("everyday", 6.478, 0.0),
    ],
)
def test_pmi_of_table_6(word: str, positive: float, negative: float) -> None:
    counts = counts_with()
    assert counts.pmi(word, "positive") == pytest.approx(positive, abs=1e-3)
    assert counts.pmi(word.upper(), "negative") == pytest.approx(negative, abs=1e-3)


def test_salience_is_what_the_class_loses_and_the_others_gain() -> None:
    counts = counts_with()
    assert counts.salience("positive", "average", "mediocre") == pytest.approx(3.655 + 1.404, abs=2e-3)
    assert counts.salience("negative", "average", "mediocre") == pytest.approx(-3.655 - 1.404, abs=2e-3)
    assert counts.salience("negative", "toilet", "bathroom") == pytest.approx(2 * 6.478, abs=2e-3)


def test_the_offset_of_words_that_are_there_does_not_cancel() -> None:
    """Properly normalised, a word of one class has 1 bit. All PMI of words that are there then fall by 5.478 alike; if
    that cancelled, the order of the rules would stay.
    """
    published, normalised = counts_with(OFFSET), counts_with(1.0)
    there, absent = ("average", "mediocre"), ("glorious", "splendiferous")
    assert published.salience("positive", *there) < published.salience("positive", *absent)
    assert normalised.salience("positive", *there) > normalised.salience("positive", *absent)
    assert normalised.salience("positive", *there) == pytest.approx(published.salience("positive", *there), abs=1e-2)
    assert normalised.salience("positive", *absent) == pytest.approx(1.0, abs=1e-2)
    for rule in (there, absent):
        assert published.salience("positive", *rule, "pmi-smoothed") == normalised.salience(
            "positive", *rule, "pmi-smoothed"
        )


def test_the_smoothed_variant_by_hand() -> None:
    counts = counts_with()
    assert counts.smoothed("average", "positive", 1.0) == pytest.approx(math.log2(16 / 5_002))
    assert counts.smoothed("unheard-of", "positive", 1.0) == pytest.approx(math.log2(1 / 5_002))
    expected = math.log2(16 / 2) + math.log2(21 / 10)  # the sizes of the classes cancel
    assert counts.salience("positive", "average", "mediocre", "pmi-smoothed", 1.0) == pytest.approx(expected)


REVIEWS = [
    ("good", "A funny film, a funny film"),
    ("good", "The funny movie"),
    ("bad", "A laughable film"),
    ("bad", "A dull movie"),
]


def labelled() -> Iterator[tuple[str, Text]]:
    return ((label, Text.parse(text)) for label, text in REVIEWS)


def test_words_are_counted_by_text_and_by_token_in_one_pass() -> None:
    counts = count_words(labelled())
    assert counts.labels == ("bad", "good")
    assert counts.texts == {"good": 2, "bad": 2}
    assert counts.tokens == 6 + 3 + 3 + 3
    assert counts.term_frequency["funny"] == 3
    assert (counts.frequency("Funny", "good"), counts.frequency("funny", "bad")) == (2, 0)
    assert (counts.frequency("a", "good"), counts.frequency("a", "bad"), counts.term_frequency["a"]) == (1, 2, 4)
    assert counts.pmi("funny", "good") == pytest.approx(math.log2((2 / 2) * 15 / (3 * 0.5)))


def rule_of(rules: RuleSet, *key: str) -> tuple[float, int | None]:
    (rule,) = (rule for rule in rules.rules if rule.key == key)
    return rule.salience, rule.count


def test_rules_by_pmi_over_the_synonyms_of_the_same_part_of_speech() -> None:
    rules = pmi_rules(labelled(), provenance={"data": "reviews.csv"})
    funny, laughable = math.log2(10), math.log2((1 / 2) * 15 / (1 * 0.5))  # each in its own class only
    assert rule_of(rules, "good", "funny", "laughable") == (round(funny + laughable, 6), 3)
    assert rule_of(rules, "good", "funny", "comic") == (round(funny, 6), 3)
    assert all(rule.salience > 0 for rule in rules.rules)
    assert [rule.salience for rule in rules.rules] == sorted((rule.salience for rule in rules.rules), reverse=True)
    assert rules.labels == ("good",)  # of the class bad only "a" is in two texts, and has no synonym as an article
    assert rules.provenance == {
        "method": "pmi",
        "min_count": 2,
        "texts": {"bad": 2, "good": 2},
        "tokens": 15,
        "data": "reviews.csv",
    }


def test_places_count_where_the_word_has_the_part_of_speech_of_the_synonym() -> None:
    texts = [("good", "the film was long"), ("good", "a film"), ("good", "they film the long war"), ("bad", "a war")]
    rules = pmi_rules(((label, Text.parse(text)) for label, text in texts), min_count=1)
    assert rule_of(rules, "good", "film", "movie")[1] == 2
    assert rule_of(rules, "good", "film", "shoot")[1] == 1
    twice = pmi_rules(((label, Text.parse(text)) for label, text in texts), min_count=2)
    assert {rule.replacement for rule in twice.rules if rule.word == "film"} & {"movie", "shoot"} == {"movie"}


def test_rare_words_have_rules_when_that_is_wanted() -> None:
    rules = pmi_rules(labelled(), min_count=1, method="pmi-smoothed", smoothing=1.0)
    assert rule_of(rules, "bad", "laughable", "funny") == (1.0 + round(math.log2(3), 6), 1)
    assert rules.provenance["smoothing"] == 1.0
    assert {rule.label for rule in rules.rules} == {"good", "bad"}


def test_what_cannot_give_rules_is_refused() -> None:
    with pytest.raises(DataError, match=r"need texts of at least two classes \(found: good\)"):
        pmi_rules([("good", Text.parse("a film"))])
    with pytest.raises(OptionError, match=r'no word counts "mi" \(found: pmi, pmi-smoothed\)'):
        pmi_rules(labelled(), method="mi")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="The smoothing is 0, expected a number above 0"):
        pmi_rules(labelled(), method="pmi-smoothed", smoothing=0.0)
    with pytest.raises(OptionError, match="min_count is 0, expected at least 1"):
        pmi_rules(labelled(), min_count=0)
