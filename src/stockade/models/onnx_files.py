"""Where the parts of an ONNX model are: the network, its tokenizer, and what its config says of the classes.

onnx:FOLDER      model.onnx, or the only .onnx file there or in its folder onnx/; tokenizer and config beside
onnx:FILE        that file, such as model_int8.onnx; tokenizer and config beside it, or one folder up from onnx/
onnx:PACKAGE     the only .onnx file of an installed package, found by its metadata: nothing of the package is imported
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from stockade.core.errors import ModelError
from stockade.core.limits import LARGEST_JSON, MOST_LABELS
from stockade.datasets.wording import first_line, listing
from stockade.models.files import check_links

_PREFERRED = "model.onnx"
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model")


@dataclass(frozen=True, slots=True)
class OnnxFiles:
    """The files of an ONNX model.

    Parameters
    ----------
    model
        The network.
    folder
        Where tokenizer and config are.
    config
        What config.json says; empty without one.
    """

    model: Path
    folder: Path
    config: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def find(cls, name: str) -> OnnxFiles:
        """The files that a reference names, without its scheme."""
        path = Path(name).expanduser()
        if not name or not path.exists():
            path = _in_package(name)
        model = path if path.is_file() else _only_model(_models_in(path), str(path))
        places = [model.parent, *([model.parent.parent] if model.parent.name == "onnx" else [])]
        folder = next((place for place in places if any((place / file).is_file() for file in _TOKENIZERS)), None)
        if folder is None:
            raise ModelError(
                f"There is no tokenizer beside {model} (expected: tokenizer.json). Save it there with "
                "tokenizer.save_pretrained(...)."
            )
        check_links(folder)
        config = next((place / "config.json" for place in places if (place / "config.json").is_file()), None)
        return cls(model, folder, {} if config is None else _read_config(config))

    @property
    def parts(self) -> list[Path]:
        """The network's file and those that hold its weights, if they are apart."""
        apart = [path for path in self.model.parent.glob(f"{self.model.name}[._]*") if path.is_file()]
        return [self.model, *sorted(apart)]

    @property
    def labels(self) -> dict[int, str]:
        """The classes that the config names, by number."""
        named = self.config.get("id2label") or {}
        try:
            return {int(number): str(label) for number, label in named.items()}
        except (AttributeError, TypeError, ValueError):
            raise ModelError(
                f"{self.folder} has an id2label in its config.json that maps no numbers to names."
            ) from None


def _models_in(folder: Path) -> Sequence[Path]:
    for place in (folder, folder / "onnx"):
        if (place / _PREFERRED).is_file():
            return [place / _PREFERRED]
        models = sorted(place.glob("*.onnx"))
        if models:
            return models
    return []


def _only_model(models: Sequence[Path], name: str) -> Path:
    if len(models) == 1:
        return models[0]
    if models:
        raise ModelError(f"{name} has several ONNX models ({listing(model.name for model in models)}): name the file.")
    raise ModelError(f"{name} has no ONNX model, expected model.onnx and tokenizer.json there.")


def _in_package(name: str) -> Path:
    absent = ModelError(
        f'There is no file, folder or installed package "{name}"; expected a folder with model.onnx and '
        "tokenizer.json, as in onnx:./my-model."
    )
    if not name or "/" in name or name.startswith("."):
        raise absent
    try:
        package = distribution(name)
    except (PackageNotFoundError, ValueError):
        raise absent from None
    models = [Path(str(package.locate_file(file))) for file in package.files or () if str(file).endswith(".onnx")]
    return _only_model([model for model in models if model.is_file()], f"The package {name}")


def _read_config(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise ModelError(f"{path} is larger than {LARGEST_JSON:,} bytes, which no config is.")
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read ({first_line(error)}). Restore it.") from None
    if not isinstance(config, dict):
        raise ModelError(f"{path} holds no table, expected the config of a model.")
    kind = config.get("problem_type")
    if kind in ("multi_label_classification", "regression"):
        raise ModelError(f"{path} says {kind}; Stockade attacks classifiers whose classes exclude each other.")
    if len(config.get("id2label") or ()) > MOST_LABELS:
        raise ModelError(f"{path} names more than {MOST_LABELS:,} classes.")
    return config
