"""From what a user calls a translator to a `Translator`.

| reference | translator |
|---|---|
| a folder, a hub name, `(model, tokenizer)` | `NeuralTranslator` |
| `python:package.module:attribute`, a function from texts to translations, a `Translator` | the object, or around it |

As for classifiers, pickled weights and code that comes with a model are refused unless they are allowed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stockade.core.errors import ModelError
from stockade.core.translation import Translator
from stockade.models.python import identity_of, import_attribute, name_of

_PYTHON, _HUGGINGFACE = "python:", "huggingface:"
_TRANSLATORS = ("Translator", "ForConditionalGeneration", "MTModel")
"""How the names of networks end that write sentences."""


class CallableTranslator:
    """A Python function from a list of sentences to a list of translations.

    Parameters
    ----------
    function
        Called with a list of texts; it decides itself how it searches, so a beam has no effect.
    deterministic
        Whether the same sentence always gets the same translation.
    """

    def __init__(self, function: Callable[[list[str]], Sequence[str]], *, deterministic: bool = True) -> None:
        if isinstance(function, type) or not callable(function):
            raise ModelError(
                f"{name_of(function)} is not a translator: expected a function from a list of texts to a list of "
                "translations, or an object with translate."
            )
        self.function, self.deterministic = function, deterministic

    def translate(self, texts: Sequence[str], *, beam: int = 1) -> list[str]:
        """The function's answer, checked: a string for each text."""
        answer = self.function(list(texts))
        if isinstance(answer, str) or not hasattr(answer, "__len__") or len(answer) != len(texts):
            shape = f"{len(answer)} items" if isinstance(answer, list | tuple) else f"a {type(answer).__name__}"
            raise ModelError(
                f"{name_of(self.function)} answered {len(texts)} texts with {shape}; expected a list of as many "
                "translations."
            )
        for text in answer:
            if not isinstance(text, str):
                raise ModelError(
                    f"{name_of(self.function)} answered with a {type(text).__name__}; expected a string per text."
                )
        return list(answer)

    def fingerprint(self) -> str:
        """A hash of the function's name and source; it cannot see what the function reads from elsewhere."""
        digest = hashlib.sha256()
        for part in identity_of(self.function):
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()


def load_translator(
    reference: object,
    *,
    device: str | None = None,
    prefix: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Translator:
    """Load the translator that a reference names, or make one of a Python object.

    Parameters
    ----------
    reference : str, Path or object
        A folder or a name on the Hugging Face hub; `python:package.module:attribute`; or the translator itself: a
        function from a list of texts to a list of translations, `(model, tokenizer)`, a `Translator`.
    device : str, optional
        Where a neural translator is computed: "auto", "cpu", "cuda" or "mps".
    prefix : str, optional
        What stands before every source, such as "translate English to German: " for T5; by default what the model's
        config names, if it names one.
    allow_pickle : bool
        Allow pickled weights, which can run code when they are opened.
    trust_remote_code : bool
        Allow a model of the hub to run code of its own.

    Returns
    -------
    Translator
    """
    if isinstance(reference, str | Path):
        name = str(reference)
        if name.startswith(_PYTHON):
            return load_translator(import_attribute(name), device=device, prefix=prefix)
        from stockade.models.pretrained import load_sequence_to_sequence

        location = name.removeprefix(_HUGGINGFACE) if isinstance(reference, str) else reference
        network, tokenizer = load_sequence_to_sequence(
            location, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
        )
        return _neural(network, tokenizer, device or "auto", prefix)
    if isinstance(reference, tuple | list):
        if len(reference) != 2 or not hasattr(reference[0], "config"):
            raise ModelError(
                f"A {type(reference).__name__} of {len(reference)} is not a translator; expected (model, tokenizer)."
            )
        return _neural(reference[0], reference[1], device, prefix)
    if isinstance(reference, Translator) and not isinstance(reference, type):
        return reference
    if hasattr(reference, "config") and hasattr(reference, "forward"):
        raise ModelError(f"A {type(reference).__name__} alone cannot read text: pass (model, tokenizer).")
    return CallableTranslator(reference)  # type: ignore[arg-type]  # what is no function is refused there


def is_translator(reference: object) -> bool:
    """Whether a reference or an object is plainly a translator, so that whoever expects a classifier can say so.

    Parameters
    ----------
    reference : str, Path or object
        What a user calls a model; of a folder the config is looked at.
    """
    if not isinstance(reference, str | Path):
        return hasattr(reference, "translate") and not hasattr(reference, "predict_proba")
    try:
        config = json.loads((Path(reference) / "config.json").read_text(encoding="utf-8"))
        names = config.get("architectures") or [""]
    except (OSError, ValueError, AttributeError):
        return False
    return str(names[0]).endswith(_TRANSLATORS)


def _neural(network: Any, tokenizer: Any, device: str | None, prefix: str | None) -> Translator:
    from stockade.models.translation.neural import NeuralTranslator

    stated = getattr(network.config, "prefix", None) if prefix is None else prefix
    return NeuralTranslator(network, tokenizer, device=device, prefix=stated or "")
