"""The plan of an evaluation: which models, which texts, which options. It is written before anything is asked, so that
an interrupted evaluation goes on with the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stockade.core.differences import differences
from stockade.core.errors import RunError
from stockade.core.files import make_folder, write_json
from stockade.evaluation.request import EvaluationRequest

FILE_NAME = "plan.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What an evaluation is made from: the request, and what was found behind its names."""

    request: Mapping[str, Any]
    models: Mapping[str, Mapping[str, Any]]
    data: Mapping[str, Any]
    premade: Mapping[str, Mapping[str, Any]]
    attacks: Mapping[str, Mapping[str, Any]]
    defenses: tuple[str, ...]
    created: str
    defended: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """The fingerprint of each model in each chain of defenses, as far as there is one: what is in the files that a
    defense reads decides results too.
    """
    source: str | None = None
    """The fingerprint of the model that texts are transferred from."""

    def write(self, folder: Path) -> None:
        make_folder(folder)
        fields = ("request", "models", "data", "premade", "attacks", "created", "defended", "source")
        content = {name: getattr(self, name) for name in fields}
        write_json(folder / FILE_NAME, {"schema": SCHEMA, **content, "defenses": list(self.defenses)})


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_plan(folder: Path) -> Plan:
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if "study" in content:
            raise RunError(f"{folder} is a study: go on with stockade study {content['study']} --resume --out {folder}")
        if content.pop("schema") != SCHEMA:
            raise ValueError("it has the format of another version")
        return Plan(**{**content, "defenses": tuple(content["defenses"])})
    except FileNotFoundError:
        raise RunError(
            f"{folder} is no evaluation: it has no {FILE_NAME}. "
            "Make one with: stockade evaluate MODEL … DATA --attack … --out …"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} cannot be read ({error}). Start again with another --out.") from None


def check_same(folder: Path, plan: Plan, request: EvaluationRequest) -> None:
    """Refuse to go on with an evaluation of other models, data or options; say what differs."""
    old = EvaluationRequest.from_description(plan.request).decisive()
    new = json.loads(json.dumps(request.decisive()))
    found = differences(json.loads(json.dumps(old)), new)
    if found is not None:
        raise RunError(
            f"{folder} was made with other options: {found}. Resume with the same options, or use another --out."
        )
