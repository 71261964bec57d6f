from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.example import Example, Scores
from stockade.core.seeds import derive_rng, derive_seed
from stockade.core.text import Text


def example(label: int, target: int | None = None) -> Example:
    return Example("0", Text.parse("a film"), label, target)


def test_an_untargeted_attack_wants_any_other_class() -> None:
    scores = Scores((0.2, 0.5, 0.3))
    assert example(0).fooled(scores)
    assert not example(1).fooled(scores)
    assert example(1).score(scores) == pytest.approx(0.5)


def test_a_targeted_attack_wants_its_target() -> None:
    scores = Scores((0.2, 0.5, 0.3))
    assert example(0, target=1).fooled(scores)
    assert not example(0, target=2).fooled(scores)
    assert example(0, target=2).score(scores) == pytest.approx(0.3)


def test_log_odds_keep_their_digits_near_one_and_never_overflow() -> None:
    assert Scores((0.25, 0.75)).log_odds(1) == round(math.log(3), 3)
    assert Scores((1e-12, 1 - 1e-12)).log_odds(1) == pytest.approx(27.631, abs=1e-3)
    assert Scores((0.0, 1.0)).log_odds(1) == 30.0
    assert Scores((0.0, 1.0)).log_odds(0) == -30.0


def test_ties_go_to_the_first_class() -> None:
    assert Scores((0.5, 0.5)).label == 0


@given(st.floats(0.01, 0.99), st.floats(-5e-7, 5e-7))
def test_noise_of_a_batch_rarely_changes_a_comparison(p: float, noise: float) -> None:
    a, b = Scores((1 - p, p)), Scores((1 - p - noise, p + noise))
    assert abs(a.log_odds(1) - b.log_odds(1)) <= 1e-3 + 1e-9


def test_seeds_depend_on_every_part_and_on_nothing_else() -> None:
    assert derive_seed(1, "a", "b") == derive_seed(1, "a", "b")
    assert (
        len({derive_seed(1, "ab", "c"), derive_seed(1, "a", "bc"), derive_seed(2, "ab", "c"), derive_seed("ab", "c")})
        == 4
    )
    assert derive_seed(0, "0", "pwws") == 8251222536687870345  # the same on every machine and in every version
    assert derive_rng(1, "x").random() == derive_rng(1, "x").random()
