"""What is searched where no range was named."""

from __future__ import annotations

from dataclasses import fields

import pytest

from stockade.defenses.registry import defenses, make_defense
from stockade.tuning.ranges import RANGES, default_ranges, guessed_ranges
from stockade.tuning.space import Choices, Numbers
from stockade.tuning.trials import reference
from tests.tuning.options import Options


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
    assert set(RANGES) == {name for name, entry in defenses().items() if hasattr(entry.implementation, "answer")}


@pytest.mark.parametrize("name", sorted(RANGES))
def test_listed_ranges_hold_the_default_and_only_what_the_defense_accepts(name: str) -> None:
    made = make_defense(name)
    known = {field.name for field in fields(made.defense)}
    for option, one in RANGES[name].items():
        assert option in known
        assert option not in {"draws", "stop_words", "seed", "mask", "key"}
        for value in one.ends:
            found = make_defense(reference(name, "paper", {}, {option: value}))
            assert found.options[option] == value
        default = made.options[option]
        assert one.low <= default <= one.high if isinstance(one, Numbers) else default in one.values
