"""The genetic attack: selection favours the strong, the best is never lost, changes stay within their share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.attacks.genetic import Genetic, Member, crossover, parent_chances
from stockade.attacks.registry import make_attack
from stockade.core.example import Example, Scores
from stockade.core.text import Text
from stockade.engine.requests import Score
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.lexicon.neighbours import Neighbours
from tests.attacks.driving import attack
from tests.toys import ListMaskedLM, WeightVictim


@dataclass(frozen=True)
class Near:
    word: str


class FakeNeighbours:
    def neighbours(self, word: str, *, count: int = 50, max_squared_distance: float | None = None) -> tuple[Near, ...]:
        return tuple(Near(f"{word}{letter}") for letter in "xyz") if word.startswith("w") else ()


@pytest.fixture(autouse=True)
def language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.attacks.genetic.load_neighbours", FakeNeighbours)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_parents_are_better_than_the_population_on_average(scores: list[float]) -> None:
    """The mean score of drawn parents is above the population's."""
    chances = parent_chances(scores, 0.3)
    assert sum(chances) == pytest.approx(1)
    drawn = sum(chance * score for chance, score in zip(chances, scores, strict=True))
    assert drawn >= sum(scores) / len(scores) - 1e-9


@given(st.integers(0, 1000), st.integers(1, 4))
def test_a_child_takes_each_word_from_a_parent_and_no_more_changes_than_allowed(seed: int, allowed: int) -> None:
    text = Text.parse("wa wb wc wd we wf")
    one = Member(text.replace_all({0: "wax", 1: "wbx", 2: "wcx"}), Scores((0.5, 0.5)))
    other = Member(text.replace_all({2: "wcy", 3: "wdy", 4: "wey"}), Scores((0.5, 0.5)))
    child = crossover(one, other, allowed, Random(seed))
    assert len(child.edits) <= allowed
    for word, original, a, b in zip(child.words, text.words, one.text.words, other.text.words, strict=True):
        assert word in (original, a, b)


def weights() -> dict[str, float]:
    """Seven words worth 1 each; the "z" neighbour of the first two is strongly negative, all others change nothing."""
    words = {f"w{letter}": 1.0 for letter in "abcdefg"}
    neutral = {f"{word}{end}": 1.0 for word in words for end in "xyz"}
    return {**words, **neutral, "waz": -4.0, "wbz": -4.0}


def test_it_finds_the_two_words_that_matter() -> None:
    small = Genetic(population=12, generations=12, max_changed=0.3)
    result = attack(WeightVictim(weights()), "wa wb wc wd we wf wg", small)
    assert result.trial.status == "success"
    assert {"waz", "wbz"} <= set(result.words)
    assert len(result.trial.text.edits) <= 2  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(5))
def test_with_elitism_the_best_score_never_falls(seed: int) -> None:
    """A search of g + 1 generations begins like one of g, so its best member is at least as good."""
    words, rng = [f"w{letter}" for letter in "abcdefgh"], Random(seed)
    changes = {f"{word}{end}": rng.uniform(-1, 0) for word in words for end in "xyz"}
    victim = WeightVictim(changes, bias=20.0)  # never fooled, so the search goes on to its last generation
    example = Example("0", Text.parse(" ".join(words)), label=1)
    gains = []
    for generations in range(8):

        async def search(count: int = generations) -> float:
            outcome = await Genetic(population=2, generations=count, max_changed=0.2).search(example, Random(seed))
            assert outcome.text is not None
            return example.gain((await Score([outcome.text]))[0])

        (finished,) = Scheduler.for_classifier(ScoringService(victim)).run([Search(search)])
        assert isinstance(finished.result, float)
        gains.append(finished.result)
    assert gains == sorted(gains)


def test_a_text_without_neighbours_fails_with_its_reason() -> None:
    result = attack(WeightVictim({"x": 1.0}), "x y", Genetic())
    assert (result.trial.status, result.trial.reason) == ("failed", "no word has a near neighbour")


def test_the_same_seed_breeds_the_same_text() -> None:
    small = Genetic(population=8, generations=6, max_changed=0.3)
    found = {attack(WeightVictim(weights()), "wa wb wc wd we wf wg", small, seed=4).trial.text for _ in range(3)}
    assert len(found) == 1


class ManyNeighbours:
    def neighbours(self, word: str, *, count: int = 50, max_squared_distance: float | None = None) -> tuple[Near, ...]:
        return tuple(Near(f"{word}{letter}") for letter in "uvwxyz") if word.startswith("w") else ()


def test_of_many_neighbours_only_the_likeliest_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.attacks.genetic.load_neighbours", ManyNeighbours)
    victim = WeightVictim({"wa": 1.0}, bias=20.0)
    masked_lm = ListMaskedLM({"": ["waz", "wav"]})
    attack(victim, "wa", Genetic(population=3, generations=1, likely=2, max_changed=None), masked_lm=masked_lm)
    assert set(victim.asked) == {"wa", "wav", "waz"}


