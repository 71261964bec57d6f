"""Decision-based variants: on a model that only names classes the greedy attacks walk by labels and reduce."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import stockade as st
from stockade.attacks.bae import BAE
from stockade.attacks.bert_attack import BertAttack
from stockade.attacks.decision import DecisionBased
from stockade.attacks.deepwordbug import DeepWordBug
from stockade.attacks.pwws import PWWS
from stockade.attacks.registry import attacks
from stockade.attacks.textfooler import TextFooler
from stockade.core.protocols import Attack
from tests.attacks.driving import Result, attack, guesses
from tests.toys import BagEncoder, LabelVictim, ListMaskedLM, WeightVictim

SENTENCE = "the film was a great big story about a small town"
WORDS = ("nice", "grand", "odd")


class Everywhere(dict[str, Any]):
    """The same for every word."""

    def __init__(self, value: object) -> None:
        self._value = value

    def get(self, key: str, default: object = None) -> Any:
        return self._value


MASKED_LM = ListMaskedLM(after=Everywhere(WORDS), table=Everywhere((guesses(*WORDS),)))
ATTACKS: dict[str, Attack] = {
    "pwws": PWWS(same_pos="any"),
    "textfooler": TextFooler(min_cosine=0.3, threshold=0.0, same_pos=False),
    "bae-r": BAE(threshold=0.0, same_pos=False),
    "bae-i": BAE(mode="I", threshold=0.0, same_pos=False),
    "bae-r+i": BAE(mode="R+I", threshold=0.0, same_pos=False),
    "deepwordbug": DeepWordBug(),
    "deepwordbug greedy": DeepWordBug(one_shot=False),
    "bert-attack": BertAttack(),
}


def attacked(victim: Any, method: Attack, string: str = SENTENCE, **options: Any) -> Result:
    return attack(victim, string, method, masked_lm=MASKED_LM, encoder=BagEncoder(), **options)


def reader_of(word: str) -> LabelVictim:
    """Positive as long as the word is there."""
    return LabelVictim({word: 2.0}, bias=-1.0)


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "bae-i"])
def test_what_is_not_needed_is_undone(name: str) -> None:
    """Whatever words the walk changed on its way to "great", only that one stays changed."""
    for seed in range(5):
        result = attacked(reader_of("great"), ATTACKS[name], seed=seed)
        assert result.trial.status == "success", result.trial.reason
        assert result.trial.decision_based
        assert result.trial.text is not None
        (edit,) = result.trial.text.edits
        assert edit.before == "great"


def test_inserted_words_are_undone_too() -> None:
    victim = LabelVictim({"odd": -2.0}, bias=1.0)
    result = attacked(victim, ATTACKS["bae-i"])
    assert result.trial.text is not None
    (edit,) = result.trial.text.edits
    assert (edit.op, edit.after) == ("insert", "odd")


def test_a_model_with_scores_is_attacked_as_published() -> None:
    result = attacked(WeightVictim({"great": 2.0}, bias=-1.0), PWWS())
    assert result.trial.status == "success"
    assert not result.trial.decision_based


def test_the_course_by_hand() -> None:
    """Two of the five words must go, and go alone; each misspelling, and each change that is undone, is one query."""
    victim = LabelVictim({"great": 2.0, "story": 2.0}, bias=-1.0)
    result = attacked(victim, DeepWordBug(transforms=("swap",)), "nice great old story film", seed=1)
    assert result.trial.text is not None
    assert sorted(edit.before for edit in result.trial.text.edits) == ["great", "story"]
    walked = len([text for text in victim.asked if text]) - 2  # the clean text, the confirmation
    assert result.queries == walked


def test_the_same_seed_walks_alike_and_another_may_not() -> None:
    courses = []
    for seed in (0, 0, 1, 2, 3):
        victim = reader_of("great")
        attacked(victim, DeepWordBug(), seed=seed)
        courses.append(tuple(map(str, victim.asked)))
    assert courses[0] == courses[1]
    assert len(set(courses)) > 1


@given(
    some.dictionaries(some.sampled_from(SENTENCE.split()), some.floats(-1.0, 2.0), min_size=3),
    some.integers(0, 5),
    some.sampled_from(["pwws", "deepwordbug", "bert-attack", "bae-r+i"]),
)
def test_no_change_of_a_success_can_be_undone_alone(weights: dict[str, float], seed: int, name: str) -> None:
    victim = LabelVictim(weights, bias=-0.5)
    result = attacked(victim, ATTACKS[name], seed=seed)
    if result.trial.status != "success":
        return
    text = result.trial.text
    assert text is not None
    assert victim.predict_proba([str(text)]).tolist() == [[1.0, 0.0]]
    if len(text.edits) == 1:
        return
    for place, origin in enumerate(text.origins):
        before = "" if origin is None else text.original.words[origin]
        if text.words[place] != before:
            undone = text.delete(place) if origin is None else text.replace(place, before)
            assert victim.predict_proba([str(undone)]).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("name", list(ATTACKS))
def test_a_larger_budget_never_loses_a_success(name: str) -> None:
    victim = LabelVictim({"great": 1.0, "story": 1.0, "odd": -2.0}, bias=-0.5)
    statuses = [attacked(victim, ATTACKS[name], budget=budget).trial.status for budget in range(1, 60, 3)]
    assert all(not (first == "success" and second != "success") for first, second in pairwise(statuses))
    for budget in (3, 10, 30):
        assert attacked(victim, ATTACKS[name], budget=budget).queries <= budget


def test_limits_hold_in_the_end() -> None:
    """Two of ten words must go: 10 % allows one, 20 % both, however many the walk has changed."""
    victim = LabelVictim({"great": 2.0, "story": 2.0}, bias=-1.0)
    for seed in range(4):
        narrow = attacked(victim, PWWS(same_pos="any", max_changed=0.1), seed=seed)
        assert narrow.trial.status == "failed"
        wide = attacked(victim, PWWS(same_pos="any", max_changed=0.2), seed=seed)
        assert wide.trial.status == "success"
        assert wide.trial.text is not None
        assert len(wide.trial.text.edits) == 2
    nothing = attacked(victim, PWWS(max_changed=0.05))
    assert nothing.trial.reason == "the share of changed words does not allow even one"


def test_constraints_hold_and_articles_go_with_their_words() -> None:
    victim = LabelVictim({"great": 2.0}, bias=-1.0)
    method = BertAttack(repair_articles=True)
    lm = ListMaskedLM(table={"great": (guesses("odd"),), "big": (guesses("nice"),), "small": (guesses("odd"),)})
    result = attack(victim, "it was a great story of a small town", method, masked_lm=lm, seed=0)
    assert result.words == ("it", "was", "an", "odd", "story", "of", "a", "small", "town")


def test_targeted_searches_want_their_class() -> None:
    victim = reader_of("great")
    assert attacked(victim, PWWS(), target=0).trial.status == "success"


def test_models_that_fail_on_single_texts_are_walked_around() -> None:
    class Failing(LabelVictim):
        def predict_proba(self, inputs: Any) -> Any:
            if any("narrative" in str(text) for text in inputs):
                raise RuntimeError("no")
            return super().predict_proba(inputs)

    result = attacked(Failing({"great": 2.0}, bias=-1.0), PWWS())
    assert result.trial.status == "success"


def test_which_attacks_have_a_variant() -> None:
    having = {name for name, entry in attacks().items() if hasattr(entry.implementation, "moves")}
    assert having == {"pwws", "textfooler", "bae-r", "bae-i", "bae-r/i", "bae-r+i", "deepwordbug", "bert-attack"}
    assert isinstance(PWWS(), DecisionBased)


def test_records_summary_and_page_say_so() -> None:
    rows = [(f"a great film number{n}", "positive") for n in range(24)]
    run = st.attack(reader_of("great"), rows, ["pwws", "random-synonyms"], similarity=False)
    assert all(record.decision_based for record in run.records("pwws"))
    assert run.summary["attacks"]["pwws"]["decision_based"] is True
    assert "decision_based" not in run.summary["attacks"]["random-synonyms"]
    (warning,) = [line for line in run.summary["warnings"] if "names classes" in line]
    assert "and random-synonyms follow scores" in warning
    assert not any("hard labels" in line for line in run.summary["warnings"])
    page = run._repr_html_()
    assert "pwws (decision-based): 24 of 24 texts fooled" in page
    assert "so the search followed its labels" in page
    assert run.verify(reader_of("great")).holds


def test_hard_labels_that_are_not_declared_are_still_warned_about() -> None:
    silent = LabelVictim({"great": 2.0}, bias=-1.0, label_only=False)
    rows = [(f"a great film number{n}", "positive") for n in range(24)]
    run = st.attack(silent, rows, "pwws", similarity=False)
    assert any("Declare it with --outputs labels" in line for line in run.summary["warnings"])
    assert not any(record.decision_based for record in run.records())
