"""Rows of several copies to one answer, or to none, by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hypotheses
from scipy.stats import binomtest

import stockade as st
from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.defenses.combine import ABSTAIN, Combination, combine, predict_or_abstain
from stockade.defenses.defended import Defended
from stockade.defenses.deletion import Deletion
from stockade.defenses.mask_top import MaskTop
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import defenses, make_defense
from tests.toys import RandomVictim, WeightVictim

ROWS = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])


def test_votes_are_shares_of_the_copies() -> None:
    assert combine(ROWS, "vote").probabilities == pytest.approx((2 / 3, 1 / 3))
    assert combine(np.array([[0.5, 0.5, 0.0]]), "vote").probabilities == (1.0, 0.0, 0.0)  # the first of a tie


def test_mean_probabilities() -> None:
    assert combine(ROWS, "probability").probabilities == pytest.approx((1.7 / 3, 1.3 / 3))


def test_mean_logits_are_the_mean_log_odds() -> None:
    odds = (math.log(9) + math.log(1.5) + math.log(0.25)) / 3
    assert combine(ROWS, "logit").probabilities[0] == pytest.approx(1 / (1 + math.exp(-odds)))


def test_normalised_logits_count_every_copy_alike() -> None:
    """Of two classes every row has the length 1, so only its sign is left: (1 + 1 - 1) / 3 of (1, -1) / sqrt 2."""
    odds = 2 / math.sqrt(2) / 3
    assert combine(ROWS, "normalised-logit").probabilities[0] == pytest.approx(1 / (1 + math.exp(-odds)))
    assert combine(np.array([[0.5, 0.5]]), "normalised-logit").probabilities == pytest.approx((0.5, 0.5))


@given(hypotheses.lists(hypotheses.lists(hypotheses.floats(-30, 30), min_size=3, max_size=3), min_size=1, max_size=6))
def test_mean_logits_need_no_logits(logits: list[list[float]]) -> None:
    """Computed from probabilities it is the softmax of the mean of the logits themselves."""
    raw = np.array(logits)
    shares = np.exp(raw - raw.max(1, keepdims=True))
    mean = raw.mean(0)
    expected = np.exp(mean - mean.max()) / np.exp(mean - mean.max()).sum()
    assert combine(shares / shares.sum(1, keepdims=True), "logit").probabilities == pytest.approx(expected, abs=1e-9)


def test_a_probability_of_zero_is_survived() -> None:
    for how in ("logit", "normalised-logit"):
        combined = combine(np.array([[1.0, 0.0], [0.4, 0.6]]), how)
        assert combined.label == 0
        assert all(math.isfinite(value) for value in combined.probabilities)


@dataclass(frozen=True, slots=True)
class Counted:
    """Its copies vote like this; with any other combination all classes are as likely."""

    independent_copies: ClassVar[bool] = True
    votes: tuple[int, ...]
    combine: Combination = "probability"
    randomised: bool = False

    @property
    def copies(self) -> int:
        return sum(self.votes)

    def check(self, inner: Classifier) -> None:
        pass

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        votes = self.votes if self.combine == "vote" else (1,) * len(self.votes)
        return Scores(tuple(count / sum(votes) for count in votes))


def answer(alpha: float, *votes: int) -> object:
    model = Defended(name="counted", defense=Counted(votes), inner=RandomVictim(classes=len(votes)))
    return predict_or_abstain(model, ["a film"], alpha=alpha)[0]


def test_a_chance_of_just_alpha_is_an_answer() -> None:
    """Five votes to one: 2 (1 + 6) / 2**6, which a computer holds exactly."""
    assert answer(14 / 64, 1, 5) == "1"
    assert answer(math.nextafter(14 / 64, 0), 1, 5) is ABSTAIN


def test_the_two_leading_classes_are_compared_whatever_the_others_have() -> None:
    """45 votes to 30 speak for the first class, 45 of 100 do not."""
    assert binomtest(45, 75).pvalue < 0.2 < binomtest(45, 100).pvalue
    assert answer(0.2, 30, 45, 25) == "1"
    assert answer(0.05, 30, 45, 25) is ABSTAIN


@pytest.mark.parametrize("votes", [(9, 0, 0), (0, 0, 9)])
def test_a_unanimous_vote_is_an_answer(votes: tuple[int, ...]) -> None:
    assert answer(0.01, *votes) == str(votes.index(9))


def test_a_text_without_words_has_one_copy_which_agrees_with_itself() -> None:
    """The model says 52 %: of a hundred copies that would be an even split."""
    model = Defended(name="ranmask", defense=RanMask(copies=100), inner=WeightVictim({}, bias=0.1))
    assert predict_or_abstain(model, ["", ("a premise", " ")]) == ["positive", "positive"]


def test_copies_that_are_all_alike_prove_nothing() -> None:
    """However many copies mask-top counts, it has two answers: that to the text, and that to the hidden text."""
    model = st.load_model("builtin:sentiment-cnn")
    for copies in (3, 20):
        with pytest.raises(OptionError, match=r"mask-top does not draw the copies .* at random"):
            predict_or_abstain(Defended(name="mask-top", defense=MaskTop(copies=copies), inner=model), ["a dull film"])


def test_only_defenses_that_draw_their_copies_one_by_one_can_abstain() -> None:
    drawing = {name for name, entry in defenses().items() if getattr(entry.implementation, "independent_copies", False)}
    assert drawing == {"ranmask", "safer", "deletion", "hull"}
    for name in drawing - {"hull"}:
        model = Defended(name=name, defense=make_defense(name, copies=20).defense, inner=WeightVictim({}, bias=5.0))
        assert predict_or_abstain(model, ["a film of sorts"]) == ["positive"]
    for name in ("partition", "five", "hull"):  # hull has no copies unless it is asked for some
        model = Defended(name=name, defense=make_defense(name).defense, inner=st.load_model("builtin:sentiment-cnn"))
        with pytest.raises(OptionError, match=f"{name} does not draw"):
            predict_or_abstain(model, ["a film"])
    with pytest.raises(OptionError, match="inside a defense whose copies vote"):
        predict_or_abstain(WeightVictim({}), ["a film"])


def test_copies_without_words_do_not_vote() -> None:
    """The model is sure of the text, but no copy has a word of it left, so nothing was voted on."""
    model = Defended(name="deletion", defense=Deletion(kept_chance=1e-9, copies=8), inner=WeightVictim({}, bias=5.0))
    assert predict_or_abstain(model, ["film"]) == [ABSTAIN]
