from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

from stockade.attacks.registry import attacks, make_attack
from stockade.core.errors import OptionError


def test_every_attack_has_a_summary_and_a_paper_preset_that_can_be_made() -> None:
    assert {"deepwordbug", "pwws"} <= set(attacks())
    for name, entry in attacks().items():
        assert entry.summary.endswith(".")
        assert next(iter(entry.presets)) == "paper"
        for preset in entry.presets:
            assert make_attack(name, preset).options.keys() == entry.options.keys()


def test_every_option_is_described_in_the_documentation_of_its_class() -> None:
    for entry in attacks().values():
        doc = inspect.getdoc(entry.implementation) or ""
        listed = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"^([a-z_, ]+?)(?: :.*)?$", doc, re.MULTILINE))))
        assert set(entry.options) <= listed, f"{entry.name}: {set(entry.options) - listed}"


def test_a_near_miss_is_answered_with_the_right_name() -> None:
    with pytest.raises(OptionError, match=r'no attack "pws" .* Did you mean "pwws"'):
        make_attack("pws")
    with pytest.raises(OptionError, match="no preset of pwws"):
        make_attack("pwws", "textatack")
    with pytest.raises(OptionError, match=r'no option of pwws "max_chnaged" .* Did you mean "max_changed"'):
        make_attack("pwws:max_chnaged=0.2")


def test_options_come_from_preset_reference_and_keywords_in_that_order() -> None:
    assert make_attack("deepwordbug", "textattack").options["one_shot"] is False
    assert make_attack("deepwordbug@textattack:one_shot=true").options["one_shot"] is True
    assert make_attack("pwws:max_changed=0.2").options["max_changed"] == 0.2
    assert make_attack("pwws:max_changed=0.2", max_changed=0.5).options["max_changed"] == 0.5
    assert make_attack("deepwordbug:transforms=swap+homoglyph").options["transforms"] == ("swap", "homoglyph")


@pytest.mark.parametrize(
    "reference", ["pwws:max_changed=lots", "deepwordbug:scoring=best", "deepwordbug:transforms=swp", "pwws:x"]
)
def test_options_of_the_wrong_kind_are_refused(reference: str) -> None:
    with pytest.raises(OptionError):
        make_attack(reference)


def test_the_list_of_attacks_needs_no_torch() -> None:
    code = "import sys; from stockade.attacks.registry import attacks; attacks(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("share", [20, 0, -0.1])
def test_a_limit_that_is_no_share_of_the_words_is_refused(share: float) -> None:
    expected = "expected a share of the words above 0, at most 1"
    with pytest.raises(OptionError, match=expected):
        make_attack(f"pwws:max_changed={share}")
    with pytest.raises(OptionError, match=expected):
        make_attack("textfooler", max_changed=share)
