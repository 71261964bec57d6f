"""Where rules are scored: every place counted, a fair sample of them that depends on nothing but the seed."""

from __future__ import annotations

from collections import Counter
from random import Random

from stockade.core.example import Example
from stockade.core.text import Text
from stockade.lexicon.synonyms import same_pos_synonyms
from stockade.workflows.mine.occurrences import ScoringPlan, plan_scoring, substitutes
from stockade.workflows.mine.scoring import chunked

SENTENCES = ("a funny film", "the film is funny", "they film a funny story", "no story")


def examples(texts: tuple[str, ...] = SENTENCES, times: int = 5) -> list[Example]:
    return [
        Example(str(number), Text.parse(text), number % 2) for number, text in enumerate(texts[:4] * times, start=0)
    ]


def plan(texts: list[Example], min_count: int = 1, max_count: int | None = None, seed: int = 0) -> ScoringPlan:
    return plan_scoring(texts, min_count=min_count, max_count=max_count, seed=seed)


def scored(texts: list[Example], made: ScoringPlan) -> Counter[tuple[str, str]]:
    """How often each rule is scored, by its words."""
    rules = [made.candidates[item.rule] for item in made.occurrences(texts)]
    return Counter((rule.word, rule.replacement) for rule in rules)


def test_every_synonym_of_every_word_is_a_candidate_as_for_pwws() -> None:
    texts = examples()
    made = plan(texts)
    expected: Counter[tuple[int, str, str]] = Counter()
    for example in texts:
        for index, names in same_pos_synonyms(example.text.words).items():
            expected.update((example.label, example.text.words[index], name) for name in names)
    assert {(rule.label, rule.word, rule.replacement): rule.occurrences for rule in made.candidates} == expected
    assert sum(scored(texts, made).values()) == sum(expected.values())


def test_rules_below_the_minimum_are_never_scored() -> None:
    texts = examples()
    made = plan(texts, min_count=6)
    assert made.candidates
    assert all(rule.occurrences >= 6 for rule in made.candidates)
    assert {rule.word for rule in made.candidates} < {rule.word for rule in plan(texts).candidates}


def test_a_cap_takes_exactly_so_many_places_of_each_rule() -> None:
    texts = examples(times=20)
    made = plan(texts, max_count=3)
    counts = Counter(item.rule for item in made.occurrences(texts))
    assert counts == {number: min(3, rule.occurrences) for number, rule in enumerate(made.candidates)}


def test_the_sample_depends_on_the_seed_alone_not_on_order_or_on_what_else_is_scored() -> None:
    texts = [Example(str(number), Text.parse(f"funny number {number}"), 0) for number in range(40)]
    shuffled = list(texts)
    Random(1).shuffle(shuffled)

    def places(made: ScoringPlan, order: list[Example]) -> set[str]:
        return {str(item.text) for item in made.occurrences(order) if made.candidates[item.rule].word == "funny"}

    chosen = places(plan(texts, max_count=4), texts)
    assert len(chosen) == 4
    assert places(plan(shuffled, max_count=4), shuffled) == chosen
    assert places(plan(texts, min_count=20, max_count=4), texts) == chosen
    assert chosen < places(plan(texts, max_count=8), texts)
    assert places(plan(texts, max_count=4, seed=1), texts) != chosen


def test_a_word_of_two_parts_of_speech_shares_the_replacements_that_both_have() -> None:
    texts = [Example("0", Text.parse("they film it"), 0), Example("1", Text.parse("a good film"), 0)]
    made = plan(texts)
    occurrences = {rule.replacement: rule.occurrences for rule in made.candidates if rule.word == "film"}
    assert occurrences["movie"] == 1
    assert occurrences["shoot"] == 1
    assert set(occurrences) == {*substitutes("film", "n"), *substitutes("film", "v")}


def test_chunks_hold_everything_once_and_do_not_grow() -> None:
    texts = examples(times=200)
    made = plan(texts)
    chunks = list(chunked(made.occurrences(texts)))
    assert len(chunks) > 1
    assert [len(chunk) for chunk in chunks[:-1]] == [2048] * (len(chunks) - 1)
    assert sum(map(len, chunks)) == sum(rule.occurrences for rule in made.candidates)
    long = [Example("0", Text.parse("funny film " * 5_000), 0)]
    for chunk in chunked(plan(long, max_count=2).occurrences(long)):
        assert sum(len(str(item.text)) for item in chunk) < 2_200_000
