"""A whole training: data and a name in, a folder with a trained model, its card and its history out."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stockade.core.errors import RunError
from stockade.core.files import sync_folder, write_text
from stockade.core.seeds import derive_seed
from stockade.datasets.source import DataSource
from stockade.defenses.chain import combined_objective, combined_rewrite, save_defenses, training_files
from stockade.experiment.progress import Observer, Progress, Runtime
from stockade.experiment.result import Workflow
from stockade.experiment.workspace import MANIFEST, Workspace, begin, check_same, read_manifest
from stockade.training.assembly import make_training
from stockade.training.checkpoint import Checkpoints, isolated_generators, seed_all
from stockade.training.data import (
    HOLD_OUT,
    TrainingData,
    prepare_data,
    prepare_texts,
    rewrite_data,
    rewriting_key,
    save_rewritten,
)
from stockade.training.devices import make_device
from stockade.training.loop import Progress as StepProgress
from stockade.training.loop import fit
from stockade.training.network import Origin, Start, shape_fingerprint
from stockade.training.objective import measurements
from stockade.training.state import Evaluation, State
from stockade.training.translation import make_translation_training
from stockade.training.translation_options import TranslationOptions
from stockade.workflows.train.card import render_card
from stockade.workflows.train.result import END, TrainResult, store_epoch, weights_fingerprint
from stockade.workflows.train.spec import TrainSpec

if TYPE_CHECKING:
    from stockade.training.objective import Objective

CARD, REPORT, CHECKPOINT, _SAVING = "README.md", "report.html", "checkpoint", ".saving"
_PAGE_SECONDS, _PAGE_SHARE = 60.0, 0.03
"""The report is drawn after each epoch and each minute, if drawing has taken less than this share of the time."""


def run(spec: TrainSpec, folder: Path, runtime: Runtime, resume: bool) -> TrainResult:
    """Train what the spec names."""
    origin = Origin(
        task=spec.task,
        architecture=spec.architecture,
        model=spec.model,
        sources=dict(spec.sources),
        sizes=dict(spec.sizes),
        device=spec.device,
    )
    return train_origin(spec, origin, folder, runtime, resume)


def train_origin(spec: TrainSpec, origin: Origin, folder: Path, runtime: Runtime, resume: bool) -> TrainResult:
    """Train a model, begun or built as `origin` says, into a folder. A folder that is complete is only read."""
    finished = _finished(spec, folder) if resume else None
    if finished is not None:
        return finished
    options, defenses = spec.training_options, spec.defenses or ()
    rewrite, files = combined_rewrite(defenses), training_files(defenses)
    objective = combined_objective(defenses) or cast("Objective | None", spec.objective)
    source = _source(spec, spec.data, origin)
    validation = None if spec.validation is None else _source(spec, spec.validation, origin)
    with isolated_generators(), ExitStack() as stack:
        place = make_device(spec.device, options.precision)
        start = origin.load()
        texts = _texts(spec, source, validation, origin, start)
        described = [defense.described() for defense in defenses] + ([files] if files else [])
        key = "" if rewrite is None else rewriting_key(texts, options.seed, described)
        if rewrite is not None:
            texts = place.same(partial(rewrite_data, folder, texts, rewrite, options.seed, key))
        seed_all(derive_seed(options.seed, "build"))
        model, tokenizer = _model(origin, start, texts, options.seed)
        if isinstance(options, TranslationOptions):
            training = make_translation_training(model, tokenizer, texts, place, options)
        else:
            training = make_training(model, tokenizer, texts, objective, place, options, trained=start is not None)
        inputs: dict[str, Any] = {
            "model": None if start is None else f"{origin.name} {start.fingerprint[:16]}",
            "shapes": shape_fingerprint(model),
            "data": texts.described(),
            "classes": list(texts.classes),
            "warnings": list(texts.warnings),
        }
        if files:
            inputs["files"] = files
        if measured := measurements(training.objective):
            inputs["measured"] = measured
        fingerprint = _fingerprint(spec, inputs)
        # Only the first process holds the folder; the others wait until it does.
        workspace = stack.enter_context(begin(folder, spec, inputs, resume=resume)) if place.rank == 0 else None
        place.same(lambda: True)
        if workspace is not None:
            for unfinished in [*folder.glob(".*.tmp"), *(folder / CHECKPOINT).glob(".*.tmp")]:
                unfinished.unlink(missing_ok=True)  # half-written when an earlier process was killed
            if rewrite is not None:
                save_rewritten(folder, texts, key)
        checkpoints = Checkpoints(folder / CHECKPOINT, fingerprint, model, training.optimiser, place, training.average)
        seed_all(derive_seed(options.seed, "train", place.rank))
        state = checkpoints.load() or State()
        recorder = None if workspace is None else _Recorder(workspace, state, runtime.observer)
        fit(training, state, checkpoints, _ignore if recorder is None else recorder.observe)
        place.same(partial(_finish, checkpoints, recorder, spec, model, tokenizer, state))
        place.close()
    return TrainResult.open(folder) if workspace is None else TrainResult.of(workspace)


def _finished(spec: TrainSpec, folder: Path) -> TrainResult | None:
    """The result of a training that needs neither model nor data any more; another training is refused."""
    if not (folder / MANIFEST).exists():
        return None
    manifest = read_manifest(folder)
    check_same(folder, manifest, spec, manifest.inputs)
    try:
        result = TrainResult.open(folder)
    except RunError:  # interrupted before its first epoch; if it is damaged, going on will say so
        return None
    return result if result.complete else None


def _source(spec: TrainSpec, data: object, origin: Origin) -> DataSource:
    if origin.translates:
        return spec.data_options.load_parallel(data)
    texts_only = origin.is_language_model
    if texts_only and isinstance(data, list | tuple) and all(isinstance(text, str) for text in data):
        data = [{"text": text} for text in data]
    return spec.data_options.load(data, empty_texts=True, needs_labels=not texts_only)


def _texts(
    spec: TrainSpec, source: DataSource, validation: DataSource | None, origin: Origin, start: Start | None
) -> TrainingData:
    hold_out = HOLD_OUT if spec.hold_out is None else spec.hold_out
    seed = spec.training_options.seed
    if origin.is_language_model or origin.translates:
        return prepare_texts(source, validation, hold_out=hold_out, seed=seed)
    classes = spec.labels if start is None else start.classes
    label_map = spec.data_options.label_map
    return prepare_data(source, validation, classes=classes, label_map=label_map, hold_out=hold_out, seed=seed)


def _model(origin: Origin, start: Start | None, texts: TrainingData, seed: int) -> tuple[Any, Any]:
    if start is not None:
        return start.model, start.tokenizer
    return origin.build(texts.train.inputs, texts.classes, seed)


def _fingerprint(spec: TrainSpec, inputs: Mapping[str, Any]) -> str:
    """Which training a checkpoint belongs to."""
    content = json.dumps({**spec.decisive(spec.described()), **inputs}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _finish(
    checkpoints: Checkpoints,
    recorder: _Recorder | None,
    spec: TrainSpec,
    model: Any,
    tokenizer: Any,
    state: State,
) -> None:
    """Save the best weights, the card and the report, and say that the training is complete."""
    assert recorder is not None
    folder = recorder.workspace.folder
    checkpoints.load_best(state)
    save_model(folder, model.eval(), tokenizer)
    save_defenses(folder, spec.defenses or ())
    recorder.end(weights_fingerprint(folder))
    result = TrainResult.of(recorder.workspace)
    write_text(folder / CARD, render_card(result))
    result.write_summary()
    result.document().write(folder / REPORT)
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def _ignore(_: object) -> None:
    """The observer of every process but the first."""


class _Recorder:
    """Commits each epoch as it ends, draws the report now and then, and passes progress on."""

    def __init__(self, workspace: Workspace, state: State, observer: Observer | None) -> None:
        self.workspace, self._state, self._observer = workspace, state, observer
        self._drawing, self._started = 0.0, time.monotonic()
        self._drawn, self._before = self._started, state.step

    def observe(self, progress: StepProgress) -> None:
        """Called by the loop after each step and each epoch."""
        if self._observer is not None:
            self._observer(_translated(progress, self._before))
        if progress.finished:
            store_epoch(self.workspace.store, self._state)
        if progress.finished or time.monotonic() - self._drawn > _PAGE_SECONDS:
            self._draw_if_cheap()

    def end(self, weights: str | None) -> None:
        """The model is saved."""
        self.workspace.store.add(END, END, {"weights": weights})

    def _draw_if_cheap(self) -> None:
        began = time.monotonic()
        if self._drawing <= _PAGE_SHARE * (began - self._started):
            TrainResult.of(self.workspace).document().write(self.workspace.folder / REPORT)
            self._drawn = time.monotonic()
            self._drawing += self._drawn - began


def _translated(progress: StepProgress, before: int) -> Progress:
    note = f"epoch {progress.epoch} of {progress.epochs}, loss {progress.loss:.4f}"
    if progress.validation is not None:
        note += f", validation {_measured(progress.validation)}"
    return Progress(
        part="training",
        done=progress.step,
        total=progress.steps,
        note=note,
        unit="steps",
        before=before / max(1, progress.steps),
    )


def _measured(validation: Evaluation) -> str:
    if validation.accuracy is not None:
        return f"{validation.accuracy:.4f}"
    return f"loss {validation.loss:.4f}" if validation.bleu is None else f"BLEU {validation.bleu:.2f}"


def save_model(folder: Path, model: Any, tokenizer: Any) -> None:
    """Put the model's files into the folder, each by one rename and `config.json` last: before it is there, the folder
    is not a model to anybody.
    """
    from stockade.models.pretrained import quiet

    saving = folder / _SAVING
    shutil.rmtree(saving, ignore_errors=True)
    try:
        with quiet():
            model.save_pretrained(saving)
            tokenizer.save_pretrained(saving)
        files = sorted(saving.iterdir(), key=lambda path: path.name == "config.json")
        for path in files:
            with path.open("rb+") as stream:
                os.fsync(stream.fileno())
        for path in files:
            path.chmod(0o644)  # safetensors makes files that nobody else can read
            path.replace(folder / path.name)
    except Exception as problem:  # a full disk is an error of another class in each of the libraries that write here
        raise RunError(
            f"The trained model cannot be saved in {folder} ({problem}). Its checkpoint is unharmed: make room and "
            "resume."
        ) from problem
    finally:
        shutil.rmtree(saving, ignore_errors=True)
    sync_folder(folder)


WORKFLOW: Workflow[Any] = Workflow(TrainSpec, run, TrainResult)
