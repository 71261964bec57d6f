"""Rules held against data: counts, PMI and log-odds computed by hand, the texts behind them, rules that nothing has."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import stockade as st
from stockade.core.errors import DataError, OptionError
from stockade.core.text import Text
from stockade.lexicon.association import count_words
from stockade.lexicon.rules import Rule, RuleSet, write_rules
from stockade.workflows.mine.explain import explain_rules
from stockade.workflows.mine.explain_page import findings, marked_words
from stockade.workflows.mine.word_use import log_odds
from tests.workflows.mine.toys import MeanVictim

DATA = [
    ("a funny film", "positive"),
    ("Funny , and funny again", "positive"),
    ("very funny", "positive"),
    ("a good story", "positive"),
    ("a laughable film", "negative"),
    ("a funny mess", "negative"),
    ("dull", "negative"),
    ("so dull", "negative"),
]
FUNNY = Rule("positive", "funny", "laughable", 3.0, 12)
RULES = RuleSet(
    (
        FUNNY,
        Rule("positive", "funny", "comical", 2.0),
        Rule("negative", "dull", "slow", 1.0),
        Rule("negative", "tedious", "slow", 4.0),
    ),
    {"method": "uawr"},
)


def test_counts_pmi_and_odds_of_both_words_are_what_a_person_computes() -> None:
    explained = explain_rules(RULES, DATA)
    funny = explained.rules[0]
    assert funny.before.texts == {"negative": 1, "positive": 3}
    assert funny.after.texts == {"negative": 1, "positive": 0}
    tokens = sum(len(Text.parse(text)) for text, _ in DATA)
    # df/N_z * T / (tf * p(z)): the word stands 5 times, half of the texts are positive.
    assert funny.before.pmi["positive"] == pytest.approx(math.log2(3 / 4 * tokens / (5 * 0.5)), abs=1e-3)
    assert funny.after.pmi["positive"] == 0
    # (3 + .5)(3 + .5) / ((1 + .5)(1 + .5)); the standard error is sqrt(2/3.5 + 2/1.5).
    assert funny.before.log_odds.value == pytest.approx(math.log2(3.5 * 3.5 / (1.5 * 1.5)), abs=1e-4)
    half = 1.96 * math.sqrt(2 / 3.5 + 2 / 1.5) / math.log(2)
    assert funny.before.log_odds.low == pytest.approx(funny.before.log_odds.value - half, abs=1e-3)
    assert not funny.before.log_odds.is_clear


def test_a_word_of_one_class_alone_is_clearly_tied_to_it() -> None:
    texts = [("positive", Text.parse("funny"))] * 30 + [("negative", Text.parse("film"))] * 30
    counts = count_words(texts)
    assert log_odds(counts, "funny", "positive").low > 0
    assert log_odds(counts, "funny", "negative").high < 0
    assert log_odds(counts, "absent", "positive").value == 0
    data = [("so funny", "positive")] * 30 + [("a film", "negative")] * 30
    explained = explain_rules(RuleSet((FUNNY, Rule("positive", "film", "movie", 9.0))), data)
    assert [rule.before.word for rule in explained.tied_words] == ["funny"]
    assert "“funny” (texts: 0 negative, 30 positive" in findings(explained)[1]


def test_the_texts_behind_a_rule_are_those_of_its_class_and_of_others_with_the_replacement() -> None:
    explained = explain_rules(RULES, DATA)
    assert [(item.id, item.index) for item in explained.sentences[FUNNY.key]] == [("0", 1), ("1", 0), ("2", 1)]
    assert [item.id for item in explained.counterparts[FUNNY.key]] == ["4"]
    assert ("positive", "funny", "comical") not in explained.sentences, "of a word only the strongest rule"
    markdown = explained.document().to_markdown()
    assert "a **funny** film" in markdown
    assert "laughable, in negative: a «laughable» film" in markdown


def test_a_rule_that_no_text_contains_is_said() -> None:
    explained = explain_rules(RULES, DATA)
    assert [rule.rule.word for rule in explained.unused] == ["tedious"]
    assert "1 rule has a word that no text of their class contains: tedious (negative)." in findings(explained)
    assert "tedious" in explained.document().to_html()


def test_rules_for_other_classes_are_left_out_and_said() -> None:
    mixed = RuleSet((FUNNY, Rule("neutral", "film", "movie", 1.0)))
    assert explain_rules(mixed, DATA).foreign == 1
    assert "1 rule is for classes that the data do not have, and left out." in findings(explain_rules(mixed, DATA))
    with pytest.raises(DataError, match="The rules are for the labels neutral"):
        explain_rules(RuleSet((Rule("neutral", "film", "movie", 1.0),)), DATA)


def test_only_the_top_words_have_texts_and_json_has_everything() -> None:
    explained = explain_rules(RULES, DATA, top=1)
    assert [rule.rule.word for rule in explained.strongest] == ["funny", "tedious"]
    content = json.loads(explained.document().to_json())
    assert content["texts"] == {"negative": 4, "positive": 4}
    assert content["explained"][0]["before"]["pmi"]["negative"] > 0
    assert content["explained"][0]["sentences"][0]["text"] == "a funny film"
    assert content["unused"] == [["negative", "tedious", "slow"]]
    with pytest.raises(OptionError, match="--top is 0"):
        explain_rules(RULES, DATA, top=0)


def test_a_file_and_the_folder_of_a_mining_job_are_read(tmp_path: Path) -> None:
    write_rules(tmp_path / "rules.jsonl", RULES)
    assert explain_rules(tmp_path / "rules.jsonl", DATA).rules == explain_rules(RULES, DATA).rules
    st.mine_rules(MeanVictim({"funny": (0.0, 1.0)}), DATA, out=tmp_path / "job")
    explained = explain_rules(tmp_path / "job", DATA)
    assert explained.name == str(tmp_path / "job" / "rules.jsonl")
    assert explained.provenance["method"] == "uawr"


def test_numbered_labels_are_called_what_they_were_when_the_rules_were_mined(tmp_path: Path) -> None:
    numbered = [(text, int(label == "positive")) for text, label in DATA]
    mined = st.mine_rules(MeanVictim({"funny": (0.0, 1.0)}), numbered, out=tmp_path / "job")
    assert mined.rules().provenance["label_map"] == {"0": "negative", "1": "positive"}
    explained = explain_rules(tmp_path / "job", numbered)
    assert explained.texts == {"negative": 4, "positive": 4}
    with pytest.raises(DataError, match="--label-map"):
        explain_rules(RULES, numbered)
    named = st.DataOptions(label_map={"0": "negative", "1": "positive"})
    assert explain_rules(RULES, numbered, data_options=named).texts == {"negative": 4, "positive": 4}


def test_marked_words_keep_punctuation_with_the_words_it_belongs_to() -> None:
    text = Text.parse('one of [ spears\' ] "great" films -- (really), he said .')
    words = marked_words(text, text.words.index("great"))
    assert " ".join(word.text for word in words) == 'one of [ spears\' ] "great" films -- (really), he said .'
    assert [word.text for word in words if word.marked] == ['"great"']
    long = Text.parse(" ".join(f"w{number}" for number in range(100)))
    around = marked_words(long, 50)
    assert (around[0].text, around[1].text, around[-2].text, around[-1].text) == ("…", "w30", "w70", "…")
