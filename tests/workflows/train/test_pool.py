"""Pools of models: every member trained once, with each seed, and read when it is there."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import stockade as st
from stockade.core.errors import OptionError
from stockade.experiment.progress import Progress
from stockade.models.zoo.names import POOLS, parse_zoo_name, pool_names
from stockade.workflows.train import pool
from stockade.workflows.train.pool import member_folder, train_pool

TEXTS = [(f"a {word} film of {number} minutes", word) for number in range(30) for word in ("good", "bad")]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_EPOCHS", {"W": 1, "C": 1, "WC": 1})


def test_a_pool_is_trained_with_each_seed_and_then_only_read(tmp_path: Path) -> None:
    moments: list[Progress] = []
    names = ("CNN-W-Random-1", "LSTM-W-Random-1", "BERT")
    threads = torch.get_num_threads()
    members = train_pool(names, TEXTS, tmp_path, workers=1, observer=moments.append)
    assert [(member.name, member.seed) for member in members] == [(name, seed) for name in names for seed in (0, 1)]
    assert [member.problem for member in members] == [None] * 4 + ["no checkpoint was given to begin at"] * 2
    assert moments[-1].done == moments[-1].total == 6
    assert torch.get_num_threads() == threads
    first, second = (st.load(member.folder) for member in members[:2])
    assert first.manifest.spec["options"]["seed"] != second.manifest.spec["options"]["seed"]
    written = {member.folder: (member.folder / "model.safetensors").stat().st_mtime_ns for member in members[:4]}
    again = train_pool(names[:2], TEXTS, tmp_path, workers=1)
    assert again == members[:4]
    assert {folder: (folder / "model.safetensors").stat().st_mtime_ns for folder in written} == written


def test_processes_train_the_weights_that_one_process_trains(tmp_path: Path) -> None:
    names = ("CNN-W-Random-1", "LSTM-W-Random-1")
    alone = train_pool(names, TEXTS, tmp_path / "one", seeds=(0,), workers=1)
    together = train_pool(names, TEXTS, tmp_path / "two", seeds=(0,), workers=2)
    for one, two in zip(alone, together, strict=True):
        assert one.problem is two.problem is None
        assert (one.folder / "model.safetensors").read_bytes() == (two.folder / "model.safetensors").read_bytes()


def test_a_member_that_was_trained_on_other_data_is_not_taken(tmp_path: Path) -> None:
    train_pool(("CNN-W-Random-1",), TEXTS, tmp_path, seeds=(0,), workers=1)
    [member] = train_pool(("CNN-W-Random-1",), TEXTS[:40], tmp_path, seeds=(0,), workers=1)
    assert member.problem is not None
    assert str(member_folder(tmp_path, "CNN-W-Random-1", 0)) in member.problem


def test_pools_hold_names_of_the_zoo_once() -> None:
    for names in POOLS.values():
        assert [str(parse_zoo_name(name)) for name in names] == list(dict.fromkeys(names))
    assert (len(POOLS["default"]), len(POOLS["full"])) == (20, 66)
    with pytest.raises(OptionError, match='Did you mean "full"'):
        pool_names("ful")


@pytest.mark.slow
def test_processes_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, time\n"
        "from stockade.workflows.train.pool import _processes\n"
        "if __name__ == '__main__':\n"
        "    with _processes(2) as processes:\n"
        "        print(*{processes.submit(os.getpid).result() for _ in range(2)}, flush=True)\n"
        "        processes.submit(time.sleep, 600)\n"
        "        time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(number) for number in parent.stdout.readline().split()]
        parent.kill()
        parent.wait()
        for _ in range(600):
            if not any(Path(f"/proc/{child}").exists() for child in children):
                return
            time.sleep(0.1)
    pytest.fail(f"{children} are still there a minute after their parent")
