"""The options that every attack by words has, tried on every attack, and a guard: every option is named in a test."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stockade.attacks.bae import BAE
from stockade.attacks.bert_attack import BertAttack
from stockade.attacks.constraints import MaxEditDistance
from stockade.attacks.deepwordbug import DeepWordBug
from stockade.attacks.genetic import Genetic
from stockade.attacks.hotflip import HotFlip
from stockade.attacks.one_word import OneWord
from stockade.attacks.pwws import PWWS
from stockade.attacks.random_synonyms import RandomSynonyms
from stockade.attacks.random_word import RandomWord
from stockade.attacks.registry import ATTACKS, task_of
from stockade.attacks.rules import Rules
from stockade.attacks.synonym_list import SynonymList
from stockade.attacks.textfooler import TextFooler
from stockade.attacks.word_attack import WordAttack, article_for
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from tests.attacks.driving import Result, attack, guesses
from tests.toys import BagEncoder, ListMaskedLM, OpenVictim, words_of

TEXT = "we saw a good film today"
ALL: set[type] = {entry.implementation for entry in ATTACKS.values()}
CLASSES: set[type] = {cls for cls in ALL if task_of(cls) == "classification"}
SHARED = {field.name for field in dataclasses.fields(WordAttack)}


class VowelVictim(OpenVictim):
    """Fooled when the fourth word begins with a vowel; unsure when "good" is gone."""

    def __init__(self) -> None:
        super().__init__({"good": 1.0, "awful": -1.0}, {"good": (1.0, 9.0), "awful": (-1.0, 9.0)})

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        self.asked += inputs
        return np.array([(1 - chance, chance) for chance in map(self._chance, inputs)])

    def _chance(self, item: TextInput) -> float:
        words = words_of(item)
        if len(words) > 3 and words[3][0].lower() in "aeiou":
            return 0.1
        return 0.9 if "good" in words else 0.6


EVERY_ATTACK = [
    BAE(threshold=0.0, same_pos=False),
    BertAttack(),
    DeepWordBug(transforms=("swap",), max_edit_distance=2),
    DeepWordBug(transforms=("swap",), one_shot=False, scoring="replace-1"),
    Genetic(generations=3, population=8, likely=None, max_squared_distance=2.0, neighbours=50),
    HotFlip(same_pos=False),
    OneWord(),
    OneWord(how="ec"),
    PWWS(same_pos="any"),
    PWWS(same_pos="any", choose_again=True),
    RandomSynonyms(budget=0.4),
    RandomWord(draws=50),
    Rules(file=str(Path(__file__).parent / "one_rule.jsonl"), budget=0.4),
    SynonymList(neighbours=50, max_squared_distance=2.0),
    TextFooler(threshold=0.0, min_cosine=0.0, same_pos=False),
]


def run(method: Any) -> Result:
    """Misspellings and synonyms are drawn at random: the first seed with which the attack has what it needs."""
    masked_lm = ListMaskedLM({"a": ["awful"]}, table={"good": (guesses("awful"),)})
    results = (
        attack(VowelVictim(), TEXT, method, masked_lm=masked_lm, encoder=BagEncoder(), seed=seed) for seed in range(64)
    )
    failed = None
    for result in results:
        if result.trial.status == "success":
            return result
        failed = result
    assert failed is not None
    return failed


def test_every_attack_is_tried_here() -> None:
    assert {type(method) for method in EVERY_ATTACK} == CLASSES


@pytest.mark.parametrize("method", EVERY_ATTACK, ids=lambda method: type(method).__name__)
def test_every_attack_obeys_the_users_constraint(method: Any) -> None:
    assert run(method).words[3] != "good"
    tied = run(dataclasses.replace(method, constraint=MaxEditDistance(0)))
    assert tied.trial.status == "failed"


@pytest.mark.parametrize("method", EVERY_ATTACK, ids=lambda method: type(method).__name__)
def test_every_attack_puts_the_article_right_when_asked(method: Any) -> None:
    assert run(method).words[2] == "a"
    mended = run(dataclasses.replace(method, repair_articles=True, max_changed=None))
    assert mended.words[2] == "an" == article_for(mended.words[3])
    assert [edit.before for edit in mended.trial.text.edits] == ["a", "good"]  # type: ignore[union-attr]


@pytest.mark.parametrize("method", EVERY_ATTACK, ids=lambda method: type(method).__name__)
def test_no_attack_changes_a_word_when_the_share_allows_none(method: Any) -> None:
    """A sixth of six words is one. The genetic attack may always change one, as its authors' does."""
    assert len(run(dataclasses.replace(method, max_changed=1 / 6)).trial.text.edits) == 1  # type: ignore[union-attr]
    bound = run(dataclasses.replace(method, max_changed=0.16))
    assert bound.trial.status == ("success" if isinstance(method, Genetic) else "failed")


def named_options(cls: type) -> set[str]:
    """Keywords and keys in the tests of this folder that know the class."""
    names: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        if any(isinstance(node, ast.ImportFrom) and cls.__name__ in {n.name for n in node.names} for node in nodes):
            names |= {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg is not None}
            keys = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys]
            names |= {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    return names


@pytest.mark.parametrize("cls", sorted(ALL, key=str))
def test_every_option_is_named_in_a_test_of_its_attack(cls: type) -> None:
    options = {field.name for field in dataclasses.fields(cls)}
    assert options >= SHARED
    missing = options - named_options(cls)
    assert not missing, f"no test of {cls.__name__} names {', '.join(sorted(missing))}: write one that fails without"
