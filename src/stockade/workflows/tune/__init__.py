"""Search for the options of a defense: which ones keep a model right under attack without costing it clean texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stockade.attacks.registry import make_attacks
from stockade.core.errors import OptionError
from stockade.experiment.inputs import DataOptions, ModelOptions
from stockade.experiment.progress import Observer, Runtime

if TYPE_CHECKING:
    from stockade.attacks.constraints import Constraint
    from stockade.core.protocols import Attack
    from stockade.workflows.tune.result import TuneResult


def tune(
    model: object,
    data: object,
    defense: object,
    attacks: str | Attack | Sequence[str | Attack] | Mapping[str, str | Attack] = (),
    *,
    premade: object = (),
    premade_weight: float = 1.0,
    train_data: object = None,
    train_preset: str | None = None,
    train_options: Mapping[str, Any] | None = None,
    ranges: str | Sequence[str] | Mapping[str, str] = (),
    trials: int = 20,
    sampler: str = "random",
    objective: Literal["robust", "mcb"] = "robust",
    method: str | None = None,
    clean_weight: float = 0.0,
    least_clean: float | None = None,
    preset: str | None = None,
    limit: int | None = 100,
    seed: int = 0,
    budget: int | None = None,
    max_changed: float | None = None,
    constraint: Constraint | str | None = None,
    eot_samples: int = 3,
    max_words: int = 5_000,
    mlm: str | None = None,
    encoder: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    workers: int = 1,
    seconds: float | None = None,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> TuneResult:
    """Search the options of a defense for those that keep most texts right under attack, or on pre-made texts.

    Each trial puts the defense with other options around the model and attacks the same texts in several views; a text
    is robust if it survives all of them. The objective is robust accuracy + `premade_weight` × accuracy on pre-made
    texts + `clean_weight` × clean accuracy, of which those count that are measured. A defense that acts in training is
    trained anew in each trial, on `train_data`.

    Parameters
    ----------
    model
        What `st.attack` takes; without the defenses of its folder.
    data
        What `st.attack` takes.
    defense
        A defense, by name or as an object; one that acts in training needs `train_data`. Options that are written
        with the name (`"ranmask:copies=50"`), or differ from the default in an object, stay as they are.
    attacks
        A name, an attack object, or a list of them; with several a text is robust only if it survives all. With
        pre-made texts there may be none: then a trial only asks about texts, and costs seconds.
    premade
        Adversarial texts that exist already, as `st.evaluate` takes them; all of them are asked about.
    premade_weight
        What accuracy on them counts for.
    train_data
        Texts that each trial trains the model further on, with the defense; the model must have weights to train.
    train_preset, train_options
        How: a preset and options of `st.train`, such as `"fact"` and `{"epochs": 1}`.
    ranges
        The options to search: `"rate=0.1..0.9"`, `"deviation=0.1..10 log"`, `"combine=logit|vote"`, or a mapping from
        options to such texts. By default all that are not fixed and have a natural range.
    trials
        How many choices of options to try.
    sampler
        How options are chosen: `"random"`, `"grid"` (every choice of listed values once), or optuna's `"tpe"` and
        `"gp"` (extra `tune`).
    objective
        `"robust"`: the accuracies above. `"mcb"`: how many words may change in at least half of the texts, certified;
        nothing is attacked then. Of equal MCB the options of more clean accuracy are the best.
    method
        The certificate behind `"mcb"`, such as `"ranmask-gap:most=1000"`; the one for the defense by default.
    clean_weight
        What clean accuracy counts for.
    least_clean
        Options with less clean accuracy lose to all others.
    preset
        Options of all attacks as in a paper or another tool: `"paper"`, `"authors"`, `"textattack"`.
    limit
        Attack a seeded sample of this many rows; all if None.
    seed
        Decides the sample and every random choice.
    budget
        The most queries per text.
    max_changed
        The largest share of words that may change.
    constraint
        What every candidate must keep, such as `"same-pos & similarity(cosine, 0.9)"`.
    eot_samples
        How many answers a search averages where the defense is randomised; 1 leaves that view out.
    max_words
        Longer texts are recorded as errors.
    mlm, encoder
        Another masked LM or sentence encoder: a folder or hub name.
    out
        The folder of the search; without one it lives in a temporary folder as long as the returned object, and
        `result.save(folder)` keeps it.
    resume
        Go on with the search in `out`; `trials` may be larger.
    workers
        Trials at the same time, each in a process of its own.
    seconds
        A time limit: no trial is begun after it.
    concurrency
        The most searches in flight; changes the speed, not the results.
    batch_tokens
        Tokens per batch; tuned by default.
    data_options, model_options
        How the data are read and the model is loaded.
    observer
        Called with a `Progress` after each trial.
    """
    from stockade.workflows.train.spec import options_for
    from stockade.workflows.tune.run import WORKFLOW
    from stockade.workflows.tune.samplers import grid
    from stockade.workflows.tune.spec import TuneSpec

    training: dict[str, Any] = {}
    if train_data is not None:
        chosen = {"seed": seed, **(train_options or {})}
        training = options_for("classification", None, model, train_preset, chosen).described()
    elif train_preset or train_options:
        raise OptionError("Options of a training were given, but no texts to train on: name them with --train-data.")
    spec = TuneSpec.of(
        model=model,
        data=data,
        defense=defense,
        attacks=make_attacks(attacks, preset, max_changed=max_changed, constraint=constraint) if attacks else (),
        premade=premade,
        premade_weight=premade_weight,
        train_data=train_data,
        train_options=training,
        ranges=ranges,
        trials=trials,
        sampler=sampler,
        objective=objective,
        method=method,
        clean_weight=clean_weight,
        least_clean=least_clean,
        limit=limit,
        seed=seed,
        budget=budget,
        eot_samples=eot_samples,
        max_words=max_words,
        mlm=mlm,
        encoder=encoder,
        data_options=data_options or DataOptions(),
        model_options=model_options or ModelOptions(),
    )
    if spec.sampler == "grid":
        spec = spec.changed({"trials": min(spec.trials, len(grid(spec.ranges)))})
    runtime = Runtime(
        concurrency=concurrency, batch_tokens=batch_tokens, seconds=seconds, workers=workers, observer=observer
    )
    result: TuneResult = WORKFLOW.start(spec, out, runtime, resume=resume)
    return result
