"""The zoo: padding changes nothing, the fast path is the convolution, and a saved model comes back."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.models.encoding import TextEncoder
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.models.zoo.cnn import CnnConfig, CnnForSequenceClassification
from stockade.models.zoo.lstm import LstmConfig, LstmForSequenceClassification
from stockade.models.zoo.tokenizers import split_words, word_tokenizer

SIZE = 40
few = settings(max_examples=20, deadline=None)


def cnn() -> CnnForSequenceClassification:
    torch.manual_seed(1)
    return CnnForSequenceClassification(CnnConfig(vocab_size=SIZE, embedding_size=8, filters=6)).eval()


def lstm(**options: Any) -> LstmForSequenceClassification:
    torch.manual_seed(1)
    return LstmForSequenceClassification(LstmConfig(vocab_size=SIZE, embedding_size=8, hidden_size=6, **options)).eval()


MODELS: dict[str, Callable[[], Any]] = {
    "cnn": cnn,
    "lstm": lstm,
    "lstm-mean": lambda: lstm(pooling="mean"),
    "bilstm": lambda: lstm(bidirectional=True, layers=2),
}


@cache
def built(name: str) -> Any:
    return MODELS[name]()


def batch(texts: list[list[int]], width: int) -> dict[str, torch.Tensor]:
    ids = torch.tensor([text + [0] * (width - len(text)) for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (width - len(text)) for text in texts])
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("name", MODELS)
@few
@given(
    texts=st.lists(st.lists(st.integers(1, SIZE - 1), max_size=12), min_size=1, max_size=6),
    extra=st.integers(0, 9),
)
def test_logits_do_not_depend_on_padding_or_neighbours(name: str, texts: list[list[int]], extra: int) -> None:
    model = built(name)
    with torch.inference_mode():
        together = model(**batch(texts, max(1, *map(len, texts)) + extra)).logits
        alone = torch.cat([model(**batch([text], max(1, len(text)))).logits for text in texts])
    assert (together - alone).abs().max().item() <= 1e-6


@few
@given(texts=st.lists(st.lists(st.integers(1, SIZE - 1), max_size=12), min_size=1, max_size=6))
def test_the_cnns_fast_path_is_the_convolution(texts: list[list[int]]) -> None:
    model, inputs = built("cnn"), batch(texts, max(1, *map(len, texts)))
    with torch.inference_mode():
        fast = model(**inputs).logits
    slow = model(**inputs).logits
    vectors = model.get_input_embeddings()(inputs["input_ids"])
    embedded = model(inputs_embeds=vectors, attention_mask=inputs["attention_mask"]).logits
    torch.testing.assert_close(fast, slow.detach(), atol=1e-6, rtol=0)
    torch.testing.assert_close(embedded, slow)


def test_a_cnn_small_enough_to_compute_by_hand() -> None:
    model = CnnForSequenceClassification(CnnConfig(vocab_size=4, embedding_size=1, widths=[2], filters=1)).eval()
    with torch.no_grad():
        model.embedding.weight.copy_(torch.tensor([[0.0], [1.0], [2.0], [-5.0]]))
        model.convolutions[0].weight.copy_(torch.tensor([[[1.0, 10.0]]]))
        model.convolutions[0].bias.fill_(0.5)
        model.classifier.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        model.classifier.bias.zero_()
        # windows of "1 2": 1 + 20 and 2 + 0 -> 21.5; of "3": -5 + 0, cut off by the ReLU -> 0;
        # of nothing: the bias alone
        logits = model(**batch([[1, 2], [3], []], 5)).logits
    np.testing.assert_allclose(logits[:, 0], [21.5, 0.0, 0.5])
    np.testing.assert_allclose(logits[:, 1], [-21.5, 0.0, -0.5])


def test_the_tokenizer_cuts_words_and_marks_and_adds_nothing() -> None:
    assert split_words(["It's WELL-made... a_b 3D\tfilm!"]) == [
        ["it", "'", "s", "well", "-", "made", ".", ".", ".", "a", "_", "b", "3d", "film", "!"]
    ]
    tokenizer = word_tokenizer(["great", "film", "great"])
    assert tokenizer("Great unheard-of FILM")["input_ids"] == [2, 1, 1, 1, 3]
    assert tokenizer("")["input_ids"] == []
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, len(tokenizer)) == (0, 1, 4)


@few
@given(texts=st.lists(st.text(st.sampled_from("wW12 \t\n.,'-_é\u0308İΣ\u00a0\u3000中😀[PAD]UNK\x00\x1f")), max_size=5))
def test_remembered_pieces_give_the_ids_of_the_whole_text(texts: list[str]) -> None:
    tokenizer = word_tokenizer(["w", "w1", "w2", ".", "-", "é", "中"], maximum=6)
    encoder = TextEncoder.of(tokenizer, built("cnn"), ["input_ids"])
    assert encoder.pieces is not None
    for text in [*texts, "[PAD] w [UNK]w1", "w " * 9]:
        expected = tokenizer([text], truncation=True)["input_ids"][0]
        for _ in range(2):
            assert np.frombuffer(encoder.encode([text])[0].ids, dtype=np.int32).tolist() == expected


@pytest.mark.parametrize("build", [cnn, lstm])
def test_a_saved_model_comes_back_through_the_auto_classes(build: Any, tmp_path: Path) -> None:
    model, tokenizer = build(), word_tokenizer(f"w{number}" for number in range(SIZE - 2))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}
    texts = ["w1 w2 w3 w4 w5 w6", "", "W7", "w9 nothing known"]
    before, after = HuggingFaceClassifier(model, tokenizer), HuggingFaceClassifier.from_pretrained(tmp_path)
    np.testing.assert_allclose(after.predict_proba(texts), before.predict_proba(texts), atol=1e-7)
    assert after.fingerprint() == before.fingerprint()


@pytest.mark.parametrize("build", [cnn, lstm])
def test_the_models_can_be_trained(build: Any) -> None:
    model = build().train()
    loss = model(**batch([[3, 4, 5], [6]], 3), labels=torch.tensor([0, 1])).loss
    loss.backward()
    assert model.get_input_embeddings().weight.grad[0].abs().sum() == 0  # padding never learns
    assert model.classifier.weight.grad.abs().sum() > 0
