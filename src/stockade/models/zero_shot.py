"""Zero-shot classifiers: `zero-shot:FOLDER`, a model of natural language inference that is asked about hypotheses.

Each class becomes a hypothesis ("This example is about sports."), and the probabilities are the softmax of the logits
of entailment over the classes (Yin et al. 2019, Benchmarking Zero-shot Text Classification, EMNLP), as the zero-shot
pipeline of transformers computes them for classes that exclude each other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput
from stockade.datasets.wording import listing
from stockade.models.answers import softmax
from stockade.models.black_box import single_texts
from stockade.models.settings import make_settings

if TYPE_CHECKING:
    from stockade.models.adapters import LoadOptions
    from stockade.models.encoding import EncodedText
    from stockade.models.huggingface import HuggingFaceClassifier

SCHEME = "zero-shot:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroShotSettings:
    """The settings of a zero-shot classifier.

    Parameters
    ----------
    hypothesis : str
        What is asked of each class, with a place for `{label}`.
    entailment : str, optional
        The model's class for entailment, if its name does not say so.
    """

    hypothesis: str = "This example is {label}."
    entailment: str | None = None


class ZeroShotAdapter:
    """Reads `zero-shot:FOLDER`, also with a name of the hub."""

    takes_settings = True

    def matches(self, model: object) -> bool:
        """True for references of the scheme."""
        return isinstance(model, str | Path) and str(model).startswith(SCHEME)

    def load(self, model: object, options: LoadOptions) -> ZeroShotClassifier:
        """The model of inference with a hypothesis for each label."""
        from stockade.models.huggingface import HuggingFaceClassifier

        settings = make_settings(ZeroShotSettings, "zero-shot models", options.settings)
        reference = str(model).removeprefix(SCHEME)
        if options.labels is None:
            raise ModelError(
                f"{model} has no classes of its own: name them with --labels, as in --labels sports,politics."
            )
        inference = HuggingFaceClassifier.from_pretrained(
            reference,
            device=options.device,
            allow_pickle=options.allow_pickle,
            trust_remote_code=options.trust_remote_code,
        )
        return ZeroShotClassifier(inference, options.labels, settings, str(model))


@dataclass(frozen=True, slots=True)
class EncodedHypotheses:
    """A tokenised text with each of the hypotheses."""

    pairs: tuple[EncodedText, ...]

    @property
    def key(self) -> Hashable:
        """Texts of equal keys are the same to the model."""
        return tuple(pair.key for pair in self.pairs)

    def __len__(self) -> int:
        return sum(map(len, self.pairs))


class ZeroShotClassifier:
    """A model of inference as a classifier.

    Parameters
    ----------
    inference : HuggingFaceClassifier
        The model: premise and hypothesis in, entailment or not out.
    labels : sequence of str
        The classes.
    settings : ZeroShotSettings
        The hypothesis, and which class of the model is entailment.
    name : str
        What errors call the model.
    """

    deterministic = True

    def __init__(
        self, inference: HuggingFaceClassifier, labels: Sequence[str], settings: ZeroShotSettings, name: str
    ) -> None:
        if len(labels) < 2 or len(set(labels)) != len(labels):
            raise ModelError(f"A classifier needs two or more different labels, found: {listing(labels)}.")
        if "{label}" not in settings.hypothesis:
            raise OptionError("The setting hypothesis has no place for the class: write {label} where it should stand.")
        self.labels = tuple(labels)
        self.workers = inference.workers
        self._inference, self._name = inference, name
        self._entailment = _entailment(inference.labels, settings.entailment, name)
        self._hypotheses = [settings.hypothesis.replace("{label}", label) for label in self.labels]

    def encode(self, inputs: Sequence[TextInput]) -> list[EncodedHypotheses]:
        """Each text tokenised with each hypothesis."""
        texts = single_texts(inputs, self._name)
        pairs = self._inference.encode([(text, hypothesis) for text in texts for hypothesis in self._hypotheses])
        count = len(self.labels)
        return [EncodedHypotheses(tuple(pairs[start : start + count])) for start in range(0, len(pairs), count)]

    def predict_encoded(self, batch: Sequence[EncodedHypotheses]) -> Probabilities:
        """The softmax of the logits of entailment over the classes."""
        if not batch:
            return np.zeros((0, len(self.labels)))
        logits = self._inference.logits_encoded([pair for text in batch for pair in text.pairs])
        return softmax(logits[:, self._entailment].reshape(len(batch), len(self.labels)))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """Class probabilities of each text."""
        rows = [self.predict_encoded([text]) for text in self.encode(inputs)]
        return np.concatenate(rows) if rows else np.zeros((0, len(self.labels)))

    def start_worker(self) -> None:
        """As for the model of inference."""
        self._inference.start_worker()

    def fingerprint(self) -> str:
        """A hash of the model and the hypotheses."""
        content = json.dumps([self._inference.fingerprint(), self._hypotheses, self._entailment])
        return hashlib.sha256(content.encode()).hexdigest()


def _entailment(classes: Sequence[str], wanted: str | None, name: str) -> int:
    if wanted is not None:
        if wanted not in classes:
            raise OptionError(f"The setting entailment is {wanted}, which is none of the model's {listing(classes)}.")
        return classes.index(wanted)
    named = [index for index, label in enumerate(classes) if label.lower().startswith("entail")]
    if len(named) != 1:
        raise ModelError(
            f"{name} has the classes {listing(classes)}, and none is called entailment. Name it with --setting "
            "entailment=CLASS if this is a model of natural language inference."
        )
    return named[0]
