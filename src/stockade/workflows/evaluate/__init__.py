"""Evaluation that cannot flatter: models in defenses under attacks, on the same texts, the worst case by text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.attacks.registry import make_attacks
from stockade.experiment.inputs import DataOptions, ModelOptions
from stockade.experiment.progress import Observer, Runtime

if TYPE_CHECKING:
    from stockade.attacks.constraints import Constraint
    from stockade.core.protocols import Attack
    from stockade.workflows.evaluate.result import EvaluateResult


def evaluate(
    models: object,
    data: object,
    attacks: str | Attack | Sequence[str | Attack] | Mapping[str, str | Attack] = (),
    defenses: object = (),
    *,
    premade: object = (),
    preset: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    eot_samples: int = 5,
    transfer_from: object = None,
    budget: int | None = None,
    max_changed: float | None = None,
    constraint: Constraint | str | None = None,
    max_words: int = 5_000,
    mlm: str | None = None,
    encoder: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    seconds: float | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> EvaluateResult:
    """Attack models in defenses on the same texts, and return what is left of their accuracy.

    Every model is evaluated bare and in each chain of defenses, under each attack. A text is robust in the worst case
    only if it survives all attacks in all views: a randomised defense is attacked directly, through the mean of
    several answers, through a surrogate that does not vote, and with texts found on the bare model.

    Parameters
    ----------
    models
        What `st.attack` takes, a list of such models, or a mapping that names them.
    data
        What `st.attack` takes.
    attacks
        A name, an attack object, or a list of them, as `st.attack` takes them. With pre-made texts there may be none.
    defenses
        The columns of the grid, besides the bare model: a defense by name or as an object, a chain from the outside in
        such as `"five+fact"`, or a list of columns, in which a list is a chain. `"own"` is what the folder of a model
        records; it is added by default where a folder records a defense that acts when the model is asked.
    premade
        Adversarial texts that exist already, to be scored by every row: a file or data with true labels, or a list of
        those. A set of `run.premade(keep_failed=True)` goes inside such a list, because it is a list itself.
    preset
        Options of all attacks as in a paper or another tool: `"paper"`, `"authors"`, `"textattack"`.
    limit
        Evaluate on a seeded sample of this many rows; all by default.
    seed
        Decides the sample; the first of the seeds.
    seeds
        Repeat every random choice with so many seeds; the texts stay the same.
    eot_samples
        How many answers a search averages where a defense is randomised; 1 leaves that view out.
    transfer_from
        A model, an undefended one say: what fools it is tried on every row, as one more view.
    budget
        The most queries per text.
    max_changed
        The largest share of words that may change.
    constraint
        What every candidate must keep, such as `"same-pos & similarity(cosine, 0.9)"`.
    max_words
        Longer texts are recorded as errors.
    mlm, encoder
        Another masked LM or sentence encoder: a folder or hub name.
    out
        The folder of the evaluation; without one it lives in a temporary folder as long as the returned object, and
        `result.save(folder)` keeps it.
    resume
        Go on with the interrupted evaluation in `out`.
    concurrency
        The most searches in flight; changes the speed, not the results.
    batch_tokens
        Tokens per batch; tuned by default.
    seconds
        A time limit for the whole evaluation: nothing new is started after it.
    data_options, model_options
        How the data are read and the models are loaded.
    observer
        Called with a `Progress` after each text.
    """
    from stockade.workflows.evaluate.run import WORKFLOW
    from stockade.workflows.evaluate.spec import EvaluateSpec

    spec = EvaluateSpec.of(
        models=models,
        data=data,
        attacks=make_attacks(attacks, preset, max_changed=max_changed, constraint=constraint) if attacks else (),
        defenses=defenses,
        premade=premade,
        limit=limit,
        seed=seed,
        seeds=seeds,
        eot_samples=eot_samples,
        transfer_from=transfer_from,
        budget=budget,
        max_changed=max_changed,
        constraint=None if constraint is None else str(constraint),
        max_words=max_words,
        mlm=mlm,
        encoder=encoder,
        data_options=data_options or DataOptions(),
        model_options=model_options or ModelOptions(),
    )
    runtime = Runtime(concurrency=concurrency, batch_tokens=batch_tokens, seconds=seconds, observer=observer)
    result: EvaluateResult = WORKFLOW.start(spec, out, runtime, resume=resume)
    return result
