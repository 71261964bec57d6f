"""The defenses of a model folder: what it was trained with, and what stands around it whenever it is asked.

`defense.json` lists them from the outside in. Other libraries ignore the file and see the bare model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from stockade.core.errors import ModelError, OptionError
from stockade.core.files import write_json
from stockade.defenses.registry import NamedDefense, make_defense

FILE_NAME = "defense.json"
SCHEMA = 1


def save_defenses(folder: Path, named: Sequence[NamedDefense]) -> None:
    """Write them into the folder, if there are any."""
    if named:
        write_json(folder / FILE_NAME, {"schema": SCHEMA, "defenses": [one.described() for one in named]})


def load_defenses(folder: Path) -> list[NamedDefense]:
    """The defenses of a model folder; none for a folder without the file, or for what is no folder."""
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"format {content['schema']}")
        return [make_defense(f"{one['name']}@{one['preset']}", **one["options"]) for one in content["defenses"]]
    except OptionError as error:
        raise ModelError(f"{path} names what this version does not have. {error} Or use --defense none.") from None
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} cannot be read ({error}). Restore it, or use --defense none.") from None
