"""Rules as an attack: the order of salience, the budget, both judges, and rules for other classes."""

from __future__ import annotations

from pathlib import Path

import pytest

import stockade as st
from stockade.attacks.random_synonyms import RandomSynonyms
from stockade.attacks.registry import make_attack
from stockade.attacks.rules import Rules, rule_labels
from stockade.core.errors import DataError, OptionError, RunError
from stockade.core.text import Text
from stockade.lexicon.rules import Rule, RuleSet, write_rules
from tests.attacks.driving import attack
from tests.toys import WeightVictim

RULES = RuleSet(
    (
        Rule("positive", "great", "big", 3.0),
        Rule("positive", "film", "movie", 2.0),
        Rule("positive", "funny", "laughable", 1.0),
        Rule("positive", "warm", "hot", -1.0),
        Rule("negative", "dull", "slow", 1.0),
    )
)
TEXT = "a Funny great warm film of our own time and place"  # eleven words: 0.3 of them are three


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "rules.jsonl"
    write_rules(path, RULES)
    return str(path)


def test_rules_are_applied_by_salience_until_the_model_is_fooled(file: str) -> None:
    victim = WeightVictim({"great": 1.0, "film": 1.0, "funny": 0.5, "movie": -1.0})
    result = attack(victim, TEXT, Rules(file=file))
    assert result.trial.status == "success"
    assert str(result.trial.text) == "a Funny big warm movie of our own time and place"
    assert result.queries == 2  # "big", then "movie"


def test_judged_at_the_end_a_text_may_have_been_fooled_on_the_way(file: str) -> None:
    victim = WeightVictim({"great": 1.0, "movie": -1.0, "laughable": 2.0})
    assert attack(victim, TEXT, Rules(file=file)).trial.status == "success"
    result = attack(victim, TEXT, Rules(file=file, judge="final"))
    assert result.trial.status == "failed"
    assert result.trial.reason == "not fooled by 3 replaced words"
    assert result.queries == 1
    asked = [item for item in victim.asked if "laughable" in str(item).lower()]
    assert asked == ["a Laughable big warm movie of our own time and place"]


def test_the_final_text_is_the_result_where_it_fools(file: str) -> None:
    result = attack(WeightVictim({"great": 0.5, "laughable": -1.0}), TEXT, Rules(file=file, judge="final"))
    assert str(result.trial.text) == "a Laughable big warm movie of our own time and place"


@pytest.mark.parametrize(("budget", "queries"), [(0.3, 3), (0.2, 2), (0.1, 1), (0.05, 0)])
def test_the_budget_is_rounded_down(file: str, budget: float, queries: int) -> None:
    result = attack(WeightVictim({}, bias=1.0), TEXT, Rules(file=file, budget=budget))
    assert result.trial.status == "failed"
    assert result.queries == queries


def test_of_budget_and_max_changed_the_smaller_counts(file: str) -> None:
    assert attack(WeightVictim({}, bias=1.0), TEXT, Rules(file=file, max_changed=0.2)).queries == 2
    assert attack(WeightVictim({}, bias=1.0), TEXT, Rules(file=file, budget=0.1, max_changed=0.9)).queries == 1


def test_a_replacement_that_the_constraint_refuses_is_left_out(file: str) -> None:
    named = make_attack(f"rules:file={file},budget=0.2", constraint="edit-distance(10)")
    result = attack(WeightVictim({}, bias=1.0), TEXT, named.attack)
    assert result.trial.reason == "not fooled by 2 replaced words"  # great -> big costs 5, film -> movie 4, funny 9


def test_an_article_that_is_put_right_is_within_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    write_rules(path, RuleSet((Rule("positive", "film", "epic", 2.0), Rule("positive", "great", "big", 1.0))))
    victim = WeightVictim({}, bias=1.0)
    attack(victim, "a film of great", Rules(file=str(path), budget=0.25, repair_articles=True))
    assert victim.asked[1:] == ["a film of big"]  # "an epic" would be two words of four


def test_texts_that_no_rule_fits(file: str, tmp_path: Path) -> None:
    victim = WeightVictim({}, bias=1.0)
    assert attack(victim, "nothing of that kind here", Rules(file=file)).trial.reason == "no word can be replaced"
    assert attack(victim, "great", Rules(file=file)).trial.reason == (
        "the share of changed words does not allow even one"
    )
    one_class = tmp_path / "one.jsonl"
    write_rules(one_class, RuleSet(RULES.rules[:1]))
    result = attack(WeightVictim({}, bias=-1.0), TEXT, Rules(file=str(one_class)), label=0)
    assert result.trial.reason == "there is no rule for the class negative"


