"""What options are worth: the defended model under attack, in several views, and on pre-made adversarial texts.

Every trial has the same texts. Pre-made ones are cheap: each is asked about once.

A search that follows single draws of a randomised defense follows noise, and what it finds by luck does not hold when
the model is asked again. Options that only add noise would win by that. So a text survives only if it survives every
attack in every view, and where the model is undecided about what was found the attack is tried again with more answers
averaged.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from stockade.attacks.registry import NamedAttack
from stockade.attacks.trial import CONFIRMATION
from stockade.certificates.medians import median_bound
from stockade.core.errors import RunError, StockadeError
from stockade.core.protocols import Classifier
from stockade.core.records import Record
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.defenses.chain import wrap
from stockade.defenses.defended import HasResources
from stockade.experiment.inputs import describe_data, describe_model, reference_of
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.progress import Runtime
from stockade.experiment.store import ResultStore
from stockade.workflows.attack.result import CODEC
from stockade.workflows.attack.searches import run_searches
from stockade.workflows.attack.spec import AttackSpec
from stockade.workflows.attack.summary import mostly_untried
from stockade.workflows.evaluate.answers import Predictions, predictions_of
from stockade.workflows.evaluate.inputs import PremadePool
from stockade.workflows.evaluate.views import DIRECT, EOT, SOURCE, TRANSFER, Averaged, surrogate_of, views_of
from stockade.workflows.tune.certified import certified_radii, method_of
from stockade.workflows.tune.ranges import Value
from stockade.workflows.tune.spec import TuneSpec
from stockade.workflows.tune.training import describe_training, train_trial
from stockade.workflows.tune.trials import Trial

_CHEAP_FIRST = (SOURCE, TRANSFER, DIRECT, EOT)
_RETRIES = 3


@dataclass(frozen=True)
class Objective:
    """Rates options; sent to other processes as it is, which load the model and the texts themselves.

    Parameters
    ----------
    spec
        Model, texts, attacks, and the defense whose options are tried.
    runtime
        How fast the attacks are; never what they find.
    folder
        Of the search: where trials of a defense that acts in training train their models.
    """

    spec: TuneSpec
    runtime: Runtime = field(default_factory=Runtime)
    folder: Path | None = None

    @cached_property
    def bare(self) -> Classifier:
        """The model without any defense."""
        return ModelPool({"": self.spec.model}, self.spec.model_options).bare("")

    @cached_property
    def examples(self) -> ExampleSet:
        """The texts, the same for every trial."""
        spec = self.spec
        return DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed).examples(self.bare.labels)

    @cached_property
    def premade(self) -> dict[str, ExampleSet]:
        """The pre-made sets, the same for every trial."""
        options = self.spec.data_options
        return {
            name: prepare_examples(PremadePool(data, options).source(), self.bare.labels, label_map=options.label_map)
            for name, data in self.spec.premade.items()
        }

    def unloaded(self) -> Objective:
        """The same without the model and the texts, light enough for another process."""
        return replace(self, runtime=replace(self.runtime, observer=None))

    def described(self) -> dict[str, Any]:
        """What the manifest records of the model, the texts and the files behind attacks and defenses.

        What no trial could do without is an error here: the model, the texts, what the defense needs of the model.
        """
        spec = self.spec
        data = describe_data(spec.data, self.examples)
        spec.language.check()
        files: dict[str, set[str]] = {}
        randomised = False
        for named in spec.extremes():
            defended = wrap(self.bare, [named], seed=spec.seed)
            randomised |= not defended.deterministic
            if spec.objective == "mcb":
                method_of(spec, defended).method.check(defended)
            if isinstance(named.defense, HasResources):
                for purpose, fingerprint in named.defense.resources().items():
                    files.setdefault(purpose, set()).add(fingerprint)
        return {
            "model": describe_model(spec.model, self.bare),
            "data": data,
            "attack_files": {attack.key: dict(attack.resources) for attack in spec.attacks},
            "defense_files": {purpose: sorted(prints) for purpose, prints in sorted(files.items())},
            **({"confirmation": CONFIRMATION} if randomised else {}),
            **({"premade": self._described_premade()} if spec.premade else {}),
            **({"train_data": describe_training(spec, self.bare.labels)} if spec.train_data is not None else {}),
        }

    def _described_premade(self) -> dict[str, Any]:
        return {
            name: {"reference": reference_of(data), "fingerprint": examples.fingerprint, "size": examples.size}
            for (name, examples), data in zip(self.premade.items(), self.spec.premade.values(), strict=True)
        }

    def rate(self, number: int, options: Mapping[str, Value]) -> Trial:
        """The trial of these options; options that do not fit together are a trial with an error."""
        started = time.monotonic()
        try:
            trial = self._rated(number, options)
        except StockadeError as error:
            if isinstance(error, RunError) and self.spec.train_data is not None:
                raise  # the folder of its training, a full disk say: the trial is to be made again, not judged
            trial = Trial(number, options, error=str(error))
        return replace(trial, seconds=round(time.monotonic() - started, 3))

    def _rated(self, number: int, options: Mapping[str, Value]) -> Trial:
        model = self.defended(number, options)
        if self.spec.objective == "mcb":
            return self._certified(number, options, model)
        attacked = self._attacked(number, options, model) if self.spec.attacks else self._clean(number, options, model)
        if attacked.error is not None or attacked.clean is None:
            return attacked
        premade = self._premade_accuracy(model)
        objective = self.spec.goal.value(attacked.clean, attacked.robust, premade)
        return replace(attacked, premade=premade, objective=objective)

    def defended(self, number: int, options: Mapping[str, Value]) -> Classifier:
        """The model of a trial: trained with the defense, if that is wanted, and inside it, if it acts when asked."""
        spec, named = self.spec, self.spec.defense.with_options(options)
        bare = self.bare
        if spec.train_data is not None:
            assert self.folder is not None
            bare = train_trial(spec, named, self.folder, number, self.runtime.observer)
        return wrap(bare, [named], seed=spec.seed, language=spec.language)

    def _attacked(self, number: int, options: Mapping[str, Value], model: Classifier) -> Trial:
        source = None if self.spec.train_data is None else self.bare
        records = Attacker(self.spec, self.examples, self.runtime, source).records(model)
        statuses = Counter(record.status for record in records)
        robust, attacked = statuses["failed"], statuses["failed"] + statuses["success"]
        n = attacked + statuses["skipped"]
        if not n:
            return Trial(number, options, error=next((record.reason for record in records), "the data has no texts"))
        if mostly_untried(sum(record.untried for record in records), attacked):
            return Trial(number, options, error="the attacks had nothing to try on most texts, so nothing is known")
        flipped = sum(bool(record.first_flip) for record in records if record.status in ("success", "failed"))
        by_first_flip = None if model.deterministic else (attacked - flipped) / n
        return Trial(number, options, n, attacked / n, robust / n, first_flip_robust=by_first_flip)

    def _clean(self, number: int, options: Mapping[str, Value], model: Classifier) -> Trial:
        right, n = self._predictions(model, self.examples).correct()
        if not n:
            return Trial(number, options, error="the model has no usable answer to any text")
        return Trial(number, options, n, right / n)

    def _certified(self, number: int, options: Mapping[str, Value], model: Classifier) -> Trial:
        asked = self._clean(number, options, model)
        if asked.clean is None:
            return asked
        radius = median_bound(certified_radii(self.spec, model, self.examples, self.runtime))
        return replace(asked, median_radius=radius, objective=self.spec.goal.certified(asked.clean, radius))

    def _premade_accuracy(self, model: Classifier) -> float | None:
        """The mean over the sets of the share that the model gets right; a set without an answer is none of it."""
        counts = [self._predictions(model, examples).correct() for examples in self.premade.values()]
        return fmean(right / n if n else 0.0 for right, n in counts) if counts else None

    def _predictions(self, model: Classifier, examples: ExampleSet) -> Predictions:
        return predictions_of(model, examples, self.spec.language, self.spec.seed, self.runtime.batch_tokens)


@dataclass(frozen=True, slots=True)
class Attacker:
    """All attacks on the same texts, whatever stands around the model.

    Parameters
    ----------
    spec
        The attacks and their limits.
    examples
        The texts.
    runtime
        How fast the attacks are.
    source
        The model before it was trained with the defense: what fools it is tried first.
    """

    spec: TuneSpec
    examples: ExampleSet
    runtime: Runtime
    source: Classifier | None = None

    def records(self, model: Classifier) -> list[Record]:
        """What became of each text: a success if any attack has one in any view.

        The first view's answer says whether the model is right on the clean text. A text is tried again if something
        that was found for it fools the model now and then.
        """
        records: dict[str, Record] = {}
        for attack in self.spec.attacks:
            self._attack(model, attack, records)
        return list(records.values())

    def _attack(self, model: Classifier, attack: NamedAttack, records: dict[str, Record]) -> None:
        """One attack in all views, each on the texts that are left."""
        undecided: set[str] = set()
        for queried in self._views(model).values():
            new = self._attacked(model, attack, _left(self.examples, records), queried)
            _merge(records, new)
            undecided |= {record.id for record in new if record.hit_rate}
        if self.spec.eot_samples > 1:
            for draws in averaged_in_retries(self.spec.eot_samples):
                mean = Averaged(surrogate_of(model) or model, draws, self.spec.language)
                _merge(records, self._attacked(model, attack, _left(self.examples, records, undecided), mean))

    def _views(self, model: Classifier) -> dict[str, Classifier | None]:
        """What searches query in each view: the surrogate of the defense in place of itself, where it has one."""
        surrogate = surrogate_of(model)
        queried = views_of(surrogate or model, self.spec.eot_samples, self.spec.language, self.source)
        return {view: surrogate if queried[view] is None else queried[view] for view in _CHEAP_FIRST if view in queried}

    def _attacked(
        self, model: Classifier, attack: NamedAttack, examples: ExampleSet, queried: Classifier | None
    ) -> list[Record]:
        if not examples.size:
            return []
        spec = self.spec
        job = AttackSpec.of(
            model=spec.model,
            data=spec.data,
            attacks=(attack,),
            seed=spec.seed,
            budget=spec.budget,
            similarity=False,
            max_words=spec.max_words,
            mlm=spec.mlm,
            encoder=spec.encoder,
        )
        runtime = Runtime(concurrency=self.runtime.concurrency, batch_tokens=self.runtime.batch_tokens)
        with tempfile.TemporaryDirectory(prefix="stockade-tune-") as folder:
            store = ResultStore(Path(folder), writable=True)
            try:
                run_searches(store, model, examples, job, runtime, queried=queried)
                return [CODEC.read(document) for document in store.documents()]
            finally:
                store.close()


def averaged_in_retries(eot_samples: int) -> list[int]:
    """How many answers each retry averages: always twice as many as the one before."""
    return [eot_samples * 2**retry for retry in range(1, _RETRIES + 1)]


def _merge(records: dict[str, Record], new: Iterable[Record]) -> None:
    """A success outdoes everything. An error outdoes a text that held out: who knows what it hides. So does a search
    outdo one that had nothing to try.
    """
    for record in new:
        before = records.get(record.id)
        if (
            before is None
            or record.status == "success"
            or (record.status, before.status) == ("error", "failed")
            or (before.untried and not record.untried)
        ):
            records[record.id] = record
        if before is not None and (before.first_flip or record.first_flip):  # whichever view saw it
            records[record.id] = replace(records[record.id], first_flip=True)


def _left(examples: ExampleSet, records: Mapping[str, Record], among: Container[str] | None = None) -> ExampleSet:
    """The examples that nothing has fooled so far, all or those `among` them."""
    if not records:
        return examples
    left = [
        record
        for record in records.values()
        if record.status in ("failed", "error") and (among is None or record.id in among)
    ]
    return replace(
        examples,
        ids=tuple(record.id for record in left),
        size=len(left),
        label_counts=Counter(record.label for record in left),
    )
