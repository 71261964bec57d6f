"""The last layer for [CLS] only: the same answers, and only where nobody looks at what is left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    ElectraConfig,
    ElectraForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from stockade.core.text import Text
from stockade.models.first_token import COMPARED_TEXTS
from stockade.models.huggingface import HuggingFaceClassifier

from .conftest import WORDS, tiny_bert, tiny_tokenizer

SIZES: dict[str, Any] = {"vocab_size": len(WORDS), "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 3}
TEXTS = [" ".join(WORDS[5 + (7 * number + at) % 9] for at in range(1 + number % 6)) for number in range(80)]


def roberta() -> Any:
    torch.manual_seed(1)
    return RobertaForSequenceClassification(RobertaConfig(**SIZES, intermediate_size=24, pad_token_id=0))


def electra() -> Any:
    torch.manual_seed(2)
    return ElectraForSequenceClassification(ElectraConfig(**SIZES, embedding_size=16, intermediate_size=24))


def distilbert() -> Any:
    torch.manual_seed(3)
    config = DistilBertConfig(vocab_size=len(WORDS), dim=16, n_heads=2, n_layers=3, hidden_dim=24)
    return DistilBertForSequenceClassification(config)


def sharpened(model: Any) -> Any:
    """Weights large enough for attention and answers to depend on every token."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(6.0)
    return model


def reference(model: Any, texts: list[Any]) -> np.ndarray[Any, Any]:
    """The probabilities by the model's own forward pass, text by text."""
    tokenizer = tiny_tokenizer()
    rows = []
    for text in texts:
        sides = (text,) if isinstance(text, str) else text
        inputs = tokenizer(*sides, return_tensors="pt")
        if "token_type_ids" not in inspect.signature(model.forward).parameters:
            inputs.pop("token_type_ids")
        with torch.inference_mode():
            rows.append(model(**inputs).logits.double().softmax(1)[0].numpy())
    return np.stack(rows)


class Rows:
    """How many tokens of each text the feed-forward half of the last layer has read, batch by batch."""

    def __init__(self, module: nn.Module) -> None:
        self.tokens: list[int] = []
        forward: Callable[[Tensor], Tensor] = module.forward

        def counting(states: Tensor) -> Tensor:
            self.tokens.append(states.shape[1])
            return forward(states)

        module.forward = counting


def last_of_bert(model: Any) -> Rows:
    return Rows(model.bert.encoder.layer[-1].intermediate)


@pytest.mark.parametrize("make", [lambda: tiny_bert(num_labels=3), roberta, electra, distilbert])
def test_the_short_pass_answers_as_the_full_one_does(make: Callable[[], Any]) -> None:
    model = sharpened(make())
    victim = HuggingFaceClassifier(model, tiny_tokenizer())
    before, vectors = victim.represent(TEXTS)
    assert victim._forward.trusted
    after, again = victim.represent(TEXTS)  # by the short pass, in padded batches
    assert np.abs(before - reference(model, TEXTS)).max() < 1e-5
    assert np.abs(after - before).max() < 1e-5
    assert np.abs(again - vectors).max() < 1e-4
    assert np.ptp(before[:, 0]) > 0.01  # else equal answers would say nothing


def test_pairs_are_answered_alike() -> None:
    model = sharpened(tiny_bert())
    victim = HuggingFaceClassifier(model, tiny_tokenizer())
    victim.predict_proba(TEXTS)
    pairs: list[Any] = list(zip(TEXTS, TEXTS[::-1], strict=True))
    assert np.abs(victim.predict_proba(pairs) - reference(model, pairs)).max() < 1e-5


def test_other_tokens_are_left_out_of_the_last_layer_after_enough_texts() -> None:
    model = tiny_bert()
    rows = last_of_bert(model)
    victim = HuggingFaceClassifier(model, tiny_tokenizer())
    few = TEXTS[:40]
    victim.predict_proba(few)
    assert not victim._forward.trusted
    victim.predict_proba(few)
    assert victim._forward.trusted
    assert COMPARED_TEXTS <= 80
    rows.tokens.clear()
    victim.predict_proba(TEXTS)
    assert set(rows.tokens) == {1}


class MeanPooler(nn.Module):
    """Reads every token: what the short pass leaves out counts."""

    def forward(self, states: Tensor) -> Tensor:
        return states.mean(1)


class Narrow(nn.Module):
    """Raises on anything but whole texts."""

    def forward(self, states: Tensor) -> Tensor:
        if states.shape[1] == 1:
            raise ValueError("where are the other tokens?")
        return states[:, 0]


@pytest.mark.parametrize("pooler", [MeanPooler, Narrow])
def test_a_model_that_reads_other_tokens_is_refused(pooler: type[nn.Module]) -> None:
    model = sharpened(tiny_bert())
    model.bert.pooler = pooler()
    victim = HuggingFaceClassifier(model, tiny_tokenizer())
    texts = [text for text in TEXTS if len(text.split()) == 5]  # of one length: a mean would count padding
    for _ in range(8):
        assert np.abs(victim.predict_proba(texts) - reference(model, texts)).max() < 1e-5
    assert not victim._forward.trusted


def test_a_model_of_another_class_is_refused() -> None:
    class Special(type(tiny_bert())):  # type: ignore[misc]
        """Whatever its head does, it is not the one that is known."""

    victim = HuggingFaceClassifier(Special(tiny_bert().config), tiny_tokenizer())
    victim.predict_proba(TEXTS)
    assert not victim._forward.trusted


def test_whoever_looks_inside_sees_every_token() -> None:
    model = sharpened(tiny_bert())
    rows = last_of_bert(model)
    victim = HuggingFaceClassifier(model, tiny_tokenizer())
    victim.predict_proba(TEXTS)
    text = Text.parse("the film was great")

    def tokens(look: Callable[[], object]) -> set[int]:
        rows.tokens.clear()
        look()
        return set(rows.tokens)

    assert tokens(lambda: victim.predict_proba([str(text)])) == {1}
    assert tokens(lambda: victim.word_gradients([text], 0)) == {6}
    assert tokens(lambda: victim.word_attention([text], -1, "mean")) == {6}
    assert tokens(lambda: victim.predict_zeroed([(text, 1)])) == {6}
    hook = model.bert.encoder.register_forward_hook(lambda *_: None)
    assert tokens(lambda: victim.predict_proba([str(text)])) == {6}
    hook.remove()
    model.config.output_hidden_states = True
    assert tokens(lambda: victim.predict_proba([str(text)])) == {6}


def test_the_model_is_left_as_it_is_and_may_change() -> None:
    model = sharpened(tiny_bert())
    names, layer = [name for name, _ in model.named_modules()], model.bert.encoder.layer[-1]
    victim = HuggingFaceClassifier(model, tiny_tokenizer())
    victim.predict_proba(TEXTS)
    assert victim._forward.trusted
    assert [name for name, _ in model.named_modules()] == names
    assert model.bert.encoder.layer[-1] is layer
    model.classifier = nn.Linear(model.config.hidden_size, 2)  # after the comparison
    assert np.abs(victim.predict_proba(TEXTS) - reference(model, TEXTS)).max() < 1e-5
