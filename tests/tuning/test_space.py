"""Ranges from text, and the values drawn from them."""

from __future__ import annotations

from random import Random

import pytest

from stockade.core.errors import OptionError
from stockade.tuning.space import Choices, Numbers, draw_options, read_ranges
from tests.tuning.options import Options


def test_ranges_as_text() -> None:
    found = read_ranges(
        ["rate=0.1..0.9", "copies=10..20", "how=b|a", "loud=true", "curriculum=0.1|none", "large=0.1..10 log"],
        "toy",
        Options,
    )
    assert found == {
        "rate": Numbers(0.1, 0.9),
        "copies": Numbers(10, 20, whole=True),
        "how": Choices(("b", "a")),
        "loud": Choices((True,)),
        "curriculum": Choices((0.1, None)),
        "large": Numbers(0.1, 10, logarithmic=True),
    }
    assert str(found["rate"]) == "0.1..0.9"
    assert str(found["large"]) == "0.1..10 log"
    assert str(found["how"]) == "b|a"


@pytest.mark.parametrize(
    ("written", "said"),
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
def test_bad_ranges(written: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
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
