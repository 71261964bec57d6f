"""The model that is trained: built by the name of its architecture, or a trained model that is trained further."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stockade.core.errors import ModelError, OptionError
from stockade.core.text import TextInput
from stockade.models.encoding import TextEncoder
from stockade.training.objective import ModelLoss, NextWords, Objective, joined
from stockade.training.options import Task

LANGUAGE_MODEL = "biLM"

Builder = Callable[[Sequence[TextInput], Sequence[str], int], tuple[Any, Any]]
"""Makes (model, tokenizer) from the training texts, the names of the classes and a seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the model of a training comes from: an architecture that is built, or a trained model.

    Parameters
    ----------
    task
        What the model does: classification or translation.
    architecture
        A name of the zoo, such as CNN-W-GloVe-2, or of a translator.
    model
        A model to train further in place of an architecture: a reference, or (model, tokenizer), of which a copy is
        trained.
    sources, sizes
        What the architecture is built from (word vectors, checkpoints), and sizes other than its defaults.
    builder
        Builds the architecture in the zoo's place.
    device
        Where a trained model is loaded.
    """

    task: Task = "classification"
    architecture: str | None = None
    model: object = None
    sources: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, Any] = field(default_factory=dict)
    builder: Builder | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if (self.architecture is None) == (self.model is None):
            raise OptionError(
                "A training begins at an architecture or at a trained model: name one of --arch and --model."
            )

    @property
    def is_language_model(self) -> bool:
        return (self.architecture or "").lower() == LANGUAGE_MODEL.lower()

    @property
    def translates(self) -> bool:
        return self.task == "translation"

    @property
    def name(self) -> str:
        if self.architecture is not None:
            return self.architecture
        return str(self.model) if isinstance(self.model, str | Path) else type(self.model).__name__

    def load(self) -> Start | None:
        """The trained model to begin at; None if one is to be built."""
        if self.model is None:
            return None
        return (_trained_translator if self.translates else _trained)(self.model, self.device)

    def build(self, texts: Sequence[TextInput], classes: Sequence[str], seed: int) -> tuple[Any, Any]:
        """A new model of the architecture and its tokenizer."""
        assert self.architecture is not None
        if self.builder is not None:
            return self.builder(texts, classes, seed)
        sizes = dict(self.sizes)
        if self.translates:
            from stockade.models.translation.build import build_translator

            pairs = [(text, text) if isinstance(text, str) else text for text in texts]
            return build_translator(self.architecture, pairs, seed=seed, options=sizes)
        from stockade.models.zoo.build import Sources, build_bilm, build_model

        if self.is_language_model:
            return build_bilm([joined(text) for text in texts], seed=seed, options=sizes)
        sources = Sources(**self.sources)
        return build_model(self.architecture, texts, classes, sources=sources, seed=seed, options=sizes)


@dataclass(frozen=True, slots=True)
class Start:
    """A trained model that a training begins at."""

    model: Any
    tokenizer: Any
    classes: tuple[str, ...]
    fingerprint: str


def _trained(reference: object, device: str | None) -> Start:
    from stockade.models.adapters import load_model
    from stockade.models.huggingface import HuggingFaceClassifier

    classifier = load_model(reference, device=device)
    if not isinstance(classifier, HuggingFaceClassifier):
        raise ModelError(
            f"A {type(classifier).__name__} has no weights to train; expected a Hugging Face folder or "
            "(model, tokenizer)."
        )
    if int(classifier.model.config.num_labels) == 1:
        raise ModelError("A model with one output cannot be trained as a classifier; expected one output per class.")
    fingerprint = classifier.fingerprint()
    model = classifier.model if isinstance(reference, str | Path) else copy.deepcopy(classifier.model)
    return Start(model.float(), classifier.tokenizer, classifier.labels, fingerprint)


def _trained_translator(reference: object, device: str | None) -> Start:
    from stockade.models.translation.load import load_translator
    from stockade.models.translation.neural import NeuralTranslator

    translator = load_translator(reference, device=device)
    if not isinstance(translator, NeuralTranslator):
        raise ModelError(
            f"A {type(translator).__name__} has no weights to train; expected a Hugging Face folder or "
            "(model, tokenizer)."
        )
    if translator.prefix:
        raise ModelError(
            f'The translator reads its sources behind the prefix "{translator.prefix}", which trainings do not add. '
            "Put it before every source in the data, and give (model, tokenizer) without the prefix."
        )
    fingerprint = translator.fingerprint()
    model = translator.model if isinstance(reference, str | Path) else copy.deepcopy(translator.model)
    return Start(model.float(), translator.tokenizer, (), fingerprint)


def language_objective(model: Any, tokenizer: Any, texts: Sequence[TextInput]) -> Objective:
    """The objective of a language model: words of the zoo's vocabulary, or the loss that the model computes itself."""
    from stockade.models.zoo.bilm import BiLm, BiLmWords

    if isinstance(model, BiLm):
        return NextWords(BiLmWords.of(tokenizer, map(joined, texts), model.config.words))
    return ModelLoss()


def make_encoder(model: Any, tokenizer: Any, max_length: int | None) -> TextEncoder:
    """The model's text encoder, which cuts texts at `max_length` if that is less than the model can read.

    The tokenizer remembers the limit, so that the trained model is attacked on what it was trained on.
    """
    if tokenizer.pad_token_id is None:
        stand_in = tokenizer.eos_token or tokenizer.unk_token
        if stand_in is None:
            raise ModelError("The tokenizer has no padding token; add one with tokenizer.add_special_tokens first.")
        tokenizer.pad_token = stand_in
        model.config.pad_token_id = tokenizer.pad_token_id
    encoder = TextEncoder.of(tokenizer, model, inspect.signature(model.forward).parameters)
    if max_length is None or (encoder.maximum is not None and encoder.maximum <= max_length):
        return encoder
    tokenizer.model_max_length = max_length
    return replace(encoder, maximum=max_length)


def shape_fingerprint(model: Any) -> str:
    """A hash of the names and shapes of all weights: what a checkpoint must agree with."""
    shapes = [f"{name} {tuple(tensor.shape)}" for name, tensor in sorted(model.state_dict().items())]
    return hashlib.sha256("\n".join(shapes).encode()).hexdigest()[:16]
