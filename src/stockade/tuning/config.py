"""`tune.json`: what a search is about, written before its first trial. A search goes on only with the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockade.core.differences import differences
from stockade.core.errors import RunError
from stockade.core.files import make_folder, read_json, refuse_existing, unreadable, write_json
from stockade.core.protocols import Fingerprinted
from stockade.jobs import reference_of
from stockade.tuning.judge import Judge
from stockade.tuning.space import Range

FILE_NAME = "tune.json"
SCHEMA = 2
Config = Mapping[str, Any]
_NEEDED = ("defense", "preset", "fixed")


def describe(judge: Judge, space: Mapping[str, Range], sampler: str) -> dict[str, Any]:
    """Everything that decides the trials; the model and the texts by their fingerprints as well as by name."""
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
        "defense": judge.defense,
        "preset": judge.preset,
        "fixed": dict(judge.fixed),
        "ranges": {name: str(one) for name, one in sorted(space.items())},
        "sampler": sampler,
        "seed": judge.seed,
        "budget": judge.limits.budget,
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
    found = differences(read_config(folder), json.loads(json.dumps(config)))
    if found is not None:
        raise RunError(f"{folder} is another search: {found}. Use the same options, or choose another --out.")


def read_config(folder: Path) -> Config:
    path = folder / FILE_NAME
    config = read_json(path, f"{folder} is no search: it has no {FILE_NAME}. Make one with: stockade tune …")
    if not isinstance(config, dict) or any(name not in config for name in _NEEDED):
        raise unreadable(path, "it does not say what was searched")
    return config
