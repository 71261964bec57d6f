"""Folders as a stranger might send them: made by honest jobs, then changed."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import stockade as st
from stockade.attacks.registry import make_attack
from stockade.core.text import Edit
from stockade.experiment.spec import Spec
from stockade.experiment.workspace import begin
from stockade.workflows.attack.result import CODEC, AttackResult
from stockade.workflows.attack.spec import AttackSpec
from stockade.workflows.train.spec import TrainSpec
from stockade.workflows.tune.spec import TuneSpec
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.records import record
from tests.studies.transfer import toys as transfer_toys
from tests.toys import WeightVictim
from tests.workflows.evaluate import kit as evaluation_toys

CANARY = "canary"
"""The module that a stranger would like to have imported; it stands in the working directory."""
RAN = "ran"
"""The file that exists if any of a stranger's code was run."""
DATA = "data.csv"
MODEL = "bert"
ATTACK = "deepwordbug"
CODE = f"""
open({RAN!r}, "w").close()

def run(texts):
    open({RAN!r}, "w").close()
    return [[0.5, 0.5] for _ in texts]

class Attack:
    async def search(self, example, rng):
        return None

class Defense:
    randomised = False
    async def answer(self, text, rng):
        return None

class Method:
    sound, threat, certifies = True, "", object

class Transformer:
    pass
"""
Change = Callable[[dict[str, Any]], object]


class Payload:
    """Writes the canary's file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (f"open({RAN!r}, 'w').close()",)


def pickled() -> bytes:
    return pickle.dumps(Payload())


def lay_out(folder: Path) -> None:
    """The user's working directory: data, a harmless model, and the module of a stranger."""
    (folder / f"{CANARY}.py").write_text(CODE)
    (folder / DATA).write_text("text,label\na great film,1\na bad film,0\nthe film is great,1\n")
    tiny_bert().save_pretrained(folder / MODEL)
    tiny_tokenizer().save_pretrained(folder / MODEL)


def make_attack_run(folder: Path, **fields: Any) -> None:
    """An interrupted attack on the model that is there, with one success."""
    options: dict[str, Any] = {"model": MODEL, "data": DATA, "attacks": (make_attack(ATTACK),), "similarity": False}
    spec = AttackSpec.of(**{**options, **fields})
    described = {"reference": MODEL, "labels": ["LABEL_0", "LABEL_1"], "deterministic": True, "fingerprint": None}
    data = {"reference": DATA, "fingerprint": "", "rows": 3, "size": 3, "label_counts": {"LABEL_0": 1}, "ids": None}
    with begin(folder, spec, {"model": described, "data": data, "neighbours": None}, resume=False) as workspace:
        success = record(
            0, "success", ATTACK, label="LABEL_1", original_prediction="LABEL_1", adversarial_prediction="LABEL_0",
            edits=(Edit("replace", 1, "great", "big"),),
        )  # fmt: skip
        workspace.store.add(ATTACK, success.id, CODEC.encode(success), status=success.status)
        AttackResult.of(workspace).write_summary()
    workspace.store.close()


def make_certificates(folder: Path) -> None:
    victim = WeightVictim({"good": 4.0, "bad": -4.0}, bias=0.1)
    rows = [("a good film with good people", "positive"), ("a bad one", "negative")]
    st.certify(st.defend(victim, "ranmask", rate=0.7), rows, ["ranmask-gap"], out=folder)


def make_evaluation(folder: Path) -> None:
    st.evaluate({"m": evaluation_toys.victim()}, evaluation_toys.DATA, evaluation_toys.ATTACK, out=folder)


def make_study(folder: Path) -> None:
    st.study("transfer", transfer_toys.models("ab"), transfer_toys.ROWS, attacks="deepwordbug", out=folder)


def make_tuning(folder: Path) -> None:
    _begin(folder, TuneSpec.of(model=MODEL, data=DATA, defense="ranmask", attacks=ATTACK, trials=3, sampler="random"))


def make_training(folder: Path) -> None:
    _begin(folder, TrainSpec.of(data=DATA, model=MODEL))


def _begin(folder: Path, spec: Spec) -> None:
    with begin(folder, spec, {"model": {}, "data": {}}, resume=False) as workspace:
        pass
    workspace.store.close()


MAKERS: Mapping[str, Callable[[Path], None]] = {
    "attack": make_attack_run,
    "certify": make_certificates,
    "evaluate": make_evaluation,
    "study": make_study,
    "tune": make_tuning,
    "train": make_training,
}


def edit_manifest(folder: Path, change: Change) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def edit_json(path: Path, **values: object) -> None:
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**content, **values}))


def in_store(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / "run.sqlite", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()


def other_model(folder: Path, name: str = "theirs") -> Path:
    """A model inside the run's folder."""
    shutil.copytree(MODEL, folder / name)
    return folder / name


def link(path: Path, target: str) -> None:
    """Put a link in the place of a file or folder, whose content is moved to the target."""
    if path.exists():
        os.replace(path, target)
    path.symlink_to(Path(target).absolute())
