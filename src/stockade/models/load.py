"""MODEL references: from what a user writes or holds to a `Classifier`.

| given | read as |
|---|---|
| `builtin:NAME` | a victim that comes with the installation |
| `python:package.module:attribute` | a function of a list of texts, or an object with `predict_proba` |
| a folder, a `Path` | a Hugging Face sequence classifier with its tokenizer |
| any other string | a name on the Hugging Face hub |
| a `Classifier` | itself |
| `(model, tokenizer)`, a text-classification pipeline | a Hugging Face classifier |
| an estimator with `predict_proba`, a function | wrapped, its answers checked |
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Classifier
from stockade.models.builtin import load_builtin
from stockade.models.python import OUTPUTS, CallableClassifier

_LATER = {"sklearn:": "scikit-learn file", "onnx:": "ONNX", "http://": "HTTP", "https://": "HTTP"}


def load_model(
    reference: object,
    *,
    labels: Sequence[str] | None = None,
    device: str | None = None,
    outputs: str = "probabilities",
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Classifier:
    """The classifier a reference or object means.

    `labels` names the classes in column order, `outputs` ("probabilities" or "logits") says what a Python
    function answers with, `device` is for neural models. Pickled weights and models with code of their own
    are refused unless they are allowed by name.
    """
    if outputs not in OUTPUTS:
        raise OptionError(f'outputs is "probabilities" or "logits", not "{outputs}".')
    if not isinstance(reference, str | Path):
        return _from_object(reference, labels, device, outputs)
    text = str(reference)
    if text.startswith("builtin:"):
        return load_builtin(text.removeprefix("builtin:"), labels=labels, device=device)
    if text.startswith("python:"):
        return _from_object(_python_object(text), labels, device, outputs)
    for scheme, kind in _LATER.items():
        if text.startswith(scheme):
            raise ModelError(
                f"This version has no {kind} adapter, so {text} cannot be read. Meanwhile write a function "
                "of a list of texts that answers with class probabilities, and give it as "
                "python:package.module:function."
            )
    from stockade.models.huggingface import HuggingFaceClassifier

    return HuggingFaceClassifier.from_pretrained(
        reference,
        labels=labels,
        device=device,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
    )


def _from_object(thing: Any, labels: Sequence[str] | None, device: str | None, outputs: str) -> Classifier:
    if isinstance(thing, type):
        raise ModelError(
            f"{thing.__name__} is a class; expected an object with predict_proba or a function: make one of it first."
        )
    if isinstance(thing, tuple | list):
        if len(thing) != 2 or not _is_network(thing[0]):
            raise ModelError(f"A {type(thing).__name__} of {len(thing)} is not a model; expected (model, tokenizer).")
        return _huggingface(thing[0], thing[1], labels, device)
    if _is_network(getattr(thing, "model", None)) and hasattr(thing, "tokenizer"):
        task = getattr(thing, "task", "text-classification")
        if task not in ("text-classification", "sentiment-analysis"):
            raise ModelError(f"The pipeline is for {task}; expected a text-classification pipeline.")
        return _huggingface(thing.model, thing.tokenizer, labels, device)
    if isinstance(thing, Classifier):
        if labels is not None and tuple(labels) != tuple(thing.labels):
            raise ModelError(f"The model names its own classes ({', '.join(thing.labels)}): leave the labels out.")
        return thing
    if _is_network(thing):
        raise ModelError(f"A {type(thing).__name__} alone cannot read text: pass (model, tokenizer).")
    return CallableClassifier(thing, labels=labels, outputs=outputs)


def _is_network(thing: Any) -> bool:
    """A Hugging Face model: something with a config and a forward pass."""
    return hasattr(thing, "config") and hasattr(thing, "forward")


def _huggingface(model: Any, tokenizer: Any, labels: Sequence[str] | None, device: str | None) -> Classifier:
    from stockade.models.huggingface import HuggingFaceClassifier

    return HuggingFaceClassifier(model, tokenizer, labels=labels, device=device)


def _python_object(text: str) -> Any:
    """What `python:package.module:attribute` names. The current folder can be imported from, as with `python
    -m`.
    """
    module_name, separator, path = text.removeprefix("python:").partition(":")
    if not (module_name and separator and path):
        raise ModelError(
            f"{text} is incomplete; expected python:package.module:attribute, for example python:my_model:predict."
        )
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(
            0, here
        )  # it stays there: the user's function may import its neighbours when it is first called
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as problem:
        if problem.name and (module_name == problem.name or module_name.startswith(problem.name + ".")):
            raise ModelError(
                f"There is no module {problem.name} for {text} (looked in {here} and the installed packages)."
            ) from None
        raise ModelError(
            f"The module {module_name} of {text} needs {problem.name}, which is not installed."
        ) from problem
    except Exception as problem:
        raise ModelError(
            f"The module {module_name} of {text} cannot be imported ({type(problem).__name__}: {problem})."
        ) from problem
    for name in path.split("."):
        if not hasattr(found, name):
            public = (
                ", ".join(sorted(known for known in vars(found) if not known.startswith("_"))[:12])
                if hasattr(found, "__dict__")
                else ""
            )
            raise ModelError(f"{module_name} has no {name} for {text} (found: {public or 'nothing'}).")
        found = getattr(found, name)
    return found
