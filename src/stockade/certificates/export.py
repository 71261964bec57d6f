"""The columns of exported certificates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from stockade.certificates.certificate import Certificate
from stockade.runs.export import Layout


def _kinds() -> Mapping[str, Any]:
    import pyarrow as pa

    return {
        **{name: pa.int64() for name in ("radius", "insertions", "words", "copies", "run_seed")},
        **{name: pa.bool_() for name in ("truncated", "sound")},
        "seed": pa.uint64(),
        "alpha": pa.float64(),
    }


DOCUMENTS = Layout(
    (
        "statement",
        *(field.name for field in fields(Certificate)),
        "sound",
        "threat",
        "alpha",
        "options",
        "model",
        "model_fingerprint",
        "defenses",
        "classes",
        "run_seed",
        "version",
    ),
    ("selection", "evidence", "options", "defenses", "classes"),
    _kinds,
)
"""The rows of `CertificateRun.documents()`."""
