"""spaCy pipelines as models: `spacy:FOLDER` or the name of an installed pipeline, with a text categorizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stockade.core.errors import ModelError, missing_package
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from stockade.core.trust import check_vouched
from stockade.datasets.wording import first_line, listing
from stockade.models.answers import read_answer
from stockade.models.black_box import class_names, single_texts
from stockade.models.files import check_links, file_fingerprint

if TYPE_CHECKING:
    from stockade.models.adapters import LoadOptions

SCHEME = "spacy:"


class SpacyAdapter:
    """Reads `spacy:FOLDER` and `spacy:PACKAGE`."""

    def matches(self, model: object) -> bool:
        """True for references of the scheme."""
        return isinstance(model, str | Path) and str(model).startswith(SCHEME)

    def load(self, model: object, options: LoadOptions) -> SpacyClassifier:
        """The pipeline; its config may name functions of installed packages, so somebody must vouch for it."""
        check_vouched(str(model))
        name = str(model).removeprefix(SCHEME)
        try:
            import spacy
        except ImportError:
            raise missing_package("spacy", "spacy", model) from None
        folder = Path(name).expanduser()
        if folder.is_dir():
            check_links(folder)
        try:
            pipeline = spacy.load(folder if folder.exists() else name)
        except (OSError, ValueError, TypeError, LookupError, ImportError) as error:
            raise ModelError(
                f"{name} cannot be loaded as a spaCy pipeline ({first_line(error, 200)}). Give the folder that "
                "nlp.to_disk wrote, or the name of an installed pipeline."
            ) from error
        return SpacyClassifier(pipeline, name, labels=options.labels, outputs=options.outputs)


class SpacyClassifier:
    """A spaCy pipeline with a text categorizer whose classes exclude each other.

    Parameters
    ----------
    pipeline : spacy.Language
        The pipeline.
    name : str
        What errors call it, and where its files are.
    labels : sequence of str, optional
        Names of the classes in the order of the categorizer's.
    outputs : str, optional
        "labels" takes the most probable class alone.
    """

    deterministic = True

    def __init__(
        self, pipeline: Any, name: str, *, labels: Sequence[str] | None = None, outputs: str | None = None
    ) -> None:
        factories = {part: pipeline.get_pipe_meta(part).factory for part in pipeline.pipe_names}
        if "textcat_multilabel" in factories.values():
            raise ModelError(
                f"{name} has a textcat_multilabel, whose classes do not exclude each other. Stockade attacks "
                "single-label classifiers: wrap the label you care about in a function."
            )
        parts = [part for part, factory in factories.items() if factory == "textcat"]
        if len(parts) != 1:
            raise ModelError(f"{name} has no text categorizer (found: {listing(factories)}), expected a textcat.")
        self._pipeline, self._name = pipeline, name
        self._classes = tuple(pipeline.get_pipe(parts[0]).labels)
        self.labels = class_names(self._classes, labels, name)
        self.label_only = outputs == "labels"

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """The categorizer's scores of each text."""
        texts = single_texts(inputs, self._name)
        rows = [[doc.cats[label] for label in self._classes] for doc in self._pipeline.pipe(texts)]
        values = np.array(rows, dtype=np.float64).reshape(len(texts), len(self.labels))
        if self.label_only:
            values = np.eye(len(self.labels))[values.argmax(axis=1)].reshape(values.shape)
        return read_answer(values, len(texts), self.labels, "probabilities")[0]

    def fingerprint(self) -> str:
        """A hash of all that the pipeline would write to a folder."""
        folder = Path(self._name).expanduser()
        if folder.is_dir():
            files = [path for path in folder.rglob("*") if path.is_file()]
            return file_fingerprint(files, self.labels, self.label_only)
        meta = {name: self._pipeline.meta.get(name) for name in ("lang", "name", "version")}
        return file_fingerprint([], meta, self.labels, self.label_only)
