"""Batches, loss, validation and options of the training of a translator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.errors import OptionError, ResourceMissing
from stockade.models.translation import bleu
from stockade.models.translation.bleu import corpus_bleu
from stockade.training.data import TextSet, TrainingData
from stockade.training.devices import OneDevice
from stockade.training.options import TrainingOptions
from stockade.training.translation import (
    ParallelBatches,
    SmoothedTranslationLoss,
    evaluate_translation,
    make_translation_training,
    plan_token_batches,
)
from stockade.training.translation_options import TRANSLATION_PRESETS, TranslationOptions, translation_preset
from tests.models.translation.kit import ARCHITECTURES, number_pairs, tiny_translator
from tests.models.translation.test_neural import bart

LENGTHS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=60)


@given(LENGTHS, st.integers(1, 60), st.integers(0, 3), st.integers(0, 3))
def test_every_row_is_in_one_batch_and_no_batch_is_too_large(
    lengths: list[tuple[int, int]], tokens: int, seed: int, epoch: int
) -> None:
    sources, targets = [source for source, _ in lengths], [target for _, target in lengths]
    plan = plan_token_batches(sources, targets, tokens, seed, epoch)
    assert sorted(row for rows in plan for row in rows) == list(range(len(lengths)))
    assert all(len(rows) == 1 or len(rows) * max(targets[row] for row in rows) <= tokens for rows in plan)
    assert len(plan) == len(plan_token_batches(sources, targets, tokens, seed + 1, epoch + 1))


def test_order_follows_from_seed_and_epoch() -> None:
    lengths = [3, 4, 5] * 20
    first = plan_token_batches(lengths, lengths, 20, 0, 0)
    assert first == plan_token_batches(lengths, lengths, 20, 0, 0)
    assert first != plan_token_batches(lengths, lengths, 20, 0, 1)


def data(pairs: list[tuple[str, str]]) -> TrainingData:
    texts = TextSet(tuple(pairs), (0,) * len(pairs))
    return TrainingData(train=texts, validation=texts, classes=(), fingerprint="f", validation_fingerprint=None)


def training(model: Any, tokenizer: Any, **options: Any) -> Any:
    place = OneDevice(torch.device("cpu"), "float32")
    return make_translation_training(
        model, tokenizer, data(number_pairs(40)), place, TranslationOptions(batch=60, **options)
    )


def test_batches_hold_both_sides_and_what_is_padding_does_not_count() -> None:
    model, tokenizer = tiny_translator("transformer-mt")
    made = training(model, tokenizer)
    assert made.batches.per_epoch == len(list(made.batches.epoch(0)))
    for batch in made.batches.epoch(0, skip=1):
        for row, (source, target) in enumerate(batch.inputs):
            ids = batch.tensors["input_ids"][row][batch.tensors["attention_mask"][row] == 1]
            assert ids.tolist() == tokenizer(source)["input_ids"]
            labels = batch.labels[row]
            assert labels[labels != -100].tolist() == tokenizer(target)["input_ids"]


def test_loss_of_a_network_of_transformers_is_that_of_one_of_ours_on_equal_logits() -> None:
    class Fixed(torch.nn.Module):
        def forward(self, labels: torch.Tensor, **_: Any) -> Any:
            logits = torch.tensor([[[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]])
            return type("Output", (), {"logits": logits})

    labels = torch.tensor([[0, -100]])
    batch = type("Batch", (), {"tensors": {"labels": labels}, "labels": labels})()
    loss = SmoothedTranslationLoss(0.1, fused=False).loss(Fixed(), batch)
    normaliser = float(torch.tensor([2.0, 1.0, 0.0]).logsumexp(0))
    expected = 0.9 * (normaliser - 2) + 0.1 * (normaliser - 1.0)
    assert float(loss) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", [*ARCHITECTURES, "bart"])
def test_validation_loss_is_the_mean_over_tokens_and_bleu_that_of_translations(kind: str) -> None:
    model, tokenizer = bart() if kind == "bart" else tiny_translator(kind)
    made = training(model, tokenizer)
    evaluation = made.evaluate()
    losses, tokens = 0.0, 0
    with torch.inference_mode():
        for source, target in number_pairs(40):
            labels = tokenizer(target, return_tensors="pt")["input_ids"]
            inputs = tokenizer(source, return_tensors="pt")
            loss = model(input_ids=inputs["input_ids"], labels=labels).loss
            losses, tokens = losses + float(loss) * labels.shape[1], tokens + labels.shape[1]
    assert evaluation.loss == pytest.approx(losses / tokens, rel=1e-4)
    translator = made.evaluate.args[0]
    translations = translator.translate([source for source, _ in number_pairs(40)])
    expected = corpus_bleu(translations, [target for _, target in number_pairs(40)]).score
    assert evaluation.bleu == pytest.approx(expected, abs=1e-3)
    assert evaluate_translation(translator, made.evaluate.args[1], made.evaluate.args[2], bleu=False).bleu is None
    assert isinstance(made.batches, ParallelBatches)


def test_bleu_by_hand() -> None:
    same = corpus_bleu(["ein Hund läuft schnell"], ["ein Hund läuft schnell"])
    assert same.score == pytest.approx(100.0)
    assert "tok:13a" in same.signature
    assert "case:mixed" in same.signature
    lower = corpus_bleu(["EIN Hund läuft schnell"], ["ein Hund läuft schnell"], lowercase=True)
    assert lower.score == pytest.approx(100.0)


def test_missing_sacrebleu_is_said_before_anything_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(bleu, "import_module", missing)
    model, tokenizer = tiny_translator("bilstm-mt")
    with pytest.raises(ResourceMissing, match=r"stockade\[mt\]"):
        training(model, tokenizer)
    training(model, tokenizer, validate="loss")


def test_dropout_is_an_option_of_our_own_networks() -> None:
    model, tokenizer = tiny_translator("transformer-mt")
    training(model, tokenizer, dropout=0.05)
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.05}
    with pytest.raises(OptionError, match="dropout of a BartForConditionalGeneration"):
        training(*bart(), dropout=0.05)


def test_options_are_checked_and_read_from_strings() -> None:
    options = TranslationOptions().changed(label_smoothing="0.2", dropout="none", average="3", batch="100")
    assert (options.label_smoothing, options.dropout, options.average, options.batch) == (0.2, None, 3, 100)
    assert options.adam["betas"] == (0.9, 0.98)
    assert options.warm_up_length(10_000) == 300
    assert options.warm_up_length(100) == 50
    for wrong, problem in (
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0"),
        ({"average": 0}, "average is 0"),
        ({"validate": "ter"}, "validation measure"),
        ({"warm_up": 0.1}, "Set warm_up_steps"),
        ({"class_weights": "balanced"}, "class_weights has no effect"),
        ({"schedule": "steep"}, "schedule"),
    ):
        with pytest.raises(OptionError, match=problem):
            TranslationOptions().changed(**wrong)
    assert "label_smoothing" not in TrainingOptions().described()
    assert all(translation_preset(name) is preset for name, (preset, _) in TRANSLATION_PRESETS.items())
    assert translation_preset("fast", "transformer-mt").epochs < translation_preset("fast", "bilstm-mt").epochs
    with pytest.raises(OptionError, match="training preset of a translator"):
        translation_preset("zoo-word")
