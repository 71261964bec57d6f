"""The BiLSTM with attention: shares that sum to one on each side, and two sides that do not see each other."""

from __future__ import annotations

import pytest
import torch

from stockade.models.huggingface import HuggingFaceClassifier
from tests.models.zoo_kit import build, built


def test_shares_sum_to_one_and_leave_padding_out() -> None:
    model, tokenizer = built("BiLSTM-attention")
    inputs = tokenizer(["great film", "a bad film , really bad", ""], padding=True, return_tensors="pt")
    with torch.no_grad():
        output = model(**inputs, output_attentions=True)
    (shares,) = output.attentions
    assert shares.shape == inputs["input_ids"].shape
    torch.testing.assert_close(shares.sum(1), torch.tensor([1.0, 1.0, 0.0]))
    assert not shares[inputs["attention_mask"] == 0].any()
    assert (shares[inputs["attention_mask"] == 1] > 0).all()
    with torch.no_grad():
        assert model(**inputs).attentions is None


def test_each_side_of_a_pair_sums_to_one_without_the_separator() -> None:
    model, tokenizer = built("BiLSTM-attention", pairs=True)
    pairs = [("a man runs .", "the dog"), ("the dog", "a man sleeps . a"), ("a", "")]
    inputs = tokenizer(
        [first for first, _ in pairs], [second for _, second in pairs], padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        shares = model(**inputs, output_attentions=True).attentions[0]
    second = inputs["token_type_ids"].bool()
    torch.testing.assert_close((shares * second).sum(1), torch.tensor([1.0, 1.0, 0.0]))
    torch.testing.assert_close((shares * ~second).sum(1), torch.ones(3))
    assert not shares[inputs["input_ids"] == tokenizer.sep_token_id].any()


def test_sides_are_read_apart_by_one_encoder() -> None:
    """The shares of a side are those of the same text alone, whichever side it is and whatever stands beside it."""
    model, tokenizer = built("BiLSTM-attention", pairs=True)

    def shares(first: str, second: str) -> torch.Tensor:
        with torch.no_grad():
            inputs = tokenizer([first], [second], return_tensors="pt")
            return model(**inputs, output_attentions=True).attentions[0][0]

    text, words = "the dog runs .", 4
    expected = shares(text, "a")[:words]
    torch.testing.assert_close(shares(text, "a man a man")[:words], expected)
    torch.testing.assert_close(shares("a man", text)[-words:], expected)


def test_the_head_compares_the_sides() -> None:
    model, tokenizer = built("BiLSTM-attention", pairs=True)
    inputs: list[torch.Tensor] = []
    handle = model.classifier.register_forward_pre_hook(lambda _module, arguments: inputs.append(arguments[0]))
    with torch.no_grad():
        model(**tokenizer([("the dog", "the dog"), ("a man", "the dog")], padding=True, return_tensors="pt"))
    handle.remove()
    same, other = (row.chunk(4) for row in inputs[0])
    torch.testing.assert_close(same[0], same[1])
    assert not same[2].any()
    torch.testing.assert_close(same[3], same[0] ** 2)
    torch.testing.assert_close(other[2], (other[0] - other[1]).abs())


def test_vectors_in_place_of_ids_are_read_alike() -> None:
    model, tokenizer = built("BiLSTM-attention", pairs=True)
    inputs = tokenizer([("a man runs", "the dog"), ("a", "a man")], padding=True, return_tensors="pt")
    with torch.no_grad():
        plain = model(**inputs).logits
        vectors = model.get_input_embeddings()(inputs.pop("input_ids"))
        torch.testing.assert_close(model(**inputs, inputs_embeds=vectors).logits, plain)


@pytest.mark.parametrize("layers", [1, 2])
def test_hidden_states_of_pairs_stand_where_their_words_stand(layers: int) -> None:
    model, tokenizer = build("BiLSTM-attention", [("a man", "the dog")], layers=layers)
    inputs = tokenizer([("a man", "the dog runs"), ("a", "the")], padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    assert len(states) == 1 + layers
    filled = states[-1].abs().sum(2) > 0
    assert filled.tolist() == [[True, True, False, True, True, True], [True, False, True, False, False, False]]


def test_the_encoder_hands_the_sides_over() -> None:
    classifier = HuggingFaceClassifier(*built("BiLSTM-attention", pairs=True))
    (encoded,) = classifier.encode([("a man", "the dog runs")])
    assert len(encoded) == 6
    assert encoded.types
