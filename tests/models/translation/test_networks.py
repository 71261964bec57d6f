"""The networks of our own: padding, the cache, saving and loading."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from stockade.core.errors import DataError, OptionError
from stockade.models.translation import register_translators
from stockade.models.translation.build import build_translator
from tests.models.translation.kit import ARCHITECTURES, SIZES, number_pairs, tiny_translator

SOURCES = ["one", "two three", "four five six one two", ""]
TARGETS = ["eins", "zwei drei", "vier fünf sechs eins zwei", "eins"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padding_changes_no_logit(architecture: str) -> None:
    model, tokenizer = tiny_translator(architecture)
    both = {"padding": True, "return_tensors": "pt"}
    sources, targets = tokenizer(SOURCES, **both), tokenizer(TARGETS, **both)
    together = model(**sources, decoder_input_ids=targets["input_ids"]).logits
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        ids = tokenizer(target, return_tensors="pt")["input_ids"]
        alone = model(**tokenizer(source, return_tensors="pt"), decoder_input_ids=ids).logits
        torch.testing.assert_close(together[row, : ids.shape[1]], alone[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_decoder_with_cache_gives_the_logits_of_one_without(architecture: str) -> None:
    model, tokenizer = tiny_translator(architecture)
    sources = tokenizer(SOURCES, padding=True, return_tensors="pt")
    targets = torch.randint(4, len(tokenizer), (len(SOURCES), 7), generator=torch.Generator().manual_seed(0))
    whole = model(**sources, decoder_input_ids=targets).logits
    encoded, cache = model.get_encoder()(**sources), None
    for step in range(7):
        output = model(
            encoder_outputs=encoded,
            attention_mask=sources["attention_mask"],
            decoder_input_ids=targets[:, step : step + 1],
            past_key_values=cache,
            use_cache=True,
        )
        cache = output.past_key_values
        torch.testing.assert_close(output.logits[:, 0], whole[:, step], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_attention_over_the_source_is_a_distribution_and_does_not_change_the_logits(architecture: str) -> None:
    model, tokenizer = tiny_translator(architecture)
    sources = tokenizer(SOURCES, padding=True, return_tensors="pt")
    targets = tokenizer(TARGETS, padding=True, return_tensors="pt")["input_ids"]
    plain = model(**sources, decoder_input_ids=targets)
    looking = model(**sources, decoder_input_ids=targets, output_attentions=True)
    torch.testing.assert_close(looking.logits, plain.logits, atol=1e-4, rtol=1e-4)
    for weights in looking.cross_attentions:
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        padding = sources["attention_mask"][:, None, None, :] == 0
        assert not (weights * padding).any()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_loss_is_that_of_the_logits_without_padding(architecture: str) -> None:
    model, tokenizer = tiny_translator(architecture)
    sources, targets = tokenizer(SOURCES, padding=True, return_tensors="pt"), tokenizer(TARGETS)["input_ids"]
    longest = max(map(len, targets))
    labels = torch.tensor([ids + [-100] * (longest - len(ids)) for ids in targets])
    loss = model(**sources, labels=labels, label_smoothing=0.1).loss
    logits = model(**sources, decoder_input_ids=model.shifted(labels)).logits
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-100, label_smoothing=0.1
    )
    torch.testing.assert_close(loss, expected)
    assert model.shifted(torch.tensor([[5, 6, 2, -100]])).tolist() == [[1, 5, 6, 2]]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_saved_network_is_loaded_by_the_auto_class_with_the_same_answers(tmp_path: Path, architecture: str) -> None:
    model, tokenizer = tiny_translator(architecture)
    model.save_pretrained(tmp_path)
    assert [path.name for path in tmp_path.glob("*.safetensors")] == ["model.safetensors"]
    register_translators()
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    sources = tokenizer(SOURCES, padding=True, return_tensors="pt")
    ids = torch.tensor([[1, 5, 9]] * len(SOURCES))
    assert torch.equal(loaded(**sources, decoder_input_ids=ids).logits, model(**sources, decoder_input_ids=ids).logits)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_seed_decides_the_weights(architecture: str) -> None:
    def weights(seed: int) -> torch.Tensor:
        model, _ = build_translator(architecture, number_pairs(), seed=seed, options=SIZES[architecture])
        return torch.cat([weight.flatten() for weight in model.parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_bad_architectures_sizes_and_data_are_errors_of_one_sentence() -> None:
    with pytest.raises(OptionError, match="architecture of a translator"):
        build_translator("transformer-xl", number_pairs())
    with pytest.raises(OptionError, match="width 10 cannot be shared out among 4 heads"):
        build_translator("transformer-mt", number_pairs(), options={"width": 10})
    with pytest.raises(OptionError, match="inner_widht"):
        build_translator("transformer-mt", number_pairs(), options={"inner_widht": 10})
    with pytest.raises(OptionError, match="expected 260 or more"):
        build_translator("bilstm-mt", number_pairs(), options={"vocabulary": 100})
    with pytest.raises(DataError, match="found none"):
        build_translator("bilstm-mt", [])
