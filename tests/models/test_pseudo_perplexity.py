"""Pseudo-perplexity against its formula, one piece at a time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from stockade.models.language import minilm_folder
from stockade.models.masked_lm import MaskedLM
from stockade.models.pseudo_perplexity import pseudo_perplexities

TEXTS = ("A film of great charm .", "unbelievably long-winded , and yet a film that one should see 🙂 again")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[MaskedLM, BertForMaskedLM, PreTrainedTokenizerFast]:
    torch.manual_seed(0)
    folder: Path = tmp_path_factory.mktemp("tiny")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(minilm_folder())
    size: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 66,
    }
    network = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), initializer_range=0.5, **size)).eval()
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return MaskedLM.from_pretrained(folder, "cpu"), network, tokenizer


def directly(network: BertForMaskedLM, tokenizer: PreTrainedTokenizerFast, text: str) -> float:
    """One forward pass at a time, every position scored."""
    ids = tokenizer(text)["input_ids"]
    losses = []
    for at, piece in enumerate(ids):
        if piece in tokenizer.all_special_ids:
            continue
        hidden = torch.tensor([[*ids[:at], tokenizer.mask_token_id, *ids[at + 1 :]]])
        with torch.no_grad():
            losses.append(-network(hidden).logits[0, at].log_softmax(0)[piece].item())
    return math.exp(sum(losses) / len(losses))


def test_it_is_the_formula(tiny: tuple[MaskedLM, BertForMaskedLM, PreTrainedTokenizerFast]) -> None:
    model, network, tokenizer = tiny
    assert any(token.startswith("##") for token in tokenizer.tokenize(TEXTS[1])), "a word of several pieces is wanted"
    assert "[UNK]" in tokenizer.tokenize(TEXTS[1])
    values = pseudo_perplexities(model, [TEXTS[0], TEXTS[1], TEXTS[0]])
    assert values == pytest.approx([directly(network, tokenizer, text) for text in (*TEXTS, TEXTS[0])], rel=1e-4)
    assert values[0] == values[2]


def test_what_cannot_be_scored_has_none(tiny: tuple[MaskedLM, BertForMaskedLM, PreTrainedTokenizerFast]) -> None:
    model = tiny[0]
    empty, unknown, surrogate = pseudo_perplexities(model, ["", "🙂 [MASK]", "a \ud800 film"])
    assert (empty, unknown) == (None, None)
    assert surrogate is not None
    assert pseudo_perplexities(model, []) == []


def test_a_text_too_long_is_cut(tiny: tuple[MaskedLM, BertForMaskedLM, PreTrainedTokenizerFast]) -> None:
    model = tiny[0]
    long, cut = pseudo_perplexities(model, ["film " * 100, "film " * (model._places.maximum - 2)])
    assert long == pytest.approx(cut, rel=1e-4)


def test_the_shipped_masked_lm_finds_english_more_fluent_than_shuffled_words(default_masked_lm: MaskedLM) -> None:
    english, shuffled = pseudo_perplexities(
        default_masked_lm, ["a man is playing a guitar on stage .", "stage guitar playing . man a on is a"]
    )
    assert english is not None
    assert shuffled is not None
    assert english < shuffled / 5
