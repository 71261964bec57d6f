"""Methods by name: found when they are looked up, open to users, and made again from what a manifest records."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from stockade.attacks.bae import BAE
from stockade.attacks.constraints import MaxEditDistance
from stockade.attacks.deepwordbug import DeepWordBug
from stockade.attacks.pwws import PWWS
from stockade.attacks.registry import ATTACKS, NamedAttack, make_attack, make_attacks
from stockade.certificates.registry import METHODS, NamedMethod, make_method, make_methods
from stockade.core.errors import OptionError
from stockade.core.example import Example
from stockade.core.named import Maker
from stockade.core.records import Outcome
from stockade.core.registry import Entry, Registry
from stockade.defenses.registry import DEFENSES, NamedDefense, make_defense, make_defenses

SEARCH = "async def search(self, example, rng):\n        raise NotImplementedError"


@dataclass(frozen=True)
class Shout:
    """Writes a word in capitals. It is of no registry."""

    loudness: int = 1
    words: tuple[str, ...] = ("film",)

    async def search(self, example: Example, rng: Random) -> Outcome:
        return Outcome.failed("not heard")


class Whisper:
    """Has no options at all."""

    async def search(self, example: Example, rng: Random) -> Outcome:
        return Outcome.failed("not heard")


class Remembering(Whisper):
    """Keeps something that no record can hold."""

    def __init__(self) -> None:
        self.heard: list[str] = []


def missing_search(cls: type) -> str | None:
    return None if hasattr(cls, "search") else "search"


def registry() -> Registry[Entry]:
    """Of its own, so that what a test registers is gone with it."""
    return Registry("attack", {}, entry=Entry, group="stockade.tests", missing=missing_search)


def test_looking_up_one_name_imports_one_module_and_listing_imports_all() -> None:
    code = """
        import sys
        from stockade.attacks.registry import ATTACKS
        loaded = lambda: {name for name in sys.modules if name.startswith("stockade.attacks.")}
        before = loaded()
        assert "pwws" in ATTACKS and ATTACKS["pwws"].paper
        assert {name.rpartition(".")[2] for name in loaded() - before} >= {"pwws"}
        others = {"bae", "bert_attack", "deepwordbug", "genetic", "hotflip", "one_word", "textfooler"}
        assert not {f"stockade.attacks.{name}" for name in others} & loaded()
        list(ATTACKS)  # the names alone import nothing
        assert not {f"stockade.attacks.{name}" for name in others} & loaded()
        list(ATTACKS.values())
        assert {f"stockade.attacks.{name}" for name in others} <= loaded()
        assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


@pytest.mark.parametrize("entries", [ATTACKS, DEFENSES, METHODS])
def test_every_class_says_of_itself_what_its_registry_promises(entries: Registry[Entry]) -> None:
    assert entries
    for name, entry in entries.items():
        assert entry.name == name
        assert entry.paper, f"{name} does not stand on its class: is it decorated with @published({name!r}, …)?"
        assert entry.summary
        assert entry.default_preset in ("paper", "default")


def test_a_registered_class_is_used_like_a_published_one() -> None:
    mine = registry()
    maker = Maker(mine, NamedAttack)
    mine.register("shout", paper="Doe 2030", presets={"soft": {}, "loud": {"loudness": 9}})(Shout)
    named = maker.make("shout@loud:words=a+b")
    assert named.method == Shout(9, ("a", "b"))
    assert (named.key, named.preset, mine["shout"].paper) == ("shout@loud", "loud", "Doe 2030")
    assert maker.make("shout").preset == "soft"
    assert maker.make(Shout(loudness=9)).described() == {
        "key": "shout", "name": "shout", "preset": "loud", "options": {"loudness": 9, "words": ("film",)},
    }  # fmt: skip
    with pytest.raises(OptionError, match=r'no attack "shuot" .* Did you mean "shout"'):
        maker.make("shuot")
    with pytest.raises(OptionError, match=r'^"loudness" in --attack shout:loudness is not of the form option=value\.$'):
        maker.make("shout:loudness")
    with pytest.raises(OptionError, match='"loudness" in --attacks shout:loudness'):
        Maker(mine, NamedAttack, flag="--attacks").make("shout:loudness")
    with pytest.raises(OptionError, match=r"stockade ls shouts$"):
        Maker(mine, NamedAttack, listing="shouts").make_all((), maker.make)


