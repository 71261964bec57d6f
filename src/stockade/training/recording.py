"""What a training writes beside checkpoints: the record and the page after each epoch, model and card at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stockade.core.files import write_json, write_text
from stockade.core.protocols import Classifier
from stockade.core.statistics import wilson
from stockade.training import folder as folders
from stockade.training.card import render_card, versions
from stockade.training.data import TrainingData
from stockade.training.loop import Observer, Progress
from stockade.training.page import render_page
from stockade.training.state import Epoch, State

CARD, PAGE = "README.md", "training.html"
_PAGE_SECONDS = 60.0
_PAGE_SHARE = 0.03
"""The page is drawn after each epoch and each minute, if drawing has taken less than this share of the time so far."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished training. The folder is a Hugging Face model folder."""

    folder: Path
    classes: tuple[str, ...]
    history: tuple[Epoch, ...]
    best: Epoch
    seconds: float
    warnings: tuple[str, ...]

    @property
    def accuracy(self) -> float | None:
        """The share of validation texts that the saved weights get right; None for a language model."""
        return self.best.validation.accuracy

    @property
    def interval(self) -> tuple[float, float] | None:
        """The accuracy's 95 % interval."""
        found = self.best.validation
        share = wilson(sum(found.right), sum(found.totals))
        return None if share["low"] is None or share["high"] is None else (share["low"], share["high"])

    def load(self, device: str | None = None) -> Classifier:
        """The trained model, ready to be asked or attacked."""
        from stockade.models.adapters import load_model

        return load_model(self.folder, device=device)

    @classmethod
    def read(cls, folder: Path, record: Mapping[str, Any]) -> Trained:
        """A training that was complete already."""
        history = tuple(Epoch.read(epoch) for epoch in record["history"])
        best = next(epoch for epoch in history if epoch.number == record["best"])
        return cls(folder, tuple(record["classes"]), history, best, record["seconds"], tuple(record["warnings"]))


class Recorder:
    """Writes into the folder of one training. As an observer of the loop it passes progress on."""

    def __init__(self, out: Path, config: Mapping[str, Any], texts: TrainingData, observe: Observer | None) -> None:
        self._out, self._config, self._texts, self._observe = out, config, texts, observe
        self._drawing, self._started = 0.0, time.monotonic()
        self._drawn = self._started

    def watch(self, state: State) -> Observer:
        """An observer of the loop that moves `state`."""

        def observe(progress: Progress) -> None:
            if self._observe is not None:
                self._observe(progress)
            if progress.finished:
                content = {"schema": folders.SCHEMA, "complete": False, **self._record(state)}
                write_json(self._out / folders.RECORD, content)
            if progress.finished or time.monotonic() - self._drawn > _PAGE_SECONDS:
                self._draw_if_cheap(state)

        return observe

    def _draw_if_cheap(self, state: State) -> None:
        began = time.monotonic()
        if self._drawing <= _PAGE_SHARE * (began - self._started):
            self._draw(state, complete=False)
            self._drawn = time.monotonic()
            self._drawing += self._drawn - began

    def end(self, model: Any, tokenizer: Any, state: State) -> None:
        """Save the model and say that the training is complete."""
        best = state.best
        assert best is not None
        folders.save_model(self._out, model, tokenizer)
        card = render_card(str(self._out), self._config, self._texts.classes, best, self._texts.warnings)
        write_text(self._out / CARD, card)
        self._draw(state, complete=True)
        folders.end(self._out, self._record(state))

    def _draw(self, state: State, complete: bool) -> None:
        title = f"{self._config['architecture'] or self._config['model']} in {self._out.name}"
        write_text(self._out / PAGE, render_page(title, state, self._config, self._texts.warnings, complete))

    def _record(self, state: State) -> dict[str, Any]:
        """What `training.json` says beside whether the training is complete."""
        return {
            "config": self._config,
            "classes": list(self._texts.classes),
            "warnings": list(self._texts.warnings),
            "versions": versions(),
            "seconds": round(state.seconds, 3),
            "best": None if state.best is None else state.best.number,
            "history": [epoch.described() for epoch in state.history],
            "curve": state.curve,
        }
