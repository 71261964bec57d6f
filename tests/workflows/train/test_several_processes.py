"""Two processes on the CPU train together, through accelerate."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stockade as st
from stockade.core.errors import ResourceMissing
from stockade.training.devices import make_device
from stockade.workflows.train.result import TrainResult
from tests.training.tiny import tiny_origin, train_tiny

PROGRAM = """
import sys
from pathlib import Path
from tests.training.tiny import tiny_origin, train_tiny

train_tiny(Path(sys.argv[1]), origin=tiny_origin(dropout=0.0), device="cpu")
"""


def test_without_accelerate_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ResourceMissing, match=r"pip install 'stockade\[accelerate\]'"):
        make_device("cpu", "float32")


@pytest.mark.study
def test_two_processes_share_each_batch(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0"]
    result = subprocess.run(
        [*launch, "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", str(tmp_path / "program.py"),
         str(tmp_path / "m")],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    together = st.load(tmp_path / "m")
    assert isinstance(together, TrainResult)
    alone = train_tiny(tmp_path / "alone", origin=tiny_origin(dropout=0.0), device="cpu")
    assert together.complete
    losses = [epoch.validation.loss for epoch in together.history]
    assert losses == pytest.approx([epoch.validation.loss for epoch in alone.history], abs=0.02)
