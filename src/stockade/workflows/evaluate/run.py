"""The grid: every model in every chain of defenses under every attack, in every view, with every seed.

Every cell is an attack with a folder of its own. What fails in one cell costs nothing but itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stockade.attacks.registry import NamedAttack
from stockade.core.errors import RunError, StockadeError
from stockade.experiment.progress import Runtime, within
from stockade.experiment.result import REPORT, Workflow
from stockade.experiment.workspace import begin
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.run import attack_examples
from stockade.workflows.attack.spec import AttackSpec
from stockade.workflows.evaluate.answers import Answers, ask
from stockade.workflows.evaluate.grid import CellKey, Grid, finished_cell, read_cell
from stockade.workflows.evaluate.inputs import EvaluationInputs
from stockade.workflows.evaluate.result import EvaluateResult
from stockade.workflows.evaluate.spec import DefenseChain, EvaluateSpec
from stockade.workflows.evaluate.views import EOT


def run(spec: EvaluateSpec, folder: Path, runtime: Runtime, resume: bool) -> EvaluateResult:
    """Look at all models and data, then fill the grid."""
    inputs = EvaluationInputs(spec)
    described = inputs.described()
    with begin(folder, spec, described, resume=resume) as workspace:
        inputs.hold_to(workspace.manifest.inputs)
        grid = Grid(folder, workspace.manifest, workspace.store)
        result = EvaluateResult.of(workspace)
        try:
            _Filling(grid, inputs, runtime).fill()
        finally:
            result.write_summary()
    return result


@dataclass(frozen=True, slots=True)
class _Row:
    """A model in a chain of defenses, with its answers by seed."""

    model: str
    chain: DefenseChain
    answers: Mapping[int, Answers]


class _Filling:
    """Fills a grid, row by row; what is there already is not made again."""

    def __init__(self, grid: Grid, inputs: EvaluationInputs, runtime: Runtime) -> None:
        self._grid, self._inputs, self._spec, self._runtime = grid, inputs, inputs.spec, runtime
        self._deadline = None if runtime.seconds is None else time.monotonic() + runtime.seconds

    def fill(self) -> None:
        """Every row: what it says of the clean texts, then its cells."""
        chains = {chain.name: chain for chain in self._spec.defenses}
        rows = [(model, chains[defense]) for model, defense in self._grid.places]
        for model, chain in rows:
            self._check_unchanged(model, chain)
        for model, chain in rows:
            row = self._answered(model, chain)
            if row is not None:
                self._fill_row(row)

    def _check_unchanged(self, model: str, chain: DefenseChain) -> None:
        """A row that was begun must still be the same, to the last file that its defenses read."""
        for seed in self._spec.all_seeds:
            answers = self._grid.answers(model, chain.name, seed)
            if answers is None:
                continue
            try:
                self._inputs.check_row(model, chain, seed, answers.fingerprint)
            except RunError:
                raise
            except Exception:  # it cannot be made any more: those of its cells that are missing will say why
                continue

    def _answered(self, model: str, chain: DefenseChain) -> _Row | None:
        """The row with its answers to the clean and pre-made texts; None if they cannot be had."""
        by_seed = {}
        for seed in self._spec.all_seeds:
            answers = self._grid.answers(model, chain.name, seed)
            if answers is None:
                if self._is_over:
                    return None
                try:
                    classifier = self._inputs.defended(model, chain, seed)
                    answers = ask(self._inputs, model, classifier, seed, self._runtime.batch_tokens)
                except Exception as error:
                    self._grid.add_answers(model, chain.name, seed, contained(error))
                    return None
                self._grid.add_answers(model, chain.name, seed, answers)
            by_seed[seed] = answers
        return _Row(model, chain, by_seed)

    def _fill_row(self, row: _Row) -> None:
        for attack in self._spec.attacks:
            for view in row.answers[self._spec.seed].views:
                for seed in self._spec.all_seeds:
                    self._fill_cell(row, attack, CellKey(row.model, row.chain.name, attack.key, view, seed))

    def _fill_cell(self, row: _Row, attack: NamedAttack, key: CellKey) -> None:
        try:
            run = finished_cell(self._grid.cell_folder(key))
            if run is None and not self._is_over:
                run = self._attack(row, attack, key)
        except Exception as error:
            self._grid.add_cell(key, contained(error))
            return
        if run is not None and run.complete:
            self._grid.add_cell(key, read_cell(run))
            page = run.folder / REPORT
            if not page.exists():
                run.document().write(page)

    def _attack(self, row: _Row, attack: NamedAttack, key: CellKey) -> AttackResult:
        spec, inputs = self._spec, self._inputs
        classifier = inputs.check_row(row.model, row.chain, key.seed, row.answers[key.seed].fingerprint)
        cell = AttackSpec.of(
            model=spec.models[row.model],
            data=spec.data,
            attacks=(attack,),
            defenses=inputs.defenses(row.model, row.chain),
            limit=spec.limit,
            seed=key.seed,
            budget=spec.budget,
            similarity=False,
            max_words=spec.max_words,
            mlm=spec.mlm,
            encoder=spec.encoder,
            view=key.view,
            eot_samples=spec.eot_samples if key.view == EOT else None,
            data_options=spec.data_options,
            model_options=spec.model_options,
        )
        part = f"{row.model}, {row.chain.name}, {key.view}, seed {key.seed}"
        left = None if self._deadline is None else max(1e-3, self._deadline - time.monotonic())
        return attack_examples(
            cell,
            self._grid.cell_folder(key),
            replace(self._runtime, observer=within(part, self._runtime.observer), seconds=left),
            True,
            classifier,
            inputs.examples(row.model),
            queried=inputs.views(row.model, classifier)[key.view],
        )

    @property
    def _is_over(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline


def contained(error: Exception) -> str:
    """Why a part of the grid failed; what concerns the folder as a whole is raised again."""
    if isinstance(error, RunError):
        raise error
    return str(error) if isinstance(error, StockadeError) else f"{type(error).__name__}: {error}"


WORKFLOW: Workflow[Any] = Workflow(EvaluateSpec, run, EvaluateResult, reopens=True)
