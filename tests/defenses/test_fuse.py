"""FuSE: a text and its alternatives, each with the same weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stockade.core.errors import ModelError
from stockade.defenses.chain import wrap
from stockade.defenses.defended import Defended
from stockade.defenses.fuse import Fuse
from stockade.defenses.registry import make_defense
from stockade.models.huggingface import HuggingFaceClassifier
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import WeightVictim

from .firebert_kit import OpenVictim, log_odds, sigmoid, write_table

WEIGHTS = {"great": 3.0, "good": -1.0, "fine": -0.5, "film": 0.1}
"""Of "great film": 3.1; "good film": -0.9; "fine film": -0.4 log-odds."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_table(tmp_path_factory.mktemp("table"))


def fuse(table: str, **options: Any) -> Fuse:
    plain = {"perturb_words": 1, "candidates": 2, "match_pos": False, "similarity": "off", "neighbours": table}
    return Fuse(**{**plain, **options})


def test_the_text_counts_as_much_as_each_alternative(table: str) -> None:
    victim = OpenVictim(WEIGHTS)
    (row,) = Defended(name="fuse", defense=fuse(table, combine="logit"), inner=victim).predict_proba(["great film"])
    assert log_odds(row) == pytest.approx((3.1 - 0.9 - 0.4) / 3)
    (row,) = Defended(name="fuse", defense=fuse(table, combine="vote"), inner=victim).predict_proba(["great film"])
    assert row == pytest.approx([2 / 3, 1 / 3])
    (row,) = Defended(name="fuse", defense=fuse(table, combine="probability"), inner=victim).predict_proba(
        ["great film"]
    )
    assert row[1] == pytest.approx((sigmoid(3.1) + sigmoid(-0.9) + sigmoid(-0.4)) / 3)


def test_what_is_asked_is_the_text_and_its_alternatives(table: str) -> None:
    victim = OpenVictim(WEIGHTS)
    Defended(name="fuse", defense=fuse(table), inner=victim).predict_proba(["A great, great film!"])
    assert sorted(map(str, victim.asked)) == ["A fine, great film!", "A good, great film!", "A great, great film!"]


def test_a_text_without_alternatives_is_answered_as_it_is(table: str) -> None:
    victim = OpenVictim(WEIGHTS)
    texts = ["", "zebra", "the"]
    assert Defended(name="fuse", defense=fuse(table), inner=victim).predict_proba(texts) == pytest.approx(
        victim.predict_proba(texts)
    )


def test_answers_stay_with_their_texts_in_any_order_and_batch(table: str) -> None:
    """Text number k is answered by alternatives of text number k, on a model with a real tokenizer."""
    model = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer())
    defended = Defended(name="fuse", defense=fuse(table, total_alternatives=2, perturb_words=2), inner=model)
    texts = ["The film, was great!", "(great) -- film", "a bad film... not great", "film", "great", "is great; film"]
    together = defended.predict_proba(texts)
    assert defended.predict_proba(texts[::-1])[::-1] == pytest.approx(together, abs=1e-6)
    for text, row in zip(texts, together, strict=True):
        assert defended.predict_proba([text])[0] == pytest.approx(row, abs=1e-6)
    assert not np.allclose(together, model.predict_proba(texts), atol=1e-3)


def test_fresh_draws_differ_and_fixed_ones_do_not(table: str) -> None:
    options = {"candidates": 2, "total_alternatives": 1}
    fresh = Defended(name="fuse", defense=fuse(table, **options), inner=OpenVictim(WEIGHTS))
    assert not fresh.deterministic
    rows = {
        tuple(
            Defended(name="fuse", defense=fuse(table, **options), inner=OpenVictim(WEIGHTS), seed=seed).predict_proba(
                ["great film"]
            )[0]
        )
        for seed in range(12)
    }
    assert len(rows) == 2  # one of "good" and "fine"
    assert Defended(name="fuse", defense=fuse(table, **options, draws="fixed"), inner=OpenVictim(WEIGHTS)).deterministic


def test_it_stands_around_another_defense(table: str) -> None:
    """Inside, mask-top answers each text with the mean of it and of it without its top word."""
    victim = OpenVictim(WEIGHTS)
    inner = make_defense("mask-top", copies=1)
    outer = make_defense("fuse", perturb_words=1, candidates=2, match_pos=False, similarity="off", neighbours=table)
    (row,) = wrap(victim, [outer, inner]).predict_proba(["great film"])
    inside = [(odds + 0.1) / 2 for odds in (3.1, -0.9, -0.4)]
    assert log_odds(row) == pytest.approx(sum(inside) / 3)


def test_presets_say_what_the_paper_says() -> None:
    paper, mnli, imdb = (make_defense(f"fuse@{name}").options for name in ("paper", "mnli", "imdb"))
    assert paper == mnli
    names = ("perturb_words", "candidates", "similarity", "total_alternatives", "combine")
    assert [mnli[name] for name in names] == [2, 10, "filter", 14, "logit"]
    assert [imdb[name] for name in names] == [3, 10, "filter", 12, "probability"]
    authors = make_defense("fuse@authors").options
    assert [authors[name] for name in ("importance", "total_alternatives", "multiplier")] == ["half_sq_norm", 5, 3]


def test_the_surrogate_shows_mean_probabilities() -> None:
    assert Fuse(combine="vote").surrogate() == Fuse(combine="probability")


def test_a_black_box_is_refused() -> None:
    with pytest.raises(ModelError, match="fuse needs the model's gradients"):
        wrap(WeightVictim({}), [make_defense("fuse")])
