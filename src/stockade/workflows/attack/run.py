"""Attack a classifier: load the model and the data, run the searches here or in workers, write the summary."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, cast

from stockade.attacks.languages import check_language, is_english
from stockade.attacks.trial import CONFIRMATION
from stockade.core.errors import ModelError, OptionError, ResourceMissing, RunError, unknown_name
from stockade.core.example import Example
from stockade.core.pairs import Sides
from stockade.core.protocols import ClassBoundAttack, Classifier
from stockade.core.text import Text
from stockade.datasets.examples import ExampleSet, UnlabelledExample, UnlabelledSet, prepare_texts
from stockade.engine.services import innermost
from stockade.experiment.inputs import describe_data, describe_model, reference_of, unsteady_answers
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.progress import Runtime
from stockade.experiment.result import Workflow
from stockade.experiment.usage import Metered, metered
from stockade.experiment.workspace import MANIFEST, begin, read_manifest
from stockade.lexicon.neighbours import Neighbours, read_neighbours
from stockade.models.translation.load import is_translator
from stockade.workflows.attack.common import measure_similarities
from stockade.workflows.attack.result import CODEC, AttackResult
from stockade.workflows.attack.searches import run_searches
from stockade.workflows.attack.spec import AttackSpec
from stockade.workflows.attack.summary import ASKED_TWICE
from stockade.workflows.attack.workers import check_references, run_by_workers

_READ_FOR_SCRIPT = 50
"""How many texts are looked at for their script."""


def run(spec: AttackSpec, folder: Path, runtime: Runtime, resume: bool) -> AttackResult:
    """Load the model and the data, then attack."""
    if spec.view is not None:
        raise RunError(f"{folder} is a cell of an evaluation. Resume the evaluation that it is part of.")
    if runtime.workers > 1:
        check_references(spec)
    neighbours = None if spec.neighbours is None else read_neighbours(spec.neighbours)
    spec.language.check()
    if is_translator(spec.model):
        raise ModelError(
            f"{reference_of(spec.model)} is a translator, and {spec.attacks[0].key} attacks classifiers. Choose "
            "attacks for translators, such as mt-keyword (stockade ls attacks)."
        )
    data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed, needs_labels=not spec.unlabelled)
    models = ModelPool({"": spec.model}, spec.model_options, language=spec.language)
    classifier = models.defended("", spec.defenses, seed=spec.seed)
    if runtime.workers > 1 and isinstance(innermost(classifier), Metered):
        raise OptionError("A model that counts what its queries cost is asked by one process: leave out --workers.")
    data.check_answers(classifier)
    examples: ExampleSet | UnlabelledSet
    if spec.unlabelled:
        examples = prepare_texts(data.source(), limit=spec.limit, seed=spec.seed)
    else:
        examples = data.examples(classifier.labels, target=_class_index(classifier, spec.targeted))
    return attack_examples(spec, folder, runtime, resume, classifier, examples, neighbours=neighbours)


def attack_examples(
    spec: AttackSpec,
    folder: Path,
    runtime: Runtime,
    resume: bool,
    classifier: Classifier,
    examples: ExampleSet | UnlabelledSet,
    *,
    queried: Classifier | None = None,
    neighbours: Neighbours | None = None,
) -> AttackResult:
    """Attack examples that are loaded already.

    Parameters
    ----------
    spec
        What decides the results; its model and data are those that were loaded.
    folder, runtime, resume
        Where and how the job is run.
    classifier, examples
        The model in its defenses, and the texts with its classes, or without any.
    queried
        The classifier that the searches query, if it is not the one they want to fool.
    neighbours
        The table of word neighbours that attacks use; None is the one that comes with the package.
    """
    check_paired(spec.sides, (item.text for item in cast("Iterable[Example | UnlabelledExample]", examples)))
    _check_language(spec, examples, neighbours)
    unsteady = _unsteady(folder, resume, classifier, examples)
    inputs = {
        "model": {**describe_model(spec.model, classifier), **({"unsteady": unsteady} if unsteady else {})},
        "data": describe_data(spec.data, examples),
        "neighbours": None if neighbours is None else neighbours.fingerprint(),
        **({} if classifier.deterministic else {"confirmation": CONFIRMATION}),
    }
    labelled = isinstance(examples, ExampleSet)
    present = [name for name in classifier.labels if not labelled or examples.label_counts[name]]
    for attack in spec.attacks:
        if isinstance(attack.attack, ClassBoundAttack):
            attack.attack.check_classes(classifier.labels, present)
    with begin(folder, spec, inputs, resume=resume) as workspace:
        result = AttackResult.of(workspace)
        try:
            with metered(folder, classifier):
                if runtime.workers > 1 and queried is None:
                    run_by_workers(workspace.store, spec, runtime, examples, classifier.labels)
                else:
                    run_searches(
                        workspace.store, classifier, examples, spec, runtime, queried=queried, neighbours=neighbours
                    )
            if spec.similarity:
                measure_similarities(workspace.store, spec.attacks, CODEC, spec.language)
        finally:
            result.write_summary()
    return result


def check_paired(sides: Sides, texts: Iterable[Text]) -> None:
    """Refuse to attack a side that single texts do not have."""
    first = next(iter(texts), None)
    if sides != "hypothesis" and first is not None and first.pair is None:
        raise OptionError(
            f"--sides {sides} is for pairs, and the data are single texts. Leave it out, or name the column of the "
            "premise with --premise-column."
        )


def _check_language(spec: AttackSpec, examples: ExampleSet | UnlabelledSet, neighbours: Neighbours | None) -> None:
    """Refuse attacks, and a measure of similarity, that need what is not there for the language of the data."""
    brought = {
        name
        for name, value in (("masked-lm", spec.mlm), ("encoder", spec.encoder), ("neighbours", neighbours))
        if value is not None
    }
    few = islice(cast("Iterable[Example | UnlabelledExample]", examples), _READ_FOR_SCRIPT)
    language = spec.data_options.language
    check_language(spec.attacks, (str(example.text) for example in few), language, brought)
    if spec.similarity and "encoder" not in brought and not is_english(language):
        raise ResourceMissing(
            f"The similarity of successes is measured by an English sentence encoder, and the data are in {language} "
            "(--language). Name one for that language with --encoder, or leave it out with --no-similarity."
        )


def _unsteady(folder: Path, resume: bool, classifier: Classifier, examples: ExampleSet | UnlabelledSet) -> int:
    """How many of a few texts the model does not answer alike twice; a resumed job has found that out before."""
    if resume and (folder / MANIFEST).exists():
        return int(read_manifest(folder).inputs["model"].get("unsteady", 0))
    few = islice(cast("Iterable[Example | UnlabelledExample]", examples), ASKED_TWICE)
    return unsteady_answers(innermost(classifier), [example.text.input for example in few])


def _class_index(classifier: Classifier, label: str | None) -> int | None:
    if label is None:
        return None
    if label not in classifier.labels:
        raise unknown_name("class of this model", label, classifier.labels)
    return classifier.labels.index(label)


WORKFLOW: Workflow[Any] = Workflow(AttackSpec, run, AttackResult)
