"""A training that was stopped, however it was stopped, ends with the weights of one that was not."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import PreTrainedModel

from stockade.core.errors import InputError, RunError
from stockade.experiment.progress import Progress
from stockade.training import checkpoint
from stockade.training.objective import Batch, CrossEntropy
from tests.training.tiny import OPTIONS, rows, tiny_origin, train_tiny, without_plots

pytestmark = pytest.mark.usefixtures("plain_report")
OFTEN = OPTIONS.changed(checkpoint_minutes=0.0, word_dropout=0.1, schedule="cosine", warm_up=0.1)


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "model.safetensors")


def same(folder: Path, other: Path) -> bool:
    first, second = weights(folder), weights(other)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


class Crash(Exception):
    pass


def crash_after(step: int) -> Any:
    def observe(progress: Progress) -> None:
        if progress.done == step:
            raise Crash

    return observe


class Noisy(CrossEntropy):
    """Draws from every generator there is, so that a state that is not restored shows."""

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        noise = 1 + 0.1 * (random.random() + float(np.random.rand()) + float(torch.rand(1)) + batch.rng.random())
        return super().loss(model, batch) * noise


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbroken") / "m"
    with pytest.MonkeyPatch.context() as patched:
        without_plots(patched)
        train_tiny(out, options=OFTEN, objective=Noisy())
    return out


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("interrupted") / "m"
    with pytest.MonkeyPatch.context() as patched:
        without_plots(patched)
        with pytest.raises(Crash):
            train_tiny(out, options=OFTEN, objective=Noisy(), observer=crash_after(9))
    return out


SLOW = pytest.mark.slow


@pytest.mark.parametrize("step", [pytest.param(1, marks=SLOW), 4, 7, 8, pytest.param(20, marks=SLOW), 21])
def test_resumed_weights_are_bit_equal(step: int, unbroken: Path, tmp_path: Path) -> None:
    with pytest.raises(Crash):
        train_tiny(tmp_path / "m", options=OFTEN, objective=Noisy(), observer=crash_after(step))
    assert not (tmp_path / "m" / "config.json").exists()
    random.seed(), torch.rand(3)  # whatever the new process did before
    train_tiny(tmp_path / "m", options=OFTEN, objective=Noisy(), resume=True)
    assert same(unbroken, tmp_path / "m")
    assert not (tmp_path / "m" / "checkpoint").exists()


def test_the_checkpoints_between_change_nothing(unbroken: Path, tmp_path: Path) -> None:
    seldom = OFTEN.changed(checkpoint_minutes=60)
    train_tiny(tmp_path / "m", options=seldom, objective=Noisy())
    assert same(unbroken, tmp_path / "m")


def test_training_leaves_the_callers_generators_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train_tiny(tmp_path / "m", options=OPTIONS)
    assert torch.equal(torch.rand(3), expected)


def test_a_finished_training_is_only_read(unbroken: Path) -> None:
    before = (unbroken / "model.safetensors").stat().st_mtime_ns
    again = train_tiny(unbroken, options=OFTEN, objective=Noisy(), resume=True)
    assert (unbroken / "model.safetensors").stat().st_mtime_ns == before
    assert [epoch.number for epoch in again.history] == [1, 2, 3]
    with pytest.raises(RunError, match=r"exists already and is not empty. Resume it with --resume"):
        train_tiny(unbroken, options=OFTEN, objective=Noisy())


KILLED = """
import sys, time
from pathlib import Path
from tests.training.tiny import train_tiny
from tests.workflows.train.test_resume import OFTEN, Noisy

def slowly(progress):
    print(progress.done, flush=True)
    time.sleep(0.02)

