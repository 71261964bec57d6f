"""Answers of many copies in which words are replaced by synonyms."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import OptionError
from stockade.core.text import Text
from stockade.defenses.registry import make_defense
from stockade.defenses.safer import Safer
from stockade.training.objective import Batch, CrossEntropy
from tests.defenses.adversarial_kit import make_batch, make_kit
from tests.toys import WeightVictim

VECTORS = """good 1 0 0
fine 1 0.1 0
great 1 -0.05 0
bad -1 0 0
awful -1 0.1 0
film 0 0 1
story 0 1 -1
"""
"""Two sets, good-fine-great and bad-awful; film and story have none."""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "vectors.txt"
    path.write_text(VECTORS)
    return str(path)


def safer(table: str, **options: Any) -> Safer:
    made = make_defense("safer", **{"vectors": table, "directions": 0, **options}).defense
    assert isinstance(made, Safer)
    return made


def test_the_sets_of_a_text_are_shown_for_certificates(table: str) -> None:
    sets = safer(table).word_sets(Text.parse("A Good film, a bad story."))
    assert [(word_set.index, word_set.words, word_set.overlap) for word_set in sets] == [
        (1, ("good", "fine", "great"), 1.0),
        (4, ("bad", "awful"), 1.0),
    ]
    smaller = safer(table, maximum=2).word_sets(Text.parse("good"))
    assert [(word_set.words, word_set.overlap) for word_set in smaller] == [
        (("good", "great"), 0.5)
    ]  # fine's set is good, fine


def test_draws_are_uniform_over_the_sets_and_independent(table: str) -> None:
    text = Text.parse("A GOOD film, a Bad story.")
    copies = safer(table).perturbed(text, np.random.default_rng(0), 6000)
    counts = Counter(str(copy) for copy in copies)
    assert set(counts) == {
        f"A {word} film, a {other} story." for word in ("GOOD", "FINE", "GREAT") for other in ("Bad", "Awful")
    }
    for count in counts.values():
        assert count == pytest.approx(1000, abs=120)  # four standard deviations


def test_the_spelling_of_a_word_does_not_show_in_the_copies(table: str) -> None:
    drawn = {str(copy) for copy in safer(table).perturbed(Text.parse("gOOd"), np.random.default_rng(0), 50)}
    assert drawn == {"good", "fine", "great"}


def test_synonyms_with_the_same_set_have_the_same_copies(table: str) -> None:
    first, other = (
        [str(copy) for copy in safer(table).perturbed(Text.parse(text), np.random.default_rng(5), 40)]
        for text in ("a good film", "a great film")
    )
    assert first == other


WEIGHTS = {"good": 2.0, "fine": 0.0, "great": -1.0, "bad": -3.0, "awful": -3.0}


def share(odds: float) -> float:
    return 1 / (1 + np.exp(-odds))


def test_the_answer_is_the_mean_over_the_set(table: str) -> None:
    defended = st.defend(WeightVictim(WEIGHTS), "safer", copies=5000, vectors=table, directions=0)
    expected = np.mean([share(odds) for odds in (2.0, 0.0, -1.0)])
    rows = defended.predict_proba(["a great film", "the film"])
    assert rows[0, 1] == pytest.approx(expected, abs=0.02)
    assert rows[1, 1] == pytest.approx(0.5)  # nothing to replace: the model's own answer
    assert not defended.deterministic


def test_votes_count_copies(table: str) -> None:
    victim = WeightVictim(WEIGHTS, bias=-0.5)
    defended = st.defend(victim, "safer@vote", copies=3000, vectors=table, directions=0)
    assert defended.predict_proba(["good"])[0, 1] == pytest.approx(1 / 3, abs=0.035)  # only good votes yes
    assert defended.surrogate().defense.combine == "probability"  # type: ignore[attr-defined]


def test_fixed_draws_make_the_classifier_deterministic(table: str) -> None:
    victim = WeightVictim(WEIGHTS)
    defended = st.defend(victim, "safer", copies=7, draws="fixed", vectors=table, directions=0)
    assert defended.deterministic
    first, again = (defended.predict_proba(["a good film"]) for _ in range(2))
    assert (first == again).all()
    assert (first == defended.predict_proba(["a fine film"])).all()  # the same set, the same draws


def test_of_a_pair_the_premise_stays(table: str) -> None:
    text = Text.parse("a bad film", "a good story")
    copies = safer(table).perturbed(text, np.random.default_rng(0), 30)
    assert {copy.input for copy in copies} == {("a good story", "a bad film"), ("a good story", "a awful film")}


def test_training_sees_other_words_in_every_step(table: str) -> None:
    kit = make_kit()
    objective = safer(table).objective(kit)
    counts = Counter(
        text for seed in range(200) for text in objective.augment(make_batch(kit, ["a good film"], [1], seed)).inputs
    )
    assert set(counts) == {"a good film", "a fine film", "a great film"}
    assert min(counts.values()) > 40
    first, same = (objective.augment(make_batch(kit, ["a good film"] * 9, [1] * 9, seed=3)) for _ in range(2))
    assert first.inputs == same.inputs
    assert len(set(first.inputs)) == 3  # each text of a batch is drawn for itself
    numbers = kit.tokenizer(list(first.inputs))["input_ids"]
    assert first.tensors["input_ids"].tolist() == numbers
    assert objective.loss(kit.network, first).item() == kit.plain.loss(kit.network, first).item()


def test_it_is_attacked_like_any_model(table: str) -> None:
    victim = WeightVictim({"good": 4.0, "fine": 4.0, "great": 4.0, "bad": -4.0})
    defended = st.defend(victim, "safer", copies=20, vectors=table, directions=0)
    run = st.attack(
        defended, [("a good film", "positive"), ("a bad film", "negative")], "deepwordbug", similarity=False
    )
    assert run.summary["attacks"]["deepwordbug"]["errors"] == 0
    assert run.summary["attacks"]["deepwordbug"]["n"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("copies=0", "safer has 0 copies"),
        ("min_cosine=0", "min_cosine of safer is 0.0"),
        ("maximum=0", "sets of 0 words at most"),
        ("combine=sum", "combine"),
    ],
)
def test_bad_options(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_defense(f"safer:{options}")


def test_a_text_without_sets_is_its_only_copy(table: str) -> None:
    text = Text.parse("the film")
    assert safer(table).perturbed(text, np.random.default_rng(0), 30) == [text]


def test_the_least_cosine_decides_who_is_a_synonym(table: str) -> None:
    """Without the mean of all vectors the cosine of "good" is 0.9984 with "great" and 0.9934 with "fine"."""
    words = {least: safer(table, min_cosine=least).sets().of("good") for least in (0.8, 0.997)}
    assert words == {0.8: ("good", "fine", "great"), 0.997: ("good", "great")}


def test_training_keeps_premises_and_hands_on_what_it_made(table: str) -> None:
    class Doubling(CrossEntropy):
        def augment(self, batch: Batch) -> Batch:
            return replace(batch, inputs=batch.inputs * 2)

    kit = make_kit(plain=Doubling())
    augmented = safer(table).objective(kit).augment(make_batch(kit, [("a good story", "a bad film")] * 20, [1] * 20))
    assert len(augmented.inputs) == 40
    assert set(augmented.inputs) == {("a good story", "a bad film"), ("a good story", "a awful film")}


def test_presets_say_whose_way_of_answering_they_are() -> None:
    names = ("combine", "copies", "min_cosine", "maximum", "directions")
    assert [make_defense("safer").options[name] for name in names] == ["probability", 100, 0.8, 100, 8]
    assert [make_defense("safer@vote").options[name] for name in names] == ["vote", 100, 0.8, 100, 8]
    assert [make_defense("safer@authors").options[name] for name in names] == ["vote", 2000, 0.8, 100, 8]


def test_a_text_is_read_from_its_string_whatever_edits_made_it(table: str) -> None:
    """An attack that puts "good.bad" in the place of one word is answered as whoever sends that string is."""
    edited = Text.parse("a film").replace(1, "good.bad")

    def asked(text: Text) -> list[str]:
        request = safer(table).answer(text, np.random.default_rng(0)).send(None)
        return [str(copy) for copy in request.texts]

    copies = asked(edited)
    assert copies == asked(Text.parse("a good.bad"))
    assert len(set(copies)) > 1
