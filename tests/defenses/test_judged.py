"""A model that is asked about masked, shortened or reworded texts is judged on such, the same in every epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from stockade.defenses.registry import make_defense
from stockade.training.batches import Batches
from stockade.training.loop import evaluate_classes
from stockade.training.objective import CrossEntropy, validation_batch
from tests.defenses.adversarial_kit import CLASSES, make_kit

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
    found = evaluate_classes(first, batches(kit), objective, len(CLASSES))
    evaluate_classes(again, batches(kit), objective, len(CLASSES))
    assert found.accuracy == 0.5
    assert [ids.tolist() for ids in first.read] == [ids.tolist() for ids in again.read]
    assert [ids.tolist() for ids in first.read] != [ids.tolist() for ids in plain.read]


def test_ranmask_is_judged_at_its_full_rate_whatever_its_curriculum() -> None:
    kit = make_kit()
    objective = make_defense("ranmask:rate=0.5,curriculum=0.1").defense.objective(kit)
    (batch,) = batches(kit).by_length()
    plain, shown = batch.tensors["input_ids"], validation_batch(objective, batch).tensors["input_ids"]
    hidden = (plain != shown).sum(1).tolist()
    assert sorted(set(hidden)) == [5, 6]  # half of 10 and of 13 words


def test_other_objectives_are_judged_on_the_texts_themselves() -> None:
    kit = make_kit()
    (batch,) = batches(kit).by_length()
    assert validation_batch(make_defense("pgd").defense.objective(kit), batch) is batch
