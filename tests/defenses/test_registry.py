"""Defenses by name: options, presets, and the errors of bad references."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import stockade as st
from stockade.core.errors import OptionError
from stockade.defenses.defended import Defended
from stockade.defenses.registry import defenses, make_defense
from stockade.models.language import LanguageModels
from tests.toys import WeightVictim


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
        assert entry.default_preset in ("paper", "default")
        assert "paper" in entry.presets


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("ranmsk", 'There is no defense "ranmsk".*Did you mean "ranmask"'),
        ("ranmask@author", "preset of ranmask"),
        ("ranmask:rat=0.3", "option of ranmask"),
        ("ranmask:rate", "not of the form option=value"),
        ("ranmask:rate=much", "option rate of ranmask cannot be 'much'"),
        ("ranmask:rate=0", "share of words between 0 and 1"),
    ],
)
def test_bad_references(reference: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_defense(reference)


def test_a_model_can_be_defended_from_python() -> None:
    model = st.defend(WeightVictim({"good": 1.0}), "ranmask", rate=0.5, copies=3)
    assert isinstance(model, Defended)
    assert model.labels == ("negative", "positive")
    other = st.defend(WeightVictim({}), "ranmask", rate=0.4, copies=3)
    assert isinstance(other, Defended)
    assert model.fingerprint() != other.fingerprint()
    with pytest.raises(OptionError, match="No defense was named"):
        st.defend(WeightVictim({}), [])
    with pytest.raises(OptionError, match="single defense"):
        st.defend(WeightVictim({}), ["safer", "ranmask"], rate=0.2)


def test_a_defended_model_has_the_seed_and_the_language_models_it_was_given() -> None:
    model = st.defend(WeightVictim({}), "ranmask", seed=4, mlm="a-masked-lm", encoder="an-encoder")
    assert isinstance(model, Defended)
    assert (model.seed, model.language) == (4, LanguageModels("a-masked-lm", "an-encoder"))


def test_every_option_of_every_defense_is_named_in_its_documentation() -> None:
    for name, entry in defenses().items():
        lines = (entry.implementation.__doc__ or "").split("Parameters\n", 1)[-1].splitlines()
        documented = {
            option
            for line in lines
            if re.fullmatch(r"    [a-z_]+(, [a-z_]+)*", line)
            for option in line.strip().split(", ")
        }
        assert set(entry.options) <= documented, name


def test_listing_the_defenses_imports_no_torch() -> None:
    """`stockade ls defenses`, and attacks on functions inside a defense, must not wait for it."""
    code = (
        "import sys; from stockade.defenses.registry import defenses; "
        "print(len(list(defenses().values())), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(defenses())), "False"]
