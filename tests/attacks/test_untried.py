"""An attack that has nothing to try says so: its failure is no robustness."""

from __future__ import annotations

from typing import Any

import pytest

from stockade.attacks.constraints import MaxChanged
from stockade.attacks.registry import make_attack
from stockade.attacks.synonym_list import SynonymList
from stockade.attacks.textfooler import TextFooler
from tests.attacks.driving import attack
from tests.attacks.test_budgets import EVERY_ATTACK, MASKED_LM, SENTENCE, OpenRandomVictim
from tests.toys import BagEncoder, WeightVictim


@pytest.mark.parametrize("reference", EVERY_ATTACK)
def test_queries_that_only_rank_words_are_no_tries(reference: str) -> None:
    """The constraint refuses every change of a word: whatever the attack asks, it asks about no candidate."""
    victim: Any = OpenRandomVictim(1, 2, lead=100.0)
    named = make_attack(reference, constraint=MaxChanged(words=0))
    result = attack(victim, SENTENCE, named.attack, label=0, masked_lm=MASKED_LM, encoder=BagEncoder())
    assert (result.trial.status, result.trial.tried) == ("failed", 0)
    assert result.trial.reason
    assert result.trial.reason != "every word was tried"


@pytest.mark.parametrize("reference", EVERY_ATTACK)
def test_a_failure_after_tries_is_one_that_counts(reference: str) -> None:
    victim: Any = OpenRandomVictim(1, 2, lead=1e12)
    named = make_attack(reference)
    result = attack(victim, SENTENCE, named.attack, label=0, masked_lm=MASKED_LM, encoder=BagEncoder(), budget=300)
    assert result.trial.status == "failed", result.trial.reason
    assert result.trial.tried > 0


def test_a_budget_that_goes_into_the_ranking_leaves_nothing_tried() -> None:
    result = attack(WeightVictim({"good": 1.0}), "a good film", TextFooler(), budget=2, encoder=BagEncoder())
    assert (result.trial.status, result.trial.tried, result.queries) == ("failed", 0, 2)


def test_each_scored_candidate_is_a_try() -> None:
    """ "good" has eight neighbours in the table, and nothing else in the text has any."""
    result = attack(WeightVictim({}, bias=1.0), "xqzt good", SynonymList())
    assert result.trial.tried == result.queries > 0
