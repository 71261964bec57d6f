"""Whether a text fools a randomised model at least half of the time: the sequential test, exactly and by simulation."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.attacks.repeatability import ERROR, LEAD, MOST_DRAWS, Repetition, Tally, not_fooled, repeat
from stockade.core.example import Example, Scores
from stockade.core.text import Text
from stockade.engine.requests import Confirm

EXAMPLE = Example("0", Text.parse("a great film"), label=1)
RIGHT, WRONG = Scores((0.2, 0.8)), Scores((0.7, 0.3))


def exactly(chance: float) -> tuple[float, float]:
    """How often a text that fools with this chance counts, and the mean number of draws: every walk, one by one."""
    walks, accepted, mean = {Tally(): 1.0}, 0.0, 0.0
    while walks:
        after: dict[Tally, float] = defaultdict(float)
        for tally, weight in walks.items():
            for hit, part in ((1, chance), (0, 1 - chance)):
                after[tally.add(hit, 1)] += weight * part
        walks = {}
        for tally, weight in after.items():
            if tally.needed:
                walks[tally] = weight
            else:
                accepted += weight * tally.repeatable
                mean += weight * tally.draws
    return accepted, mean


@pytest.mark.parametrize(
    ("chance", "counts", "draws"),
    [
        (0.0, 0.0, 8.0),
        (0.3, 0.0011, 20.0),
        (0.4, 0.0377, 37.0),
        (0.45, 0.1702, 52.8),
        (0.5, 0.5026, 62.6),
        (0.55, 0.8317, 52.8),
        (0.6, 0.9624, 37.0),
        (0.7, 0.9989, 20.0),
        (1.0, 1.0, 8.0),
    ],
)
def test_how_often_a_text_counts_and_how_many_draws_that_takes(chance: float, counts: float, draws: float) -> None:
    """Without an end at 200 draws it is the gambler's ruin: 1 / (1 + (q / p)^8), which the end hardly changes. At least
    half of 20 draws counted a text with chance .4 24 % of the time.
    """
    accepted, mean = exactly(chance)
    assert accepted == pytest.approx(counts, abs=5e-4)
    assert mean == pytest.approx(draws, abs=0.5)
    if 0 < chance < 1:
        assert accepted == pytest.approx(1 / (1 + ((1 - chance) / chance) ** LEAD), abs=0.02)


def test_the_errors_are_as_stated() -> None:
    assert (LEAD, ERROR, MOST_DRAWS) == (8, 0.05, 200)
    assert exactly(0.4)[0] <= ERROR
    assert 1 - exactly(0.6)[0] <= ERROR


@pytest.mark.parametrize("chance", [0.3, 0.4, 0.45, 0.55, 0.6, 0.7])
def test_a_model_that_is_asked_in_groups_is_decided_as_often(chance: float) -> None:
    """2,000 texts that fool with a chance: the share that counts is within four standard errors of the exact one."""
    rng, texts = Random(repr(chance)), 2000
    repetitions = [asked(lambda: rng.random() < chance)[0] for _ in range(texts)]
    expected, mean = exactly(chance)
    share = sum(repetition.tally.repeatable for repetition in repetitions) / texts
    assert share == pytest.approx(expected, abs=4 * (expected * (1 - expected) / texts) ** 0.5 + 1e-9)
    assert sum(repetition.tally.draws for repetition in repetitions) / texts == pytest.approx(mean, rel=0.08)


def asked(fools: object) -> tuple[Repetition, list[int]]:
    """The repetition of a text, by a model that is fooled as the function says, and the groups it was asked in."""
    coroutine, groups, answer = repeat(EXAMPLE, EXAMPLE.text), list[int](), None
    try:
        while True:
            request = coroutine.send(answer)
            assert isinstance(request, Confirm)
            groups.append(request.draws)
            answer = [WRONG if fools() else RIGHT for _ in range(request.draws)]  # type: ignore[operator]
    except StopIteration as finished:
        return finished.value, groups


@given(st.integers(0, 2**32))
def test_groups_ask_for_no_draw_in_vain(seed: int) -> None:
    """One draw after the other would end where the groups end."""
    rng = Random(seed)
    flips = [rng.random() < rng.choice((0.3, 0.5, 0.7)) for _ in range(MOST_DRAWS)]
    draws = iter(flips)
    repetition, groups = asked(lambda: next(draws))
    assert sum(groups) == repetition.tally.draws == len(repetition.answers)
    one_by_one = Tally()
    for flip in flips:
        if not one_by_one.needed:
            break
        one_by_one = one_by_one.add(int(flip), 1)
    assert one_by_one == repetition.tally


def test_after_two_hundred_draws_the_majority_decides_and_a_tie_is_half() -> None:
    hit = iter([True, False] * 100)
    repetition, _ = asked(lambda: next(hit))
    assert (repetition.tally, repetition.tally.repeatable) == (Tally(100, 200), True)
    hit = iter([False, False, *[True, False] * 99])
    repetition, _ = asked(lambda: next(hit))
    assert (repetition.tally, repetition.tally.repeatable) == (Tally(99, 200), False)
    assert repetition.hit_rate == 0.495


def test_a_search_is_shown_the_mean_of_the_answers() -> None:
    repetition = Repetition(EXAMPLE.text, [RIGHT, RIGHT, RIGHT, WRONG], Tally(1, 4))
    assert not_fooled(EXAMPLE, repetition).probabilities == pytest.approx((0.325, 0.675))


def test_where_the_mean_would_fool_it_is_shown_the_nearest_answer_that_does_not() -> None:
    """Right three times in four, but barely; wrong with certainty: the mean says the wrong class."""
    barely, more, sure = Scores((0.49, 0.51)), Scores((0.4, 0.6)), Scores((1.0, 0.0))
    repetition = Repetition(EXAMPLE.text, [more, barely, more, sure], Tally(1, 4))
    assert EXAMPLE.fooled(Scores((0.5725, 0.4275))), "the mean"
    assert not_fooled(EXAMPLE, repetition) is barely