def test_the_fast_variant_drops_what_the_language_model_finds_far_less_likely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stockade.attacks.genetic.load_neighbours", ManyNeighbours)
    victim = WeightVictim({"wa": 1.0}, bias=20.0)
    fast = Genetic(population=3, generations=1, likely=None, max_drop=2.0, lm_window=1, max_changed=0.2)
    masked_lm = ListMaskedLM({"b": ["way", "wa", "wau", "wav", "waw"], "x": ["wbz"]})  # wau is 1 below wa, wav 2, waw 3
    attack(victim, "a b wa c d e", fast, masked_lm=masked_lm)
    assert {text.split()[2] for text in victim.asked if isinstance(text, str)} == {"wa", "wau", "wav", "way"}
    assert ("b ", " c") in masked_lm.asked  # one word to either side


def test_no_plausible_neighbour_is_no_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.attacks.genetic.load_neighbours", ManyNeighbours)
    result = attack(
        WeightVictim({}, bias=1.0), "wa", Genetic(likely=None, max_drop=1.0), masked_lm=ListMaskedLM({"": ["wa"]})
    )
    assert (result.trial.status, result.trial.reason) == ("failed", "no word has a near neighbour")


@pytest.mark.parametrize(("population", "generations"), [(3, 1), (3, 2), (5, 2)])
def test_population_and_generations_decide_the_queries(population: int, generations: int) -> None:
    """The original; for each member the text and three neighbours; then every child, which cannot change any more."""
    victim = WeightVictim({"wa": 1.0, "wax": 0.9}, bias=20.0)
    result = attack(victim, "wa", Genetic(population=population, generations=generations, likely=None))
    assert result.trial.reason == f"no success in {generations} generations"
    assert result.queries == 1 + 4 * population + generations * (population - 1)


def test_no_more_neighbours_are_tried_than_asked_for() -> None:
    victim = WeightVictim({"wa": 1.0}, bias=20.0)
    attack(victim, "wa", Genetic(population=3, generations=1, likely=None, neighbours=2))
    assert set(victim.asked) == {"wa", "wax", "way"}


def test_neighbours_beyond_the_distance_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directions 45 and 90 degrees from the word's: squared distances 2 - 2 cos of 0.59 and 2."""
    table = Neighbours(("word", "near", "far"), np.array([[9, 0], [9, 9], [0, 9]], dtype=np.int8))
    monkeypatch.setattr("stockade.attacks.genetic.load_neighbours", lambda: table)
    for distance, tried in ((0.5, {"word"}), (0.6, {"word", "near"}), (2.1, {"word", "near", "far"})):
        victim = WeightVictim({}, bias=20.0)
        attack(victim, "word", Genetic(population=2, generations=1, likely=None, max_squared_distance=distance))
        assert {text for text in victim.asked if isinstance(text, str)} == tried


def test_a_low_temperature_breeds_from_the_best_member_alone() -> None:
    """Each member of the first population has one "z" word; that of "wa" is the best by far."""
    words = [f"w{letter}" for letter in "abcdefgh"]
    weights = {f"{word}z": -0.1 for word in words} | {"waz": -1.0}
    bred = {}
    for temperature in (1e-3, 1e3):
        victim = WeightVictim(weights, bias=3.0)
        method = Genetic(population=12, generations=1, likely=None, max_changed=None, temperature=temperature)
        attack(victim, " ".join(words), method, seed=1)
        second = [text for text in victim.asked if isinstance(text, str) and text.count("z") == 2]
        bred[temperature] = {"waz" in text for text in second}
    assert bred[1e-3] == {True}
    assert False in bred[1e3]


def test_stop_words_are_left_alone_unless_told_otherwise() -> None:
    victim = WeightVictim({"was": 1.0, "wasz": -1.0})
    small = Genetic(population=2, generations=1, likely=None)
    assert attack(victim, "was film", small).trial.reason == "no word has a near neighbour"
    assert attack(victim, "was film", replace(small, stop_words="none")).words == ("wasz", "film")


def test_the_number_of_changes_is_rounded_down_or_up() -> None:
    """0.3 of five words; two changes are needed."""
    weights = {"waz": -4.0, "wbz": -4.0}
    small = Genetic(population=12, generations=12, max_changed=0.3, likely=None)
    assert attack(WeightVictim(weights, bias=5.0), "wa wb wc wd we", small).trial.status == "failed"
    more = attack(WeightVictim(weights, bias=5.0), "wa wb wc wd we", replace(small, round_up=True))
    assert more.words == ("waz", "wbz", "wc", "wd", "we")


def test_candidates_may_be_wordnet_synonyms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "stockade.attacks.genetic.same_pos_synonyms",
        lambda words, indices: {i: ["grand"] if words[i] == "great" else [] for i in indices},
    )
    transfer = make_attack("genetic@transfer").attack
    assert isinstance(transfer, Genetic)
    assert (transfer.candidates, transfer.likely, transfer.stop_words) == ("wordnet", None, "none")
    victim = WeightVictim({"great": 1, "grand": -1, "wa": 0.5, "wax": -9})
    assert attack(victim, "a great wa", replace(transfer, population=2)).words == ("a", "grand", "wa")
    assert attack(victim, "a wa", transfer).trial.reason == "no word has a synonym"
    near = attack(victim, "a great wa", replace(transfer, candidates="neighbours", population=2, max_changed=0.4))
    assert near.words == ("a", "great", "wax")
