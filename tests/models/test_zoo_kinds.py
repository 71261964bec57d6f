"""Every kind of the zoo: saved and loaded, in any batch, with any seed, trained a step, shown from inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.core.text import Text
from stockade.models.adapters import load_model
from stockade.models.huggingface import HuggingFaceClassifier
from tests.models.zoo_kit import KINDS, LABELS, PAIRS, TEXTS, build, built

few = settings(max_examples=8, deadline=None)
STRANGE = ["", " ", "great", "xyzzy", "é😀 naïve", "a" * 90, "the " * 30, "...", "[PAD] [UNK]", "great\n\tfilm"]
OURS = [name for name in KINDS if name != "BERT-NOPT"]
SIDES = ["", "a", "the dog . runs", "xyzzy " * 9]


@pytest.mark.parametrize("name", KINDS)
def test_a_saved_model_comes_back_with_the_same_answers(name: str, tmp_path: Path) -> None:
    model, tokenizer = built(name)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}
    before, after = HuggingFaceClassifier(model, tokenizer), load_model(tmp_path)
    assert isinstance(after, HuggingFaceClassifier)
    assert after.labels == LABELS
    texts = [*TEXTS, *STRANGE]
    np.testing.assert_allclose(after.predict_proba(texts), before.predict_proba(texts), atol=1e-7)
    assert after.fingerprint() == before.fingerprint()
    learning = [weight.requires_grad for weight in model.parameters()]
    assert [weight.requires_grad for weight in after.model.parameters()] == learning


@pytest.mark.parametrize("name", KINDS)
@few
@given(texts=st.lists(st.sampled_from([*TEXTS, *STRANGE]), min_size=1, max_size=7))
def test_an_answer_does_not_depend_on_the_batch(name: str, texts: list[str]) -> None:
    classifier = HuggingFaceClassifier(*built(name))
    encoded = classifier.encode(texts)
    alone = np.concatenate([classifier.predict_encoded([text]) for text in encoded])
    np.testing.assert_allclose(classifier.predict_encoded(encoded), alone, atol=2e-6)


@pytest.mark.parametrize("name", KINDS)
@few
@given(pairs=st.lists(st.tuples(st.sampled_from(SIDES), st.sampled_from(SIDES)), min_size=1, max_size=5))
def test_pairs_are_read_alike_in_any_batch(name: str, pairs: list[tuple[str, str]]) -> None:
    classifier = HuggingFaceClassifier(*built(name, pairs=True))
    encoded = classifier.encode(pairs)
    alone = np.concatenate([classifier.predict_encoded([text]) for text in encoded])
    np.testing.assert_allclose(classifier.predict_encoded(encoded), alone, atol=2e-6)


@pytest.mark.parametrize("name", KINDS)
def test_the_order_of_a_pair_and_its_border_matter(name: str) -> None:
    classifier = HuggingFaceClassifier(*built(name, pairs=True))
    rows = classifier.predict_proba([("a man", "the dog runs"), ("the dog runs", "a man"), ("a man the dog", "runs")])
    assert len(np.unique(rows[:, 0].round(9))) == 3


@pytest.mark.parametrize("name", KINDS)
def test_a_seed_decides_the_weights_and_leaves_the_random_numbers_of_others_alone(name: str) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, other, again = (build(name, seed=seed)[0] for seed in (3, 4, 3))
    assert torch.rand(1) == expected
    weights = {key: value.clone() for key, value in first.state_dict().items()}
    assert all(torch.equal(value, weights[key]) for key, value in again.state_dict().items())
    assert not torch.equal(other.classifier.weight, first.classifier.weight)


@pytest.mark.parametrize("name", KINDS)
def test_a_step_of_training_moves_all_that_learns(name: str) -> None:
    model, tokenizer = build(name)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    loss = model.train()(**inputs, labels=torch.tensor([1, 0, 1, 0, 1])).loss
    loss.backward()
    unmoved = [key for key, weight in model.named_parameters() if weight.requires_grad and weight.grad is None]
    assert not unmoved
    frozen = {key for key, weight in model.named_parameters() if not weight.requires_grad}
    assert all(key.startswith("reader.bilm.") for key in frozen)
    assert bool(frozen) == ("ELMo" in name)


def head_input(model: Any, inputs: dict[str, Any]) -> torch.Tensor:
    inputs_of_head: list[torch.Tensor] = []
    handle = model.classifier.register_forward_pre_hook(lambda _module, arguments: inputs_of_head.append(arguments[0]))
    with torch.no_grad():
        model(**inputs)
    handle.remove()
    return inputs_of_head[0]


@pytest.mark.parametrize("name", OURS)
def test_hidden_states_and_the_sentence_vector(name: str) -> None:
    model, tokenizer = built(name)
    texts = ["great film", "a bad one , but not so bad"]
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        plain, shown = model(**inputs), model(**inputs, output_hidden_states=True)
    assert plain.hidden_states is None
    torch.testing.assert_close(shown.logits, plain.logits, atol=1e-6, rtol=0)
    layers = int(name[-1]) if name[-1].isdigit() else 1
    assert len(shown.hidden_states) == 1 + layers
    assert {states.shape[:2] for states in shown.hidden_states} == {(2, 8)}
    assert all(not states[0, 2:].any() for states in shown.hidden_states)
    sentence = head_input(model, inputs)
    assert isinstance(model.classifier, torch.nn.Linear)
    torch.testing.assert_close(model.classifier(sentence), plain.logits)


@pytest.mark.parametrize("name", OURS)
def test_a_hook_on_the_input_vectors_sees_the_batch_and_can_take_a_word_out(name: str) -> None:
    model, tokenizer = built(name)
    texts = ["great film", "a bad film", "the film is bad", "film"]
    inputs = tokenizer(texts, padding=True, return_tensors="pt", return_offsets_mapping=True)
    offsets = inputs.pop("offset_mapping")
    shown = torch.ones(inputs["input_ids"].shape)
    starts = [text.index("film") for text in texts]
    for row, start in enumerate(starts):
        shown[row, (offsets[row, :, 0] >= start) & (offsets[row, :, 1] <= start + 4)] = 0.0
    shapes: list[tuple[int, ...]] = []

    def without_film(_module: Any, _inputs: Any, vectors: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(vectors.shape[:2]))
        return vectors * shown.unsqueeze(2)

    with torch.no_grad():
        plain = model(**inputs).logits
        handle = model.get_input_embeddings().register_forward_hook(without_film)
        zeroed = model(**inputs).logits
        handle.remove()
        again = model(**inputs).logits
    assert shapes == [tuple(inputs["input_ids"].shape)]
    assert (zeroed - plain).abs().amax(1).min() > 1e-7
    torch.testing.assert_close(again, plain)
    vectors = model.get_input_embeddings()(inputs["input_ids"]) * shown.unsqueeze(2)
    ids = inputs if "-C-" in name or "ELMo" in name else {"attention_mask": inputs["attention_mask"]}
    with torch.no_grad():
        given_vectors = model(**ids, inputs_embeds=vectors).logits
    torch.testing.assert_close(given_vectors, zeroed, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", OURS)
def test_another_table_of_input_vectors_can_be_put_in(name: str) -> None:
    model, _ = build(name)
    old = model.get_input_embeddings()
    new = torch.nn.Embedding(old.num_embeddings, old.embedding_dim, padding_idx=0)
    model.set_input_embeddings(new)
    assert model.get_input_embeddings() is new
    model(input_ids=torch.tensor([[5, 6]])).logits.sum().backward()
    assert new.weight.grad is not None


def test_gradients_by_word_reach_every_kind_of_input() -> None:
    for name in ("LSTM-W-Random-1", "CNN-C-Random-2", "LSTM-WC-ELMo-1", "BiLSTM-attention"):
        classifier = HuggingFaceClassifier(*built(name))
        rows = classifier.word_gradients([Text.parse("great film"), Text.parse("a bad film")], 0)
        assert [len(row) for row in rows] == [2, 3]
        assert all(np.abs(row).sum(1).min() > 0 for row in rows), name


def test_pairs_that_a_pair_model_reads_alone_are_the_first_side() -> None:
    classifier = HuggingFaceClassifier(*built("BiLSTM-attention", pairs=True))
    single, empty = classifier.predict_proba(["a man"]), classifier.predict_proba([("a man", "")])
    np.testing.assert_allclose(single, empty, atol=1e-7)
    assert len(PAIRS) == 3
