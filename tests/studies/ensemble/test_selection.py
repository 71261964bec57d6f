"""Searches for ensembles against fitness values by hand, brute force, and those of the published matrix."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from stockade.core.errors import OptionError
from stockade.models.zoo.names import POOL
from stockade.studies.ensemble import selection
from stockade.studies.ensemble.published import HUMAN, PUBLISHED
from stockade.studies.ensemble.selection import Choice, EnsembleSearch, GeneticOptions
from stockade.studies.transferability.matrix import TransferMatrix
from tests.studies.published import published_matrix

QUICK = GeneticOptions(population=20, generations=15)


def search(rates: list[list[float]], **options: list[str]) -> EnsembleSearch:
    """Sources a, b, c … in rows, targets in columns."""
    names = tuple("abcdefgh"[: len(rates)])
    targets = tuple(f"t{column}" for column in range(len(rates[0])))
    return EnsembleSearch(TransferMatrix(names, targets, np.array(rates)), **options)


def matrices() -> some.SearchStrategy[list[list[float]]]:
    shapes = some.tuples(some.integers(2, 6), some.integers(1, 4))
    return shapes.flatmap(
        lambda shape: some.lists(
            some.lists(some.floats(0, 1), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
        )
    )


def test_fitness_by_hand() -> None:
    found = search([[0.9, 0.0, 0.3], [0.2, 0.6, 0.3], [0.5, 0.5, 0.3]])
    assert found.choice(["a"]) == Choice(("a",), 0.4)
    assert found.choice(["b", "a"]) == Choice(("a", "b"), 0.6)  # (0.9 + 0.6 + 0.3) / 3
    assert [choice.members for choice in found.greedy(3)] == [("c",), ("a", "c"), ("a", "b", "c")]
    assert found.greedy(2)[-1].fitness == pytest.approx((0.9 + 0.5 + 0.3) / 3, abs=1e-6)
    assert found.exhaustive(2) == Choice(("a", "b"), 0.6)  # greedy took c first and cannot undo it
    with pytest.raises(OptionError, match="There is no source in this transfer matrix"):
        found.choice(["d"])
    for size in (0, 4):
        with pytest.raises(OptionError, match=f"There is no ensemble of {size} among 3 models"):
            found.greedy(size)


def test_what_was_not_measured_counts_as_nothing_and_candidates_can_be_few() -> None:
    found = search([[float("nan"), 0.4], [0.2, float("nan")], [0.9, 0.9]], candidates=["b", "a", "elsewhere"])
    assert found.names == ("a", "b")
    assert found.choice(["a", "b"]) == Choice(("a", "b"), 0.3)


@settings(deadline=None)
@given(matrices(), some.integers(0, 5))
def test_no_search_beats_brute_force_and_no_ensemble_exceeds_the_bound(rates: list[list[float]], seed: int) -> None:
    found = search(rates)
    for size in range(1, len(rates) + 1):
        best = max(found.choice(members).fitness for members in combinations(found.names, size))
        exhaustive = found.exhaustive(size)
        assert exhaustive is not None
        assert exhaustive.fitness == pytest.approx(best, abs=2e-6)
        greedy = found.greedy(size)[-1]
        guarantee = 1 - (1 - 1 / size) ** size
        assert best + 2e-6 >= greedy.fitness >= guarantee * best - 2e-6
        assert found.upper_bound(size) >= best - 2e-6
        genetic = found.genetic(size, QUICK, seed)
        assert genetic.fitness <= best + 2e-6
        assert len(set(genetic.members)) == size


@settings(deadline=None)
@given(matrices(), some.data())
def test_a_member_more_never_harms_and_adds_less_the_later_it_comes(
    rates: list[list[float]], data: some.DataObject
) -> None:
    found = search(rates)
    few = data.draw(some.lists(some.sampled_from(found.names), min_size=1, unique=True))
    many = list(dict.fromkeys([*few, *data.draw(some.lists(some.sampled_from(found.names)))]))
    added = data.draw(some.sampled_from(found.names))
    gains = [found.choice({*members, added}).fitness - found.choice(set(members)).fitness for members in (few, many)]
    assert gains[1] >= -2e-6
    assert gains[0] >= gains[1] - 4e-6


def test_the_genetic_search_is_seeded_and_finds_the_best_of_a_small_pool() -> None:
    rng = np.random.default_rng(3)
    found = search(rng.random((8, 5)).tolist())
    best = found.exhaustive(3)
    assert found.genetic(3, QUICK, seed=1) == found.genetic(3, QUICK, seed=1) == best
    assert found.genetic(8, QUICK).members == found.names
    nothing = search([[0.0], [0.0], [0.0]])
    assert nothing.genetic(2, QUICK).fitness == 0.0


def test_without_generations_it_is_the_best_of_random_ensembles() -> None:
    found = search(np.eye(6).tolist())
    untouched = found.genetic(2, GeneticOptions(population=3, generations=0))
    assert len(untouched.members) == 2
    assert untouched.fitness == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"mutation": 1.5}, "--mutation is 1.5, expected a probability"),
        ({"elitism": 100}, "--elitism is 100, expected"),
    ],
)
def test_options_that_cannot_be(options: dict[str, float], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        GeneticOptions(**options)  # type: ignore[arg-type]


def test_too_many_ensembles_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MOST_SUBSETS", 3)
    assert search([[0.1], [0.2], [0.3]]).exhaustive(2) is not None
    assert search([[0.1], [0.2], [0.3], [0.4]]).exhaustive(2) is None


def numbers(choice: Choice | None) -> list[int]:
    assert choice is not None
    names = [str(name) for name in POOL]
    return [names.index(member) + 1 for member in choice.members]


def test_fitness_on_the_published_matrix() -> None:
    """Values computed once from the paper's Figure 3, by another program."""
    found = EnsembleSearch(published_matrix())
    for size, members, fitness in ((1, [52], 0.4848), (2, [52, 60], 0.5570), (3, [52, 54, 62], 0.6059)):
        best = found.exhaustive(size)
        assert numbers(best) == members
        assert best is not None
        assert best.fitness == pytest.approx(fitness, abs=5e-5)
    greedy = found.greedy(7)
    assert greedy[2].fitness == pytest.approx(0.6048, abs=5e-5)
    assert numbers(greedy[6]) == sorted([52, 60, 62, 56, 38, 41, 61])
    assert greedy[6].fitness == pytest.approx(0.6515, abs=5e-5)
    assert found.choice(PUBLISHED["AG-PWWS"][7]).fitness == pytest.approx(0.6296, abs=5e-5)
    assert found.choice(PUBLISHED[HUMAN][6]).fitness == pytest.approx(0.4596, abs=5e-5)


def test_the_genetic_search_reaches_the_optimum_of_the_published_matrix_where_that_is_known() -> None:
    found = EnsembleSearch(published_matrix())
    for size in (2, 3):
        best, genetic = found.exhaustive(size), found.genetic(size, GeneticOptions())
        assert best is not None
        assert genetic.fitness >= best.fitness - 0.002


def test_every_published_ensemble_has_the_size_it_is_listed_under_and_models_of_the_pool() -> None:
    names = {str(name) for name in POOL}
    for lists in PUBLISHED.values():
        assert list(lists) == [2, 3, 4, 5, 6, 7]
        for size, members in lists.items():
            assert len(set(members)) == size
            assert set(members) <= names
