"""The loss of a training, and the seam where defenses change it. A defense that acts in training is an `Objective`.

    class Remask:                                              # RanMASK's training, in full
        def augment(self, batch: Batch) -> Batch:
            return batch.with_inputs([hide_words(text, batch.rng) for text in batch.inputs])

        def loss(self, model: nn.Module, batch: Batch) -> Tensor:
            return functional.cross_entropy(model(**batch.tensors).logits, batch.labels)

Random choices come from `batch.rng`, which depends on the seed and the step alone, or from torch's generator, whose
state is part of every checkpoint: an interrupted and resumed training then ends with the weights of an unbroken one.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional

from stockade.core.errors import OptionError
from stockade.core.text import TextInput
from stockade.models.encoding import TextEncoder
from stockade.models.encoding import logits_of as plain_logits
from stockade.training.options import ClassWeights

if TYPE_CHECKING:
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.zoo.bilm import BiLmWords


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some texts of the training data, as strings and as the model's arguments.

    Parameters
    ----------
    inputs, labels
        The texts and the numbers of their classes.
    tensors
        The texts as arguments of the model's forward pass.
    rng
        Random choices of this step; depends on the seed and the step alone.
    encode
        Tokenises and pads other texts for the model.
    backward
        For objectives of several passes: adds the gradient of this part of the loss to the weights now; `loss` returns
        the last part.
    progress
        The share of the training that is over, from 0 to 1.
    """

    inputs: tuple[TextInput, ...]
    labels: Tensor
    tensors: Mapping[str, Tensor]
    rng: Random
    encode: Callable[[Sequence[TextInput]], Mapping[str, Tensor]]
    backward: Callable[[Tensor], None]
    progress: float = 0.0

    def __len__(self) -> int:
        return len(self.inputs)

    def with_inputs(self, inputs: Sequence[TextInput], labels: Tensor | None = None) -> Batch:
        """The batch with other texts, tokenised anew; with other labels too if their number differs."""
        labels = self.labels if labels is None else labels
        return replace(self, inputs=tuple(inputs), labels=labels, tensors=self.encode(inputs))


class Objective(Protocol):
    """The two places where a defense can change a training step."""

    def augment(self, batch: Batch) -> Batch:
        """The batch that is trained on: the same, changed, or with more texts."""
        ...

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The number to make smaller, of one augmented batch."""
        ...


@runtime_checkable
class ValidatingObjective(Protocol):
    """An objective whose model will read other texts than users write, and is validated on such."""

    def validation_batch(self, batch: Batch) -> Batch:
        """Validation texts as the model will read them.

        Random choices depend on the batch alone, so that every epoch is validated on the same texts.
        """
        ...


def validation_batch(objective: Objective, batch: Batch) -> Batch:
    """The texts on which an objective's model is validated: the batch itself, unless the objective changes it."""
    return objective.validation_batch(batch) if isinstance(objective, ValidatingObjective) else batch


@runtime_checkable
class MeasuringObjective(Protocol):
    """An objective that depends on what it has measured of the model, which the training's manifest records."""

    def measured(self) -> Mapping[str, Any]:
        """By the name of the defense, what was measured when the training began, as JSON can hold it.

        The same model must give the same again, so that a training can be resumed.
        """
        ...


def measurements(objective: Objective) -> dict[str, Any]:
    """What an objective and those inside it (`plain`) have measured of the model."""
    measured: dict[str, Any] = {}
    inside: Any = objective
    while inside is not None:
        if isinstance(inside, MeasuringObjective):
            measured |= inside.measured()
        inside = getattr(inside, "plain", None)
    return measured


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingKit:
    """What a defense makes its objective from: the model to be trained, its data, and the objective so far.

    Parameters
    ----------
    network, tokenizer, encoder
        The model; `encoder` makes its arguments from texts.
    classes, inputs, labels
        The names of the classes, and the training texts with the numbers of their classes.
    plain
        The objective without this defense: cross-entropy with class weights, or that of the defense inside.
    seed
        The seed of the training.
    trained
        Whether the training starts from a trained model.
    """

    network: Any
    tokenizer: Any
    encoder: TextEncoder
    classes: tuple[str, ...]
    inputs: Sequence[TextInput]
    labels: Sequence[int]
    plain: Objective
    seed: int
    trained: bool

    def frozen(self) -> HuggingFaceClassifier:
        """A copy of the model as it is now, which the training does not touch."""
        from stockade.models.huggingface import HuggingFaceClassifier

        return HuggingFaceClassifier(copy.deepcopy(self.network), self.tokenizer, labels=self.classes)


MakeObjective = Callable[[TrainingKit], Objective]

Rewrite = Callable[
    [Sequence[TextInput], Sequence[int], tuple[str, ...], int], tuple[Sequence[TextInput], Sequence[int]]
]
"""Texts, the numbers of their classes, the names of the classes and a seed, to the texts and numbers to train on."""


@runtime_checkable
class TrainingDefense(Protocol):
    """A defense that changes the steps of a training.

    It leaves to `kit.plain` what it does not change itself, so that defenses can be combined.
    """

    def objective(self, kit: TrainingKit) -> Objective: ...


@runtime_checkable
class RewritingDefense(Protocol):
    """A defense that changes the training texts before the model is built.

    The same texts and seed must give the same texts again, so that a training can be resumed.
    """

    def rewrite(
        self, inputs: Sequence[TextInput], labels: Sequence[int], classes: tuple[str, ...], seed: int
    ) -> tuple[Sequence[TextInput], Sequence[int]]: ...


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """The usual objective of a classifier; `weights` says what mistakes of each class cost, if not all the same."""

    weights: Tensor | None = None

    def augment(self, batch: Batch) -> Batch:
        return batch

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return functional.cross_entropy(logits_of(model(**batch.tensors)), batch.labels, weight=self.weights)


@dataclass(frozen=True, slots=True)
class ModelLoss:
    """The `loss` that a model's forward pass returns, as language models do; labels are not used."""

    def augment(self, batch: Batch) -> Batch:
        return batch

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        loss: Tensor = model(**batch.tensors).loss
        return loss


@dataclass(frozen=True, slots=True)
class NextWords:
    """The loss of the zoo's two-way language model, whose labels are the words of the texts themselves."""

    words: BiLmWords

    def augment(self, batch: Batch) -> Batch:
        return batch

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        numbers = self.words.labels([joined(text) for text in batch.inputs])
        width = max(1, *map(len, numbers))
        labels = torch.tensor([row + [-1] * (width - len(row)) for row in numbers], device=batch.labels.device)
        loss: Tensor = model(**batch.tensors, labels=labels).loss
        return loss


def joined(text: TextInput) -> str:
    """A text, or both sides of a pair as one string."""
    return text if isinstance(text, str) else " ".join(text)


def logits_of(output: Any) -> Tensor:
    """The logits in a model's output, in float32 or better."""
    logits = plain_logits(output)
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def class_weights(weighting: ClassWeights, labels: Sequence[int], classes: Sequence[str]) -> Tensor | None:
    """A weight per class; balanced ones make all classes count the same in sum, and are 1 on average over the texts."""
    if weighting == "none":
        return None
    if weighting == "balanced":
        counts = Counter(labels)
        return torch.tensor([len(labels) / (len(classes) * max(1, counts[number])) for number in range(len(classes))])
    if len(weighting) != len(classes):
        raise OptionError(
            f"There are {len(weighting)} class weights for {len(classes)} classes ({', '.join(classes)}); "
            "give one for each, in this order."
        )
    return torch.tensor(weighting)
