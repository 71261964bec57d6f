"""Rules on data without a model, and the verdict on a model by hand-computed intervals."""

from __future__ import annotations

from pathlib import Path

import pytest

import stockade as st
from stockade.attacks.rules import Rules
from stockade.core.errors import DataError, OptionError
from stockade.lexicon.rules import Rule, RuleSet, write_rules
from stockade.workflows.rules import ClassCounts, RuleTest, judge_rules

RULES = RuleSet(
    (
        Rule("positive", "great", "big", 3.0),
        Rule("positive", "film", "movie", 2.0),
        Rule("positive", "splendid", "fine", 2.0),
        Rule("negative", "dull", "slow", 1.0),
    )
)
DATA = [("A great film of our time", "positive"), ("a dull, dull film", "negative"), ("so so", "positive")]


def test_each_text_is_changed_by_the_rules_of_its_class() -> None:
    applied = st.apply_rules(RULES, DATA, budget=0.5)
    assert len(applied) == 3
    assert [text.row() for text in applied] == [
        {
            "id": "0",
            "text": "A big movie of our time",
            "label": "positive",
            "original": "A great film of our time",
            "changed": "great -> big; film -> movie",
        },
        {
            "id": "1",
            "text": "a slow, slow film",
            "label": "negative",
            "original": "a dull, dull film",
            "changed": "dull -> slow; dull -> slow",
        },
        {"id": "2", "text": "so so", "label": "positive", "original": "so so", "changed": ""},
    ]
    assert [str(text.text) for text in st.apply_rules(RULES, DATA, budget=0.3)] == [
        "A big film of our time",
        "a slow, dull film",
        "so so",
    ]


def test_rules_that_no_text_contains_are_told() -> None:
    assert st.apply_rules(RULES, DATA).unused_rules() == [RULES.rules[2]]
    assert st.apply_rules(RULES, DATA[:1]).unused_rules() == [RULES.rules[2], RULES.rules[3]]
    swapped = [(text, {"positive": "negative", "negative": "positive"}[label]) for text, label in DATA]
    assert st.apply_rules(RULES, swapped).unused_rules() == [RULES.rules[0], RULES.rules[2], RULES.rules[3]]


def test_pairs_keep_their_premise() -> None:
    data = [{"premise": "A great show", "hypothesis": "a great film", "label": "positive"}]
    (text,) = st.apply_rules(RULES, data, budget=1.0)
    assert text.row() == {
        "id": "0",
        "premise": "A great show",
        "hypothesis": "a big movie",
        "label": "positive",
        "original": "a great film",
        "changed": "great -> big; film -> movie",
    }


def test_labels_of_data_are_renamed_to_those_of_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    write_rules(path, RULES)
    numbered = [(text, int(label == "positive")) for text, label in DATA]
    with pytest.raises(DataError, match="for the labels positive, negative, but the data have only texts of 0, 1"):
        st.apply_rules(path, numbered)
    options = st.DataOptions(label_map={"1": "positive", "0": "negative"})
    assert next(iter(st.apply_rules(path, numbered, data_options=options))).label == "positive"
    with pytest.raises(OptionError, match="The budget is 30"):
        st.apply_rules(path, DATA, budget=30)


def outcome(changed: int, fooled: int, max_success: float = 0.2, min_texts: int = 30) -> RuleTest:
    return RuleTest((ClassCounts("positive", changed + 5, changed, fooled),), max_success, min_texts)


@pytest.mark.parametrize(
    ("changed", "fooled", "verdict", "sentence"),
    [
        (
            100,
            5,
            "pass",
            "Pass: 5 of 100 changed texts fool the model (5.0 %, 95 % interval 2.2–11.2 %), 20 % allowed.",
        ),
        (100, 12, "pass", "(12.0 %, 95 % interval 7.0–19.8 %)"),
        (100, 13, "cannot tell", "and the interval has the 20 % allowed in it. Give more data."),
        (100, 28, "cannot tell", "(28.0 %, 95 % interval 20.1–37.5 %)"),
        (100, 29, "fail", "Fail: 29 of 100 changed texts fool the model"),
        (30, 0, "pass", "(0.0 %, 95 % interval 0.0–11.4 %)"),
        (29, 0, "cannot tell", "change only 29 texts that the model gets right, expected at least 30."),
        (29, 29, "cannot tell", "Give more data, or rules that fit it."),
        (0, 0, "cannot tell", "change only 0 texts"),
    ],
)
def test_the_verdict_is_that_of_the_whole_interval(changed: int, fooled: int, verdict: str, sentence: str) -> None:
    test = outcome(changed, fooled, max_success=0.2 if fooled != 28 else 0.21)
    assert test.verdict == verdict
    assert sentence in test.sentence()


def test_the_page_has_a_sentence_and_a_table() -> None:
    test = RuleTest((ClassCounts("negative", 50, 40, 1), ClassCounts("positive", 70, 60, 4)), 0.2, 30, errors=2)
    page = test.document().to_markdown()
    assert "Pass: 5 of 100 changed texts" in page
    assert "2 texts ended in an error and count nowhere." in page
    assert "| all | 120 | 100 | 5 | 5.0 %" in page


@pytest.mark.parametrize(("max_success", "min_texts"), [(0, 30), (1, 30), (20, 30), (float("nan"), 30), (0.2, 0)])
def test_limits_that_cannot_be(max_success: float, min_texts: int) -> None:
    result = st.attack(predict, DATA, "random-synonyms", similarity=False, model_options=LABELS)
    with pytest.raises(OptionError, match="expected"):
        judge_rules(result, max_success, min_texts)


LABELS = st.ModelOptions(labels=["negative", "positive"])


def predict(texts: list[str]) -> list[list[float]]:
    return [[0.9, 0.1] if "dull" in text or "movie" in text else [0.1, 0.9] for text in texts]


@pytest.mark.parametrize("judge", ["any-prefix", "final"])
def test_only_texts_that_are_right_and_changed_are_counted(tmp_path: Path, judge: str) -> None:
    path = tmp_path / "rules.jsonl"
    write_rules(path, RULES)
    data = [*DATA, ("one film of great worth", "negative"), ("our time", "positive"), ("a splendid time", "positive")]
    attack = Rules(file=str(path), budget=0.5, judge=judge)  # type: ignore[arg-type]
    result = st.attack(predict, data, attack, similarity=False, model_options=LABELS)
    test = judge_rules(result, 0.5, 1)
    # the first positive and the first negative are fooled, "splendid" is changed in vain, "so so" and "our time" stay
    assert test.counts == (ClassCounts("negative", 1, 1, 1), ClassCounts("positive", 4, 2, 1))
