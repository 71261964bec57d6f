"""The victims that come with the installation, as data: listing them loads nothing.

Their weights are of our own making (tools/train_victims.py) and live in `stockade.artifacts`, one folder each
with a model card.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.artifacts import artifact_path
from stockade.core.errors import ResourceMissing, unknown_name

if TYPE_CHECKING:
    from stockade.models.adapters import LoadOptions
    from stockade.models.huggingface import HuggingFaceClassifier

_SCHEME = "builtin:"


@dataclass(frozen=True, slots=True)
class BuiltinModel:
    """A built-in victim: `description` is its line in `stockade ls models`, `data` the built-in data set it
    was trained on.
    """

    name: str
    description: str
    labels: tuple[str, ...]
    data: str

    @property
    def reference(self) -> str:
        return f"{_SCHEME}{self.name}"

    @property
    def folder(self) -> Path:
        """Where its weights are."""
        return artifact_path(self.name)


_ADAPTER = "adapter.json"
_SENTIMENT = ("negative", "positive")
_MODELS = (
    BuiltinModel("sentiment-cnn", "word-level CNN over GloVe words, movie review sentences", _SENTIMENT, "reviews"),
    BuiltinModel("sentiment-lstm", "word-level LSTM over GloVe words, movie review sentences", _SENTIMENT, "reviews"),
    BuiltinModel(
        "sentiment-bert",
        "MiniLM (6-layer BERT) fine-tuned with LoRA, movie review sentences",
        _SENTIMENT,
        "reviews",
    ),
)
BUILTIN_MODELS = {model.name: model for model in _MODELS}


def builtin_model(name: str) -> BuiltinModel:
    """The built-in victim of that name."""
    if name not in BUILTIN_MODELS:
        raise unknown_name("built-in model", name, BUILTIN_MODELS)
    return BUILTIN_MODELS[name]


class BuiltinAdapter:
    """Reads `builtin:NAME`."""

    def matches(self, model: object) -> bool:
        """True for references of the scheme."""
        return str(model).startswith(_SCHEME)

    def load(self, model: object, options: LoadOptions) -> HuggingFaceClassifier:
        """The built-in victim of that name."""
        return load_builtin(str(model).removeprefix(_SCHEME), labels=options.labels, device=options.device)


def load_builtin(name: str, *, labels: Sequence[str] | None = None, device: str | None = None) -> HuggingFaceClassifier:
    """Load a built-in victim; without a device it runs on the best there is."""
    folder = builtin_model(name).folder
    if not any((folder / file).is_file() for file in (_ADAPTER, "config.json")):
        raise ResourceMissing(
            f"The weights of builtin:{name} are missing from stockade.artifacts. Reinstall Stockade, or make "
            "them with tools/train_victims.py in a source checkout."
        )
    return load_victim(folder, labels=labels, device=device)


def load_victim(
    folder: Path, *, labels: Sequence[str] | None = None, device: str | None = None
) -> HuggingFaceClassifier:
    """Load a folder made by tools/train_victims.py: a whole model, or an adapter of the packaged MiniLM."""
    from stockade.models.huggingface import HuggingFaceClassifier

    adapter = folder / _ADAPTER
    if not adapter.is_file():
        return HuggingFaceClassifier.from_pretrained(folder, labels=labels, device=device)
    model, tokenizer = _adapted_minilm(folder, json.loads(adapter.read_text(encoding="utf-8")))
    return HuggingFaceClassifier(model, tokenizer, labels=labels, device=device or "auto")


def _adapted_minilm(folder: Path, options: dict[str, Any]) -> tuple[Any, Any]:
    """The packaged MiniLM with the deltas and the head of an adapter folder."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    from stockade.models.language import minilm_folder
    from stockade.models.lora import load_adapter, merge_adapter
    from stockade.models.pretrained import quiet

    names = {int(number): name for number, name in options["id2label"].items()}
    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
        model = BertForSequenceClassification.from_pretrained(
            minilm_folder(),
            id2label=names,
            label2id={name: number for number, name in names.items()},
            use_safetensors=True,
            dtype=torch.float32,
        )
    merge_adapter(model, load_adapter(folder / "adapter.safetensors"))
    model.requires_grad_(False)
    return model, tokenizer
