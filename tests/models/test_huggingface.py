"""The Hugging Face adapter: exact tokens, exact padding, digits, and one hash per model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertTokenizerLegacy, RobertaConfig, RobertaForSequenceClassification, pipeline

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import EncodingClassifier, Fingerprinted
from stockade.core.text import TextInput
from stockade.models.adapters import load_model
from stockade.models.encoding import length_batches, maximum_length
from stockade.models.huggingface import HuggingFaceClassifier

from .conftest import WORDS, tiny_bert, tiny_tokenizer

TEXTS = [
    "a great film",
    "",
    "the film was not great and the film was bad .",
    "BAD",
    "unheard of",
    "greatly films",
]


def reference(model: Any, tokenizer: Any, text: TextInput) -> Any:
    """One text alone through transformers' own front door."""
    parts = (text,) if isinstance(text, str) else text
    with torch.inference_mode():
        logits = model(
            **tokenizer(*([part] for part in parts), return_tensors="pt", truncation=True, max_length=24)
        ).logits
    return logits.double().softmax(1).numpy()[0]


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_batch_answers_like_each_text_alone_through_transformers(bert: Any, tokenizer: Any, side: str) -> None:
    tokenizer.padding_side = side
    classifier = HuggingFaceClassifier(bert, tokenizer)
    assert isinstance(classifier, EncodingClassifier)
    assert isinstance(classifier, Fingerprinted)
    probabilities = classifier.predict_proba(TEXTS)
    assert probabilities.dtype == np.float64
    expected = np.stack([reference(bert, tokenizer, text) for text in TEXTS])
    if side == "left":  # BERT counts positions from the left, so only its padding may differ: compare without any
        probabilities = np.concatenate([classifier.predict_proba([text]) for text in TEXTS])
    np.testing.assert_allclose(probabilities, expected, atol=2e-6)
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-12)


def test_pairs_carry_their_segments_and_may_stand_beside_single_texts(bert: Any, tokenizer: Any) -> None:
    classifier = HuggingFaceClassifier(bert, tokenizer)
    inputs: list[TextInput] = [
        ("the film was great", "the film was bad"),
        "the film",
        ("a", ""),
        ("the film was great", "bad"),
    ]
    expected = np.stack([reference(bert, tokenizer, text) for text in inputs])
    np.testing.assert_allclose(classifier.predict_proba(inputs), expected, atol=2e-6)
    joined, pair = classifier.encode(["the film [SEP] bad", ("the film", "bad")])
    assert joined.ids == pair.ids
    assert joined.key != pair.key


def test_equal_keys_are_the_same_text_to_the_model(bert: Any, tokenizer: Any) -> None:
    classifier = HuggingFaceClassifier(bert, tokenizer)
    first, second, other = classifier.encode(["The  film was GREAT .", "the film was great.", "the film was bad ."])
    assert first.key == second.key != other.key
    assert len(first) == 7
    rows = classifier.predict_encoded([first, second, other])
    np.testing.assert_array_equal(rows[0], rows[1])


def test_long_texts_are_cut_to_what_the_model_can_read(bert: Any, tokenizer: Any) -> None:
    classifier = HuggingFaceClassifier(bert, tokenizer)
    single, pair = classifier.encode(["film " * 100, ("film " * 100, "bad")])
    assert (len(single), len(pair)) == (24, 24)
    np.testing.assert_allclose(
        classifier.predict_proba([("film " * 100, "bad")])[0],
        reference(bert, tokenizer, ("film " * 100, "bad")),
        atol=2e-6,
    )


def test_roberta_positions_begin_behind_the_padding_index(tokenizer: Any) -> None:
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    config = RobertaConfig(vocab_size=len(WORDS), max_position_embeddings=20, pad_token_id=1, **sizes)
    model = RobertaForSequenceClassification(config)
    assert maximum_length(tokenizer, model) == 18
    HuggingFaceClassifier(model, tokenizer).predict_proba(["film " * 40])
    assert maximum_length(tiny_tokenizer(maximum=10), model) == 10


def test_probabilities_keep_their_digits_far_from_the_boundary(bert: Any, tokenizer: Any) -> None:
    with torch.no_grad():
        bert.classifier.weight.zero_()
        bert.classifier.bias.copy_(torch.tensor([20.0, 0.0]))
    row = HuggingFaceClassifier(bert, tokenizer).predict_proba(["a film"])[0]
    assert np.log(row[0] / row[1]) == pytest.approx(20.0, abs=1e-6)  # float32 probabilities would say infinity


