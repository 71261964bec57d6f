"""Training on masked, shortened or reworded texts: others in every step, and the same ones in every validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from stockade.core.text import TextInput
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import make_defense
from stockade.models.encoding import TextEncoder
from stockade.training.batches import Batches
from stockade.training.loop import evaluate_classes
from stockade.training.objective import Batch, CrossEntropy, Objective, TrainingKit, validation_batch
from tests.defenses.adversarial_kit import CLASSES, make_kit
from tests.models.conftest import tiny_tokenizer

TEXTS = ["a good film with the story of a good picture", "the bad story of a film and a dull picture and a film"] * 3
LABELS = [1, 0] * 3


class Watching(nn.Module):
    """Notes what it reads; says class 1 always."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[Tensor] = []

    def forward(self, input_ids: Tensor, **_: Any) -> Any:
        self.read.append(input_ids.clone())
        logits = torch.tensor([[0.0, 1.0]]).expand(len(input_ids), 2)
        return type("Output", (), {"logits": logits})()


def batches(kit: Any) -> Batches:
    encoded = kit.encoder.encode(TEXTS)
    return Batches(
        inputs=TEXTS,
        labels=np.array(LABELS),
        encoded=encoded,
        encoder=kit.encoder,
        size=4,
        seed=0,
        device=torch.device("cpu"),
        backward=lambda loss: loss.backward(),
    )


@pytest.mark.parametrize(
    "reference", ["ranmask:rate=0.5", "partition:groups=3", "partition:groups=3,by=hash", "deletion", "safer"]
)
def test_validation_texts_are_shown_as_the_defense_shows_them(reference: str) -> None:
    kit = make_kit()
    objective = make_defense(reference).defense.objective(kit)
    plain, first, again = Watching(), Watching(), Watching()
    evaluate_classes(plain, batches(kit), CrossEntropy(), len(CLASSES))
    evaluation = evaluate_classes(first, batches(kit), objective, len(CLASSES))
    evaluate_classes(again, batches(kit), objective, len(CLASSES))
    assert evaluation.accuracy == 0.5
    assert [ids.tolist() for ids in first.read] == [ids.tolist() for ids in again.read]
    assert [ids.tolist() for ids in first.read] != [ids.tolist() for ids in plain.read]


def test_ranmask_is_validated_at_its_full_rate_whatever_its_curriculum() -> None:
    kit = make_kit()
    objective = make_defense("ranmask:rate=0.5,curriculum=0.1").defense.objective(kit)
    (batch,) = batches(kit).by_length()
    plain, shown = batch.tensors["input_ids"], validation_batch(objective, batch).tensors["input_ids"]
    hidden = (plain != shown).sum(1).tolist()
    assert sorted(set(hidden)) == [5, 6]  # half of 10 and of 13 words


def test_other_objectives_are_validated_on_the_texts_themselves() -> None:
    kit = make_kit()
    (batch,) = batches(kit).by_length()
    assert validation_batch(make_defense("pgd").defense.objective(kit), batch) is batch


def batch(encoder: TextEncoder, *inputs: TextInput, seed: int = 0, progress: float = 0.0) -> Batch:
    def encode(inputs: Sequence[TextInput]) -> Mapping[str, Tensor]:
        return encoder.tensors(encoder.encode(inputs), torch.device("cpu"))

    return Batch(
        inputs=inputs,
        labels=torch.zeros(len(inputs), dtype=torch.long),
        tensors=encode(inputs),
        rng=Random(seed),
        encode=encode,
        backward=torch.autograd.backward,
        progress=progress,
    )


def masked_training(encoder: TextEncoder, plain: Objective | None = None, **options: Any) -> Objective:
    """The objective of ranmask in a training of no model in particular."""
    kit = TrainingKit(
        network=None,
        tokenizer=None,
        encoder=encoder,
        classes=("negative", "positive"),
        inputs=(),
        labels=(),
        plain=plain or CrossEntropy(),
        seed=0,
        trained=False,
    )
    return RanMask(**options).objective(kit)


def test_every_text_of_a_batch_is_masked_anew() -> None:
    encoder = TextEncoder(tiny_tokenizer(), None, with_types=True)
    training = masked_training(encoder, rate=0.5, kept=1)
    texts = ("the film was bad", "films", "", ("the film", "not bad and great"))
    masked = set()
    for seed in range(20):
        changed = training.augment(batch(encoder, *texts, seed=seed))
        masks = (changed.tensors["input_ids"] == 4).sum(1).tolist()
        assert masks == [2, 0, 0, 2]
        assert (changed.tensors["input_ids"][3, :4] == torch.tensor([2, 6, 7, 3])).all(), "a premise is never hidden"
        again = training.augment(batch(encoder, *texts, seed=seed))
        assert (again.tensors["input_ids"] == changed.tensors["input_ids"]).all()
        masked.add(tuple(changed.tensors["input_ids"][0].tolist()))
    assert len(masked) == 6, "two of four words can be hidden in six ways"


def test_the_rate_of_a_curriculum_rises_in_the_first_part_of_the_training() -> None:
    rising = RanMask(rate=0.9, curriculum=0.3)
    assert [rising.training_rate(progress) for progress in (0.0, 0.3, 0.6, 1.0)] == pytest.approx([0.3, 0.6, 0.9, 0.9])
    assert RanMask(rate=0.9).training_rate(0.0) == 0.9


def test_more_words_are_hidden_as_a_training_goes_on() -> None:
    """Of ten words 2 at the beginning, 5 halfway up, 8 from the end of the rise on."""
    encoder = TextEncoder(tiny_tokenizer(), None, with_types=True)
    training = masked_training(encoder, rate=0.8, kept=1, curriculum=0.2)
    text = "a film was great and the film was not bad"
    hidden = [
        int((training.augment(batch(encoder, text, progress=progress)).tensors["input_ids"] == 4).sum())
        for progress in (0.0, 0.3, 0.6, 1.0)
    ]
    assert hidden == [2, 5, 8, 8]


def test_the_fewest_words_that_stay_stay_in_training_too() -> None:
    encoder = TextEncoder(tiny_tokenizer(), None, with_types=True)
    training = masked_training(encoder, rate=0.9, kept=3)
    ids = training.augment(batch(encoder, "a film was great and the film was not bad")).tensors["input_ids"]
    assert int((ids == 4).sum()) == 7


def test_tokens_are_changed_after_words_are_hidden() -> None:
    encoder = TextEncoder(tiny_tokenizer(), None, with_types=True)
    masks: list[int] = []

    class Counting(CrossEntropy):
        def augment(self, batch: Batch) -> Batch:
            masks.append(int((batch.tensors["input_ids"] == 4).sum()))
            return batch

    training = masked_training(encoder, Counting(), rate=0.5, kept=1)
    augmented = training.augment(batch(encoder, "the film was bad"))
    assert masks == [2]
    assert int((augmented.tensors["input_ids"] == 4).sum()) == 2


def test_the_loss_is_that_of_what_it_stands_around() -> None:
    class Seven(CrossEntropy):
        def loss(self, model: object, batch: Batch) -> torch.Tensor:
            return torch.tensor(7.0)

    training = masked_training(TextEncoder(tiny_tokenizer(), None, with_types=True), Seven(), rate=0.5, kept=1)
    assert training.loss(None, None) == 7  # type: ignore[arg-type]
