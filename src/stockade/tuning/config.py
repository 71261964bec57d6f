"""`tune.json`: what a search is about, written before its first trial. A search goes on only with the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stockade.core.differences import differences
from stockade.core.errors import RunError
from stockade.core.files import make_folder, read_json, refuse_existing, unreadable, write_json
from stockade.core.protocols import Fingerprinted
from stockade.defenses.defended import HasResources
from stockade.defenses.registry import NamedDefense
from stockade.jobs import reference_of
from stockade.tuning.judge import Judge
from stockade.tuning.space import Range

FILE_NAME = "tune.json"
SCHEMA = 3
Config = Mapping[str, Any]
_NEEDED = ("defense", "preset", "fixed")
_FILES = ("attack_files", "defense_files")


def describe(judge: Judge, space: Mapping[str, Range], sampler: str, tried: Iterable[NamedDefense]) -> dict[str, Any]:
    """Everything that decides the trials; the model, the texts and the files of the defenses that may be `tried` by
    their fingerprints as well as by name.
    """
    options, bare = judge.data_options, judge.bare
    return {
        "schema": SCHEMA,
        "model": reference_of(judge.model),
        "model_fingerprint": bare.fingerprint() if isinstance(bare, Fingerprinted) else None,
        "labels": list(bare.labels),
        "data": reference_of(judge.data),
        "data_fingerprint": judge.examples.fingerprint,
        "data_options": {**dataclasses.asdict(options), "label_map": dict(options.label_map)},
        "texts": judge.examples.size,
        "attack": judge.attack,
        "attack_files": dict(judge.settings.attacks[0].resources),
        "defense": judge.defense,
        "preset": judge.preset,
        "fixed": dict(judge.fixed),
        "defense_files": _files_of(tried),
        "ranges": {name: str(one) for name, one in sorted(space.items())},
        "sampler": sampler,
        "seed": judge.seed,
        "budget": judge.limits.budget,
        "expectation": judge.limits.expectation,
        "max_words": judge.limits.max_words,
        "mlm": judge.language.masked_lm,
        "encoder": judge.language.encoder,
        "goal": dataclasses.asdict(judge.goal),
    }


def begin(folder: Path, config: Config, resume: bool) -> None:
    """Write the configuration of a new search; one that is gone on with must have been begun with the same."""
    if not resume or not (folder / FILE_NAME).exists():
        refuse_existing(folder, FILE_NAME)
        make_folder(folder)
        write_json(folder / FILE_NAME, config)
        return
    before, now = read_config(folder), json.loads(json.dumps(config))
    if before.get("schema") != SCHEMA:
        raise RunError(
            f"{folder} was searched by another version of Stockade, whose trials cannot be compared with new ones "
            f"(tune.json has format {before.get('schema')}, expected {SCHEMA}). Choose another --out."
        )
    found = differences(before, now)
    if found is None:
        return
    if differences(_without_files(before), _without_files(now)) is None:
        raise RunError(
            f"What is in a file that {folder} was begun with has changed: {found}. Put the old file back, or choose "
            "another --out."
        )
    raise RunError(f"{folder} is another search: {found}. Use the same options, or choose another --out.")


def read_config(folder: Path) -> Config:
    path = folder / FILE_NAME
    config = read_json(path, f"{folder} is no search: it has no {FILE_NAME}. Make one with: stockade tune …")
    if not isinstance(config, dict) or any(name not in config for name in _NEEDED):
        raise unreadable(path, "it does not say what was searched")
    return config


def _without_files(config: Config) -> Config:
    return {name: value for name, value in config.items() if name not in _FILES}


def _files_of(defenses: Iterable[NamedDefense]) -> dict[str, list[str]]:
    """Fingerprints of what is in the files that answers depend on, by what they are for; several if a search chooses
    among files.
    """
    found: dict[str, set[str]] = {}
    for named in defenses:
        if isinstance(named.defense, HasResources):
            for purpose, fingerprint in named.defense.resources().items():
                found.setdefault(purpose, set()).add(fingerprint)
    return {purpose: sorted(prints) for purpose, prints in sorted(found.items())}
