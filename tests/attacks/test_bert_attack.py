"""BERT-Attack: the best combinations without enumerating them, and a search a person can follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.attacks.bert_attack import BertAttack, best_combinations
from stockade.attacks.greedy import importance
from stockade.core.example import Scores
from stockade.core.protocols import Filling
from tests.attacks.driving import Result, attack, guesses
from tests.toys import BagEncoder, ListMaskedLM, TableVictim, WeightVictim


@given(st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=4), min_size=1, max_size=5), st.integers(1, 40))
def test_the_best_combinations_are_those_of_a_full_enumeration(scores: list[list[int]], count: int) -> None:
    pieces = [[Filling(str(s), float(s), True) for s in sorted(piece, reverse=True)] for piece in scores]
    found = [sum(filling.score for filling in row) for row in best_combinations(pieces, count)]
    everything = sorted((sum(f.score for f in row) for row in product(*pieces)), reverse=True)
    assert found == everything[:count]


def test_twelve_pieces_of_48_guesses_do_not_blow_up() -> None:
    pieces = [[Filling(str(i), float(-i), True) for i in range(48)] for _ in range(12)]
    assert len(list(best_combinations(pieces, 24))) == 24


def test_importance_adds_the_rise_of_the_class_the_model_turns_to() -> None:
    """Three classes, computed by hand."""
    clean = Scores((0.6, 0.3, 0.1))
    assert importance(clean, Scores((0.5, 0.3, 0.2)), 0) == pytest.approx(0.1)
    assert importance(clean, Scores((0.2, 0.3, 0.5)), 0) == pytest.approx((0.6 - 0.2) + (0.5 - 0.1))
    assert importance(clean, Scores((0.3, 0.6, 0.1)), 0) == pytest.approx((0.6 - 0.3) + (0.6 - 0.3))


class NoAntonyms:
    def antonyms(self, word: str) -> frozenset[str]:
        return frozenset({"terrible"}) if word == "great" else frozenset()


@pytest.fixture(autouse=True)
def wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.attacks.bert_attack.load_wordnet", NoAntonyms)


def run(
    weights: dict[str, float], table: Mapping[str, tuple[tuple[Filling, ...], ...]], option: BertAttack, string: str
) -> Result:
    return attack(WeightVictim(weights), string, option, masked_lm=ListMaskedLM(table=table), encoder=BagEncoder())


def test_the_first_guess_that_fools_the_model_is_taken_in_rank_order() -> None:
    weights = {"great": 1.0, "fine": 0.5, "bad": -1.0, "awful": -9.0}
    result = run(weights, {"great": (guesses("great", "fine", "bad", "awful"),)}, BertAttack(), "some great film")
    assert result.words == ("some", "bad", "film")
    # the original, the two words that are no function words hidden, three guesses that are not the word itself
    assert result.queries == 1 + 2 + 3


def test_a_word_without_guesses_does_not_end_the_search() -> None:
    weights = {"great": 3.0, "warm": 1.0, "bad": -9.0}
    result = run(weights, {"warm": (guesses("bad"),)}, BertAttack(), "some great warm film")
    assert result.words == ("some", "great", "bad", "film")  # "great" matters more and nothing can stand in for it


def test_pieces_stop_words_antonyms_and_unlikely_guesses_are_dropped() -> None:
    weights = {"great": 1.0, "bad": -1.0, "terrible": -9.0, "the": -9.0, "ly": -9.0, "late": -9.0}
    table = {"great": (guesses("terrible", "the", "##ly", "bad", "late", score=3.0),)}
    assert run(weights, table, BertAttack(), "some great film").words == ("some", "bad", "film")
    assert run(weights, table, BertAttack(min_score=1.0), "some great film").trial.status == "failed"
    assert run(weights, table, BertAttack(antonyms="allow"), "some great film").words == ("some", "terrible", "film")


def test_words_of_several_pieces_are_put_together_and_ranked_by_perplexity() -> None:
    first = (Filling("un", 5.0, True, 50), Filling("mis", 4.0, True, 1))
    second = (Filling("kind", 5.0, False, 2), Filling("led", 4.0, False, 3))
    weights = {"unkindly": 1.0, "unkind": -2.0, "misled": -1.0, "unled": 0.9, "miskind": 0.9}
    result = run(weights, {"unkindly": (first, second)}, BertAttack(max_changed=1.0), "some unkindly film")
    assert result.words == ("some", "misled", "film")  # perplexities 3, 4, 52, 53: miskind, misled, unkind, unled


UNKINDLY = {
    "unkindly": (
        (Filling("un", 5.0, True, 50), Filling("mis", 4.0, True, 1)),
        (Filling("kind", 5.0, False, 2), Filling("led", 4.0, False, 3)),
    )
}
"""In order of their sums of scores: unkind 10, unled and miskind 9, misled 8."""


def test_of_each_piece_only_the_best_guesses_are_combined() -> None:
    weights = {"unkindly": 1.0, "unkind": 0.9, "unled": 0.9, "miskind": 0.9, "misled": -1.0}
    first = run(weights, UNKINDLY, BertAttack(per_piece=1), "some unkindly film")
    assert (first.trial.status, first.queries) == ("failed", 1 + 2 + 1)
    assert run(weights, UNKINDLY, BertAttack(per_piece=2), "some unkindly film").words == ("some", "misled", "film")


def test_only_so_many_combinations_are_ranked() -> None:
    weights = {"unkindly": 1.0, "unkind": 0.9, "unled": 0.9, "miskind": 0.9, "misled": -1.0}
    three = run(weights, UNKINDLY, BertAttack(combinations=3), "some unkindly film")
    assert (three.trial.status, three.queries) == ("failed", 1 + 2 + 3)
    assert run(weights, UNKINDLY, BertAttack(combinations=4), "some unkindly film").words == ("some", "misled", "film")


def test_only_so_many_guesses_are_asked_for() -> None:
    weights, table = {"great": 1.0, "fine": 0.5, "bad": -1.0}, {"great": (guesses("fine", "bad"),)}
    assert run(weights, table, BertAttack(guesses=1), "some great film").trial.status == "failed"
    assert run(weights, table, BertAttack(guesses=2), "some great film").words == ("some", "bad", "film")


def test_words_are_hidden_by_the_unknown_word() -> None:
    """Hidden as "[UNK]" the model needs "great" more, hidden as "@" it needs "film"; either can be swapped."""
    hidden = {"some [UNK] film": 0.1, "some great [UNK]": 0.9, "some @ film": 0.9, "some great @": 0.1}
    victim = TableVictim(table={**hidden, "some bad film": 0.1, "some great flop": 0.1}, otherwise=0.9)
    table = {"great": (guesses("bad"),), "film": (guesses("flop"),)}
    for unknown, words in (("[UNK]", ("some", "bad", "film")), ("@", ("some", "great", "flop"))):
        method = BertAttack(unknown=unknown)
        assert attack(victim, "some great film", method, masked_lm=ListMaskedLM(table=table)).words == words


def test_stop_words_are_left_alone_unless_told_otherwise() -> None:
    weights, table = {"some": 1.0, "bad": -1.0}, {"some": (guesses("bad"),)}
    assert run(weights, table, BertAttack(), "some great film").trial.status == "failed"
    assert run(weights, table, BertAttack(stop_words="none"), "some great film").words == ("bad", "great", "film")


def test_the_whole_text_can_be_compared_with_the_original() -> None:
    """One word of three changed leaves a cosine of 0.667."""
    weights, table = {"great": 1.0, "bad": -1.0}, {"great": (guesses("bad"),)}
    assert run(weights, table, BertAttack(threshold=0.6), "some great film").words == ("some", "bad", "film")
    assert run(weights, table, BertAttack(threshold=0.7), "some great film").trial.status == "failed"


def test_a_candidate_that_does_not_help_is_taken_back() -> None:
    weights = {"alpha": 1.0, "beta": 0.5, "worse": 2.0, "gloom": -2.0}
    table = {"alpha": (guesses("worse"),), "beta": (guesses("gloom"),)}
    result = run(weights, table, BertAttack(max_changed=1.0), "alpha beta")
    assert result.words == ("alpha", "gloom")


def test_antonyms_by_vectors_are_words_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Table:
        def cosine(self, a: str, b: str) -> float | None:
            return {"bad": 0.39, "late": 0.4, "odd": 0.0}.get(b)

    monkeypatch.setattr("stockade.attacks.bert_attack.load_neighbours", Table)
    weights = {"great": 1.0, "bad": -9.0, "odd": -9.0, "late": -1.0, "unlisted": -2.0}
    by_vectors = BertAttack(antonyms="vectors")
    table = {"great": (guesses("bad", "odd", "late"),)}
    assert run(weights, table, by_vectors, "some great film").words == ("some", "late", "film")
    table = {"great": (guesses("bad", "unlisted"),)}
    assert run(weights, table, by_vectors, "some great film").words == ("some", "unlisted", "film")
    nearer = BertAttack(antonyms="vectors", min_word_cosine=0.39)
    assert run(weights, table, nearer, "some great film").words == ("some", "bad", "film")


def test_no_more_words_change_than_allowed() -> None:
    weights = {"great": 1.0, "fine": 1.0, "dull": 0.5, "flat": 0.5}
    table = {"great": (guesses("dull"),), "fine": (guesses("flat"),)}
    result = run(weights, table, BertAttack(max_changed=0.4), "great fine film")
    assert result.trial.reason == "no success with 1 changed words"


def test_the_limit_may_be_rounded_up() -> None:
    weights = {"great": 1.0, "fine": 1.0, "dull": 0.5, "flat": -9.0}
    table = {"great": (guesses("dull"),), "fine": (guesses("flat"),)}
    free = BertAttack(max_changed=0.4, round_up=True)
    assert run(weights, table, free, "great fine film").trial.status == "success"
    weights["great"] = 2.0
    assert run(weights, table, BertAttack(max_changed=0.4), "great fine film").trial.status == "failed"
    assert run(weights, table, free, "great fine film").words == ("dull", "flat", "film")


def test_the_text_is_read_again_when_asked() -> None:
    table = {"great": (guesses("dull"),), "dull": (guesses("dull"),), "film": (guesses("flop"),)}

    @dataclass
    class Counting(ListMaskedLM):
        read: list[str] = field(default_factory=list)

        def predict(
            self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]], count: int
        ) -> list[list[tuple[tuple[Filling, ...], ...]]]:
            self.read += texts
            return super().predict(texts, spans, count)

    victim = WeightVictim({"great": 2.0, "dull": 1.5, "film": 1.0, "flop": 0.9})
    for again, expected in ((False, ["great film"]), (True, ["great film", "dull film"])):
        model = Counting(table=table)
        attack(victim, "great film", BertAttack(read_again=again, max_changed=None), masked_lm=model)
        assert model.read == expected


def test_stop_words_may_be_written_when_asked() -> None:
    table = {"great": (guesses("the"),)}
    weights = {"great": 1.0, "the": -3.0}
    assert run(weights, table, BertAttack(), "some great film").trial.status == "failed"
    asked = BertAttack(write_stop_words=True)
    assert run(weights, table, asked, "some great film").words == ("some", "the", "film")
