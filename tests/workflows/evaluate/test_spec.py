"""The columns of a grid and the names of models and pre-made sets, whichever way they are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stockade.core.errors import OptionError
from stockade.defenses.chain import save_defenses
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import make_defense
from stockade.workflows.evaluate.grid import folder_names
from stockade.workflows.evaluate.inputs import EvaluationInputs
from stockade.workflows.evaluate.spec import DefenseChain, EvaluateSpec, make_chains
from tests.workflows.evaluate.kit import DATA, Hiding, Shielding, victim


def names(chains: tuple[DefenseChain, ...]) -> list[str]:
    return [chain.name for chain in chains]


def defenses(chain: DefenseChain) -> list[Any]:
    assert chain.defenses is not None
    return [defense.defense for defense in chain.defenses]


@pytest.mark.usefixtures("toy_defenses")
def test_chains_are_read_from_the_outside_in() -> None:
    bare, both, own = make_chains(["hiding+ranmask:rate=0.3,combine=vote", "none", "own"])
    assert (bare.name, bare.defenses) == ("none", ())
    assert defenses(both) == [Hiding(), RanMask(rate=0.3, combine="vote")]
    assert (own.name, own.defenses) == ("own", None)
    (_, single) = make_chains(["hiding+ranmask:mask=a+b+shielding-not"])
    assert defenses(single) == [Hiding(), RanMask(mask="a+b+shielding-not")]
    assert names(make_chains([])) == ["none"]
    for wrong in ("hiding+", "+hiding", "own+hiding", ""):
        with pytest.raises(OptionError, match="is not made of defenses"):
            make_chains([wrong])
    with pytest.raises(OptionError, match='no defense "nothing"'):
        make_chains(["hiding+nothing"])


@pytest.mark.usefixtures("toy_defenses")
def test_a_column_may_be_a_name_an_object_or_a_chain_of_both() -> None:
    assert names(make_chains("hiding")) == ["none", "hiding"]
    assert names(make_chains(Shielding())) == ["none", "shielding"]
    mixed = make_chains(["hiding", RanMask(copies=5), [Shielding(1), "ranmask:copies=5"], "hiding"])
    assert names(mixed) == ["none", "hiding", "ranmask:copies=5", "shielding:label=1+ranmask:copies=5"]
    assert defenses(mixed[3]) == [Shielding(1), RanMask(copies=5)]
    named = make_chains({"masked": RanMask(copies=5), "more": RanMask(copies=9)})
    assert names(named) == ["none", "masked", "more"]
    assert defenses(named[2]) == [RanMask(copies=9)]
    with pytest.raises(OptionError, match="is no defense"):
        make_chains([3])


def test_what_a_folder_records_is_a_column_of_its_own(tmp_path: Path) -> None:
    save_defenses(tmp_path, [make_defense("ranmask", rate=0.4)])
    bare, own = make_chains([], [str(tmp_path), "builtin:sentiment-cnn"])
    assert (bare.name, own.name) == ("none", "own")
    spec = EvaluateSpec.of(models={"folder": str(tmp_path), "toy": victim()}, data=DATA, attacks="pwws")
    assert names(spec.defenses) == ["none", "own"]
    inputs = EvaluationInputs(spec)
    assert [defense.defense for defense in inputs.defenses("folder", own)] == [RanMask(rate=0.4)]
    with pytest.raises(OptionError, match="names no defense"):
        inputs.defenses("toy", own)
    save_defenses(tmp_path, [make_defense("freelb")])
    assert names(make_chains([], [str(tmp_path)])) == ["none"], "asked, it is the bare model"
    assert names(make_chains([], ["builtin:sentiment-cnn"])) == ["none"]


@pytest.mark.usefixtures("toy_defenses")
def test_a_spec_comes_back_from_its_manifest() -> None:
    spec = EvaluateSpec.of(
        models=["builtin:sentiment-cnn", "models/cnn", "other/cnn"],
        data="builtin:reviews",
        attacks=["pwws", "deepwordbug@textattack"],
        defenses=["five+fact", [Hiding()], "own"],
        premade=["made.jsonl", "more/made.csv"],
        transfer_from="builtin:sentiment-lstm",
        seeds=3,
    )
    assert list(spec.models) == ["sentiment-cnn", "cnn", "cnn-2"]
    assert list(spec.premade) == ["made", "made-2"]
    described = json.loads(json.dumps(spec.described()))
    again = EvaluateSpec.read(described, Path("manifest.json"))
    assert again == spec
    assert spec.decisive(again.described()) == spec.decisive(described)


def test_folders_stay_different() -> None:
    assert folder_names(["a:x=1", "a/x=1", "..", "a+b,c"]) == ("a-x=1", "a-x=1-2", "part", "a-b-c")
