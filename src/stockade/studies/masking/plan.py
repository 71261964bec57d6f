"""The plan of a study: which models, which data, which options. It is written before anything is asked, so that an
interrupted study goes on with the same.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stockade.attacks.registry import make_attack
from stockade.core.differences import differences
from stockade.core.errors import OptionError, RunError
from stockade.core.files import make_folder, write_json
from stockade.jobs import AN_OBJECT, DataOptions, ModelOptions
from stockade.runs.attack import AttackSettings
from stockade.studies.entry import StudyRequest
from stockade.studies.masking.victims import Victim

NAME = "masking"
FILE_NAME = "plan.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """The options that decide the results."""

    attacks: tuple[str, ...]
    copies: int
    limit: int | None
    seed: int
    budget: int | None
    max_words: int
    mlm: str | None
    encoder: str | None

    @classmethod
    def of(cls, request: StudyRequest) -> Settings:
        own = request.own
        found = cls(
            tuple(own["attacks"]),
            own["copies"],
            request.limit,
            request.seed,
            request.budget,
            request.max_words,
            own["mlm"],
            own["encoder"],
        )
        found.check()
        return found

    def check(self) -> None:
        """Settings that no part could have are an error before anything is asked."""
        if isinstance(self.copies, bool) or not isinstance(self.copies, int) or self.copies < 2:
            raise OptionError(f"--copies is {self.copies}, expected a whole number from 2 up, such as 5000.")
        if self.attacks:
            named = tuple(make_attack(reference) for reference in self.attacks)
            AttackSettings(named, self.seed, self.budget, self.max_words)

    @property
    def methods(self) -> tuple[str, str]:
        """The sound certificate and the published procedure; a fifth of the copies chooses the class, as published."""
        return (
            f"ranmask-gap:most={self.copies}",
            f"ranmask-legacy:most={self.copies},selection={max(1, self.copies // 5)}",
        )

    def described(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "attacks": list(self.attacks)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a study is made from; the victims by rising mask rate."""

    victims: tuple[Victim, ...]
    data: str
    data_fingerprint: str
    texts: int
    total: int
    settings: Settings
    data_options: DataOptions
    model_options: ModelOptions
    created: str

    def write(self, folder: Path) -> None:
        make_folder(folder)
        content = dataclasses.asdict(self)
        write_json(folder / FILE_NAME, {"schema": SCHEMA, "study": NAME, **content})

    def needs_objects(self) -> bool:
        """Whether models or data were Python objects, which nobody can find again by name."""
        return any(reference.startswith(AN_OBJECT) for reference in (self.data, *(v.reference for v in self.victims)))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_plan(folder: Path) -> Plan:
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("study", None) != NAME or content.pop("schema", None) != SCHEMA:
            raise RunError(
                f"{path} is of an evaluation, another study or another version, expected a plan of the study {NAME}. "
                "Name its folder with --out."
            )
        settings = content["settings"]
        return Plan(
            **{
                **content,
                "victims": tuple(Victim(**{**one, "labels": tuple(one["labels"])}) for one in content["victims"]),
                "settings": Settings(**{**settings, "attacks": tuple(settings["attacks"])}),
                "data_options": DataOptions(**content["data_options"]),
                "model_options": ModelOptions(**content["model_options"]),
            }
        )
    except FileNotFoundError:
        raise RunError(
            f"{folder} is no study {NAME}: it has no {FILE_NAME}. "
            f"Make one with: stockade study {NAME} MODEL … DATA --out …"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} cannot be read ({error}). Start again with another --out.") from None


def check_same(folder: Path, plan: Plan, request: StudyRequest, names: tuple[str, ...]) -> None:
    """Refuse to go on with a study of other models or options."""
    wanted = sorted(victim.name for victim in plan.victims)
    if wanted != sorted(names):
        raise RunError(
            f"{folder} is a study of the models {', '.join(wanted)}, not of {', '.join(sorted(names))}. "
            "Resume with the same models, or use another --out."
        )
    refuse_differences(folder, plan.settings.described(), Settings.of(request).described())


def check_own(folder: Path, plan: Plan, request: StudyRequest, defaults: Mapping[str, Any]) -> None:
    """Where models and data are taken from the plan, options that were given must be the plan's as well."""
    new = Settings.of(request).described()
    given = [name for name in defaults if name in new and request.own[name] != defaults[name]]
    old = plan.settings.described()
    refuse_differences(folder, {name: old[name] for name in given}, {name: new[name] for name in given})


def refuse_differences(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    found = differences(old, new)
    if found is not None:
        raise RunError(
            f"{folder} was made with other options: {found}. Resume with the same options, or use another --out."
        )
