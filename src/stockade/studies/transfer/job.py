"""The work of the transfer study: train a pool, attack every source, let every target score what was found.

Each step looks at what is there already. A model is loaded for the attack on it and once more to score the texts of all
others; the importance of words is measured while it is in memory.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from stockade.core.errors import ModelError
from stockade.core.protocols import Classifier
from stockade.core.records import Record
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.datasets.examples import ExampleSet, prepare_texts
from stockade.experiment.pool import DataPool
from stockade.experiment.processes import add_all, worker_processes
from stockade.experiment.progress import Progress, Runtime, within
from stockade.experiment.store import ResultStore
from stockade.studies.frame import finished
from stockade.studies.records import successes
from stockade.studies.transfer.rates import Samples
from stockade.studies.transfer.spec import TransferSpec
from stockade.studies.transfer.word_importance import (
    IMPORTANCES,
    SUBSTITUTES,
    Importances,
    SubstituteDrops,
    can_be_measured,
    importance_part,
    measure_importances,
    measure_substitutes,
    substitute_part,
    unknown_word,
)
from stockade.studies.transferability.cross_scoring import (
    CLEAN,
    LabelledText,
    TextScorer,
    cell,
    is_second,
    predict,
    read_predictions,
    second,
    store_predictions,
)
from stockade.studies.transferability.roster import Roster, mark, marking
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.run import attack_examples

RUNS, POOL = "runs", "models"
"""Folders inside the study's: the attacks on each source, and a pool that has no other place."""
GIVEN = "--map-text"
"""How the name of a text begins that is not in the data."""
WORDS = "words"
"""The part of the store that says which texts' words are measured: a sample, and those of the maps."""
_MAP_WORDS = range(6, 26)

AllSamples = Mapping[str, Samples]
"""The adversarial texts that targets are given, by attack and source."""
AtOnce = Callable[[Sequence[str], str, AllSamples, Sequence[str]], None]
"""Does a part of the work for the models that are named, with the samples and maps that it needs."""


def wanted_cells(name: str, samples: AllSamples) -> list[str]:
    """What a model, or the second training of one, is to score: the originals, and the texts of all other sources."""
    return [
        CLEAN,
        *(
            cell(attack, source)
            for attack, by_source in samples.items()
            for source, records in by_source.items()
            if records and (name == second(source) if is_second(name) else name != source)
        ),
    ]


def missing_cells(store: ResultStore, name: str, samples: AllSamples, *, retry: bool = True) -> list[str]:
    """What a model has not scored yet.

    Parameters
    ----------
    store, name
        Where it would be, and which model.
    samples
        What there is to score.
    retry
        Whether texts that it had no answer for are to be asked again.
    """
    predictions = read_predictions(store, name)
    return [
        wanted
        for wanted in wanted_cells(name, samples)
        if wanted not in predictions or (retry and predictions[wanted].reason)
    ]


def sample_successes(run: AttackResult, attack: str, count: int, seed: int) -> list[Record]:
    """A seeded sample of the texts that fool a source, in the order of the data.

    A text has the same chance with every source, and the same luck: sources that are fooled on the same texts share as
    much of their samples as they can, which makes comparisons of sources sharper.

    Parameters
    ----------
    run
        The attacks on the source.
    attack
        Which of them.
    count
        How many texts.
    seed
        Which sample.
    """
    fooled = successes({record.id: record for record in run.records(attack)})
    chosen = sorted(fooled, key=lambda record: derive_seed(seed, "transfer", record.id))[:count]
    ids = {record.id for record in chosen}
    return [record for record in fooled if record.id in ids]


def sample_all(runs: Mapping[str, AttackResult], spec: TransferSpec) -> dict[str, dict[str, list[Record]]]:
    """The samples of all sources whose attacks have ended."""
    ended = {name: run for name, run in runs.items() if run.complete}
    return {
        attack.key: {name: sample_successes(run, attack.key, spec.sampled, spec.seed) for name, run in ended.items()}
        for attack in spec.attacks
    }


