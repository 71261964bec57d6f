"""fastText models: `fasttext:FILE`, a supervised model with softmax, as `model.save_model` writes it.

fastText reads one line: line breaks become blanks. A text of which it knows no word gets no prediction, which is
recorded as all classes being equally likely.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stockade.core.errors import ModelError, missing_package
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from stockade.core.trust import check_vouched
from stockade.datasets.wording import first_line
from stockade.models.answers import read_answer
from stockade.models.black_box import class_names, single_texts
from stockade.models.files import file_fingerprint, model_file

if TYPE_CHECKING:
    from stockade.models.adapters import LoadOptions

SCHEME = "fasttext:"
_PREFIX = "__label__"
_BREAKS = re.compile(r"[\n\r\v\f\0]+")
_TOLERANCE = 0.02
"""Each probability is off by 1e-5, and models of many classes add that up."""


class FastTextAdapter:
    """Reads `fasttext:FILE`."""

    def matches(self, model: object) -> bool:
        """True for references of the scheme."""
        return isinstance(model, str | Path) and str(model).startswith(SCHEME)

    def load(self, model: object, options: LoadOptions) -> FastTextClassifier:
        """The model; its format is read by code that trusts it, so a folder must be vouched for."""
        check_vouched(str(model))
        path = model_file(str(model).removeprefix(SCHEME), "a supervised fastText model", "fasttext:model.bin")
        try:
            import fasttext
        except ImportError:
            raise missing_package("fasttext", "fasttext", model) from None
        try:
            loaded = fasttext.load_model(str(path))
        except (ValueError, RuntimeError, MemoryError) as error:
            raise ModelError(f"{path} cannot be loaded as a fastText model ({first_line(error, 200)}).") from error
        return FastTextClassifier(loaded, path, labels=options.labels, outputs=options.outputs)


class FastTextClassifier:
    """A supervised fastText model.

    Parameters
    ----------
    model : fasttext model
        What `fasttext.load_model` gives.
    path : Path
        Its file.
    labels : sequence of str, optional
        Names of the classes in the order of the model's.
    outputs : str, optional
        "labels" takes the most probable class alone.
    """

    deterministic = True

    def __init__(
        self, model: Any, path: Path, *, labels: Sequence[str] | None = None, outputs: str | None = None
    ) -> None:
        if not str(model.f.getArgs().model).endswith("supervised"):
            raise ModelError(f"{path} holds word vectors, expected a supervised fastText model.")
        if str(model.f.getArgs().loss).endswith(("ova", "ns")):
            raise ModelError(
                f"{path} was trained with another loss than softmax, so its classes do not exclude each other."
            )
        self._classes = tuple(model.get_labels())
        names = [name.removeprefix(_PREFIX) for name in self._classes]
        self._model, self._path = model, path
        self.labels = class_names(names, labels, str(path))
        self.label_only = outputs == "labels"

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """The probabilities of all classes for each text."""
        texts = [_BREAKS.sub(" ", text) for text in single_texts(inputs, str(self._path))]
        rows = np.zeros((len(texts), len(self.labels)))
        columns = {name: column for column, name in enumerate(self._classes)}
        for row, text in zip(rows, texts, strict=True):
            # Not model.predict: with numpy 2 it raises for a text, and repeats the first probability for a list.
            for chance, name in self._model.f.predict(f"{text}\n", -1, 0.0, "strict"):
                row[columns[name]] = chance
        rows[rows.sum(axis=1) == 0] = 1 / len(self.labels)
        sums = rows.sum(axis=1, keepdims=True)
        if (np.abs(sums - 1) > _TOLERANCE).any():
            raise ModelError(
                f"The probabilities of {self._path} sum to {sums.max():.3g}, expected 1: its classes do not "
                "exclude each other."
            )
        if self.label_only:
            rows = np.eye(len(self.labels))[rows.argmax(axis=1)].reshape(rows.shape)
        return read_answer(rows / rows.sum(axis=1, keepdims=True), len(texts), self.labels, "probabilities")[0]

    def fingerprint(self) -> str:
        """A hash of the file."""
        return file_fingerprint([self._path], self.labels, self.label_only)