def test_a_name_belongs_to_one_class() -> None:
    mine = registry()
    mine.register("shout")(Shout)
    mine.register("shout")(Shout)
    with pytest.raises(OptionError, match=r'"shout" belongs to the attack tests\.core\.test_registry:Shout already'):
        mine.register("shout")(Whisper)
    again = replace(Shout())  # a cell of a notebook that is run twice makes another class of the same name
    redefined = type("Shout", (), {"__module__": Shout.__module__, "search": Whisper.search, "__doc__": "New."})
    mine.register("shout")(redefined)
    assert mine["shout"].implementation is redefined
    assert again == Shout()
    with pytest.raises(OptionError, match=r'"pwws" belongs to the attack stockade\.attacks\.pwws:PWWS already'):
        ATTACKS.register("pwws")(Shout)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a@b", "a,b"])
def test_a_name_that_a_reference_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="cannot name an attack"):
        registry().register(name)


def test_classes_that_cannot_be_registered_are_told_what_they_lack() -> None:
    class Undecorated:
        loudness: int = 1

        async def search(self, example: Example, rng: Random) -> Outcome:
            raise NotImplementedError

    mine = registry()
    with pytest.raises(OptionError, match="lacks search"):
        mine.register("empty")(type("Empty", (), {}))
    for cls in (Undecorated, Remembering):
        with pytest.raises(OptionError, match=r"has options but is no dataclass: put @dataclass\(frozen=True\) on it"):
            mine.register("undecorated")(cls)
    with pytest.raises(OptionError, match="expected a class"):
        mine.register("instance")(Shout())  # type: ignore[type-var]
    with pytest.raises(OptionError, match=r'no option of shout@loud "loudnes"'):
        mine.register("shout", presets={"loud": {"loudnes": 9}})(Shout)
    with pytest.raises(OptionError, match="coroutine"):
        ATTACKS.register("plain")(type("Plain", (), {"search": lambda self, example, rng: None}))
    assert not mine


def test_an_option_without_a_default_has_to_be_written() -> None:
    @dataclass(frozen=True)
    class Needy:
        word: str

        async def search(self, example: Example, rng: Random) -> Outcome:
            raise NotImplementedError

    mine = registry()
    mine.register("needy")(Needy)
    assert Maker(mine, NamedAttack).make("needy:word=x").method == Needy("x")
    with pytest.raises(OptionError, match="option word of needy has no default: write it, as in needy:word=…"):
        Maker(mine, NamedAttack).make("needy")
    assert json.dumps(mine["needy"].options) == '{"word": "(required)"}'


def test_packages_add_methods_through_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        importlib.metadata.EntryPoint("shout", "tests.core.test_registry:Shout", "stockade.tests"),
        importlib.metadata.EntryPoint("broken", "no_such_package:Shout", "stockade.tests"),
    ]
    monkeypatch.setattr("stockade.core.registry.entry_points", lambda group: [p for p in points if p.group == group])
    mine = registry()
    assert list(mine) == ["broken", "shout"]
    assert mine["shout"].implementation is Shout
    with pytest.raises(OptionError, match=r'"broken" cannot be loaded from no_such_package:Shout .* uninstall'):
        mine["broken"]
    with pytest.raises(OptionError, match="belongs to the attack no_such_package:Shout already"):
        mine.register("broken")(Shout)


def test_an_instance_has_the_name_and_preset_whose_options_it_has() -> None:
    assert make_attack(DeepWordBug()).described() == make_attack("deepwordbug").described()
    assert make_attack(BAE(mode="I")).described() == make_attack("bae-i").described()
    assert make_attack(BAE(mode="R+I", proposals=3)).described() == make_attack("bae-r+i:proposals=3").described()
    same = make_attack("pwws@textattack")
    assert make_attack(same.attack) == replace(same, key="pwws")
    assert make_defense(make_defense("ranmask@ag-news").defense).preset == "ag-news"
    assert make_method(make_method("ranmask-gap@fixed").method).preset == "fixed"


def test_shared_options_reach_names_and_instances() -> None:
    made = make_attacks(["pwws", DeepWordBug()], max_changed=0.2, constraint=None)
    assert [named.options["max_changed"] for named in made] == [0.2, 0.2]
    with pytest.raises(OptionError, match=r'no option of Shout "max_changed" .*loudness'):
        make_attacks([Shout()], max_changed=0.2)
    with pytest.raises(OptionError, match="max-changed is 20"):
        make_attacks([DeepWordBug()], max_changed=20)