train_tiny(Path(sys.argv[1]), options=OFTEN, objective=Noisy(), observer=slowly, resume=True)
"""


@pytest.mark.slow
def test_kill_9_at_any_moment(unbroken: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}
    for last in (12,):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path / "m")], stdout=subprocess.PIPE, env=environment, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= last:
                break
        time.sleep(random.Random(last).uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert (tmp_path / "m" / "checkpoint" / "state.safetensors").exists()
    train_tiny(tmp_path / "m", options=OFTEN, objective=Noisy(), resume=True)
    assert same(unbroken, tmp_path / "m")


def test_control_c_ends_the_step_and_saves_it(unbroken: Path, tmp_path: Path) -> None:
    def press(progress: Progress) -> None:
        if progress.done == 5:
            os.kill(os.getpid(), signal.SIGINT)

    seldom = OFTEN.changed(checkpoint_minutes=60)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "m", options=seldom, objective=Noisy(), observer=press)
    steps: list[int] = []
    train_tiny(tmp_path / "m", options=seldom, objective=Noisy(), resume=True,
        observer=lambda progress: steps.append(progress.done),
    )  # fmt: skip
    assert steps[0] == 6
    assert same(unbroken, tmp_path / "m")


def test_a_full_disk_leaves_the_last_checkpoint(
    unbroken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, real = 0, checkpoint.write_tensors

    def full(path: Path, *arguments: Any) -> None:
        nonlocal writes
        writes += 1
        if writes == 6:
            path.write_bytes(b"half a checkpoint")
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, *arguments)

    monkeypatch.setattr(checkpoint, "write_tensors", full)
    with pytest.raises(RunError, match=r"No space left on device.*The checkpoint of step 5 before it is unharmed"):
        train_tiny(tmp_path / "m", options=OFTEN, objective=Noisy())
    assert [path.name for path in (tmp_path / "m" / "checkpoint").iterdir()] == ["state.safetensors"]
    train_tiny(tmp_path / "m", options=OFTEN, objective=Noisy(), resume=True)
    assert same(unbroken, tmp_path / "m")


def test_a_full_disk_at_the_final_save_can_be_resumed(
    unbroken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any, saving: Path) -> None:
        saving.mkdir()
        (saving / "config.json").write_text("{")
        raise SafetensorError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(PreTrainedModel, "save_pretrained", full)
        with pytest.raises(RunError, match=r"cannot be saved .*No space left on device.*checkpoint is unharmed"):
            train_tiny(tmp_path / "m", options=OFTEN, objective=Noisy())
    assert not (tmp_path / "m" / ".saving").exists()
    assert not (tmp_path / "m" / "config.json").exists()
    train_tiny(tmp_path / "m", options=OFTEN, objective=Noisy(), resume=True)
    assert same(unbroken, tmp_path / "m")


@pytest.mark.parametrize(
    ("origin", "options", "data", "message"),
    [
        (tiny_origin("other", width=8), OFTEN, rows(), "architecture was .tiny., now .other."),
        (tiny_origin(width=8), OFTEN, rows(), "shapes was"),
        (tiny_origin(), OFTEN.changed(epochs=4), rows(), "options.epochs was 3, now 4"),
        (tiny_origin(), OFTEN, rows(61), "data.fingerprint was"),
    ],
)
def test_another_training_is_not_resumed_and_nothing_is_lost(
    origin: Any, options: Any, data: Any, message: str, interrupted: Path
) -> None:
    before = {path: path.read_bytes() for path in interrupted.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match=message):
        train_tiny(interrupted, data, origin=origin, options=options, objective=Noisy(), resume=True)
    assert {path: path.read_bytes() for path in interrupted.rglob("*") if path.is_file()} == before


def test_weights_of_another_architecture_are_refused_by_the_checkpoint_too(tmp_path: Path) -> None:
    """Someone has copied a checkpoint folder, or the record is from elsewhere."""
    with pytest.raises(Crash):
        train_tiny(tmp_path / "other", origin=tiny_origin(width=8), options=OFTEN, observer=crash_after(9))
    with pytest.raises(Crash):
        train_tiny(tmp_path / "m", options=OFTEN, observer=crash_after(9))
    stranger = tmp_path / "other/checkpoint/state.safetensors"
    (tmp_path / "m/checkpoint/state.safetensors").write_bytes(stranger.read_bytes())
    with pytest.raises(RunError, match="is the checkpoint of another training"):
        train_tiny(tmp_path / "m", options=OFTEN, resume=True)
    (tmp_path / "m/checkpoint/state.safetensors").write_bytes(stranger.read_bytes()[:5000])
    with pytest.raises(RunError, match="cannot be read"):
        train_tiny(tmp_path / "m", options=OFTEN, resume=True)


def test_folders_of_other_people_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.tex").write_text("years of work")
    for resume in (False, True):
        with pytest.raises(RunError, match=r"exists already and is not empty. Choose another folder"):
            train_tiny(tmp_path / "m", options=OPTIONS, resume=resume)


def test_a_folder_that_is_trained_in_is_left_to_that_training(tmp_path: Path) -> None:
    refused: list[str] = []

    def intrude(progress: Progress) -> None:
        if progress.done == 2 and not refused:
            with pytest.raises(RunError) as raised:
                train_tiny(tmp_path / "m", options=OPTIONS, resume=True)
            refused.append(str(raised.value))

    train_tiny(tmp_path / "m", options=OPTIONS, observer=intrude)
    assert "nother process" in refused[0]


class Poisoned(CrossEntropy):
    """NaN at the tenth step."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "batches", [])

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        self.batches.append(batch)  # type: ignore[attr-defined]
        return super().loss(model, batch) * (float("nan") if len(self.batches) == 10 else 1.0)  # type: ignore[attr-defined]


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"The loss became nan at step 10 of 21.*lower learning rate \(it was 0.01\)"):
        train_tiny(tmp_path / "m", options=OFTEN, objective=Poisoned())
    tensors = load_file(tmp_path / "m/checkpoint/state.safetensors")
    assert all(torch.isfinite(tensor.float()).all() for name, tensor in tensors.items() if name.startswith("model."))
    assert float(tensors["optimiser.0.step"]) == 9


class Exploding(CrossEntropy):
    """A finite loss whose gradient is not."""

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        loss = super().loss(model, batch)
        return loss + (loss - loss.detach()).sqrt()


def test_weights_that_are_no_numbers_are_never_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no longer finite after step 1"):
        train_tiny(tmp_path / "m", options=OFTEN, objective=Exploding())
    assert not (tmp_path / "m/checkpoint/state.safetensors").exists()