def test_a_slow_tokenizer_gives_the_same_ids(tmp_path: Any, bert: Any) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    slow = BertTokenizerLegacy(str(tmp_path / "vocab.txt"), model_input_names=tiny_tokenizer().model_input_names)
    assert not slow.is_fast
    inputs: list[TextInput] = [*TEXTS, ("the film", "was bad"), ("the film", ""), "film " * 50]
    fast = HuggingFaceClassifier(bert, tiny_tokenizer())
    assert [encoded.key for encoded in HuggingFaceClassifier(bert, slow).encode(inputs)] == [
        encoded.key for encoded in fast.encode(inputs)
    ]


def test_one_logit_is_the_probability_of_the_second_label(tokenizer: Any) -> None:
    model = tiny_bert(num_labels=1)
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.fill_(1.0)
    classifier = HuggingFaceClassifier(model, tokenizer)
    assert classifier.labels == ("0", "1")
    np.testing.assert_allclose(classifier.predict_proba(["a"]), [[1 - 1 / (1 + np.exp(-1)), 1 / (1 + np.exp(-1))]])
    assert HuggingFaceClassifier(tiny_bert(num_labels=1, id2label={0: "toxic"}), tokenizer).labels == (
        "not toxic",
        "toxic",
    )


@pytest.mark.parametrize(
    ("kind", "word"), [("multi_label_classification", "multi-label"), ("regression", "regression")]
)
def test_models_without_exclusive_classes_are_refused(tokenizer: Any, kind: str, word: str) -> None:
    with pytest.raises(ModelError, match=word):
        HuggingFaceClassifier(tiny_bert(problem_type=kind), tokenizer)


def test_labels_come_from_the_config_and_can_be_overridden(tokenizer: Any) -> None:
    model = tiny_bert(id2label={0: "bad", 1: "good"})
    assert HuggingFaceClassifier(model, tokenizer).labels == ("bad", "good")
    assert HuggingFaceClassifier(model, tokenizer, labels=["n", "p"]).labels == ("n", "p")
    with pytest.raises(ModelError, match="2 classes but 3 labels"):
        HuggingFaceClassifier(model, tokenizer, labels=["a", "b", "c"])


def test_the_fingerprint_follows_weights_and_tokenizer_and_nothing_else(tokenizer: Any) -> None:
    first = HuggingFaceClassifier(tiny_bert(), tokenizer)
    first.predict_proba(["film " * 30])  # leaves truncation behind in the tokenizer
    assert first.fingerprint() == HuggingFaceClassifier(tiny_bert(), tiny_tokenizer()).fingerprint()
    changed = tiny_bert()
    with torch.no_grad():
        changed.classifier.bias[0] += 1e-3
    assert HuggingFaceClassifier(changed, tokenizer).fingerprint() != first.fingerprint()
    cased = tiny_tokenizer()
    cased.backend_tokenizer.normalizer = None
    assert HuggingFaceClassifier(tiny_bert(), cased).fingerprint() != first.fingerprint()


def test_without_a_padding_token_texts_go_one_by_one(bert: Any, tokenizer: Any) -> None:
    expected = HuggingFaceClassifier(bert, tokenizer).predict_proba(TEXTS)
    tokenizer.pad_token = None
    np.testing.assert_allclose(HuggingFaceClassifier(bert, tokenizer).predict_proba(TEXTS), expected, atol=2e-6)


def test_pipelines_and_pairs_of_model_and_tokenizer_are_read(bert: Any, tokenizer: Any) -> None:
    expected = HuggingFaceClassifier(bert, tokenizer).predict_proba(TEXTS)
    pipe = pipeline("text-classification", model=bert, tokenizer=tokenizer)
    for model in ((bert, tokenizer), pipe):
        np.testing.assert_array_equal(load_model(model).predict_proba(TEXTS), expected)
    with pytest.raises(ModelError, match=r"pass \(model, tokenizer\)"):
        load_model(bert)
    through_python = load_model(lambda texts: pipe(texts, top_k=None))
    np.testing.assert_allclose(through_python.predict_proba(TEXTS), expected, atol=1e-5)


def test_a_model_without_logits_of_the_right_shape_is_an_error(tokenizer: Any, bert: Any) -> None:
    bert.config.id2label = {0: "a", 1: "b", 2: "c"}
    with pytest.raises(ModelError, match="shape"):
        HuggingFaceClassifier(bert, tokenizer).predict_proba(["a"])


def test_unknown_devices_are_named(bert: Any, tokenizer: Any) -> None:
    with pytest.raises(OptionError, match="expected: auto, cpu, cuda or mps"):
        HuggingFaceClassifier(bert, tokenizer, device="tpu")


def test_length_batches_hold_every_text_once_within_the_limits() -> None:
    lengths = [5, 1, 9, 9, 2, 30, 5]
    batches = length_batches(lengths, tokens=18, rows=3)
    assert sorted(index for batch in batches for index in batch) == list(range(7))
    for batch in batches:
        assert len(batch) <= 3
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= 18
