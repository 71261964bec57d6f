"""Tiny victims made on the spot: a random two-layer BERT with a word-piece tokenizer of a few words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from stockade.models.masked_lm import MaskedLM

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "a",
    "the",
    "film",
    "was",
    "is",
    "great",
    "bad",
    "and",
    "not",
    "##ly",
    "##s",
    ".",
]


def tiny_tokenizer(maximum: int = 1_000_000_000_000) -> PreTrainedTokenizerFast:
    backend = Tokenizer(WordPiece({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=maximum,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def tiny_bert(**options: Any) -> BertForSequenceClassification:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=24, initializer_range=0.5, **sizes, **options)
    return BertForSequenceClassification(config).eval()


@pytest.fixture(scope="session")
def default_masked_lm() -> MaskedLM:
    """The masked LM of the installation, loaded once."""
    return MaskedLM.default("cpu")


@pytest.fixture
def bert() -> BertForSequenceClassification:
    return tiny_bert()


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    return tiny_tokenizer()


@pytest.fixture
def bert_folder(tmp_path: Path, bert: Any, tokenizer: Any) -> Path:
    folder = tmp_path / "tiny-bert"
    bert.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
