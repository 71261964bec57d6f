"""Victims: anything a user calls a model, as a `Classifier`.

Importing this package is light; torch and transformers are imported when a neural model is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stockade.models.adapters import load_model
from stockade.models.builtin import BUILTIN_MODELS, BuiltinModel
from stockade.models.python import CallableClassifier

if TYPE_CHECKING:
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.sentence_encoder import SentenceEncoder

__all__ = [
    "BUILTIN_MODELS",
    "BuiltinModel",
    "CallableClassifier",
    "HuggingFaceClassifier",
    "SentenceEncoder",
    "load_model",
]


def __getattr__(name: str) -> Any:
    if name == "HuggingFaceClassifier":
        from stockade.models.huggingface import HuggingFaceClassifier

        return HuggingFaceClassifier
    if name == "SentenceEncoder":
        from stockade.models.sentence_encoder import SentenceEncoder

        return SentenceEncoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
