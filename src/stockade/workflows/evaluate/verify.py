"""Check what the rows of an evaluation say of the pre-made texts: every row is asked about them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stockade.core.errors import StockadeError
from stockade.experiment.pool import asking
from stockade.experiment.result import Verification
from stockade.report.numbers import count
from stockade.workflows.evaluate.answers import ask_premade
from stockade.workflows.evaluate.inputs import EvaluationInputs

if TYPE_CHECKING:
    from stockade.workflows.evaluate.result import EvaluateResult
    from stockade.workflows.evaluate.spec import EvaluateSpec


def verify_premade(result: EvaluateResult, models: Mapping[str, object]) -> Verification:
    """Ask every row again about every pre-made text; its random choices are those that it had.

    Parameters
    ----------
    result
        The evaluation.
    models
        The models again by name, where they are not what the folder names.
    """
    recorded: EvaluateSpec = result.spec
    if not recorded.premade:
        return Verification(0, ())
    spec = recorded.changed({"models": {**recorded.models, **models}}) if models else recorded
    lost = sorted(set(spec.lost_objects()) & {"models", "data", "premade"})
    if lost:
        objects = f"{' and '.join(lost)} were Python objects"
        return Verification(0, (), (f"no row was asked again about the pre-made texts: {objects}",))
    inputs = EvaluationInputs(spec)
    chains = {chain.name: chain for chain in spec.defenses}
    checked, problems = 0, []
    for row in result.grid_rows:
        for seed, before in row.answers.items():
            try:
                with asking():
                    classifier = inputs.check_row(row.model, chains[row.defense], seed, before.fingerprint)
                    now = ask_premade(inputs, row.model, classifier, seed)
            except StockadeError as error:
                problems.append(f"{row.model}, {row.defense}, seed {seed}: {error}")
                continue
            for name, answers in before.premade.items():
                checked += len(answers.predicted)
                if (answers.ids, answers.labels) != (now[name].ids, now[name].labels):
                    problems.append(f"{row.model}, {row.defense}, seed {seed}: {name} has other texts or labels now")
                    continue
                pairs = zip(answers.predicted, now[name].predicted, strict=True)
                others = sum(first != second for first, second in pairs)
                if others:
                    texts = count(others, "text")
                    problems.append(f"{row.model}, {row.defense}, seed {seed}: other answers to {texts} of {name} now")
    return Verification(checked, tuple(problems))
