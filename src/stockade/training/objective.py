"""What a training makes smaller. A defense that changes training is an `Objective` of its own.

    class Remask:                                              # RanMASK's training, in full
        def augment(self, batch: Batch) -> Batch:
            return batch.with_inputs([hide_words(text, batch.rng) for text in batch.inputs])

        def loss(self, model: nn.Module, batch: Batch) -> Tensor:
            return functional.cross_entropy(model(**batch.tensors).logits, batch.labels)

Random choices come from `batch.rng`, which depends on the seed and the step alone, or from torch's generator, whose
state is part of every checkpoint: an interrupted and resumed training then ends with the weights of an unbroken one.
"""

from __future__ import annotations

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
from stockade.models.encoding import logits_of as plain_logits
from stockade.training.options import ClassWeights

if TYPE_CHECKING:
    from stockade.models.zoo.bilm_words import BiLmWords


@dataclass(frozen=True, slots=True)
class Batch:
    """Some texts of the training data: as they were given, and as the model's arguments."""

    inputs: tuple[TextInput, ...]
    labels: Tensor
    tensors: Mapping[str, Tensor]
    rng: Random
    encode: Callable[[Sequence[TextInput]], Mapping[str, Tensor]]
    """Tokenises and pads texts for the model."""
    backward: Callable[[Tensor], None]
    """For objectives of several passes: adds this part's gradient to the weights now; `loss` returns the last part."""
    progress: float = 0.0
    """How much of the training is over, from 0 to 1."""

    def __len__(self) -> int:
        return len(self.inputs)

    def with_inputs(self, inputs: Sequence[TextInput], labels: Tensor | None = None) -> Batch:
        """The batch with other texts, tokenised anew; with other labels too if their number differs."""
        kept = self.labels if labels is None else labels
        return replace(self, inputs=tuple(inputs), labels=kept, tensors=self.encode(inputs))


class Objective(Protocol):
    """The two places where a defense can change a training step."""

    def augment(self, batch: Batch) -> Batch:
        """The batch that is trained on: the same, changed, or with more texts."""
        ...

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The number to make smaller, of one augmented batch."""
        ...


@runtime_checkable
class JudgedObjective(Protocol):
    """An objective of a model that is asked about other texts than those it is given, and so is judged on such."""

    def judged(self, batch: Batch) -> Batch:
        """Validation texts as the model will be asked about them. Random choices depend on the batch alone, so that
        every epoch is judged on the same.
        """
        ...


def as_judged(objective: Objective, batch: Batch) -> Batch:
    """The texts on which an objective's model is judged: those given, unless it says otherwise."""
    return objective.judged(batch) if isinstance(objective, JudgedObjective) else batch


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """The usual objective of a classifier, with a weight for each class if its mistakes should not count alike."""

    weights: Tensor | None = None

    def augment(self, batch: Batch) -> Batch:
        return batch

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return functional.cross_entropy(logits_of(model(**batch.tensors)), batch.labels, weight=self.weights)


@dataclass(frozen=True, slots=True)
class OwnLoss:
    """For models whose forward pass returns its own `loss`, such as language models; labels are not looked at."""

    def augment(self, batch: Batch) -> Batch:
        return batch

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        found: Tensor = model(**batch.tensors).loss
        return found


@dataclass(frozen=True, slots=True)
class NextWords:
    """The loss of the zoo's two-way language model, whose labels are the words of the texts themselves."""

    words: BiLmWords

    def augment(self, batch: Batch) -> Batch:
        return batch

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        numbers = self.words.labels([joined(one) for one in batch.inputs])
        width = max(1, *map(len, numbers))
        labels = torch.tensor([row + [-1] * (width - len(row)) for row in numbers], device=batch.labels.device)
        found: Tensor = model(**batch.tensors, labels=labels).loss
        return found


def joined(text: TextInput) -> str:
    """A text, or both sides of a pair as one."""
    return text if isinstance(text, str) else " ".join(text)


def logits_of(output: Any) -> Tensor:
    """The logits of what a model answered, in float32 or better."""
    logits = plain_logits(output)
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def class_weights(wanted: ClassWeights, labels: Sequence[int], classes: Sequence[str]) -> Tensor | None:
    """A weight per class; balanced ones make all classes count the same in sum, and are 1 on average over the texts."""
    if wanted == "none":
        return None
    if wanted == "balanced":
        counts = Counter(labels)
        return torch.tensor([len(labels) / (len(classes) * max(1, counts[number])) for number in range(len(classes))])
    if len(wanted) != len(classes):
        raise OptionError(
            f"There are {len(wanted)} class weights for {len(classes)} classes ({', '.join(classes)}); "
            "give one for each, in this order."
        )
    return torch.tensor(wanted)
