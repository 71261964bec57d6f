"""A training as it was asked for: told to the record of its folder, and told back by it when it is resumed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.core.errors import OptionError, RunError
from stockade.datasets.source import DataSource
from stockade.jobs import AN_OBJECT, DataOptions, reference_of
from stockade.training.options import TrainingOptions, preset, preset_for

if TYPE_CHECKING:
    from stockade.training.job import Trained
    from stockade.training.loop import Observer
    from stockade.training.objective import Objective


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """Data, a model and every option; the heavy parts are imported when it is carried out."""

    data: object
    architecture: str | None = None
    model: object = None
    validation: object = None
    hold_out: float | None = None
    preset: str | None = None
    labels: tuple[str, ...] | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    data_options: DataOptions = field(default_factory=DataOptions)
    defenses: tuple[str, ...] = ()

    @classmethod
    def from_folder(cls, folder: Path) -> TrainingRequest:
        """The request that a training was begun with, if its data and model can be found again by name."""
        from stockade.training.folder import read_record

        asked = dict(read_record(folder)["config"]["request"])
        named = [asked[name] for name in ("data", "model", "validation") if asked.get(name) is not None]
        if not asked or any(str(name).startswith(AN_OBJECT) for name in named):
            raise RunError(f"{folder} was made from Python objects: resume it from Python, with the same objects.")
        labels, defenses = asked.pop("labels"), tuple(asked.pop("defenses", ()))
        data_options = DataOptions(**asked.pop("data_options"))
        labels = None if labels is None else tuple(labels)
        return cls(**asked, labels=labels, data_options=data_options, defenses=defenses)

    def described(self) -> dict[str, Any]:
        """The request as it is written into the record."""
        return {
            "data": reference_of(self.data),
            "architecture": self.architecture,
            "model": None if self.model is None else reference_of(self.model),
            "validation": None if self.validation is None else reference_of(self.validation),
            "hold_out": self.hold_out,
            "preset": self.preset,
            "labels": None if self.labels is None else list(self.labels),
            "sources": dict(self.sources),
            "sizes": dict(self.sizes),
            "options": dict(self.options),
            "data_options": {**dataclasses.asdict(self.data_options), "label_map": dict(self.data_options.label_map)},
            "defenses": list(self.defenses),
        }

    def training_options(self) -> TrainingOptions:
        """The preset's options, with those that were given."""
        name = self.preset or preset_for(self.architecture or _kind_of(self.model))
        return preset(name).changed(**self.options)

    def train(
        self, out: Path, objective: Objective | None, resume: bool, device: str | None, observe: Observer | None
    ) -> Trained:
        """Carry it out."""
        options = self.training_options()
        from stockade.defenses.chain import combined_objective, combined_rewrite, save_defenses
        from stockade.defenses.registry import make_defense
        from stockade.training.data import HOLD_OUT
        from stockade.training.job import train
        from stockade.training.network import Origin

        named = [make_defense(reference) for reference in self.defenses]
        if named and objective is not None:
            raise OptionError("Give an objective of your own or defenses, not both.")
        origin = Origin(
            architecture=self.architecture, model=self.model, sources=self.sources, sizes=self.sizes, device=device
        )
        trained = train(
            self._load(self.data, origin.is_language_model),
            origin,
            out,
            options=options,
            validation=None if self.validation is None else self._load(self.validation, origin.is_language_model),
            hold_out=HOLD_OUT if self.hold_out is None else self.hold_out,
            labels=self.labels,
            label_map=self.data_options.label_map,
            objective=combined_objective(named) or objective,
            rewrite=combined_rewrite(named),
            defenses=[one.described() for one in named],
            resume=resume,
            device=device,
            request=self.described(),
            observe=observe,
        )
        save_defenses(out, named)
        return trained

    def _load(self, data: object, texts_only: bool) -> DataSource:
        if texts_only and isinstance(data, list | tuple) and all(isinstance(one, str) for one in data):
            data = [{"text": one} for one in data]
        return self.data_options.load(data, empty_texts=True, needs_labels=not texts_only)


def _kind_of(model: object) -> str:
    """What a trained model says it is, for the choice of a preset."""
    if isinstance(model, str | Path):
        try:
            said = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):  # not a folder: the name says what it is, and loading it says what is wrong
            return str(model)
        return f"{said.get('model_type')} {said.get('_name_or_path', '')}"
    network = model[0] if isinstance(model, tuple | list) and model else model
    return str(getattr(getattr(network, "config", None), "model_type", type(network).__name__))