def test_names_instances_lists_and_mappings() -> None:
    assert [named.key for named in make_attacks("pwws")] == ["pwws"]
    assert [named.key for named in make_attacks(PWWS())] == ["pwws"]
    assert [named.key for named in make_attacks(("pwws@textattack", Shout()))] == ["pwws@textattack", "Shout"]
    assert [named.key for named in make_attacks(make_attacks(["pwws", "random"]))] == ["pwws", "random"]
    keyed = make_attacks({"short": DeepWordBug(max_changed=0.1), "long": "deepwordbug:max_changed=0.5"})
    assert [(named.key, named.name, named.options["max_changed"]) for named in keyed] == [
        ("short", "deepwordbug", 0.1), ("long", "deepwordbug", 0.5),
    ]  # fmt: skip
    assert [named.name for named in make_defenses(["five", "fact"])] == ["five", "fact"]
    assert [named.key for named in make_methods("ranmask-gap")] == ["ranmask-gap"]


def test_none_and_two_of_the_same_key_are_refused() -> None:
    with pytest.raises(OptionError, match=r"No attack was named\. List them with: stockade ls attacks"):
        make_attacks([])
    with pytest.raises(OptionError, match=r"No method was named\. List them with: stockade ls certificates"):
        make_methods(())
    told_apart = r'An attack is named twice: .* as in deepwordbug@textattack, .* \{"first": DeepWordBug\(…\)'
    for twice in (["deepwordbug", "deepwordbug"], [DeepWordBug(), DeepWordBug(one_shot=False)]):
        with pytest.raises(OptionError, match=told_apart):
            make_attacks(twice)
    with pytest.raises(OptionError, match="A method is named twice: ranmask-gap, ranmask-gap"):
        make_methods(["ranmask-gap", "ranmask-gap"])
    assert len(make_defenses(["ranmask", "ranmask"])) == 2  # their order and nesting is looked at elsewhere


def test_what_is_no_method_is_refused_in_one_sentence() -> None:
    with pytest.raises(OptionError, match=r"DeepWordBug is a class, expected an instance: write DeepWordBug\(\)"):
        make_attack(DeepWordBug)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"3 is no attack: expected a name .* coroutine `async def search"):
        make_attacks(["pwws", 3])
    with pytest.raises(OptionError, match="is no defense: expected a name"):
        make_defense(DeepWordBug())


@pytest.mark.parametrize(
    "attack",
    [
        PWWS(max_changed=0.5),
        BAE(mode="R/I", window=None),
        DeepWordBug(constraint=MaxEditDistance(3)),
        Shout(3),
        Whisper(),
    ],
)
def test_a_recorded_attack_is_made_again(attack: PWWS | BAE | DeepWordBug | Shout | Whisper) -> None:
    named = make_attack(attack)
    record = json.loads(json.dumps(named.described()))
    again = NamedAttack.from_description(record)
    assert type(again.attack) is type(attack)
    assert again.options == named.options
    assert (again.key, again.name, again.preset) == (named.key, named.name, named.preset)


def test_recorded_defenses_and_methods_are_made_again() -> None:
    defense = make_defense("ranmask@vote:rate=0.5")
    assert defense.described().keys() == {"name", "preset", "options"}
    assert NamedDefense.from_description(json.loads(json.dumps(defense.described()))).defense == defense.defense
    method = replace(make_method("ranmask-gap@fixed:alpha=0.01"), key="mine")
    assert NamedMethod.from_description(json.loads(json.dumps(method.described()))) == method


def test_an_option_that_was_none_is_none_again() -> None:
    named = make_attack("bert-attack:max_changed=none")
    assert NamedAttack.from_description(named.described()).options["max_changed"] is None


def test_an_object_that_no_record_can_hold_is_asked_for_again() -> None:
    class Local(Whisper):
        """Cannot be imported."""

    for attack in (Remembering(), Local(), Shout(words=(object(),))):  # type: ignore[arg-type]
        record = make_attack(attack).described()
        with pytest.raises(OptionError, match="was a Python object and cannot be made again: give it again"):
            NamedAttack.from_description(record)


def test_a_record_imports_no_module_unless_it_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "others_attacks.py").write_text(f"class Other:\n    {SEARCH}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    record = {"key": "Other", "name": "others_attacks:Other", "preset": "custom", "options": {}}
    with pytest.raises(OptionError, match=r"import others_attacks first, or say .* trusted \(--trust-run\)"):
        NamedAttack.from_description(record)
    assert "others_attacks" not in sys.modules
    assert type(NamedAttack.from_description(record, trust=True).attack).__name__ == "Other"
    sys.modules.pop("others_attacks")
    for name in ("subprocess:Popen", "os:system", "others_attacks:None", "json:no_such"):
        with pytest.raises(OptionError):
            NamedAttack.from_description({**record, "name": name}, trust=True)
    with pytest.raises(OptionError, match=r'no attack "pws" .* Did you mean "pwws"'):
        NamedAttack.from_description({**record, "name": "pws"}, trust=True)
