"""Short names for several models, which can be folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from stockade.core.errors import OptionError

_NAME = re.compile(r"[\w.+-]+")


def name_models(models: Sequence[object], given: Sequence[str] | None) -> tuple[str, ...]:
    """Short names that are different and can be folders; `given` are names that the user chose."""
    if given is not None:
        for name in given:
            if not _NAME.fullmatch(name) or name in (".", ".."):
                raise OptionError(
                    f'The model name "{name}" cannot be a folder, expected letters, digits, ".", "_", "+" and "-".'
                )
        return tuple(given)
    names: list[str] = []
    for model in models:
        short = "-".join(_NAME.findall(_last_part(model))).strip(".-") or "model"
        number = 1
        while (name := short if number == 1 else f"{short}-{number}") in names:
            number += 1
        names.append(name)
    return tuple(names)


def _last_part(model: object) -> str:
    """Of a reference what stands last; of an object its own name or that of its class."""
    if isinstance(model, str | Path):
        return Path(str(model).rstrip("/").rpartition(":")[2]).name
    thing = model[0] if isinstance(model, tuple | list) and model else model
    return str(getattr(thing, "__name__", type(thing).__name__))
