"""What a search may choose from: ranges from text, the values drawn from them, and what is searched by default."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import pytest

from stockade.core.errors import OptionError
from stockade.defenses.registry import defenses, make_defense
from stockade.workflows.tune.ranges import (
    RANGES,
    Choices,
    Numbers,
    Range,
    default_ranges,
    draw_options,
    guessed_ranges,
    read_ranges,
)
from stockade.workflows.tune.trials import reference
from tests.workflows.tune.options import Options


def test_ranges_as_text() -> None:
    ranges = read_ranges(
        ["rate=0.1..0.9", "copies=10..20", "how=b|a", "loud=true", "curriculum=0.1|none", "large=0.1..10 log"],
        "toy",
        Options,
    )
    assert ranges == {
        "rate": Numbers(0.1, 0.9),
        "copies": Numbers(10, 20, whole=True),
        "how": Choices(("b", "a")),
        "loud": Choices((True,)),
        "curriculum": Choices((0.1, None)),
        "large": Numbers(0.1, 10, logarithmic=True),
    }
    assert str(ranges["rate"]) == "0.1..0.9"
    assert str(ranges["large"]) == "0.1..10 log"
    assert str(ranges["how"]) == "b|a"


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("rate", "is no range"),
        ("rate=", "is no range"),
        ("speed=1..2", 'no option of toy "speed"'),
        ("rate=0.9..0.1", "is empty"),
        ("rate=0.5..0.5", "is empty"),
        ("large=0..5 log", "lower end must be above 0"),
        ("how=a..b", "is no number"),
        ("how=c", "option how of toy cannot be 'c'"),
        ("copies=1..much", "option copies of toy cannot be 'much'"),
    ],
)
def test_bad_ranges(written: str, sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        read_ranges([written], "toy", Options)


def test_draws_stay_inside_and_reach_both_ends() -> None:
    rng = Random(0)
    whole = [Numbers(2, 5, whole=True).draw(rng) for _ in range(200)]
    assert set(whole) == {2, 3, 4, 5}
    logs = [Numbers(1, 100, whole=True, logarithmic=True).draw(rng) for _ in range(400)]
    assert all(isinstance(value, int) and 1 <= value <= 100 for value in logs)
    assert 0.4 < sum(value <= 10 for value in logs) / 400 < 0.6, "half of the draws lie in each power of ten"  # type: ignore[operator]
    shares = [Numbers(0.1, 0.9).draw(rng) for _ in range(200)]
    assert all(0.1 <= value <= 0.9 for value in shares)  # type: ignore[operator]
    assert len(set(shares)) > 100


def test_the_order_of_the_ranges_does_not_matter() -> None:
    space = {"b": Numbers(0.0, 1.0), "a": Numbers(0.0, 1.0)}
    assert draw_options(space, Random(1)) == draw_options(dict(reversed(space.items())), Random(1))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("large", Numbers(0.1234567, 10.00000001, logarithmic=True)),
        ("copies", Numbers(3, 1_234_567, whole=True)),
        ("curriculum", Choices((0.1, None))),
        ("loud", Choices((False, True))),
    ],
)
def test_a_range_comes_back_from_its_text(name: str, values: Range) -> None:
    assert read_ranges([f"{name}={values}"], "toy", Options) == {name: values}


def test_a_defense_that_is_not_listed_is_searched_by_the_types_of_its_options() -> None:
    assert guessed_ranges(Options) == {
        "rate": Numbers(0.05, 0.95),
        "copies": Numbers(25, 400, whole=True, logarithmic=True),
        "how": Choices(("a", "b")),
        "loud": Choices((False, True)),
    }
    assert set(default_ranges("of-somebody", Options, {"rate": 0.2, "how": "b"})) == {"copies", "loud"}


def test_five_is_searched_as_its_authors_did() -> None:
    five = RANGES["five"]
    assert five["deviation"] == Numbers(0.1, 10, logarithmic=True)
    assert (str(five["samples"]), str(five["tokens"])) == ("3..14", "1..19")
    assert set(default_ranges("five", Options, {"samples": 8})) == {"deviation", "tokens", "combine"}


def test_every_defense_that_answers_is_listed() -> None:
    answering = {name for name, entry in defenses().items() if hasattr(entry.implementation, "answer")}
    assert set(RANGES) == {*answering, "fact"}


def test_fact_is_searched_where_its_authors_searched() -> None:
    """On MNLI 4 to 9 words and a multiplier of 5 to 15, on IMDB 10 to 25 words; 4 to 7 alternatives."""
    written = {name: str(values) for name, values in RANGES["fact"].items()}
    assert written == {"perturb_words": "4..25", "multiplier": "5..15", "total_alternatives": "4..7"}


@pytest.mark.parametrize("name", sorted(RANGES))
def test_listed_ranges_hold_the_default_and_only_what_the_defense_accepts(name: str) -> None:
    made = make_defense(name)
    names = {field.name for field in fields(made.defense)}
    for option, values in RANGES[name].items():
        assert option in names
        assert option not in {"draws", "stop_words", "seed", "mask", "key"}
        for value in values.ends:
            assert make_defense(reference(name, "paper", {option: value})).options[option] == value
        default = made.options[option]
        assert values.low <= default <= values.high if isinstance(values, Numbers) else default in values.values
