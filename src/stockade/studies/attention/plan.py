"""The plan of a study: which models, which texts, which options. It is written before the first attack, so that an
interrupted study goes on with the same texts.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from stockade.core.differences import differences
from stockade.core.errors import RunError
from stockade.core.files import make_folder, write_json
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.datasets.source import DataSource
from stockade.jobs import AN_OBJECT, DataOptions, ModelOptions, reference_of
from stockade.studies.attention.texts import Choice, ChosenTexts, choose_texts
from stockade.studies.attention.victims import Victim, describe_victim
from stockade.studies.entry import StudyRequest

FILE_NAME = "plan.json"
SCHEMA = 1
_A_TEXT = Text.parse("a text")


@dataclass(frozen=True, slots=True)
class Settings:
    """The options that decide the results."""

    limit: int | None
    seed: int
    budget: int | None
    max_words: int
    draws: int
    samples: int

    @classmethod
    def of(cls, request: StudyRequest) -> Settings:
        return cls(
            request.limit, request.seed, request.budget, request.max_words, request.own["draws"], request.own["samples"]
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What a study is made from."""

    victims: tuple[Victim, ...]
    data: str
    data_fingerprint: str
    choice: Choice
    settings: Settings
    data_options: DataOptions
    model_options: ModelOptions
    created: str

    def write(self, folder: Path) -> None:
        content = {"schema": SCHEMA, "study": "attention", **dataclasses.asdict(self)}
        make_folder(folder)
        write_json(folder / FILE_NAME, content)

    def needs_objects(self) -> bool:
        """Whether models or data were Python objects, which nobody can find again by name."""
        return any(reference.startswith(AN_OBJECT) for reference in (self.data, *(v.reference for v in self.victims)))


def make_plan(
    request: StudyRequest, models: Mapping[str, Classifier], references: Mapping[str, str], source: DataSource
) -> Plan:
    """Choose the texts and find out what each model allows."""
    options = request.data_options
    choice = choose_texts(source, models, limit=request.limit, seed=request.seed, label_map=options.label_map)
    texts = (Text.parse(row.text, row.premise) for row in ChosenTexts(source, frozenset(choice.ids)).rows())
    probe = next((text for text in texts if len(text)), _A_TEXT)
    victims = tuple(describe_victim(name, references[name], model, probe) for name, model in models.items())
    return Plan(
        victims,
        reference_of(request.data),
        source.fingerprint(),
        choice,
        Settings.of(request),
        options,
        request.model_options,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def read_plan(folder: Path) -> Plan:
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["study"] != "attention" or content["schema"] != SCHEMA:
            raise RunError(f"{path} is of another study or version, expected a plan of the study attention.")
        return Plan(
            tuple(
                Victim(**{**victim, "labels": tuple(victim["labels"])})  # JSON knows no tuples
                for victim in content["victims"]
            ),
            content["data"],
            content["data_fingerprint"],
            Choice(**{**content["choice"], "ids": tuple(content["choice"]["ids"])}),
            Settings(**content["settings"]),
            DataOptions(**content["data_options"]),
            ModelOptions(**content["model_options"]),
            content["created"],
        )
    except FileNotFoundError:
        raise RunError(
            f"{folder} is no study attention: it has no {FILE_NAME}. "
            "Make one with: stockade study attention MODEL … DATA --out …"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read ({error}). Start again with another --out.") from None


def check_same(folder: Path, plan: Plan, request: StudyRequest, names: tuple[str, ...]) -> None:
    """Refuse to go on with a study of other models or options."""
    wanted, given = [victim.name for victim in plan.victims], list(names)
    if wanted != given:
        raise RunError(
            f"{folder} is a study of the models {', '.join(wanted)}, not of {', '.join(given)}. "
            "Resume with the same models, or use another --out."
        )
    found = differences(dataclasses.asdict(plan.settings), dataclasses.asdict(Settings.of(request)))
    if found is not None:
        raise RunError(
            f"{folder} was made with other options: {found}. Resume with the same options, or use another --out."
        )
