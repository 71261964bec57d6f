"""What comes out of a training: a Hugging Face model folder, and how it went."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.core.statistics import wilson
from stockade.core.translation import Translator
from stockade.experiment.result import Result, Verification
from stockade.experiment.spec import Spec
from stockade.experiment.store import Codec, ResultStore
from stockade.training.state import Epoch, State
from stockade.workflows.train.spec import TrainSpec

if TYPE_CHECKING:
    from stockade.report.document import Document

EPOCHS, PROGRESS, END = "epochs", "progress", "end"
SCHEMA = 1
CODEC: Codec[Epoch] = Codec(Epoch.described, Epoch.read)


def store_epoch(store: ResultStore, state: State) -> None:
    """Commit the epoch that has just ended, and the loss curve so far."""
    epoch = state.history[-1]
    store.add(EPOCHS, str(epoch.number), CODEC.encode(epoch), position=epoch.number)
    store.add(PROGRESS, PROGRESS, {"curve": state.curve, "seconds": round(state.seconds, 3), "step": state.step})


class TrainResult(Result):
    """A training. Its folder is a Hugging Face model folder as soon as it is complete."""

    kind: ClassVar[str] = "train"
    spec_type: ClassVar[type[Spec]] = TrainSpec

    @property
    def history(self) -> tuple[Epoch, ...]:
        """The epochs that have ended."""
        return tuple(self.records())

    @property
    def best(self) -> Epoch:
        """The epoch whose weights are saved: the one with the best validation score, the first of equals."""
        return max(self.history, key=lambda epoch: epoch.validation.score)

    @property
    def accuracy(self) -> float | None:
        """The share of validation texts that the saved weights get right; None for a language model."""
        return self.best.validation.accuracy

    @property
    def interval(self) -> tuple[float, float] | None:
        """The accuracy's 95 % interval."""
        validation = self.best.validation
        share = wilson(sum(validation.right), sum(validation.totals))
        return None if share["low"] is None or share["high"] is None else (share["low"], share["high"])

    @property
    def bleu(self) -> float | None:
        """BLEU of the saved weights on validation sentences, cased and greedy; None if it was not measured."""
        return self.best.validation.bleu

    @property
    def translates(self) -> bool:
        """Whether the model is a translator."""
        return bool(self.manifest.spec.get("task") == "translation")

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of the model; none for a language model or a translator."""
        return tuple(self.manifest.inputs["classes"])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What there is to know of the data."""
        return tuple(self.manifest.inputs["warnings"])

    @property
    def measured(self) -> Mapping[str, Mapping[str, Any]]:
        """What defenses have measured of the model when the training began, by the name of the defense."""
        measured: Mapping[str, Mapping[str, Any]] = self.manifest.inputs.get("measured", {})
        return measured

    @property
    def remarks(self) -> tuple[str, ...]:
        """The same in words, a sentence for each defense."""
        return tuple(
            f"{name} measured the model when the training began: "
            f"{', '.join(f'{key} {value}' for key, value in values.items())}."
            for name, values in self.measured.items()
        )

    @property
    def curve(self) -> list[tuple[int, float]]:
        """The training loss: steps, and the mean loss until there."""
        return [(int(step), float(loss)) for step, loss in self._progress.get("curve", ())]

    @property
    def seconds(self) -> float:
        """How long it took, over all sessions."""
        return float(self._progress.get("seconds", 0.0))

    @property
    def _progress(self) -> Mapping[str, Any]:
        return self.store.get(PROGRESS, PROGRESS) or {}

    def load(self, device: str | None = None) -> Classifier:
        """The trained classifier, ready to be asked or attacked."""
        from stockade.models.adapters import load_model

        if self.translates:
            raise OptionError(f"{self.folder} is a translator, not a classifier: load it with load_translator().")
        return load_model(self.folder, device=device)

    def load_translator(self, device: str | None = None) -> Translator:
        """The trained translator."""
        from stockade.models.translation.load import load_translator

        return load_translator(self.folder, device=device)

    def records(self) -> Iterator[Epoch]:
        """The epochs one by one."""
        return map(CODEC.read, self.store.documents(EPOCHS))

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """One row per epoch."""
        return self.store.documents(EPOCHS)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `summary.json`."""
        epochs = self.history
        best = self.best if epochs else None
        end = self.store.get(END, END)
        validation = None if best is None else best.validation
        return {
            "schema": SCHEMA,
            "run": self.name,
            "complete": end is not None,
            "architecture": self.spec.architecture,
            "model": self.manifest.inputs["model"],
            "data": self.manifest.spec["data"],
            "classes": list(self.classes),
            "warnings": list(self.warnings),
            **({"measured": self.measured} if self.measured else {}),
            "best": None if best is None else best.number,
            "accuracy": None
            if validation is None or validation.accuracy is None
            else wilson(sum(validation.right), sum(validation.totals)),
            **({"bleu": None if validation is None else validation.bleu} if self.translates else {}),
            "seconds": self.seconds,
            "weights": None if end is None else end["weights"],
            "history": [epoch.described() for epoch in epochs],
            "curve": self.curve,
        }

    @property
    def complete(self) -> bool:
        """Whether the model is saved."""
        return self.store.get(END, END) is not None

    def document(self) -> Document:
        """The report: curves, epochs, options."""
        from stockade.workflows.train.page import training_document

        return training_document(self)

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Check that the saved weights are those of the record and that the summary follows from the epochs."""
        problems = []
        end = self.store.get(END, END)
        if end is not None and weights_fingerprint(self.folder) != end["weights"]:
            problems.append("the weights in the folder are not those that were trained: their fingerprint differs")
        return self.verified(len(self.history), problems)


def weights_fingerprint(folder: Path) -> str | None:
    """A hash of the saved weights; None if there are none."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
