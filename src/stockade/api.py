"""The functions behind `import stockade as st`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from stockade.attacks.constraints import Constraint
from stockade.attacks.registry import make_attack
from stockade.core.errors import OptionError, RunError, unknown_name
from stockade.core.files import in_temporary_folder, refuse_existing
from stockade.core.protocols import Classifier
from stockade.datasets.examples import prepare_examples
from stockade.defenses.chain import load_defenses, wrap
from stockade.defenses.registry import make_defense
from stockade.engine.scheduler import innermost
from stockade.jobs import AttackJob, DataOptions, ModelOptions, NeighbourFile, refuse_untrained
from stockade.models.language import LanguageModels
from stockade.runs.attack import AttackSettings, Observer, check_answers, run_attacks
from stockade.runs.manifest import FILE_NAME, begin_run, read_manifest
from stockade.runs.run import Run
from stockade.runs.similarity import measure_similarities
from stockade.runs.store import FILE_NAME as STORE_NAME
from stockade.runs.store import Store

__all__ = ["DataOptions", "ModelOptions", "attack", "defend", "resume"]


def attack(
    model: object,
    data: object,
    *attacks: str,
    preset: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    budget: int | None = None,
    max_changed: float | None = None,
    constraint: Constraint | str | None = None,
    repair_articles: bool | None = None,
    target: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    similarity: bool = True,
    max_words: int = 5_000,
    mlm: str | None = None,
    encoder: str | None = None,
    neighbours: str | Path | None = None,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    seconds: float | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> Run:
    """Attack a classifier and return the run.

    `model` and `data` are references as on the command line, or the objects themselves: a Hugging Face `(model,
    tokenizer)` or pipeline, an estimator with `predict_proba`, any function from a list of texts to rows of
    probabilities; a list of `(text, label)`, a data frame. `attacks` are names as `stockade ls attacks` shows them,
    with a preset or options if you like: `"pwws@textattack"`, `"deepwordbug:scoring=tail"`. `constraint` is what every
    candidate must keep, such as `"same-pos & similarity(cosine, 0.9)"`. `neighbours` is a table of word neighbours that
    `stockade lexicon build` wrote, or a file of counter-fitted vectors. Without `out` the run
    lives in a temporary folder as long as the returned object; `run.save(folder)` keeps it.
    """
    data_options = data_options or DataOptions()
    shared = {"max_changed": max_changed, "constraint": constraint, "repair_articles": repair_articles}
    job = AttackJob(
        model,
        data,
        tuple(make_attack(reference, preset, **shared) for reference in attacks),
        seed,
        budget,
        max_words,
        target,
        similarity,
        data_options if limit is None else replace(data_options, limit=limit),
        model_options or ModelOptions(),
        LanguageModels(mlm, encoder),
        None if neighbours is None else NeighbourFile.read(neighbours),
    )
    settings = AttackSettings(job.attacks, seed, budget, max_words, concurrency, batch_tokens, seconds)
    if out is not None:
        return _execute(job, settings, Path(out), resume, observer)
    if resume:
        raise RunError("There is nothing to resume without a run folder: name it with --out.")
    return in_temporary_folder(lambda folder: _execute(job, settings, folder, False, observer))


def defend(
    model: object,
    *defenses: str,
    seed: int = 0,
    mlm: str | None = None,
    encoder: str | None = None,
    model_options: ModelOptions | None = None,
    **options: Any,
) -> Classifier:
    """The model inside one or more defenses: a classifier that can be asked, attacked and defended again.

    `model` is what `attack` takes; `defenses` are names as `stockade ls defenses` shows them, from the outside in, in
    place of those that a model's folder says. One that only trains, as in `st.defend("models/m", "five", "fact")`, must
    be in the folder already. `options` are those of a single defense: `st.defend(model, "ranmask", rate=0.3)`.
    """
    if not defenses:
        raise OptionError("No defense was named. List them with: stockade ls defenses")
    if options and len(defenses) > 1:
        raise OptionError(
            "Options by keyword are for a single defense; write them with the names, as in five:samples=8."
        )
    named = [make_defense(reference, **options) for reference in defenses]
    if not any(one.entry.answers for one in named):
        name = named[0].name
        raise OptionError(f'{name} changes how a model is trained: use st.train(…, defenses=["{name}"]).')
    refuse_untrained(named, load_defenses(Path(model)) if isinstance(model, str | Path) else [])
    bare = (model_options or ModelOptions()).load_bare(model)
    return wrap(bare, named, seed=seed, language=LanguageModels(mlm, encoder))


def resume(
    folder: str | Path, *, concurrency: int = 64, batch_tokens: int | None = None, observer: Observer | None = None
) -> Run:
    """Go on with an interrupted run; its manifest says with what."""
    path = Path(folder)
    job = AttackJob.from_manifest(path, read_manifest(path))
    settings = AttackSettings(job.attacks, job.seed, job.budget, job.max_words, concurrency, batch_tokens)
    return _execute(job, settings, path, True, observer)


def _execute(job: AttackJob, settings: AttackSettings, folder: Path, resume: bool, observer: Observer | None) -> Run:
    if not resume:
        refuse_existing(folder, FILE_NAME)
    job.language.check()
    classifier = job.model_options.load(job.model, seed=job.seed, language=job.language)
    source = job.data_options.load(job.data)
    for row in islice(source.rows(), 1):
        check_answers(innermost(classifier), row.input)
    examples = prepare_examples(
        source,
        classifier.labels,
        limit=job.data_options.limit,
        seed=job.seed,
        label_map=job.data_options.label_map,
        target=_class_index(classifier, job.target),
    )
    begin_run(folder, job.manifest(classifier, examples), resume)
    try:
        table = None if job.neighbours is None else job.neighbours.table
        run_attacks(classifier, examples, settings, folder, observer, job.language, table)
        if job.similarity:
            encoder = cache(job.language.make_encoder)
            with Store(folder, writable=True) as store:
                for named in job.attacks:
                    measure_similarities(store, named.key, encoder)
    finally:
        if (folder / STORE_NAME).exists():
            Run(folder).write_summary()
    return Run(folder)


def _class_index(classifier: Classifier, target: str | None) -> int | None:
    if target is None:
        return None
    if target not in classifier.labels:
        raise unknown_name("class of this model", target, classifier.labels)
    return classifier.labels.index(target)
