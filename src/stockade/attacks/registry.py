"""Names, options and presets of the attacks; a new attack is one new file in this folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockade.attacks.constraints import Constraint
from stockade.attacks.options import chosen_options
from stockade.attacks.word_attack import check_max_changed
from stockade.core.catalogue import Catalogue, Published
from stockade.core.protocols import Attack, ResourcefulAttack


@dataclass(frozen=True, slots=True)
class AttackEntry(Published):
    """One attack of the list."""


@dataclass(frozen=True, slots=True)
class NamedAttack:
    """An attack ready to run, with the name and preset it was asked for by."""

    name: str
    preset: str
    attack: Attack
    key: str
    """What a run calls it: the name, with the preset when that was written with the name."""

    @property
    def options(self) -> dict[str, Any]:
        """Every option, given or defaulted, as the manifest records it."""
        fields = dataclasses.fields(self.attack)  # type: ignore[arg-type]
        values = {field.name: getattr(self.attack, field.name) for field in fields}
        return {name: str(value) if isinstance(value, Constraint) else value for name, value in values.items()}

    @property
    def resources(self) -> Mapping[str, str]:
        """What the results depend on besides the options, with fingerprints; nothing for most attacks."""
        return self.attack.resources() if isinstance(self.attack, ResourcefulAttack) else {}


_CATALOGUE = Catalogue("attack", "stockade.attacks", AttackEntry)
register = _CATALOGUE.register
attacks = _CATALOGUE.all


def make_attack(reference: str, preset: str | None = None, **options: Any) -> NamedAttack:
    """An attack from `NAME[@PRESET][:option=value,…]`.

    A preset in the reference wins over `preset`; options given by keyword win over those in the reference, both over
    the preset.
    """
    found = _CATALOGUE.find(reference, preset)
    made = found.entry.make(**chosen_options("--attack", found, options))
    check_max_changed(getattr(made, "max_changed", None))
    return NamedAttack(found.entry.name, found.preset, made, found.key)
