"""How far a training has come: everything but the weights, as it stands in a checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_POINTS = 400
"""Points of the loss curve, however long the training is."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A model on the validation texts: its mean loss, for classifiers the right answers and texts per class and, up to
    50 classes, how many texts of each (a row) it gives to each (a column); for translators BLEU.
    """

    loss: float
    right: tuple[int, ...] = ()
    totals: tuple[int, ...] = ()
    bleu: float | None = None
    confusion: tuple[tuple[int, ...], ...] = ()

    @property
    def accuracy(self) -> float | None:
        return sum(self.right) / sum(self.totals) if self.totals else None

    @property
    def score(self) -> tuple[float, float]:
        """What decides between two epochs: the accuracy or BLEU, then the loss."""
        return self.accuracy or self.bleu or 0.0, -self.loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The result of one epoch; `steps` and `seconds` are those of the training until the epoch's end."""

    number: int
    steps: int
    loss: float
    validation: Evaluation
    seconds: float

    def described(self) -> dict[str, Any]:
        """The epoch as it is written into files."""
        document = dataclasses.asdict(self)
        document["validation"] = {**document["validation"], "accuracy": self.validation.accuracy}
        for name in ("bleu", "confusion"):
            if not document["validation"][name]:
                del document["validation"][name]
        return document

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Epoch:
        values = document["validation"]
        validation = Evaluation(
            values["loss"],
            tuple(values["right"]),
            tuple(values["totals"]),
            values.get("bleu"),
            tuple(map(tuple, values.get("confusion", ()))),
        )
        return cls(
            number=document["number"],
            steps=document["steps"],
            loss=document["loss"],
            validation=validation,
            seconds=document["seconds"],
        )


@dataclass(slots=True, kw_only=True)
class State:
    """Everything but the weights: where the running epoch stands, and how the earlier ones went.

    `epoch` is the running one, counted from 0, of which `batch` batches are done; `loss` is the sum over its `texts`.
    `step` and `seconds` are those of the whole training, `recent` the losses since the last point of `curve`.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    loss: float = 0.0
    texts: int = 0
    seconds: float = 0.0
    recent: list[float] = field(default_factory=list)
    curve: list[tuple[int, float]] = field(default_factory=list)
    history: list[Epoch] = field(default_factory=list)

    @property
    def best(self) -> Epoch | None:
        """The epoch with the best validation score; the first of equals."""
        return max(self.history, key=lambda epoch: epoch.validation.score, default=None)

    def add_step(self, loss: float, texts: int, steps: int) -> None:
        self.batch, self.step = self.batch + 1, self.step + 1
        self.loss, self.texts = self.loss + loss * texts, self.texts + texts
        self.recent.append(loss)
        if len(self.recent) * _POINTS >= steps:
            self.curve.append((self.step, sum(self.recent) / len(self.recent)))
            self.recent.clear()

    def end_epoch(self, validation: Evaluation, seconds: float) -> Epoch:
        """Close the running epoch and begin the next."""
        finished = Epoch(
            number=self.epoch + 1,
            steps=self.step,
            loss=self.loss / max(1, self.texts),
            validation=validation,
            seconds=round(seconds, 3),
        )
        self.history.append(finished)
        self.epoch, self.batch, self.loss, self.texts = self.epoch + 1, 0, 0.0, 0
        return finished

    def out_of_patience(self, patience: int | None) -> bool:
        """Whether that many epochs have passed since the best one."""
        best = self.best
        return patience is not None and best is not None and len(self.history) - best.number >= patience

    def described(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**values, "history": [epoch.described() for epoch in self.history]}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> State:
        history = [Epoch.read(epoch) for epoch in document["history"]]
        curve = [(int(step), float(loss)) for step, loss in document["curve"]]
        return cls(**{**document, "history": history, "curve": curve})
