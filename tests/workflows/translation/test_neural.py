"""Attacks on networks: the same results for every concurrency, long sources, keywords outside of the vocabulary."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import stockade as st
from stockade.workflows.translation.result import TranslationResult
from tests.models.translation.kit import ARCHITECTURES, number_pairs, tiny_translator

ATTACKS = ["mt-keyword:words=2,sample=4,most=4", "mt-typo@full", "mt-untargeted:words=1,sample=4,most=4"]


@cache
def victim(architecture: str, **sizes: Any) -> Any:
    return tiny_translator(architecture, **sizes)


def attack(model: Any, pairs: list[tuple[str, str]], attacks: Any = ATTACKS, **options: Any) -> TranslationResult:
    result = st.attack(model, pairs, attacks, similarity=False, **options)
    assert isinstance(result, TranslationResult)
    return result


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_concurrency_changes_nothing(architecture: str) -> None:
    pairs = number_pairs(8, seed=3)
    alone, together = (attack(victim(architecture), pairs, concurrency=count) for count in (1, 16))
    assert list(alone.rows()) == list(together.rows())
    assert any(record.adversarial is not None for record in together.records())
    assert together.verify(victim(architecture)).holds


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_keyword_outside_the_vocabulary_is_wanted_by_its_sub_words(architecture: str) -> None:
    network, tokenizer = victim(architecture)
    assert len(tokenizer("Xylophon", add_special_tokens=False)["input_ids"]) > 3
    result = attack((network, tokenizer), number_pairs(3), "mt-keyword:keyword=Xylophon,words=1,sample=4,most=4")
    assert {record.status for record in result.records()} == {"failed"}
    assert all(record.keyword == "Xylophon" and record.queries > 8 for record in result.records())


def test_of_a_source_longer_than_the_model_only_what_is_read_changes() -> None:
    model = tiny_translator("bilstm-mt", max_source_tokens=5)
    source = " ".join(["one two three four five six"] * 4)
    result = attack(model, [(source, "eins")] * 4, ["mt-typo@full", "mt-untargeted:words=1,sample=4,most=4"])
    changed = [record for record in result.records() if record.adversarial is not None]
    visible = st.load_translator(model).visible_words([st.Text.parse(source)])[0]  # type: ignore[attr-defined]
    assert len(visible) < 6
    assert changed
    assert all(edit.index in visible for record in changed for edit in record.edits)
