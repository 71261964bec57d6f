"""Names, options and presets of the attacks; a new attack is one new file in this folder and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any

from stockade.attacks.word_attack import check_max_changed
from stockade.core.attacked_translation import Task
from stockade.core.named import Maker, Named
from stockade.core.protocols import Attack, ResourcefulAttack
from stockade.core.registry import Class, Entry, Presets, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAttack(Named[Attack]):
    """An attack ready to run, with the name, preset and key it has in a run."""

    @property
    def attack(self) -> Attack:
        return self.method

    @property
    def task(self) -> Task:
        """What the models do that it attacks; one that does not say attacks classifiers."""
        return task_of(type(self.attack))

    @property
    def resources(self) -> Mapping[str, str]:
        """What the results depend on besides the options, with fingerprints; nothing for most attacks."""
        return self.attack.resources() if isinstance(self.attack, ResourcefulAttack) else {}

    def described(self) -> dict[str, Any]:
        """What a manifest records; `from_description` makes the attack again from it."""
        resources = dict(self.resources)
        return {**Named.described(self), **({"resources": resources} if resources else {})}

    @staticmethod
    def from_description(description: Mapping[str, Any], *, trust: bool = False) -> NamedAttack:
        """The attack that a manifest describes; `trust` allows to import the module of an unregistered class."""
        return _MAKER.from_description(description, trust=trust)


def task_of(cls: type) -> Task:
    """What the models do that attacks of this class are made for."""
    task: Task = getattr(cls, "task", "classification")
    return task


def _missing(cls: type) -> str | None:
    return None if iscoroutinefunction(getattr(cls, "search", None)) else "a coroutine `async def search(example, rng)`"


ATTACKS = Registry(
    "attack",
    {
        "asmax-ec": "stockade.attacks.one_word:OneWord",
        "asmax-gr": "stockade.attacks.one_word:OneWord",
        "asmin-ec": "stockade.attacks.one_word:OneWord",
        "asmin-gr": "stockade.attacks.one_word:OneWord",
        "bae-i": "stockade.attacks.bae:BAE",
        "bae-r": "stockade.attacks.bae:BAE",
        "bae-r+i": "stockade.attacks.bae:BAE",
        "bae-r/i": "stockade.attacks.bae:BAE",
        "bert-attack": "stockade.attacks.bert_attack:BertAttack",
        "deepwordbug": "stockade.attacks.deepwordbug:DeepWordBug",
        "genetic": "stockade.attacks.genetic:Genetic",
        "genetic-fast": "stockade.attacks.genetic:Genetic",
        "gs-ec": "stockade.attacks.one_word:OneWord",
        "gs-gr": "stockade.attacks.one_word:OneWord",
        "hotflip": "stockade.attacks.hotflip:HotFlip",
        "list": "stockade.attacks.synonym_list:SynonymList",
        "mt-keyword": "stockade.attacks.mt_keyword:MtKeyword",
        "mt-nonoverlap": "stockade.attacks.mt_nonoverlap:MtNonoverlap",
        "mt-typo": "stockade.attacks.mt_typo:MtTypo",
        "mt-untargeted": "stockade.attacks.mt_untargeted:MtUntargeted",
        "pwws": "stockade.attacks.pwws:PWWS",
        "random": "stockade.attacks.random_word:RandomWord",
        "random-synonyms": "stockade.attacks.random_synonyms:RandomSynonyms",
        "rules": "stockade.attacks.rules:Rules",
        "textfooler": "stockade.attacks.textfooler:TextFooler",
    },
    entry=Entry,
    group="stockade.attacks",
    missing=_missing,
)
_MAKER = Maker(ATTACKS, NamedAttack)


def attacks() -> Mapping[str, Entry]:
    """All attacks by name; looking one up imports its module, walking through them imports all."""
    return ATTACKS


def register_attack(name: str, *, paper: str | None = None, presets: Presets | None = None) -> Callable[[Class], Class]:
    """Class decorator: add an attack of your own, so that it can be used by name like the published ones.

    Goes above `@dataclass`; the fields of the class are the attack's options.

    Parameters
    ----------
    name : str
        What the attack is called. A name that another class has is refused.
    paper : str, optional
        Where it was published.
    presets : Mapping, optional
        Named sets of options; each holds what differs from the defaults. The first is used when none is named.

    Examples
    --------
    >>> @st.register_attack("shout")
    ... @dataclass(frozen=True)
    ... class Shout:
    ...     async def search(self, example, rng):
    ...         louder = example.text.replace(0, example.text.words[0].upper())
    ...         scores = (await st.Score([louder]))[0]
    ...         return st.Outcome.found(louder) if example.fooled(scores) else st.Outcome.failed("heard, not fooled")
    """
    return ATTACKS.register(name, paper=paper, presets=presets)


def make_attack(reference: str | Attack | NamedAttack, preset: str | None = None, **options: Any) -> NamedAttack:
    """Make an attack from its name, or take an instance.

    Parameters
    ----------
    reference : str or attack
        `NAME[@PRESET][:option=value,…]`, or an object with the coroutine `search(example, rng)`, registered or not.
    preset : str, optional
        The preset of a name that is written without one; an instance has its options already.
    **options
        Options that win over those of the reference and the preset.
    """
    named = _MAKER.make(reference, preset, options)
    check_max_changed(getattr(named.attack, "max_changed", None))
    return named


def make_attacks(references: object, preset: str | None = None, **shared: Any) -> tuple[NamedAttack, ...]:
    """Make attacks from names, instances, or a list of them; each has a key of its own.

    Parameters
    ----------
    references : str, attack, list or mapping
        One reference as `make_attack` takes it, a list of them, or a mapping from keys to references for several
        attacks of the same name.
    preset : str, optional
        The preset of names that are written without one.
    **shared
        Options for all of them.
    """
    return _MAKER.make_all(references, lambda reference: make_attack(reference, preset, **shared))
