"""What is read off the inside of a model is what the model itself says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stockade.core.errors import ModelError
from stockade.core.text import Text
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.models.internals import attention_inputs, hidden_by_word, kind_of, self_attention
from tests.studies.attention.toys import toy_bert, toy_lstm

TEXT = Text.parse("greatly bad films .")


@pytest.fixture
def bert() -> HuggingFaceClassifier:
    return HuggingFaceClassifier(*toy_bert())


def test_kinds(bert: HuggingFaceClassifier) -> None:
    assert kind_of(bert) == "self-attentive"
    assert kind_of(HuggingFaceClassifier(*toy_lstm())) == "recurrent"
    assert kind_of(lambda texts: texts) == "other"


def test_a_word_has_the_mean_of_its_tokens_in_every_layer(bert: HuggingFaceClassifier) -> None:
    by_text = hidden_by_word(bert, [TEXT, Text.parse("a film")])
    tokens = bert.tokenizer("greatly bad films .", return_tensors="pt")
    assert tokens["input_ids"].shape[1] == 8  # [CLS] great ##ly bad film ##s . [SEP]
    with torch.no_grad():
        layers = bert.model(**tokens, output_hidden_states=True).hidden_states
    assert len(by_text[0]) == len(layers) == 3
    for vectors, layer in zip(by_text[0], layers, strict=True):
        wanted = torch.stack([layer[0, 1:3].mean(0), layer[0, 3], layer[0, 4:6].mean(0)])
        np.testing.assert_allclose(vectors, wanted.numpy(), atol=1e-4)
    assert [layer.shape[0] for layer in by_text[1]] == [2, 2, 2]


def test_words_beyond_the_window_are_not_known(bert: HuggingFaceClassifier) -> None:
    layers = hidden_by_word(bert, [Text.parse("film " * 30)])[0]
    assert np.isfinite(layers[0][21]).all()
    assert np.isnan(layers[-1][29]).all()


def test_layers_of_different_width(bert: HuggingFaceClassifier) -> None:
    lstm = HuggingFaceClassifier(*toy_lstm())
    layers = hidden_by_word(lstm, [TEXT])[0]
    assert [layer.shape for layer in layers] == [(3, layers[0].shape[1]), (3, 16)]


def test_a_model_that_shows_no_layers_is_told_apart(
    bert: HuggingFaceClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = bert.model.forward

    def without(input_ids: object = None, attention_mask: object = None, **options: object) -> object:
        options["output_hidden_states"] = False
        return forward(input_ids=input_ids, attention_mask=attention_mask, **options)

    monkeypatch.setattr(bert.model, "forward", without)
    with pytest.raises(ModelError, match="shows no hidden vectors"):
        hidden_by_word(bert, [TEXT])


def test_the_weights_and_inputs_give_the_models_own_attention(bert: HuggingFaceClassifier) -> None:
    bert.model.set_attn_implementation("eager")
    layers = self_attention(bert)
    inputs = attention_inputs(bert, [TEXT], 100)
    tokens = bert.tokenizer(str(TEXT), return_tensors="pt")
    with torch.no_grad():
        attentions = bert.model(**tokens, output_attentions=True).attentions
    assert (len(layers), layers[0].heads) == (2, 2)
    for number, layer in enumerate(layers):
        for head in range(layer.heads):
            query, key = layer.of_head(head)
            vectors = inputs[number]
            scores = (vectors @ query) @ (vectors @ key).T / np.sqrt(query.shape[1])  # biases of the toy are zero
            softmax = torch.from_numpy(scores).softmax(1).numpy()
            np.testing.assert_allclose(softmax, attentions[number][0, head].numpy(), atol=1e-4)
    assert all(len(rows) == 3 for rows in attention_inputs(bert, [TEXT, TEXT], 3))
