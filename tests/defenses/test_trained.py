"""Defenses that act in training, put together: which comes first, and on what the model is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from stockade.defenses.chain import combined_objective
from stockade.defenses.registry import NamedDefense, make_defense
from stockade.training.objective import Batch, Objective, TrainingKit, validation_batch
from tests.defenses.adversarial_kit import make_batch, make_kit

TEXT = "a good film with the story of a good picture"


@dataclass(frozen=True)
class Doubled:
    """Adds another text for each, whatever has become of those that are there."""

    plain: Any

    def augment(self, batch: Batch) -> Batch:
        labels = torch.cat([batch.labels, batch.labels])
        return self.plain.augment(batch.with_inputs([*batch.inputs, *[TEXT] * len(batch)], labels))

    def validation_batch(self, batch: Batch) -> Batch:
        return validation_batch(self.plain, batch)


@dataclass(frozen=True)
class Doubling:
    """Stands for fact."""

    adds_texts: ClassVar[bool] = True

    def objective(self, kit: TrainingKit) -> Doubled:
        return Doubled(kit.plain)


def doubling() -> NamedDefense:
    return NamedDefense(name="doubling", preset="paper", key="doubling", method=Doubling())


def objective_of(kit: TrainingKit, *named: NamedDefense) -> Objective:
    make = combined_objective(named)
    assert make is not None
    return make(kit)


@pytest.mark.parametrize("between", [(), ("freelb",), ("adv-hotflip",)])
@pytest.mark.parametrize("outer", ["ranmask:rate=0.5", "partition:groups=3", "deletion", "safer"])
def test_texts_that_another_defense_adds_are_changed_too(outer: str, between: tuple[str, ...]) -> None:
    kit = make_kit()
    objective = objective_of(kit, make_defense(outer), *map(make_defense, between), doubling())
    found = objective.augment(make_batch(kit, [TEXT] * 3, [1, 0, 1]))
    plain = make_batch(kit, [TEXT]).tensors["input_ids"][0].tolist()
    rows = found.tensors["input_ids"].tolist()
    assert len(rows) == len(found.labels) == (12 if between == ("adv-hotflip",) else 6)
    assert all(row != plain for row in rows)
    if "ranmask" in outer:
        unknown = kit.tokenizer.unk_token_id
        assert [row.count(unknown) for row in rows] == [5] * len(rows)  # flips leave alone what hides a word


def test_a_model_is_judged_as_all_its_defenses_show_texts() -> None:
    kit = make_kit()
    batch = make_batch(kit, [TEXT] * 4, [1, 0, 1, 0])
    for named in ([make_defense("safer"), make_defense("ranmask:rate=0.5")],
                  [make_defense("deletion:kept_chance=0.9"), make_defense("ranmask:rate=0.5")],
                  [make_defense("ranmask:rate=0.5"), doubling()],
                  [make_defense("ranmask:rate=0.5"), make_defense("freelb"), doubling()]):  # fmt: skip
        shown = validation_batch(objective_of(kit, *named), batch)
        assert len(shown) == 4
        words = [len(str(one).split()) for one in shown.inputs]
        hidden = (shown.tensors["input_ids"] == kit.tokenizer.unk_token_id).sum(1).tolist()
        assert all(count >= number // 2 > 0 for count, number in zip(hidden, words, strict=True))
