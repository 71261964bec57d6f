"""What the folder of a transfer study has for other studies: its matrix, its models and its data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from stockade.core.errors import DataError, RunError
from stockade.experiment.inputs import is_lost_object
from stockade.experiment.store import ResultStore
from stockade.experiment.workspace import MANIFEST, read_manifest
from stockade.models.ensemble_reference import single_models
from stockade.studies.transferability.matrix import TransferMatrix
from stockade.studies.transferability.roster import recorded_failures, recorded_models

KIND = "study-transfer"


@dataclass(frozen=True, slots=True)
class TransferFolder:
    """A transfer study as others see it.

    Parameters
    ----------
    folder
        Its folder.
    models
        References of its models by name, without those that failed or were Python objects.
    data
        The reference of its data; None if they were a Python object.
    """

    folder: Path
    models: Mapping[str, str]
    data: str | None

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """The transfer study of a folder, or of a file in it; None if that is none."""
        folder = path if path.is_dir() else path.parent
        if not (folder / MANIFEST).is_file():
            return None
        manifest = read_manifest(folder)
        if manifest.kind != KIND:
            return None
        models: dict[str, str] = dict(manifest.spec.get("models") or {})
        store = ResultStore(folder)
        try:  # models of a pool are recorded when they are loaded, not when the study is begun
            models |= {name: row["reference"] for name, row in recorded_models(store).items()}
            failed = recorded_failures(store)
        finally:
            store.close()
        data = manifest.spec.get("data")
        return cls(
            folder,
            {name: model for name, model in models.items() if name not in failed and not is_lost_object(model)},
            None if is_lost_object(data) else data,
        )

    def trusted_models(self, trust: bool) -> dict[str, str]:
        """The models, unless one of them is code that only the folder names.

        Parameters
        ----------
        trust
            Whether the user trusts whoever made the folder.
        """
        for reference in self.models.values():
            code = next((model for model in single_models(reference) if model.startswith("python:")), None)
            if code is not None and not trust:
                raise RunError(
                    f"{self.folder} names the model {code}: that is code named by the folder, not by you. Add "
                    "--trust-run (trust=True in Python) if you trust whoever made it, or name the models and the data."
                )
        return dict(self.models)


def read_matrix(path: Path, attack: str) -> tuple[TransferMatrix, str]:
    """The transfer matrix of an attack, with a fingerprint of its content.

    Parameters
    ----------
    path, attack
        As for `matrix_file`.
    """
    matrix = TransferMatrix.read(matrix_file(path, attack))
    content = json.dumps([matrix.sources, matrix.targets, matrix.rates.tolist()])
    return matrix, hashlib.sha256(content.encode()).hexdigest()


def matrix_file(path: Path, attack: str) -> Path:
    """The file of the transfer matrix of an attack, in the folder of a transfer study or named itself.

    Parameters
    ----------
    path
        A file, or the folder of a transfer study.
    attack
        Whose matrix, where a study has several.
    """
    if not path.is_dir():
        if not path.exists():
            raise DataError(
                f"There is no transfer matrix {path}, expected a csv file or the folder of a transfer study."
            )
        return path
    candidates = [path / "matrix.csv", path / f"matrix-{attack}.csv"]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise DataError(
        f"{path} has no {' or '.join(candidate.name for candidate in candidates)}: finish the transfer study in it "
        f"(stockade resume {path}), or name a csv file."
    )
