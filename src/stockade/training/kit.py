"""What a defense is given to make its objective from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from stockade.core.text import TextInput
from stockade.models.encoding import TextEncoder
from stockade.training.objective import Objective

if TYPE_CHECKING:
    from stockade.models.huggingface import HuggingFaceClassifier


@dataclass(frozen=True, slots=True)
class TrainingKit:
    """The model that is to be trained, with what it is trained on and how."""

    network: Any
    tokenizer: Any
    encoder: TextEncoder
    classes: tuple[str, ...]
    inputs: Sequence[TextInput]
    labels: Sequence[int]
    plain: Objective
    """What is made smaller without a defense: cross-entropy, with the class weights that were asked for."""
    seed: int
    trained: bool
    """Whether the training starts from a trained model."""

    def frozen(self) -> HuggingFaceClassifier:
        """A copy of the model as it is now, which the training does not touch."""
        import copy

        from stockade.models.huggingface import HuggingFaceClassifier

        return HuggingFaceClassifier(copy.deepcopy(self.network), self.tokenizer, labels=self.classes)


MakeObjective = Callable[[TrainingKit], Objective]

Rewrite = Callable[
    [Sequence[TextInput], Sequence[int], tuple[str, ...], int], tuple[Sequence[TextInput], Sequence[int]]
]
"""Texts, the numbers of their classes, the names of the classes and a seed, to the texts and numbers to train on."""


@runtime_checkable
class TrainingDefense(Protocol):
    """A defense that acts when the model is trained. It hands on to `kit.plain` what it does not change itself, so that
    defenses can be combined.
    """

    def objective(self, kit: TrainingKit) -> Objective: ...


@runtime_checkable
class RewritingDefense(Protocol):
    """A defense that changes the training texts before the model is built. The same texts and seed must give the same
    texts again, so that a training can be resumed.
    """

    def rewrite(
        self, inputs: Sequence[TextInput], labels: Sequence[int], classes: tuple[str, ...], seed: int
    ) -> tuple[Sequence[TextInput], Sequence[int]]: ...
