"""Files of rules round-trip, bad lines are refused by number, and application follows the salience by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from stockade.core.errors import DataError, OptionError
from stockade.core.text import Text
from stockade.lexicon import json_lines
from stockade.lexicon.rules import (
    Rule,
    RuleSet,
    apply_to_text,
    load_rules,
    plan_replacements,
    read_rules,
    rules_hash,
    words_allowed,
    write_rules,
)

FUNNY = {"label": "positive", "word": "funny", "replacement": "laughable", "salience": 3.5}


def lines(*items: object) -> str:
    return "".join(f"{item if isinstance(item, str) else json.dumps(item)}\n" for item in items)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rules.jsonl"


RULES = RuleSet(
    (
        Rule("positive", "funny", "laughable", 3.5, 41),
        Rule("positive", "funny", "comic", 0.5),
        Rule("positive", "great", "big", 3.5),
        Rule("positive", "film", "movie", 1.0),
        Rule("positive", "good", "goodness", -1.0),
        Rule("negative", "film", "picture", 9.0),
    ),
    {"method": "uawr", "models": ["a", "b"], "seed": 3},
)


def test_what_is_written_is_read_again(path: Path) -> None:
    write_rules(path, RULES)
    assert read_rules(path) == RULES
    first, second = path.read_text().splitlines()[:2]
    assert json.loads(first) == {"stockade_rules": 1, "method": "uawr", "models": ["a", "b"], "seed": 3}
    assert second == '{"label": "positive", "word": "funny", "replacement": "laughable", "salience": 3.5, "count": 41}'
    before = path.read_bytes()
    write_rules(path, read_rules(path))
    assert path.read_bytes() == before


def test_a_file_that_a_person_wrote(path: Path) -> None:
    path.write_text("\ufeff# my rules\n\n" + lines(FUNNY) + "\r\n  # the end", encoding="utf-8")
    rules = read_rules(path)
    assert rules.rules == (Rule("positive", "funny", "laughable", 3.5),)
    assert rules.provenance == {}
    assert rules.labels == ("positive",)


def test_further_keys_of_a_rule_are_written_back_and_mean_nothing(path: Path) -> None:
    path.write_text(lines({"note": "from Anna", **FUNNY, "pmi": {"positive": 5.8}}))
    rules = read_rules(path)
    assert rules.rules == (Rule("positive", "funny", "laughable", 3.5),)
    write_rules(path, rules)
    assert json.loads(path.read_text().splitlines()[1]) == {**FUNNY, "note": "from Anna", "pmi": {"positive": 5.8}}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "is not JSON (expecting property name enclosed in double quotes at character 2), expected"),
        ("[" * 100_000, "is not JSON (nested too deeply"),
        ('["positive", "funny"]', 'is ["positive", "funny"], expected an object'),
        ({**FUNNY, "salience": None}, '"salience" is null, expected a finite number.'),
        ({**FUNNY, "salience": float("nan")}, '"salience" is NaN, expected a finite number.'),
        ({**FUNNY, "salience": float("inf")}, '"salience" is Infinity, expected a finite number.'),
        ({**FUNNY, "salience": 10**400}, "expected a finite number."),
        ({**FUNNY, "salience": "3"}, '"salience" is 3, expected a finite number.'),
        ({**FUNNY, "salience": True}, '"salience" is true, expected a finite number.'),
        ({**FUNNY, "label": 1}, '"label" is 1, expected a string; write "1".'),
        ({**FUNNY, "label": " "}, '"label" has 1 characters, expected 1 to 200.'),
        ({**FUNNY, "label": "\x1b[2Jpos"}, '"label" is "␛[2Jpos", expected a name without control characters.'),
        ({**FUNNY, "label": "a\nb"}, '"label" is "a␊b", expected a name without control characters.'),
        ({**FUNNY, "word": ["funny"]}, '"word" is ["funny"], expected a string.'),
        ({**FUNNY, "word": "very funny"}, '"word" is "very funny", expected a single word.'),
        ({**FUNNY, "word": "x" * 201}, '"word" has 201 characters, expected 1 to 200.'),
        ({**FUNNY, "replacement": ""}, '"replacement" has 0 characters, expected 1 to 200.'),
        ({**FUNNY, "replacement": "laugh\x00able"}, '"replacement" is "laugh␀able", expected a single word.'),
        ({**FUNNY, "replacement": "Funny"}, '"funny" would be replaced by itself, expected another word as'),
        ({**FUNNY, "count": -1}, '"count" is -1, expected a whole number or nothing.'),
        ({**FUNNY, "count": 1.5}, '"count" is 1.5, expected a whole number or nothing.'),
        ({"label": "positive", "word": "funny"}, 'has no "replacement" (found: label, word), expected {"label"'),
        ({}, 'has no "label" (found: nothing), expected {"label"'),
        ('{"label": "a", "label": "b"}', 'has the key "label" twice. Leave one of them.'),
        ({**FUNNY, "word": "FUNNY", "salience": 1}, "repeats the rule positive: FUNNY -> laughable of line 2."),
        ({"stockade_rules": 1}, 'says where the rules come from ("stockade_rules"), which only the first line may'),
    ],
)
def test_a_bad_line_is_refused_by_its_number(path: Path, line: object, sentence: str) -> None:
    path.write_text(lines("# comment", FUNNY, "", line, FUNNY))
    with pytest.raises(DataError) as refused:
        read_rules(path)
    assert str(refused.value).startswith(f"{path} line 4")
    assert sentence in str(refused.value)


def test_a_file_of_another_format_is_refused(path: Path) -> None:
    path.write_text(lines({"stockade_rules": 2}, FUNNY))
    with pytest.raises(DataError, match="line 1 has the format 2; this version of Stockade reads format 1"):
        read_rules(path)


def test_files_that_are_none(path: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no file of rules .*Make one with: stockade rules mine"):
        read_rules(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_rules(tmp_path)
    path.write_bytes(lines("#", FUNNY).encode() + b'{"label": "\xff"}')
    with pytest.raises(DataError, match="line 3 is not UTF-8"):
        read_rules(path)
    path.write_text("# nothing yet\n")
    with pytest.raises(DataError, match=r"holds no rule\. Expected one per line"):
        read_rules(path)


def test_files_without_end_are_refused(path: Path) -> None:
    path.write_text(lines(FUNNY, {**FUNNY, "word": "droll", "note": "x" * 1000}))
    tight = json_lines.Lines("file", "{}", "Make one.", longest_line=500)
    with pytest.raises(DataError, match="line 2 is longer than 500 bytes"):
        list(json_lines.read_objects(path, tight))
    with pytest.raises(DataError, match="is larger than 600 bytes"):
        list(json_lines.read_objects(path, json_lines.Lines("file", "{}", "Make one.", most_bytes=600)))


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        write_rules(tmp_path / "none" / "rules.jsonl", RULES)


def test_rules_made_in_python_are_checked_like_those_of_files() -> None:
    with pytest.raises(DataError, match='This rule cannot be used: "word" is "a b", expected a single word'):
        Rule("positive", "a b", "c", 1.0)
    with pytest.raises(DataError, match="The rule positive: Film -> movie is listed twice"):
        RuleSet((Rule("positive", "film", "movie", 1.0), Rule("positive", "Film", "movie", 2.0)))


def test_a_file_is_read_again_when_it_changes(path: Path) -> None:
    write_rules(path, RULES)
    first, fingerprint = load_rules(path), rules_hash(path)
    assert load_rules(path) is first
    write_rules(path, RuleSet(RULES.rules[:1]))
    assert len(load_rules(path)) == 1
    assert rules_hash(path) != fingerprint


def test_the_highest_salience_goes_first_and_ties_go_to_the_first_word() -> None:
    words = ["A", "great", "and", "Funny", "film", "is", "a", "good", "FILM"]
    assert plan_replacements(words, "positive", RULES, 1.0) == (
        (1, "big"),
        (3, "Laughable"),
        (4, "movie"),
        (8, "MOVIE"),
    )
    assert plan_replacements(words, "positive", RULES, 0.3) == ((1, "big"), (3, "Laughable"))  # floor(2.7) words
    assert plan_replacements(words, "negative", RULES, 0.3) == ((4, "picture"), (8, "PICTURE"))
    assert plan_replacements(words, "neutral", RULES, 0.3) == ()
    assert plan_replacements(words, "positive", RULES, 1.0, indices=[3, 7]) == ((3, "Laughable"),)


def test_equal_salience_at_one_word_goes_to_the_first_replacement_by_letters() -> None:
    rules = RuleSet((Rule("a", "film", "picture", 1.0), Rule("a", "film", "movie", 1.0)))
    assert plan_replacements(["film"], "a", rules, 1.0) == ((0, "movie"),)


def test_a_word_that_its_replacement_would_not_change_is_no_change() -> None:
    rules = RuleSet((Rule("a", "strasse", "straße", 2.0), Rule("a", "strasse", "weg", 1.0)))
    assert plan_replacements(["STRASSE", "strasse"], "a", rules, 1.0) == ((1, "straße"), (0, "WEG"))


@pytest.mark.parametrize(
    ("words", "budget", "allowed"), [(10, 0.3, 3), (9, 0.3, 2), (3, 0.3, 0), (100, 0.29, 29), (7, 1.0, 7)]
)
def test_the_budget_is_rounded_down(words: int, budget: float, allowed: int) -> None:
    assert words_allowed(words, budget) == allowed


@pytest.mark.parametrize("budget", [0.0, -0.1, 30, float("nan")])
def test_a_budget_that_is_no_share_is_refused(budget: float) -> None:
    with pytest.raises(OptionError, match="expected a share of the words above 0, at most 1, such as"):
        plan_replacements(["film"], "positive", RULES, budget)


def test_applying_keeps_everything_but_the_words() -> None:
    text = Text.parse("  Funny, funny film!\n", "a premise")
    changed = apply_to_text(text, "positive", RULES, 1.0)
    assert str(changed) == "  Laughable, laughable movie!\n"
    assert changed.premise == "a premise"
    assert [edit.index for edit in changed.edits] == [0, 1, 2]
    assert apply_to_text(text, "neutral", RULES, 1.0) is text


WORDS = some.sampled_from(["funny", "Great", "film", "GOOD", "the", "café"])


@given(some.lists(WORDS, max_size=30), some.floats(0.01, 1.0), some.sampled_from(["positive", "negative"]))
def test_a_larger_budget_only_adds_replacements(words: list[str], budget: float, label: str) -> None:
    plan = plan_replacements(words, label, RULES, budget)
    everything = plan_replacements(words, label, RULES, 1.0)
    assert len(plan) == min(words_allowed(len(words), budget), len(everything))
    assert plan == everything[: len(plan)]
    assert len({index for index, _ in everything}) == len(everything)
