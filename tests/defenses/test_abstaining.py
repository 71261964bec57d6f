"""When copies that vote say nothing, with votes that are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import binomtest

import stockade as st
from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.defenses.combine import ABSTAIN, Combination, predict_or_abstain
from stockade.defenses.defended import Defended
from stockade.defenses.deletion import Deletion
from stockade.defenses.mask_top import MaskTop
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import defenses, make_defense
from tests.toys import RandomVictim, WeightVictim


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
