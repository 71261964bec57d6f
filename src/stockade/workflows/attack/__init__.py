"""Attack a classifier: one search per text and attack, each success confirmed, everything stored as it ends.

`attack` also takes translators: with attacks for them it starts the job of `workflows/translation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.attacks.registry import make_attacks
from stockade.core.errors import OptionError
from stockade.experiment.inputs import DataOptions, ModelOptions
from stockade.experiment.progress import Observer, Runtime

if TYPE_CHECKING:
    from stockade.attacks.constraints import Constraint
    from stockade.attacks.registry import NamedAttack
    from stockade.core.pairs import Sides
    from stockade.core.protocols import Attack


def attack(
    model: object,
    data: object,
    attacks: str | Attack | Sequence[str | Attack],
    *,
    defenses: object = None,
    preset: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    budget: int | None = None,
    max_changed: float | None = None,
    constraint: Constraint | str | None = None,
    repair_articles: bool | None = None,
    targeted: str | None = None,
    sides: Sides = "hypothesis",
    unlabelled: bool = False,
    similarity: bool = True,
    max_words: int = 5_000,
    mlm: str | None = None,
    encoder: str | None = None,
    neighbours: str | Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    seconds: float | None = None,
    workers: int = 1,
    ray: str | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> Any:
    """Attack a classifier or a translator and return the result, an `AttackResult` or a `TranslationResult`.

    Parameters
    ----------
    model
        A reference such as `"builtin:sentiment-cnn"`, a model folder, a Hugging Face `(model, tokenizer)` or pipeline,
        an estimator with `predict_proba`, or any function from a list of texts to rows of class probabilities. With
        attacks for translators: whatever `st.load_translator` takes.
    data
        A csv, tsv, jsonl or parquet file, `"hf:NAME[:SPLIT]"`, `"builtin:reviews"`, a list of `(text, label)`, a data
        frame; with `unlabelled` also a list of texts, or `"text:A fine film."`. For translators: source sentences and
        their translations, as `st.train` takes them.
    attacks
        A name as `stockade ls attacks` shows it, with a preset or options if you like (`"pwws@textattack"`,
        `"deepwordbug:scoring=tail"`), an attack object, or a list of them.
    defenses
        Defenses around the model, by name, as objects or a list of them from the outside in; `"none"` is the bare
        model. By default those that the model's folder records.
    preset
        Options of all attacks as in a paper or another tool: `"paper"`, `"authors"`, `"textattack"`.
    limit
        Attack a seeded sample of this many rows; all by default.
    seed
        Decides the sample and every random choice.
    budget
        The most queries per text.
    max_changed
        The largest share of words that may change.
    constraint
        What every candidate must keep, such as `"same-pos & similarity(cosine, 0.9)"`.
    repair_articles
        Put "a" and "an" right in front of new words.
    targeted
        Succeed only when the model predicts this class.
    sides
        Which sides of pairs are edited: `"hypothesis"`, `"premise"` or `"both"`.
    unlabelled
        The data have no labels: attack the model's own predictions.
    similarity
        Measure the similarity of each success to its original.
    max_words
        Longer texts are recorded as errors.
    mlm, encoder
        Another masked LM or sentence encoder: a folder or hub name.
    neighbours
        A table of word neighbours that `stockade lexicon build` wrote, or a file of counter-fitted vectors.
    out
        The folder of the run; without one it lives in a temporary folder as long as the returned object, and
        `result.save(folder)` keeps it.
    resume
        Go on with the interrupted run in `out`.
    concurrency
        The most searches in flight; changes the speed, not the results.
    batch_tokens
        Tokens per batch; tuned by default.
    seconds
        A time limit for each attack: no search is started after it.
    workers
        How many processes work at the same time, each with the model in memory; the results are the same. The model
        must then be named, not given as an object, and a script that asks for workers needs the usual
        `if __name__ == "__main__":`.
    ray
        The address of a Ray cluster that the workers are on, or `"auto"`.
    data_options, model_options
        How the data are read and the model is loaded.
    observer
        Called with a `Progress` after each text.
    """
    named = make_attacks(
        attacks, preset, max_changed=max_changed, constraint=constraint, repair_articles=repair_articles
    )
    runtime = Runtime(
        concurrency=concurrency,
        batch_tokens=batch_tokens,
        seconds=seconds,
        workers=workers,
        ray=ray,
        observer=observer,
    )
    shared: dict[str, Any] = {
        "model": model,
        "data": data,
        "attacks": named,
        "limit": limit,
        "seed": seed,
        "budget": budget,
        "similarity": similarity,
        "max_words": max_words,
        "mlm": mlm,
        "encoder": encoder,
        "neighbours": None if neighbours is None else str(neighbours),
        "data_options": data_options or DataOptions(),
        "model_options": model_options or ModelOptions(),
    }
    if _for_translators(named):
        refused = {"defenses": defenses, "targeted": targeted, "unlabelled": unlabelled}
        refused["sides"] = sides if sides != "hypothesis" else None
        _refuse_for_translators(refused, shared["data_options"])
        from stockade.workflows.translation.run import WORKFLOW as TRANSLATION
        from stockade.workflows.translation.spec import TranslationSpec

        return TRANSLATION.start(TranslationSpec.of(**shared), out, runtime, resume=resume)
    from stockade.workflows.attack.run import WORKFLOW
    from stockade.workflows.attack.spec import AttackSpec

    spec = AttackSpec.of(**shared, defenses=defenses, targeted=targeted, sides=sides, unlabelled=unlabelled)
    return WORKFLOW.start(spec, out, runtime, resume=resume)


def _for_translators(attacks: Sequence[NamedAttack]) -> bool:
    """Whether the attacks are for translators; some for both kinds of model are refused."""
    keys = {attack.task: attack.key for attack in reversed(attacks)}
    if len(keys) > 1:
        raise OptionError(
            f"{keys['translation']} attacks translators and {keys['classification']} classifiers: use two jobs."
        )
    return "translation" in keys


def _refuse_for_translators(options: Mapping[str, object], data: DataOptions) -> None:
    """What makes no sense for a translator is refused rather than ignored."""
    columns = {name: getattr(data, name) for name in ("text_column", "label_column", "premise_column", "label_map")}
    for name, value in {**options, **columns}.items():
        if value:
            flag = "--" + (name if name == "sides" else name.replace("_", "-").removesuffix("s"))
            raise OptionError(f"{flag} is for classifiers and has no effect on attacks on translators: leave it out.")
