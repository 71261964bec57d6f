"""Several defenses together: their order, around a model, in training, and in the folder that remembers them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import stockade as st
from stockade.core.errors import ModelError, OptionError
from stockade.core.example import Scores
from stockade.core.text import Text
from stockade.defenses.chain import (
    FILE_NAME,
    check_order,
    combined_objective,
    combined_rewrite,
    load_defenses,
    save_defenses,
    wrap,
)
from stockade.defenses.defended import Defended
from stockade.defenses.registry import NamedDefense, make_defense, make_defenses
from stockade.engine.requests import Score
from stockade.experiment.inputs import defenses_around
from stockade.training.objective import Batch, Objective, TrainingKit, validation_batch
from tests.defenses.adversarial_kit import make_batch, make_kit
from tests.toys import WeightVictim
from tests.training.tiny import rows

TEXT = "a good film with the story of a good picture"


class TrainingOnly:
    """Does nothing when asked."""

    def objective(self, kit: object) -> object:
        raise NotImplementedError


def training_only(name: str = "harder") -> NamedDefense:
    return NamedDefense(name=name, preset="paper", key=name, method=TrainingOnly())


def test_what_only_trains_stands_nearest_to_the_model() -> None:
    check_order([make_defense("ranmask"), training_only()])
    with pytest.raises(OptionError, match="from the outside in, as in --defense ranmask --defense harder"):
        check_order([training_only(), make_defense("ranmask")])


def test_wrapping_leaves_out_what_only_trains() -> None:
    victim = WeightVictim({})
    model = wrap(victim, [make_defense("ranmask"), training_only()], seed=4)
    assert isinstance(model, Defended)
    assert (model.name, model.seed, model.inner) == ("ranmask", 4, victim)
    assert wrap(victim, [training_only()]) is victim


@dataclass(frozen=True)
class Undecided:
    """Does not say whether its answers are random."""

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        return (await Score([text]))[0]


@dataclass(frozen=True)
class Decided(Undecided):
    """Says so, and asks nothing of the model inside."""

    randomised: ClassVar[bool] = False


def test_a_defense_that_cannot_be_used_is_refused_not_left_out() -> None:
    victim = WeightVictim({"good": 1.0})
    with pytest.raises(OptionError, match=r"Undecided does not say .* give it an attribute randomised"):
        wrap(victim, [make_defense(Undecided())])
    model = wrap(victim, [make_defense(Decided())])
    assert isinstance(model, Defended)
    assert model.deterministic


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
    augmented = objective.augment(make_batch(kit, [TEXT] * 3, [1, 0, 1]))
    plain = make_batch(kit, [TEXT]).tensors["input_ids"][0].tolist()
    rows = augmented.tensors["input_ids"].tolist()
    assert len(rows) == len(augmented.labels) == (12 if between == ("adv-hotflip",) else 6)
    assert all(row != plain for row in rows)
    if "ranmask" in outer:
        unknown = kit.tokenizer.unk_token_id
        assert [row.count(unknown) for row in rows] == [5] * len(rows)  # flips leave alone what hides a word


def test_a_model_is_validated_as_all_its_defenses_show_texts() -> None:
    kit = make_kit()
    batch = make_batch(kit, [TEXT] * 4, [1, 0, 1, 0])
    for named in ([make_defense("safer"), make_defense("ranmask:rate=0.5")],
                  [make_defense("deletion:kept_chance=0.9"), make_defense("ranmask:rate=0.5")],
                  [make_defense("ranmask:rate=0.5"), doubling()],
                  [make_defense("ranmask:rate=0.5"), make_defense("freelb"), doubling()]):  # fmt: skip
        shown = validation_batch(objective_of(kit, *named), batch)
        assert len(shown) == 4
        words = [len(str(text).split()) for text in shown.inputs]
        hidden = (shown.tensors["input_ids"] == kit.tokenizer.unk_token_id).sum(1).tolist()
        assert all(count >= number // 2 > 0 for count, number in zip(hidden, words, strict=True))


def test_the_order_is_looked_at_in_training_too() -> None:
    with pytest.raises(OptionError, match="so it cannot stand around ranmask"):
        combined_objective([training_only(), make_defense("ranmask")])
    assert combined_objective([make_defense("fuse")]) is None


@dataclass(frozen=True)
class Signing:
    """Writes its name behind every training text."""

    name: str = "signing"

    def rewrite(
        self, inputs: Sequence[str], labels: Sequence[int], classes: tuple[str, ...], seed: int
    ) -> tuple[list[str], Sequence[int]]:
        return [f"{text} {self.name}" for text in inputs], labels


def test_the_innermost_defense_rewrites_first() -> None:
    outer, inner = make_defenses([Signing("outer"), Signing("inner")])
    rewrite = combined_rewrite([outer, make_defense("fuse"), inner])
    assert rewrite is not None
    assert rewrite(["a", "b"], [0, 1], ("n", "p"), 0) == (["a inner outer", "b inner outer"], [0, 1])
    assert combined_rewrite([make_defense("fuse")]) is None


def test_defenses_are_loaded_as_they_were_saved(tmp_path: Path) -> None:
    references = ("safer@vote:copies=3", "fuse@imdb", "ranmask@imdb:kept=2,curriculum=0.1", "freelb")
    chain = [make_defense(reference) for reference in references]
    save_defenses(tmp_path, chain)
    loaded = load_defenses(tmp_path)
    assert [item.described() for item in loaded] == [item.described() for item in chain]
    assert [item.defense for item in loaded] == [item.defense for item in chain]
    assert (loaded[2].preset, loaded[2].defense.kept, loaded[2].defense.curriculum) == ("imdb", 2, 0.1)


def test_without_defenses_there_is_no_file(tmp_path: Path) -> None:
    save_defenses(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
    assert load_defenses(tmp_path) == []
    assert load_defenses(tmp_path / "nothing") == []
    (tmp_path / "file").write_text("")
    assert load_defenses(tmp_path / "file") == [], "what is no folder has none"


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"schema": 99, "defenses": []}', '{"schema": 1, "defenses": [{"name": "ranmask"}]}']
)
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(ModelError, match=r"defense\.json cannot be read .* --defense none"):
        load_defenses(tmp_path)


def test_a_defense_that_this_version_does_not_have_is_told_with_the_file(tmp_path: Path) -> None:
    entry = {"name": "ranmusk", "preset": "paper", "options": {}}
    (tmp_path / FILE_NAME).write_text(json.dumps({"schema": 1, "defenses": [entry]}))
    with pytest.raises(ModelError, match=r"defense\.json names what this version does not have.*ranmusk"):
        load_defenses(tmp_path)


def test_what_only_trains_must_be_in_the_model_that_it_is_named_for(tmp_path: Path) -> None:
    named = make_defenses(["fuse", "freelb"])
    for model in (tmp_path, str(tmp_path), WeightVictim({})):
        with pytest.raises(OptionError, match=r"freelb changes how .* this one was not trained with it"):
            defenses_around(model, named)
    save_defenses(tmp_path, [make_defense("freelb")])
    for model in (tmp_path, str(tmp_path)):
        assert [item.name for item in defenses_around(model, named)] == ["fuse", "freelb"]
        assert [item.name for item in defenses_around(model, None)] == ["freelb"]
        assert defenses_around(model, []) == []


def test_a_trained_folder_is_asked_inside_its_defense(ranmask_folder: Path, tmp_path: Path) -> None:
    content = json.loads((ranmask_folder / FILE_NAME).read_text())
    assert [item["name"] for item in content["defenses"]] == ["ranmask"]
    (named,) = load_defenses(ranmask_folder)
    assert (named.defense.rate, named.defense.copies) == (0.2, 9)
    model = wrap(st.load_model(ranmask_folder), [named])
    assert model.predict_proba(["the good film and a story"])[0].argmax() == model.labels.index("positive")
    for defenses, deterministic in ((None, False), ("none", True)):
        run = st.attack(ranmask_folder, rows(4), "deepwordbug", defenses=defenses, budget=20, similarity=False)
        attacked = run.manifest.inputs["model"]
        assert attacked["deterministic"] is deterministic
        assert [item["name"] for item in attacked.get("defenses", [])] == ([] if deterministic else ["ranmask"])


@pytest.mark.usefixtures("plain_report")
def test_a_model_must_have_been_trained_with_what_only_trains(tmp_path: Path) -> None:
    st.train(rows(20), "CNN-W-Random-1", out=tmp_path / "m", sizes={"filters": 8}, epochs=1, defenses=["freelb"])
    assert isinstance(st.defend(tmp_path / "m", ["ranmask", "freelb"]), Defended)
    with pytest.raises(OptionError, match="pgd changes how a model is trained, and this one was not trained with it"):
        st.defend(tmp_path / "m", ["ranmask", "pgd"])
    with pytest.raises(OptionError, match=r"freelb changes how a model is trained: use st\.train"):
        st.defend(tmp_path / "m", "freelb")


@pytest.mark.usefixtures("plain_report")
def test_training_with_a_defense_gives_other_weights_and_the_same_ones_again(tmp_path: Path) -> None:
    answers = []
    for name, defenses in (("plain", []), ("first", ["ranmask"]), ("again", ["ranmask"])):
        st.train(rows(20), "CNN-W-Random-1", out=tmp_path / name, sizes={"filters": 8}, epochs=1, defenses=defenses)
        answers.append(st.load_model(tmp_path / name).predict_proba(["a good film"]))
    plain, first, again = answers
    assert (first == again).all()
    assert (first != plain).any()
