"""DeepWordBug: scores that telescope, misspellings of known cost, a one-shot and a greedy search."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.attacks.deepwordbug import DeepWordBug, tail_scores, temporal_scores
from stockade.attacks.misspellings import TRANSFORMS, Transform, levenshtein, misspell
from stockade.attacks.registry import make_attack
from stockade.core.errors import OptionError
from stockade.core.example import Example
from stockade.core.text import Text
from stockade.engine.requests import Score
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from tests.attacks.driving import attack
from tests.toys import RandomVictim, TableVictim, WeightVictim


@given(st.integers(0, 1000), st.lists(st.sampled_from("abcde"), min_size=1, max_size=8), st.integers(2, 5))
def test_temporal_and_tail_scores_add_up_to_the_score_less_chance(seed: int, words: list[str], classes: int) -> None:
    victim = RandomVictim(seed, classes)
    example = Example("0", Text.parse(" ".join(words)), label=seed % classes)

    async def search() -> tuple[float, float, float]:
        clean = (await Score([example.text]))[0]
        temporal, tail = await temporal_scores(example, clean), await tail_scores(example, clean)
        return clean.probabilities[example.label], sum(temporal.values()), sum(tail.values())

    (finished,) = Scheduler.for_classifier(ScoringService(victim)).run([Search(search)])
    level, temporal, tail = finished.result  # type: ignore[misc]
    assert temporal == pytest.approx(level - 1 / classes)
    assert tail == pytest.approx(level - 1 / classes)


@pytest.mark.parametrize(
    ("transform", "distance"), [("swap", 2), ("substitute", 1), ("delete", 1), ("insert", 1), ("homoglyph", 1)]
)
def test_each_transform_changes_the_word_at_a_known_cost(transform: Transform, distance: int) -> None:
    for seed in range(50):
        made = misspell("wonderful", transform, Random(seed))
        assert made is not None
        assert made.word != "wonderful"
        assert made.distance == distance == levenshtein("wonderful", made.word)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_what_cannot_be_misspelled_is_left_alone(transform: Transform) -> None:
    assert misspell("a", transform, Random(0)) is None
    assert misspell("aa", "swap", Random(0)) is None


@given(st.text(max_size=12), st.text(max_size=12))
def test_the_distance_is_a_metric(a: str, b: str) -> None:
    assert levenshtein(a, b) == levenshtein(b, a)
    assert abs(len(a) - len(b)) <= levenshtein(a, b) <= max(len(a), len(b))
    assert (levenshtein(a, b) == 0) == (a == b)
    assert levenshtein("kitten", "sitting") == 3


def test_one_shot_asks_for_the_scores_and_once_for_the_result() -> None:
    victim = WeightVictim({"great": 2.0})
    result = attack(victim, "a great little film", DeepWordBug())
    assert result.trial.status == "success"
    assert "great" not in result.words
    # the original, three prefixes, three suffixes, the final text
    assert result.queries == 1 + 3 + 3 + 1


@pytest.mark.parametrize(
    ("distance", "status", "changed"),
    [(1, "failed", None), (2, "failed", None), (3, "success", ["great", "good", "fine"])],
)
def test_one_shot_spends_the_edit_distance_on_the_most_important_words_first(
    distance: int, status: str, changed: list[str] | None
) -> None:
    """Log-odds 1.0 + 2.0 + 0.5 - 0.25: without "good" 1.25, without "great" too 0.25, without all three -0.25."""
    victim = WeightVictim({"great": 1.0, "good": 2.0, "fine": 0.5}, bias=-0.25)
    trial = attack(victim, "great good fine", DeepWordBug(max_edit_distance=distance, transforms=("delete",))).trial
    assert trial.status == status
    if changed is not None and trial.text is not None:
        assert [edit.before for edit in trial.text.edits] == changed
    final = str(victim.asked[-1] if status == "failed" else victim.asked[-2])
    assert ("good" in final, "great" in final, "fine" in final) == (False, distance < 2, distance < 3)


def test_greedy_tries_all_transforms_on_the_most_important_word_first() -> None:
    victim = WeightVictim({"great": 2.0, "little": 0.5}, bias=-1.0)
    greedy = make_attack("deepwordbug", "textattack").attack
    result = attack(victim, "a great little film", greedy)
    assert result.trial.status == "success"
    assert result.words[0] == "a"
    assert result.words[1] != "great"
    assert result.words[2:] == ("little", "film")
    # the original; great, little, film hidden ("a" is a stop word); four misspellings of "great"
    assert result.queries == 1 + 3 + 4


def test_greedy_stays_within_the_edit_distance() -> None:
    weights = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "delta": 1.0}
    greedy = DeepWordBug(scoring="replace-1", one_shot=False, transforms=("delete",), max_edit_distance=2)
    result = attack(WeightVictim(weights), "alpha beta gamma delta", greedy)
    assert result.trial.status == "failed"
    enough = DeepWordBug(scoring="replace-1", one_shot=False, transforms=("delete",), max_edit_distance=4)
    won = attack(WeightVictim(weights, bias=-0.5), "alpha beta gamma delta", enough)
    assert won.trial.status == "success"
    assert won.trial.text is not None
    assert sum(levenshtein(e.before, e.after) for e in won.trial.text.edits) <= 4


def test_the_same_seed_makes_the_same_misspellings() -> None:
    victim = WeightVictim({"great": 2.0})
    same = {attack(victim, "a great film", DeepWordBug(), seed=3).words for _ in range(5)}
    other = {attack(victim, "a great film", DeepWordBug(), seed=seed).words for seed in range(20)}
    assert len(same) == 1
    assert len(other) > 1


@pytest.mark.parametrize(
    ("options", "misspelled"),
    [
        ({"tail_weight": 1.0}, "beta"),
        ({"tail_weight": 0.5}, "alpha"),
        ({"tail_weight": 0.0}, "alpha"),
        ({"scoring": "temporal", "tail_weight": 9.0}, "alpha"),
        ({"scoring": "tail", "tail_weight": 0.0}, "beta"),
    ],
)
def test_the_combined_score_adds_the_tail_with_its_weight(options: dict[str, Any], misspelled: str) -> None:
    """Temporal scores 0.8 - 0.5 = 0.3 and 0.9 - 0.8 = 0.1; tail scores 0.9 - 0.85 = 0.05 and 0.85 - 0.5 = 0.35.

    Together 0.35 and 0.45; with half the tail 0.325 and 0.275. The weight is that of the combined score alone.
    """
    victim = TableVictim(table={"alpha beta": 0.9, "alpha": 0.8, "beta": 0.85}, otherwise=0.9)
    attack(victim, "alpha beta", DeepWordBug(transforms=("delete",), max_edit_distance=1, **options))
    final = str(victim.asked[-1]).split()
    assert [before for before, after in zip(("alpha", "beta"), final, strict=True) if before != after] == [misspelled]


def test_words_are_hidden_by_the_unknown_word() -> None:
    victim = TableVictim(table={"@ beta": 0.6, "alpha @": 0.5}, otherwise=0.9)
    greedy = DeepWordBug(scoring="replace-1", one_shot=False, unknown="@", transforms=("delete",), max_changed=0.5)
    attack(victim, "alpha beta", greedy)
    assert victim.asked[1:3] == ["@ beta", "alpha @"]
    assert str(victim.asked[3]).startswith("alpha ")  # "beta" is needed more


def test_stop_words_are_not_misspelled() -> None:
    weights = {"those": 2.0, "film": 0.5}
    greedy = DeepWordBug(transforms=("delete",))
    result = attack(WeightVictim(weights, bias=-1.0), "those film", greedy)
    assert (result.words[0] != "those", result.trial.status) == (True, "success")
    spared = replace(greedy, stop_words="nltk")
    assert attack(WeightVictim(weights, bias=-1.0), "those film", spared).trial.status == "failed"


@pytest.mark.parametrize("one_shot", [True, False])
def test_no_more_words_are_misspelled_than_the_share_allows(one_shot: bool) -> None:
    victim = WeightVictim({"great": 2.0, "good": 1.0})
    options = DeepWordBug(one_shot=one_shot, max_changed=0.5, transforms=("delete",))
    assert attack(victim, "great good", options).trial.status == "failed"
    assert str(victim.asked[-1]).endswith(" good")  # only "great" was touched
    assert attack(victim, "great good", replace(options, max_changed=None)).trial.status == "success"


def test_no_transform_is_an_error() -> None:
    with pytest.raises(OptionError, match="at least one transform"):
        DeepWordBug(transforms=())


def test_of_misspellings_that_help_alike_the_alphabetically_first_is_taken() -> None:
    """To a word-level model every misspelling is the same unknown word."""
    method = DeepWordBug(scoring="replace-1", one_shot=False)
    for seed in range(8):
        victim = WeightVictim({"great": 1.0}, bias=-0.5)
        result = attack(victim, "great", method, seed=seed)
        tried = [text for text in victim.asked if isinstance(text, str) and text not in ("great", "[UNK]")]
        assert str(result.trial.text) == min(tried)
