"""FIVE: a text and copies of it with noise on its most important tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import ImportanceObjective, TokenScores, WordVocabulary
from stockade.core.text import Text
from stockade.defenses.chain import wrap
from stockade.defenses.defended import Defended, remarks_on
from stockade.defenses.five import Five
from stockade.defenses.registry import make_defense
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.report.render_markdown import render_markdown
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import WeightVictim

from .firebert_kit import OpenVictim, log_odds, sigmoid

WEIGHTS = {"great": 3.0, "film": -1.0, "plot": 0.5, "the": 9.0}
STRING = "the great film, plot!"
"""Log-odds 11.5; without "great" 8.5; without "great" and "film" 9.5. "the" is a stop word."""


def answer(five: Five, text: str = STRING) -> tuple[np.ndarray, OpenVictim]:
    victim = OpenVictim(WEIGHTS, bias=-9.0)
    return Defended(name="five", defense=five, inner=victim).predict_proba([text])[0], victim


def test_the_text_counts_as_much_as_each_copy() -> None:
    row, victim = answer(Five(samples=4))
    assert log_odds(row) == pytest.approx((2.5 + 4 * -0.5) / 5)
    (request,) = victim.noised
    assert (request.tokens, request.deviation, request.copies) == (((1, 0),), 8.14, 4)
    row, _ = answer(Five(samples=4, combine="vote"))
    assert row == pytest.approx([0.8, 0.2])
    row, _ = answer(Five(samples=4, combine="probability"))
    assert row[1] == pytest.approx((sigmoid(2.5) + 4 * sigmoid(-0.5)) / 5)


def test_all_chosen_tokens_are_perturbed_together_in_every_copy() -> None:
    row, victim = answer(Five(samples=2, tokens=2))
    assert victim.noised[0].tokens == ((1, 0), (2, 0))
    assert log_odds(row) == pytest.approx((2.5 + 2 * 0.5) / 3)


def test_tokens_of_one_word_are_ranked_one_by_one() -> None:
    scores = ((0.2, 0.7), (0.1,), (0.5, 0.6), ())
    assert Five(tokens=3).chosen(Text.parse("unbelievable film overwhelmed unseen"), scores) == ((0, 1), (2, 1), (2, 0))


def test_a_text_without_words_that_count_is_answered_as_it_is() -> None:
    for text in ("", "the", "?!"):
        row, victim = answer(Five(), text)
        assert row == pytest.approx(victim.predict_proba([text])[0])
        assert victim.noised == []


def test_noise_is_fresh_unless_fixed_and_the_same_for_the_same_question() -> None:
    seeds = set()
    for seed in (1, 2):
        for _ in range(2):
            victim = OpenVictim(WEIGHTS)
            Defended(name="five", defense=Five(), inner=victim, seed=seed).predict_proba([STRING, STRING + " film"])
            seeds.add(tuple(request.seed for request in victim.noised))
    assert len(seeds) == 2
    assert all(first != second for first, second in seeds)
    assert not Defended(name="five", defense=Five(), inner=OpenVictim({})).deterministic
    assert Defended(name="five", defense=Five(draws="fixed"), inner=OpenVictim({})).deterministic


def test_an_answer_does_not_depend_on_what_else_is_asked() -> None:
    model = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer())
    defended = Defended(name="five", defense=Five(tokens=2), inner=model)
    texts = ["The film, was greatly bad!", "films", "a great film is not bad .", "(great)"]
    together = defended.predict_proba(texts)
    assert together == pytest.approx(np.concatenate([defended.predict_proba([text]) for text in texts]), abs=1e-6)
    assert not np.allclose(together, model.predict_proba(texts), atol=1e-3)


@dataclass
class VocabularyVictim(OpenVictim):
    def word_gradients(self, texts: Sequence[Text], label: int) -> list[np.ndarray]:
        raise NotImplementedError

    def word_vocabulary(self) -> WordVocabulary:
        return WordVocabulary(("a", "b"), np.array([[3.0, 4.0], [0.0, 15.0]], dtype=np.float32))


def test_the_signal_to_noise_ratio_is_that_of_the_lengths() -> None:
    """Vectors of lengths 5 and 15 in two dimensions; noise of deviation 2 has the length 2 √2."""
    assert Five(deviation=2.0).signal_to_noise(VocabularyVictim({})) == pytest.approx(10 / (2 * np.sqrt(2)))
    with pytest.raises(ModelError, match="needs the input vectors of the model's words"):
        Five().signal_to_noise(OpenVictim({}))


def test_results_say_the_ratio_and_what_it_means(tmp_path: Path) -> None:
    few, many = (
        st.defend(VocabularyVictim(WEIGHTS), "five", deviation=deviation, samples=2) for deviation in (2.0, 50.0)
    )
    for defended, ratio, overwritten in ((few, "3.5", False), (many, "0.14", True)):
        (remark,) = remarks_on(defended)
        assert remark.startswith(f"The signal-to-noise ratio of FIVE is {ratio} (")
        assert remark.endswith("compare with mask-top.") == overwritten
    assert remarks_on(st.defend(OpenVictim(WEIGHTS), "five")) == []
    data, five = [(STRING, "positive")], "five:deviation=50,samples=2"
    run = st.attack(many, data, "deepwordbug")
    assert run.summary["remarks"] == [remark]
    assert remark in render_markdown(run.document())
    grid = st.evaluate(VocabularyVictim(WEIGHTS), data, "deepwordbug", five, out=tmp_path / "evaluation")
    assert grid.row(five).remarks == (remark,)
    assert f"{five}: {remark}" in render_markdown(grid.document())


def test_presets_say_what_the_paper_says() -> None:
    names = ("deviation", "samples", "tokens", "combine")
    assert [make_defense("five").options[name] for name in names] == [8.14, 8, 1, "logit"]
    assert make_defense("five").options == make_defense("five@mnli").options
    assert [make_defense("five@imdb").options[name] for name in names] == [2.3, 10, 1, "probability"]
    assert [make_defense("five@authors").options[name] for name in names] == [0.05, 10, 2, "logit"]


def test_what_is_missing_is_said() -> None:
    with pytest.raises(ModelError, match="five needs the model's gradients"):
        wrap(WeightVictim({}), [make_defense("five")])
    with pytest.raises(OptionError, match="five alters what the model reads, so fuse cannot stand between them"):
        wrap(OpenVictim({}), [make_defense("five"), make_defense("fuse")])

    @dataclass
    class Gradients(WeightVictim):
        token_importance = OpenVictim.token_importance

    with pytest.raises(ModelError, match="adds noise to the model's input vectors, and this model does not let it"):
        wrap(Gradients({}), [make_defense("five")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deviation": 0.0}, "deviation of five is 0.0, expected a number above 0"),
        ({"deviation": float("nan")}, "deviation of five is nan"),
        ({"samples": 0}, "0 samples and 1 tokens, expected at least 1"),
        ({"tokens": 0}, "8 samples and 0 tokens"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_defense("five", **options)


@dataclass
class TwoSided(OpenVictim):
    """Which word matters depends on what importance is the gradient of."""

    def token_importance(self, texts: Sequence[Text], objective: ImportanceObjective) -> list[TokenScores]:
        first = objective == "loss_pred"
        return [tuple((float((at == 0) == first),) for at, _ in enumerate(text.words)) for text in texts]


@pytest.mark.parametrize(("objective", "word"), [("loss_pred", 0), ("half_sq_norm", 1)])
def test_importance_is_what_was_asked_for(objective: ImportanceObjective, word: int) -> None:
    victim = TwoSided(WEIGHTS)
    Defended(name="five", defense=Five(importance=objective), inner=victim).predict_proba(["great film"])
    assert victim.noised[0].tokens == ((word, 0),)


def test_the_surrogate_shows_mean_probabilities() -> None:
    five = Five(samples=3, combine="vote")
    assert five.surrogate() == Five(samples=3, combine="probability")
