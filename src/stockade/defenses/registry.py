"""Names, options and presets of the defenses; a new defense is one new file in this folder and one line here.

A defense is a frozen dataclass of options. It acts when the model is asked (`answer`, see `defended.py`), when it is
trained (`objective` or `rewrite`, see `training/objective.py`), or both. Class attributes say more:

innermost           it alters what the model reads: no other defense may stand between it and the model
answers             False where its options leave out what it does when the model is asked
independent_copies  it asks about `copies` of a text, drawn independently from one distribution: their votes may be
                    tested (`combine.predict_or_abstain`)
alters_texts        False where the model is not trained on the texts that it will be asked about
adds_texts          it adds texts to a training batch, which the defenses around it change as well
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stockade.core.named import Maker, Named
from stockade.core.registry import Class, Entry, Presets, Registry


@dataclass(frozen=True, slots=True)
class DefenseEntry(Entry):
    """A defense of the registry, or one that was made from it; then `answering` is what its options say."""

    answering: bool = True

    @property
    def answers(self) -> bool:
        """Whether it acts when the model is asked."""
        return self.answering and hasattr(self.implementation, "answer")

    @property
    def trains(self) -> bool:
        """Whether it acts when the model is trained."""
        return hasattr(self.implementation, "objective") or hasattr(self.implementation, "rewrite")

    @property
    def alters_training_texts(self) -> bool:
        """Whether a model is trained and validated on the texts that the defense will ask it about."""
        return self.answers and self.trains and getattr(self.implementation, "alters_texts", True)

    @property
    def innermost(self) -> bool:
        """Whether no other defense may stand between it and the model."""
        return self.answers and getattr(self.implementation, "innermost", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDefense(Named[Any]):
    """A defense ready to use, with the name and preset that make it again."""

    @property
    def defense(self) -> Any:
        return self.method

    @property
    def entry(self) -> DefenseEntry:
        """What kind of defense it is, with its options."""
        cls = type(self.defense)
        entry = DEFENSES[self.name] if self.name in DEFENSES else DefenseEntry(self.name, cls, "", {})
        return replace(entry, implementation=cls, answering=getattr(self.defense, "answers", True))

    def described(self) -> dict[str, Any]:
        """What a manifest records; `from_description` makes the defense again from it."""
        return {"name": self.name, "preset": self.preset, "options": self.options}

    @staticmethod
    def from_description(description: Mapping[str, Any], *, trust: bool = False) -> NamedDefense:
        """The defense that a manifest describes; `trust` allows to import the module of an unregistered class."""
        return _MAKER.from_description(description, trust=trust)


def _missing(cls: type) -> str | None:
    acts = any(callable(getattr(cls, name, None)) for name in ("answer", "objective", "rewrite"))
    return None if acts else "a method answer (the model is asked), objective or rewrite (it is trained)"


DEFENSES = Registry(
    "defense",
    {
        "adv-hotflip": "stockade.defenses.adv_hotflip:AdvHotFlip",
        "augmentation": "stockade.defenses.augmentation:Augmentation",
        "deletion": "stockade.defenses.deletion:Deletion",
        "fact": "stockade.defenses.fact:Fact",
        "five": "stockade.defenses.five:Five",
        "freelb": "stockade.defenses.freelb:FreeLb",
        "fuse": "stockade.defenses.fuse:Fuse",
        "hull": "stockade.defenses.hull:Hull",
        "mask-top": "stockade.defenses.mask_top:MaskTop",
        "partition": "stockade.defenses.partition:Partition",
        "pgd": "stockade.defenses.pgd:Pgd",
        "ranmask": "stockade.defenses.ranmask:RanMask",
        "route": "stockade.defenses.route:Route",
        "safer": "stockade.defenses.safer:Safer",
    },
    entry=DefenseEntry,
    group="stockade.defenses",
    missing=_missing,
)
_MAKER = Maker(DEFENSES, NamedDefense)


def defenses() -> Mapping[str, DefenseEntry]:
    """All defenses by name; looking one up imports its module, walking through them imports all."""
    return DEFENSES


def register_defense(
    name: str, *, paper: str | None = None, presets: Presets | None = None
) -> Callable[[Class], Class]:
    """Class decorator: add a defense of your own, so that it can be used by name like the published ones.

    Goes above `@dataclass`; the fields of the class are the defense's options.

    Parameters
    ----------
    name : str
        What the defense is called. A name that another class has is refused.
    paper : str, optional
        Where it was published.
    presets : Mapping, optional
        Named sets of options; each holds what differs from the defaults. The first is used when none is named.
    """
    return DEFENSES.register(name, paper=paper, presets=presets)


def make_defense(reference: object, preset: str | None = None, **options: Any) -> NamedDefense:
    """Make a defense from its name, or take an instance.

    Parameters
    ----------
    reference : str or defense
        `NAME[@PRESET][:option=value,…]`, or an object with `answer`, `objective` or `rewrite`, registered or not.
    preset : str, optional
        The preset of a name that is written without one; an instance has its options already.
    **options
        Options that win over those of the reference and the preset.
    """
    return _MAKER.make(reference, preset, options)


def make_defenses(references: object, preset: str | None = None, **shared: Any) -> tuple[NamedDefense, ...]:
    """Make defenses from names, instances, or a list of them from the outside in.

    Parameters
    ----------
    references : str, defense, list or mapping
        One reference as `make_defense` takes it, or a list of them.
    preset : str, optional
        The preset of names that are written without one.
    **shared
        Options for all of them.
    """
    return _MAKER.make_all(references, lambda reference: make_defense(reference, preset, **shared), unique=False)