def test_labels_of_rules_are_matched_to_classes_as_those_of_data_are(tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    write_rules(path, RuleSet((Rule("POS", "great", "big", 3.0), Rule("0", "dull", "slow", 3.0))))
    assert rule_labels(str(path), ("negative", "positive")) == {1: "POS", 0: "0"}
    assert attack(WeightVictim({"great": 1.0, "big": -1.0}), TEXT, Rules(file=str(path))).trial.status == "success"


def test_rules_for_classes_that_the_model_does_not_have_are_refused(file: str, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r'the label "positive" \(found: positive, negative\), which is no class of the '
    ):
        rule_labels(file, ("sports", "world"))
    twice = tmp_path / "twice.jsonl"
    write_rules(twice, RuleSet((Rule("pos", "great", "big", 1.0), Rule("positive", "great", "big", 1.0))))
    with pytest.raises(DataError, match=r'rules for "pos" and for "positive", which are the same class of the model'):
        rule_labels(str(twice), ("negative", "positive"))


def test_rules_for_other_classes_than_those_of_the_data_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    write_rules(path, RuleSet(RULES.rules[:2]))
    problem = "The rules are for the labels positive, but the data have only texts of negative"
    with pytest.raises(DataError, match=problem):
        Rules(file=str(path)).check_classes(("negative", "positive"), {"negative"})
    Rules(file=str(path)).check_classes(("negative", "positive"), {"negative", "positive"})


def predict(texts: list[str]) -> list[list[float]]:
    return [[0.2, 0.8] if "great" in text else [0.8, 0.2] for text in texts]


DATA = [("a great film of our time", "positive"), ("a dull film of our time", "negative")]
MODEL = {"model_options": st.ModelOptions(labels=["negative", "positive"]), "similarity": False}


def test_a_run_checks_the_classes_before_anything_is_attacked(file: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(DataError, match='the label "positive"'):
        st.attack(
            predict, [("a", "x")], f"rules:file={file}", out=out, model_options=st.ModelOptions(labels=["x", "y"])
        )
    assert not out.exists()
    write_rules(file, RuleSet(RULES.rules[:1]))
    with pytest.raises(DataError, match="but the data have only texts of negative"):
        st.attack(predict, DATA[1:], f"rules:file={file}", out=out, **MODEL)  # type: ignore[arg-type]
    assert not out.exists()


def test_a_run_is_not_resumed_with_other_rules(file: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = st.attack(predict, DATA, f"rules:file={file}", out=out, **MODEL)  # type: ignore[arg-type]
    assert result.summary["attacks"]["rules"]["success_rate"]["value"] == 0.5  # no word of the second has a rule
    write_rules(file, RuleSet(RULES.rules[:2]))
    with pytest.raises(RunError, match="rules"):
        st.attack(predict, DATA, f"rules:file={file}", out=out, resume=True, **MODEL)  # type: ignore[arg-type]


def test_options_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="needs a file of rules: write it, as in rules:file=rules"):
        make_attack("rules").described()
    with pytest.raises(OptionError, match="The budget is 30, expected a share of the words above 0"):
        make_attack("rules:budget=30")
    with pytest.raises(OptionError, match="The option judge of rules cannot be 'last'"):
        make_attack("rules:judge=last")
    with pytest.raises(DataError, match="There is no file of rules"):
        make_attack(f"rules:file={tmp_path / 'none.jsonl'}").described()
    with pytest.raises(OptionError, match="The budget is 2, expected a share of the words above 0"):
        make_attack("random-synonyms:budget=2")


def test_of_a_pair_only_the_hypothesis_changes(file: str) -> None:
    data = [("a great show", "a great film of our time", "positive"), ("a dull show", "a dull film", "negative")]
    frame = [{"premise": premise, "hypothesis": text, "label": label} for premise, text, label in data]
    result = st.attack(
        lambda pairs: [[0.2, 0.8] if "great" in text else [0.8, 0.2] for _, text in pairs],
        frame,
        f"rules:file={file}",
        **MODEL,  # type: ignore[arg-type]
    )
    (success,) = result.records(None, "success")
    assert success.adversarial == "a big film of our time"


def test_random_synonyms_stay_within_the_budget_and_depend_on_the_seed_alone() -> None:
    victim = WeightVictim({}, bias=1.0)
    asked = []
    for seed in (0, 0, 1):
        victim.asked.clear()
        result = attack(victim, TEXT, RandomSynonyms(judge="final"), seed=seed)
        assert result.queries == 1
        assert result.trial.reason == "not fooled by 3 replaced words"
        asked.append(str(victim.asked[1]))
    assert asked[0] == asked[1] != asked[2]
    assert len(Text.parse(asked[0])) == len(Text.parse(TEXT))


def test_random_synonyms_do_not_depend_on_batches() -> None:
    data = [(f"{word} and funny film of a great time", "positive") for word in ("a", "the", "one", "this", "that")]

    def odd(texts: list[str]) -> list[list[float]]:
        return [[0.4, 0.6] if len(text) % 3 else [0.6, 0.4] for text in texts]

    runs = [
        st.attack(odd, data, "random-synonyms", concurrency=concurrency, **MODEL)  # type: ignore[arg-type]
        for concurrency in (1, 64)
    ]
    first, second = ([(record.id, record.status, record.adversarial) for record in run.records()] for run in runs)
    assert first == second
