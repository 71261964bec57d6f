"""What comes out of a search: its trials and the best of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stockade.core.errors import ModelError
from stockade.experiment.export import Layout
from stockade.experiment.progress import Runtime
from stockade.experiment.result import Result, Verification
from stockade.experiment.spec import Spec
from stockade.workflows.tune.spec import TuneSpec
from stockade.workflows.tune.training import trial_folder
from stockade.workflows.tune.trials import CODEC, Goal, Trial, best_of, missing_numbers, reference

if TYPE_CHECKING:
    from stockade.report.document import Document

SCHEMA = 1
TRIALS = "trials"
"""The part of the store that holds the trials."""


class TuneResult(Result):
    """The trials of a search: `best` is the best of them, `best_defense` the defense to use, ready for `--defense`."""

    kind: ClassVar[str] = "tune"
    spec_type: ClassVar[type[Spec]] = TuneSpec

    def records(self) -> Iterator[Trial]:
        """The trials in the order of their numbers."""
        return map(CODEC.read, self.store.documents(TRIALS))

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """All trials."""
        return tuple(self.records())

    @property
    def best(self) -> Trial | None:
        """The trial of the largest objective; None if none could be rated, or none keeps enough clean accuracy."""
        return best_of(self.trials)

    @property
    def best_defense(self) -> str | None:
        """The defense with the best options, as `--defense` and `st.defend` take it."""
        defense = self.manifest.spec["defense"]
        if self.best is None:
            return None
        return reference(defense["name"], defense["preset"], {**self.fixed_options, **self.best.options})

    @property
    def fixed_options(self) -> dict[str, Any]:
        """The options of the defense that were not searched because they were fixed."""
        defense = self.manifest.spec["defense"]
        return {name: defense["options"][name] for name in defense["fixed"]}

    @property
    def goal(self) -> Goal:
        """What was maximised."""
        spec = self.manifest.spec
        return Goal(spec["clean_weight"], spec["least_clean"], spec.get("premade_weight", 1.0))

    @property
    def by_certificates(self) -> bool:
        """Whether the objective is MCB."""
        return bool(self.manifest.spec.get("objective") == "mcb")

    @property
    def best_model(self) -> Path | None:
        """The folder of the model that the best trial has trained; None if nothing is trained."""
        if self.best is None or self.manifest.spec.get("train_data") is None:
            return None
        return trial_folder(self.folder, self.best.number)

    @property
    def complete(self) -> bool:
        """Whether as many trials as were asked for are there."""
        return not missing_numbers(self.trials, self.manifest.spec["trials"])

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `summary.json`."""
        spec, inputs = self.manifest.spec, self.manifest.inputs
        return {
            "schema": SCHEMA,
            "run": self.name,
            "complete": self.complete,
            "model": inputs["model"]["reference"],
            "data": inputs["data"]["reference"],
            "texts": inputs["data"]["size"],
            "attacks": [attack["key"] for attack in spec["attacks"]],
            **({"objective": "mcb"} if self.by_certificates else {}),
            **({"premade": inputs["premade"]} if inputs.get("premade") else {}),
            **({"train_data": inputs["train_data"]} if inputs.get("train_data") else {}),
            "defense": spec["defense"]["name"],
            "fixed": self.fixed_options,
            "ranges": spec["ranges"],
            "best": None if self.best is None else self.best.number,
            "best_defense": self.best_defense,
            **({} if self.best_model is None else {"best_model": str(self.best_model.relative_to(self.folder))}),
            "trials": [trial.described() for trial in self.trials],
        }

    def problem(self) -> str | None:
        """Why there is no best trial; None if there is one."""
        if self.best is not None:
            return None
        if self.by_certificates and any(trial.objective == -1 for trial in self.trials):
            return (
                f"None of {len(self.trials)} trials certifies the true class of half of the texts, so there is no MCB: "
                "train the model with the defense (--train-data), or search other values with --range."
            )
        cleanest = max((trial.clean for trial in self.trials if trial.clean is not None), default=None)
        if cleanest is not None:
            return (
                f"None of {len(self.trials)} trials keeps the clean accuracy of --least-clean; the most is "
                f"{cleanest:.3f}. Allow less, or search more with --resume and more --trials."
            )
        reason = next((trial.error for trial in self.trials if trial.error), "there was no time for one")
        return f"No trial could be rated; the first: {reason}"

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """One row per trial."""
        return map(asdict, self.trials)

    @property
    def layout(self) -> Layout:
        return Layout.of_row(asdict(Trial(0, {}, 0, 0.0, 0.0, 0.0, 0.0, "", 0.0, 0.0, 0)))

    def document(self) -> Document:
        """The report: the best defense, objective by trial and by option, all trials."""
        from stockade.workflows.tune.page import tune_document

        return tune_document(self)

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Check that objectives follow from accuracies; rate the best options again, if model and data can be found.

        Parameters
        ----------
        model
            The model, if it is not where the search found it.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """
        from stockade.experiment.pool import asking
        from stockade.workflows.tune.objective import Objective

        problems: list[str] = []
        for trial in self.trials:
            if trial.clean is not None:
                expected = (
                    self.goal.certified(trial.clean, trial.median_radius)
                    if self.by_certificates
                    else self.goal.value(trial.clean, trial.robust, trial.premade)
                )
                more = trial.robust is not None and trial.robust > trial.clean
                if trial.objective is None or abs(trial.objective - expected) > 1e-9 or more:
                    problems.append(f"trial {trial.number}: the objective does not follow from the accuracies")
        best = self.best
        self.check_trust(trust, model)
        spec = self.spec if model is None else self.spec.changed({"model": model})
        lost = spec.lost_objects()
        if best is None or lost:
            unrated = [f"the best options were not rated again: the {' and the '.join(lost)} was a Python object"]
            return self.verified(len(self.trials), problems, unrated if lost else ())
        if self.best_model is not None and not self.best_model.is_dir():
            gone = f"the best options were not rated again: their model is not in {self.best_model}"
            return self.verified(len(self.trials), problems, [gone])
        with asking():
            again = Objective(spec, Runtime(), self.folder).rate(best.number, best.options)
        if again.error is not None:
            raise ModelError(f"The best options cannot be rated again: {again.error}")
        if again.median_radius != best.median_radius:
            problems.append(f"trial {best.number}: MCB was {best.median_radius}, now {again.median_radius}")
        for name in ("clean", "robust", "premade"):
            before, now = getattr(best, name), getattr(again, name)
            # Scores move a little with the shape of a batch: a single text may change sides.
            texts = best.n if name != "premade" else self._smallest_premade
            if before is not None and (now is None or abs(before - now) > 1.5 / texts):
                problems.append(f"trial {best.number}: {name} accuracy was {before:.3f}, now {now}")
        return self.verified(len(self.trials), problems)

    @property
    def _smallest_premade(self) -> int:
        """How many texts the smallest pre-made set has."""
        return min((premade["size"] for premade in self.manifest.inputs.get("premade", {}).values()), default=1)

    def __repr__(self) -> str:
        return f"TuneResult({str(self.folder)!r}, best_defense={self.best_defense!r})"