class TransferJob:
    """One session of a study's work.

    Parameters
    ----------
    spec
        What decides the study.
    store, folder
        Its results, and where the attacks on each source are.
    data
        Its texts.
    runtime
        How it is run.
    """

    def __init__(self, spec: TransferSpec, store: ResultStore, folder: Path, data: DataPool, runtime: Runtime) -> None:
        self._spec, self._store, self._folder, self._runtime = spec, store, folder, runtime
        self._data = data
        self._texts = {row.id: row.text for row in prepare_texts(data.source(), limit=spec.size, seed=spec.seed)}

    def run(self) -> dict[str, AttackResult]:
        """Do what is left to do, and return the attacks on each source.

        With several workers, each attacks a source or scores with a target at a time; what they could not do is tried
        once more here, and marked.
        """
        models, seconds = self._trained()
        named = {**models, **{second(name): model for name, model in seconds.items()}}
        roster = self.roster(named)
        names = [name for model in models for name in (model, second(model)) if name in named]
        with self._workers(named) as at_once:
            to_attack = [name for name in models if finished(AttackResult, self._folder / RUNS / name) is None]
            at_once(to_attack, "attacking", {}, ())
            runs = {name: run for name in models if (run := self.attack(roster, name)) is not None}
            samples = sample_all(runs, self._spec)
            maps = self._choose_maps(runs)
            at_once([name for name in names if self._unscored(name, samples, maps)], "scoring", samples, maps)
        for name in names:
            self.score(roster, name, samples, maps)
        return runs

    def roster(self, models: Mapping[str, object]) -> Roster:
        """The models of the study, loaded as it says."""
        spec = self._spec
        return Roster(models, self._data, spec.model_options, spec.language, spec.seed)

    @contextmanager
    def _workers(self, models: Mapping[str, object]) -> Iterator[AtOnce]:
        """Does a part of the work for several models at the same time; nothing where there is one worker, this one."""
        if self._runtime.workers == 1:
            yield lambda names, part, samples, maps: None
            return
        from stockade.studies.transfer.workers import Work, work_at_once

        def at_once(names: Sequence[str], part: str, samples: AllSamples, maps: Sequence[str]) -> None:
            runtime = dataclasses.replace(self._runtime, workers=1, observer=None)
            work = Work(self._spec, self._folder, runtime, models, samples, tuple(maps))
            for done, additions in enumerate(work_at_once(processes, work, part, names), 1):
                add_all(self._store, additions)
                self._report(part, done, len(names), "models")

        with worker_processes(self._runtime.workers) as processes:
            yield at_once

    def _trained(self) -> tuple[dict[str, object], dict[str, object]]:
        """The models and their second trainings: those that were named, and those of the pool."""
        spec = self._spec
        models, seconds = dict(spec.models), dict(spec.second)
        if spec.pool is None:
            return models, seconds
        from stockade.workflows.train.pool import PoolSources, train_pool

        members = train_pool(
            spec.pool_members,
            spec.train_data,
            spec.pool_folder or self._folder / POOL,
            sources=PoolSources(vectors=spec.vectors, checkpoints=spec.checkpoints),
            data_options=spec.data_options,
            observer=self._runtime.observer,
            workers=None if self._runtime.workers == 1 else self._runtime.workers,
        )
        for member in members:
            name = member.name if member.seed == 0 else second(member.name)
            mark(self._store, name, "training", member.problem)
            if member.problem is None and member.seed == 0:
                models[member.name] = str(member.folder)
            elif member.problem is None:
                seconds.setdefault(member.name, str(member.folder))
        return models, {name: model for name, model in seconds.items() if name in models}

    def attack(self, roster: Roster, name: str) -> AttackResult | None:
        """The attacks on one source; None if they could not be run."""
        folder = self._folder / RUNS / name
        result = finished(AttackResult, folder)
        if result is None:
            with marking(self._store, name, "attack"):
                classifier, examples = roster.load(name, self._store)
                runtime = dataclasses.replace(self._runtime, observer=within(name, self._runtime.observer))
                job = self._spec.attack(roster.reference(name))
                result = attack_examples(job, folder, runtime, True, classifier, examples)
                problem = result.problem()
                if problem is not None:
                    raise ModelError(problem)
        return result

    def score(self, roster: Roster, name: str, samples: AllSamples, maps: Sequence[str]) -> None:
        """Let one model score what it has not scored yet, and measure what words are worth to it."""
        unscored = self._unscored(name, samples, maps)
        if unscored is None:
            return
        cells, words, substitutes = unscored
        with marking(self._store, name, "scoring"):
            classifier, examples = roster.load(name, self._store)
            scorer = TextScorer(classifier, self._runtime, self._spec.language, self._spec.seed)
            labels = {example.id: example.label for example in examples}
            for done, wanted in enumerate(cells, 1):
                predictions = predict(scorer, self._labelled(wanted, samples, labels), wanted)
                store_predictions(self._store, name, wanted, predictions, scorer.effort)
                self._report(f"{name}: scoring", done, len(cells), "sources")
            self._measure_words(name, words, substitutes, classifier, scorer, examples)

    def _unscored(
        self, name: str, samples: AllSamples, maps: Sequence[str]
    ) -> tuple[list[str], list[str], list[str]] | None:
        """What a model has not scored yet: cells, texts whose words and texts whose substitutes are to be measured."""
        cells = missing_cells(self._store, name, samples)
        words, substitutes = ([], []) if is_second(name) else self._missing_words(name, maps)
        return (cells, words, substitutes) if cells or words or substitutes else None

    def _labelled(self, wanted: str, samples: AllSamples, labels: Mapping[str, int]) -> Iterator[LabelledText]:
        """The originals, or the adversarial texts of a source, with their true classes."""
        if wanted == CLEAN:
            yield from (LabelledText(id, text, labels[id]) for id, text in self._texts.items())
            return
        records = {cell(attack, source): sample for attack, by in samples.items() for source, sample in by.items()}
        for record in records[wanted]:
            yield LabelledText(record.id, Text.of(record.adversarial_input or ""), labels[record.id])

    def _missing_words(self, name: str, maps: Sequence[str]) -> tuple[list[str], list[str]]:
        """The texts whose words, and the map texts whose substitutes, are not measured for a model yet."""
        measured, replaced = self._store.ids(importance_part(name)), self._store.ids(substitute_part(name))
        texts = dict.fromkeys((*self._importance_sample(), *maps))
        return [id for id in texts if id not in measured], [id for id in maps if id not in replaced]

    def _importance_sample(self) -> list[str]:
        usable = [id for id, text in self._texts.items() if can_be_measured(text)]
        return sorted(usable, key=lambda id: derive_seed(self._spec.seed, "importance", id))[: self._spec.importance]

    def _measure_words(
        self,
        name: str,
        words: Sequence[str],
        substitutes: Sequence[str],
        classifier: Classifier,
        scorer: TextScorer,
        examples: ExampleSet,
    ) -> None:
        """Measure importances and substitutes; a text that the model has no answer for is stored without numbers."""
        labelled = self._word_texts(examples)
        texts = [labelled[id] for id in words]
        measured = {entry.id: entry for entry in measure_importances(scorer, texts, unknown_word(classifier))}
        for item in texts:
            entry = measured.get(item.id, Importances(item.id, False, (None,) * len(item.text)))
            self._store.add(importance_part(name), item.id, IMPORTANCES.encode(entry))
        replaced = {entry.id: entry for entry in measure_substitutes(scorer, [labelled[id] for id in substitutes])}
        for id in substitutes:
            document = SUBSTITUTES.encode(replaced.get(id, SubstituteDrops(id, {})))
            self._store.add(substitute_part(name), id, document)

    def _word_texts(self, examples: ExampleSet) -> dict[str, LabelledText]:
        """The texts whose words may be measured: those of the data, and the user's own under every class."""
        texts = {example.id: LabelledText(example.id, example.text, example.label) for example in examples}
        if self._spec.map_text is not None:
            for label, index in examples.classes.items():
                id = given_id(self._spec.map_text, label)
                texts[id] = LabelledText(id, Text.parse(self._spec.map_text), index)
        return texts

    def _choose_maps(self, runs: Mapping[str, AttackResult]) -> tuple[str, ...]:
        """The texts of the maps, by id, chosen once: those that the first attack fools most sources on, and of these
        the ones with the fewest changed words.

        A text that the user names is measured for every class, if the data do not say which it has.
        """
        spec, stored = self._spec, self._store.get(WORDS, WORDS) or {}
        chosen: list[str] = list(stored.get("chosen", ()))
        if len(chosen) < spec.maps:
            fooled, edits = Counter[str](), Counter[str]()
            for run in runs.values():
                for record in run.records(spec.attacks[0].key, "success"):
                    fooled[record.id] += 1
                    edits[record.id] += len(record.edits)
            usable = [
                id for id in self._texts if fooled[id] and len(self._texts[id]) in _MAP_WORDS and id not in chosen
            ]
            usable.sort(key=lambda id: (-fooled[id], edits[id]))
            chosen += usable[: spec.maps - len(chosen)]
        named: list[str] = []
        if spec.map_text is not None:
            same = [id for id, text in self._texts.items() if str(text) == spec.map_text]
            classes = dict.fromkeys(row.label for row in self._data.source().rows())
            named = same[:1] or [given_id(spec.map_text, label) for label in classes]
        sample = self._importance_sample()
        self._store.add(WORDS, WORDS, {"sample": sample, "chosen": chosen, "named": named, "text": spec.map_text})
        return (*chosen[: spec.maps], *named)

    def _report(self, part: str, done: int, total: int, unit: str) -> None:
        if self._runtime.observer is not None:
            self._runtime.observer(Progress(part=part, done=done, total=total, unit=unit))


def given_id(text: str, label: object) -> str:
    """The name of a text that is not in the data, taken to be of a class."""
    return f"{GIVEN} {derive_seed(text):x}={label}"
