"""Mine rules: count where each could be applied, then score them chunk by chunk; or count words.

UAWR (universal adversarial word replacement): "Generating universal language adversarial examples by understanding and
enhancing the transferability across neural models" (ICLR 2021 submission, Figure 2). Differences to the paper: rules
with fewer than `min_count` places are not scored, and of the places of a rule at most `max_count` are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stockade.core.example import Example
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet, by_own_classes
from stockade.experiment.inputs import describe_data, describe_model, fingerprint_of
from stockade.experiment.pool import DataPool, ModelPool, asking
from stockade.experiment.progress import Progress, Runtime
from stockade.experiment.result import Workflow
from stockade.experiment.store import ResultStore
from stockade.experiment.workspace import begin
from stockade.lexicon.association import pmi_rules
from stockade.workflows.mine.occurrences import ScoringPlan, plan_scoring
from stockade.workflows.mine.result import CHUNKS, MinedRule, MineResult, store_rules
from stockade.workflows.mine.scoring import (
    CHUNK_CODEC,
    ChunkScorer,
    ChunkSums,
    Member,
    chunked,
    ensemble_members,
)
from stockade.workflows.mine.spec import MineSpec

_TOLERANCE = 1e-3


def run(spec: MineSpec, folder: Path, runtime: Runtime, resume: bool) -> MineResult:
    """Load what the method needs, then mine."""
    data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed)
    if spec.method != "uawr":
        label_map = spec.data_options.label_map
        own = by_own_classes(data.source(), limit=spec.limit, seed=spec.seed, label_map=label_map)
        return mine_examples(spec, folder, runtime, resume, {}, own)
    spec.language.check()
    pool = ModelPool(spec.models, spec.model_options, language=spec.language, held=None)
    models = {name: pool.defended(name, seed=spec.seed) for name in pool.names}
    for model in models.values():
        data.check_answers(model)
    return mine_examples(spec, folder, runtime, resume, models, data.examples(next(iter(models.values())).labels))


def mine_examples(
    spec: MineSpec,
    folder: Path,
    runtime: Runtime,
    resume: bool,
    models: Mapping[str, Classifier],
    examples: ExampleSet,
) -> MineResult:
    """Mine rules from texts and with models that are loaded already.

    Parameters
    ----------
    spec
        What decides the results; its models and data are those that were loaded.
    folder, runtime, resume
        Where and how the job is run.
    models
        The models by name; none for rules by word counts.
    examples
        The texts, with the classes of the first model.
    """
    members = ensemble_members(models) if models else ()
    inputs = {
        "models": {name: describe_model(spec.models[name], model) for name, model in models.items()},
        "members": [_described(member) for member in members],
        "labels": list(examples.labels),
        "label_map": {str(label): examples.labels[number] for label, number in examples.classes.items()},
        "data": describe_data(spec.data, examples),
    }
    with begin(folder, spec, inputs, resume=resume) as workspace:
        result = MineResult.of(workspace)
        try:
            if not result.complete:
                if members:
                    score_rules(workspace.store, members, examples, spec, runtime)
                else:
                    _count_words(workspace.store, examples, spec)
                if result.complete:
                    result.write_rules()
        finally:
            result.write_summary()
    return result


def score_rules(
    store: ResultStore, members: tuple[Member, ...], examples: ExampleSet, spec: MineSpec, runtime: Runtime
) -> None:
    """Score every chunk that the store has no sums of yet; when all are there, add them up.

    Parameters
    ----------
    store
        Where sums and rules are kept.
    members
        The models of the ensemble.
    examples
        The texts.
    spec
        What decides the rules.
    runtime
        The size of batches, who watches, and a time limit after which no chunk is begun.
    """
    plan = _plan(spec, examples)
    total = sum(_scored(candidate.occurrences, spec.max_count) for candidate in plan.candidates)
    scorer = ChunkScorer(members, spec.score, batch_tokens=runtime.batch_tokens, language=spec.language, seed=spec.seed)
    finished, started = store.ids(CHUNKS), time.monotonic()
    done = before = 0
    for number, chunk in enumerate(chunked(plan.occurrences(_readable(examples, spec)))):
        done += len(chunk)
        if _name(number) in finished:
            before += len(chunk)
            continue
        if runtime.seconds is not None and time.monotonic() - started > runtime.seconds:
            return
        sums = scorer.score(chunk)
        store.add(CHUNKS, _name(number), CHUNK_CODEC.encode(sums), position=number, effort=scorer.effort)
        if runtime.observer is not None:
            share = before / total if total else 0.0
            runtime.observer(Progress(part="mining", done=done, total=total, unit="replacements", before=share))
    columns = len(members) if spec.score == "logits" else 1
    _add_up(store, plan, examples, columns, members)


def _add_up(
    store: ResultStore, plan: ScoringPlan, examples: ExampleSet, columns: int, members: tuple[Member, ...]
) -> None:
    """Add the sums of all chunks in their order, which is the same after any interruption."""
    counts = np.zeros(len(plan.candidates), dtype=np.int64)
    sums = np.zeros((len(plan.candidates), columns))
    failed, reason = 0, None
    for chunk in map(CHUNK_CODEC.read, store.documents(CHUNKS)):
        counts[chunk.rules] += chunk.counts
        sums[chunk.rules] += chunk.sums
        failed, reason = failed + chunk.failed, reason or chunk.reason
    means = sums / np.maximum(counts, 1)[:, None]
    rules = [
        MinedRule(
            label=examples.labels[candidate.label],
            word=candidate.word,
            replacement=candidate.replacement,
            count=count,
            occurrences=candidate.occurrences,
            saliences=tuple(mean),
        )
        for candidate, count, mean in zip(plan.candidates, counts.tolist(), means.tolist(), strict=True)
        if count
    ]
    facts = {
        "occurrences": sum(candidate.occurrences for candidate in plan.candidates),
        "scored": int(counts.sum()),
        "failed": failed,
        "reason": reason,
        "warnings": list(_warnings(members, failed, reason)),
    }
    store_rules(store, rules, facts)


def _warnings(members: tuple[Member, ...], failed: int, reason: str | None) -> Iterator[str]:
    if failed:
        yield f"{failed:,} replacements could not be scored and are left out; the first: {reason}"
    without = [member.name for member in members if not member.has_logits]
    if without:
        yield (
            f"{', '.join(without)}: shows no logits, so the logarithms of its probabilities take their place. With two "
            "classes that gives the same rules."
        )
    randomised = [member.name for member in members if not member.classifier.deterministic]
    if randomised:
        yield f"{', '.join(randomised)}: answers at random, so that other seeds give other saliences."


def _count_words(store: ResultStore, examples: ExampleSet, spec: MineSpec) -> None:
    assert spec.method != "uawr"
    labelled = ((examples.labels[example.label], example.text) for example in _readable(examples, spec))
    ruleset = pmi_rules(labelled, method=spec.method, min_count=spec.min_count)
    rules = [
        MinedRule(rule.label, rule.word, rule.replacement, rule.count or 0, rule.count or 0, (rule.salience,))
        for rule in ruleset.rules
    ]
    facts = {
        "provenance": {name: ruleset.provenance[name] for name in ("smoothing", "tokens") if name in ruleset.provenance}
    }
    store_rules(store, rules, facts)


def score_again(result: MineResult, models: object = None) -> tuple[int, list[str]]:
    """Score the first and the last chunk of a job again; how many replacements that were, and what differs.

    Parameters
    ----------
    result
        The job.
    models
        The models by name, if they are not where the job found them.
    """
    spec: MineSpec = result.spec if models is None else result.spec.changed({"models": models})
    if spec.method != "uawr" or not result.complete:
        return 0, []
    pool = ModelPool(spec.models, spec.model_options, language=spec.language, held=None)
    loaded = {name: pool.defended(name, seed=spec.seed) for name in pool.names}
    problems = [
        f"the model {name} is not the one that the rules were mined with: its fingerprint differs"
        for name, model in loaded.items()
        if fingerprint_of(model) != result.manifest.inputs["models"][name]["fingerprint"]
    ]
    data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed)
    data.hold_to(result.manifest.inputs["data"]["fingerprint"])
    examples = data.examples(result.labels)
    plan = _plan(spec, examples)
    scorer = ChunkScorer(ensemble_members(loaded), spec.score, language=spec.language, seed=spec.seed)
    chunks = len(result.store.ids(CHUNKS))
    chosen, checked = {0, chunks - 1}, 0
    for number, chunk in enumerate(chunked(plan.occurrences(_readable(examples, spec)))):
        if number not in chosen:
            continue
        stored = CHUNK_CODEC.read(result.store.get(CHUNKS, _name(number)) or {})
        checked += len(chunk)
        with asking():
            again = scorer.score(chunk)
        if not _are_alike(stored, again):
            problems.append(f"chunk {number}: the sums differ from those that the models give now")
    return checked, problems


def _are_alike(stored: ChunkSums, again: ChunkSums) -> bool:
    same_rules = np.array_equal(stored.rules, again.rules) and np.array_equal(stored.counts, again.counts)
    return same_rules and np.allclose(stored.sums, again.sums, atol=_TOLERANCE * max(1, stored.counts.max(initial=1)))


def _plan(spec: MineSpec, examples: ExampleSet) -> ScoringPlan:
    return plan_scoring(_readable(examples, spec), min_count=spec.min_count, max_count=spec.max_count, seed=spec.seed)


def _readable(examples: Iterable[Example], spec: MineSpec) -> Iterator[Example]:
    """The texts that are not too long."""
    return (example for example in examples if len(example.text) <= spec.max_words)


def _scored(occurrences: int, max_count: int | None) -> int:
    return occurrences if max_count is None else min(occurrences, max_count)


def _described(member: Member) -> dict[str, Any]:
    return {
        "name": member.name,
        "fingerprint": fingerprint_of(member.classifier),
        "scores": "logits" if member.has_logits else "log-probabilities",
        "share": member.share,
        "temperature": member.temperature,
    }


def _name(chunk: int) -> str:
    return f"{chunk:06d}"


WORKFLOW: Workflow[MineSpec] = Workflow(MineSpec, run, MineResult, reopens=True)
