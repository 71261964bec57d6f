"""Defenses by name: options, presets, order, and what bad references are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

import stockade as st
from stockade.core.errors import OptionError
from stockade.defenses.chain import check_order, combined_objective, combined_rewrite, wrap
from stockade.defenses.defended import Defended
from stockade.defenses.registry import NamedDefense, defenses, make_defense, make_defenses
from stockade.jobs import ModelOptions
from stockade.models.language import LanguageModels
from tests.toys import WeightVictim


class TrainingOnly:
    """Does nothing when asked."""

    def objective(self, kit: object) -> object:
        raise NotImplementedError


def training_only(name: str = "harder") -> NamedDefense:
    return NamedDefense(name=name, preset="paper", key=name, method=TrainingOnly())


def test_options_come_from_the_preset_then_the_reference_then_keywords() -> None:
    assert make_defense("ranmask").options["rate"] == 0.3
    assert make_defense("ranmask@snli").options["rate"] == 0.15
    assert make_defense("ranmask@snli:rate=0.2,copies=7").options["rate"] == 0.2
    assert make_defense("ranmask:rate=0.2", rate=0.4).options["rate"] == 0.4
    assert make_defense("ranmask:rate=0.2,combine=vote").described()["options"]["combine"] == "vote"


def test_every_defense_has_a_paper_a_summary_and_usable_presets() -> None:
    assert "ranmask" in defenses()
    for name, entry in defenses().items():
        assert entry.paper
        assert entry.summary.endswith((".", ":")), name
        assert entry.answers or entry.trains
        assert next(iter(entry.presets)) == "paper"


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("ranmsk", 'There is no defense "ranmsk".*Did you mean "ranmask"'),
        ("ranmask@author", "preset of ranmask"),
        ("ranmask:rat=0.3", "option of ranmask"),
        ("ranmask:rate", "not of the form option=value"),
        ("ranmask:rate=much", "option rate of ranmask cannot be 'much'"),
        ("ranmask:rate=0", "share of words between 0 and 1"),
    ],
)
def test_bad_references(reference: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        make_defense(reference)


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


def test_a_model_can_be_defended_from_python() -> None:
    model = st.defend(WeightVictim({"good": 1.0}), "ranmask", rate=0.5, copies=3)
    assert isinstance(model, Defended)
    assert model.labels == ("negative", "positive")
    assert model.fingerprint() != st.defend(WeightVictim({}), "ranmask", rate=0.4, copies=3).fingerprint()  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="No defense was named"):
        st.defend(WeightVictim({}))
    with pytest.raises(OptionError, match="single defense"):
        st.defend(WeightVictim({}), "ranmask", "ranmask", rate=0.2)


def test_none_is_the_bare_model() -> None:
    victim = WeightVictim({})
    assert not isinstance(ModelOptions(defenses=["none"]).load(victim), Defended)
    assert isinstance(ModelOptions(defenses=["ranmask"]).load(victim), Defended)


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
        return [f"{one} {self.name}" for one in inputs], labels


def test_the_innermost_defense_rewrites_first() -> None:
    outer, inner = make_defenses([Signing("outer"), Signing("inner")])
    rewrite = combined_rewrite([outer, make_defense("fuse"), inner])
    assert rewrite is not None
    assert rewrite(["a", "b"], [0, 1], ("n", "p"), 0) == (["a inner outer", "b inner outer"], [0, 1])
    assert combined_rewrite([make_defense("fuse")]) is None


def test_a_loaded_model_has_the_seed_and_the_language_models_of_its_run() -> None:
    language = LanguageModels("a-masked-lm", "an-encoder")
    model = ModelOptions(defenses=["ranmask"]).load(WeightVictim({}), seed=4, language=language)
    assert isinstance(model, Defended)
    assert (model.seed, model.language) == (4, language)
