"""What the transfer paper printed, as far as it is at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stockade.models.zoo.names import POOL
from stockade.studies.transferability.matrix import TransferMatrix

SPEC = Path(__file__).parents[3] / "shared" / "SPEC.md"


def published_matrix() -> TransferMatrix:
    """The readable half of the paper's Figure 3: 63 sources, targets 37 to 63."""
    if not SPEC.is_file():
        pytest.skip("the published transfer matrix is not here")
    part = SPEC.read_text(encoding="utf-8").split("## 7.9")[1].split("```csv\n")[1].split("```")[0]
    header, *rows = [line.split(",") for line in part.strip().splitlines()]
    names = [str(name) for name in POOL]
    return TransferMatrix(
        tuple(names[int(row[0]) - 1] for row in rows),
        tuple(names[int(number) - 1] for number in header[1:]),
        np.array([[float(cell) for cell in row[1:]] for row in rows]),
    )
