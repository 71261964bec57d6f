"""Copies that lose words at random, around victims whose smoothed answers can be computed by trying every copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import compress, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import stockade as st
from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.defenses.chain import load_defenses, save_defenses, wrap
from stockade.defenses.combine import ABSTAIN, predict_or_abstain
from stockade.defenses.defended import Defended
from stockade.defenses.deletion import Deletion
from stockade.defenses.registry import make_defense
from stockade.engine.composite import make_scoring
from stockade.engine.requests import Draw, Score
from stockade.engine.scheduler import Scheduler, Search
from tests.defenses.adversarial_kit import make_batch, make_kit
from tests.toys import RandomVictim, WeightVictim

WEIGHTS = {"good": 4.0, "bad": -4.0}


def defended(victim: Classifier, seed: int = 0, **options: Any) -> Defended:
    return Defended(name="deletion", defense=Deletion(**options), inner=victim, seed=seed)


def every_copy(words: Sequence[str], chance: float) -> list[tuple[str, float]]:
    """All copies of a text with their chances."""
    return [
        (" ".join(compress(words, keep)), float(np.prod([chance if stays else 1 - chance for stays in keep])))
        for keep in product((False, True), repeat=len(words))
    ]


def test_a_black_box_sees_words_joined_by_single_blanks_and_never_an_empty_copy() -> None:
    victim = WeightVictim({})
    defended(victim, copies=400).predict_proba(["one  two,\n three"])
    assert set(victim.asked) == {text for text, _ in every_copy(["one", "two,", "three"], 0.3) if text}
    assert len(victim.asked) == 7  # a copy that comes twice is computed once


@pytest.mark.parametrize("chance", [0.3, 0.6])
def test_the_answer_nears_that_of_all_copies(chance: float) -> None:
    text, victim = "so good and bad", RandomVictim(seed=3, classes=3)
    votes, means, shown = np.zeros(3), np.zeros(3), 0.0
    for copy, share in every_copy(text.split(), chance):
        if copy:
            row = victim.predict_proba([copy])[0]
            votes[row.argmax()] += share
            means += share * row
            shown += share
    options: dict[str, Any] = {"kept_chance": chance, "copies": 6000}
    assert defended(victim, combine="vote", **options).predict_proba([text])[0] == pytest.approx(votes, abs=0.03)
    assert votes.sum() == pytest.approx(1 - (1 - chance) ** 4)  # what is left out is the share of empty copies
    assert defended(victim, **options).predict_proba([text])[0] == pytest.approx(means / shown, abs=0.02)


def copy_votes(victim: Classifier, words: list[str], premise: str | None, keep: list[list[int]]) -> NDArray[np.int64]:
    rows = np.array(keep, dtype=np.bool_)
    search = Search(lambda: Deletion().copy_votes(words, premise, rows))
    [finished] = Scheduler.for_classifier(make_scoring(victim)).run([search])
    assert isinstance(finished.result, np.ndarray)
    return finished.result


def test_copies_vote_in_order_and_empty_ones_for_nothing() -> None:
    victim = WeightVictim(WEIGHTS, bias=-1.0)
    keep = [[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]]
    assert copy_votes(victim, ["good", "bad", "film"], None, keep).tolist() == [1, -1, 0, 0, 0]
    assert victim.asked == ["good film", "bad film", "good bad", "film"]
    assert copy_votes(victim, ["good"], None, [[0], [0]]).tolist() == [-1, -1]
    pairs = WeightVictim({})
    copy_votes(pairs, ["good", "film"], "a premise", [[0, 1], [0, 0]])
    assert pairs.asked == [("a premise", "film")]


def test_the_words_that_stay_are_drawn_from_the_given_generator_at_the_chance_of_the_option() -> None:
    deletion = Deletion(kept_chance=0.8, copies=3)
    first, same, other = (deletion.kept(np.random.default_rng(seed), 50, 400) for seed in (1, 1, 2))
    assert first.shape == (400, 50)
    assert (first == same).all()
    assert (first != other).any()
    assert first.mean() == pytest.approx(0.8, abs=0.015)


def test_shares_of_votes_are_of_all_copies() -> None:
    """A single word stays in about half of the copies; the others vote for no class."""
    votes = defended(WeightVictim(WEIGHTS), kept_chance=0.5, copies=2000, combine="vote").predict_proba(["good"])[0]
    assert votes[0] == 0.0
    assert votes[1] == pytest.approx(0.5, abs=0.05)
    assert votes[1] * 2000 == round(votes[1] * 2000)
    means = defended(WeightVictim(WEIGHTS), kept_chance=0.5, copies=50).predict_proba(["good"])[0]
    assert means[1] == pytest.approx(1 / (1 + np.exp(-4.0)))


@pytest.mark.parametrize("combine", ["vote", "probability", "logit", "normalised-logit"])
def test_where_no_copy_has_words_the_text_itself_is_asked(combine: str) -> None:
    victim = WeightVictim(WEIGHTS, bias=1.0)
    for text, chance in (("", 0.9), (" \n", 0.9), ("bad", 1e-9)):
        model = defended(victim, kept_chance=chance, copies=3, combine=combine)
        assert model.predict_proba([text])[0] == pytest.approx(victim.predict_proba([text])[0])


def test_abstaining_counts_the_copies_that_vote() -> None:
    model = defended(WeightVictim(WEIGHTS, bias=-1.0), kept_chance=0.5, copies=300)
    # "good" has some 150 votes of 300, and none against; "good bad x" is positive in a quarter of the copies.
    assert predict_or_abstain(model, ["good", "good bad x"]) == ["positive", "negative"]
    few = defended(WeightVictim(WEIGHTS), kept_chance=0.5, copies=5)
    assert predict_or_abstain(few, ["good"]) == [ABSTAIN]  # five votes would not be enough


def test_fresh_draws_differ_from_question_to_question_and_fixed_ones_do_not() -> None:
    text = Text.parse("a b c d e f g h")
    for draws, same in (("fresh", False), ("fixed", True)):
        model = defended(RandomVictim(2), copies=3, draws=draws)
        assert model.deterministic is same
        service = make_scoring(model)
        first, second = (service.answer_scores([Score([text], draw=Draw(7, number))])[0] for number in (0, 1))
        assert (first == second) is same


def test_fixed_draws_depend_on_the_length_alone() -> None:
    victim = WeightVictim({})
    defended(victim, copies=6, draws="fixed").predict_proba(["a b c d", "e f g h"])
    letters = {str(item).replace(" ", "") for item in victim.asked}
    assert {copy.translate(str.maketrans("abcd", "efgh")) for copy in letters if copy < "e"} == {
        copy for copy in letters if copy >= "e"
    }


def test_a_randomised_model_is_asked_for_every_copy_with_words() -> None:
    victim = WeightVictim({}, deterministic=False)
    defended(victim, kept_chance=0.9, copies=40).predict_proba(["a b c d e f g h i j k l"])
    assert len(victim.asked) == 40


def test_the_surrogate_shows_mean_probabilities_of_the_same_copies() -> None:
    surrogate = defended(RandomVictim(5), copies=9, combine="vote").surrogate()
    assert surrogate is not None
    expected = defended(RandomVictim(5), copies=9).predict_proba(["a b c d e f"])
    assert (surrogate.predict_proba(["a b c d e f"]) == expected).all()


def test_training_deletes_other_words_in_every_step_but_never_all() -> None:
    kit = make_kit()
    objective = make_defense("deletion").defense.objective(kit)
    counts = Counter(objective.augment(make_batch(kit, ["a good"] * 3000, [1] * 3000)).inputs)
    both, single = 0.3 * 0.3, 0.3 * 0.7 + 0.7 * 0.7 / 2  # an empty copy gets either word back
    assert {text: count / 3000 for text, count in counts.items()} == pytest.approx(
        {"a good": both, "a": single, "good": single}, abs=0.045
    )
    pair = ("the film", "good")
    batch = objective.augment(make_batch(kit, ["a good film", "", pair], [1, 0, 1], 3))
    assert batch.inputs == objective.augment(make_batch(kit, ["a good film", "", pair], [1, 0, 1], 3)).inputs
    assert batch.inputs[1:] == ("", pair)
    assert (batch.tensors["input_ids"] == make_batch(kit, batch.inputs).tensors["input_ids"]).all()
    assert objective.loss(kit.network, batch).item() == kit.plain.loss(kit.network, batch).item()


def test_it_can_stand_around_another_defense() -> None:
    victim = WeightVictim({})
    wrap(victim, [make_defense("deletion:kept_chance=0.999999"), make_defense("partition")]).predict_proba(["a b"])
    assert set(victim.asked) == {"a [MASK]", "[MASK] b"}


def test_from_python_and_from_a_folder(tmp_path: Path) -> None:
    model = st.defend(WeightVictim({}), "deletion", kept_chance=0.5)
    assert isinstance(model, Defended)
    assert model.defense == Deletion(kept_chance=0.5)
    save_defenses(tmp_path, [make_defense("deletion@vote:copies=7")])
    (loaded,) = load_defenses(tmp_path)
    assert (loaded.preset, loaded.defense) == ("vote", Deletion(copies=7, combine="vote"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("kept_chance=0", "kept_chance of deletion is 0.0, expected a chance between 0 and 1"),
        ("kept_chance=1", "kept_chance of deletion is 1.0"),
        ("kept_chance=nan", "kept_chance of deletion is nan"),
        ("copies=0", "deletion has 0 copies"),
        ("combine=sum", "combine"),
        ("draws=some", "draws"),
    ],
)
def test_bad_options(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_defense(f"deletion:{options}")
