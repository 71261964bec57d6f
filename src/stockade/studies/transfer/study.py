"""The transfer study: every model attacked, every adversarial text given to every other model.

A folder inside the study's holds the attacks on each source (`runs/SOURCE`), like any other run. What targets say is in
the study's store, a row for each source and target, so that a killed job goes on, and a model that is added later costs
only its own rows (`studies/transfer/job.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from stockade.core.statistics import below_chance, wilson
from stockade.core.text import Text
from stockade.datasets.examples import prepare_texts
from stockade.experiment.inputs import describe_data
from stockade.experiment.pool import DataPool
from stockade.experiment.progress import Runtime
from stockade.experiment.result import Verification, Workflow
from stockade.experiment.workspace import MANIFEST, read_manifest
from stockade.report.document import Document
from stockade.report.numbers import Interval
from stockade.studies.claims import Claim
from stockade.studies.frame import StudyResult, StudySpec, begin_study
from stockade.studies.records import read_results, warn_of_few
from stockade.studies.transfer.analysis import AttackTransfer, ModelNumbers, TransferNumbers, analyse_attack
from stockade.studies.transfer.claims import check_claims
from stockade.studies.transfer.importance_maps import Spread, WordMap, analyse_spread, make_map
from stockade.studies.transfer.job import RUNS, WORDS, AllSamples, TransferJob, missing_cells, sample_all
from stockade.studies.transfer.rates import Outcomes, Resampled
from stockade.studies.transfer.spec import TransferSpec
from stockade.studies.transfer.statistics import CHARACTER, in_family_order
from stockade.studies.transfer.word_importance import Importances, read_importances, read_substitutes
from stockade.studies.transfer.workers import check_references
from stockade.studies.transferability.cross_scoring import (
    CLEAN,
    Predictions,
    cell,
    read_predictions,
    scores_part,
    second,
)
from stockade.studies.transferability.matrix import BERT_FAMILY, traits_of
from stockade.studies.transferability.roster import Roster, recorded_failures, recorded_models, with_recorded
from stockade.workflows.attack.result import AttackResult

MATRIX = "matrix"
"""How the names of the files with the rates begin."""


class TransferResult(StudyResult[TransferNumbers]):
    """The transfer study: `numbers`, `claims`, and `runs` with the attacks on each source."""

    kind: ClassVar[str] = TransferSpec.kind
    spec_type: ClassVar[type[StudySpec]] = TransferSpec

    def open_runs(self) -> Mapping[str, AttackResult]:
        folders = {name: self.folder / RUNS / name for name in self.spec.names}
        return {name: AttackResult.open(folder) for name, folder in folders.items() if (folder / MANIFEST).exists()}

    @cached_property
    def attack_runs(self) -> Mapping[str, AttackResult]:
        """The attacks on each source."""
        return {name: run for name, run in self.runs.items() if isinstance(run, AttackResult)}

    @cached_property
    def failures(self) -> Mapping[str, str]:
        """Why models, or their second trainings, could not be used to the end."""
        return recorded_failures(self.store)

    @cached_property
    def samples(self) -> AllSamples:
        """The adversarial texts that targets were given, by attack and source."""
        return sample_all(self.attack_runs, self.spec)

    @cached_property
    def predictions(self) -> Mapping[str, Mapping[str, Predictions]]:
        """What every model, and every second training, said of the originals and of each source's texts."""
        names = [name for model in self.spec.names for name in (model, second(model))]
        said = {name: read_predictions(self.store, name) for name in names}
        return {name: predictions for name, predictions in said.items() if predictions}

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The models that were attacked or asked, by family."""
        return in_family_order([n for n in self.spec.names if n in self.attack_runs or n in self.predictions])

    @cached_property
    def outcomes(self) -> Mapping[str, Outcomes]:
        """What every target said of every source's texts, by attack."""
        return {
            attack: Outcomes.of(self.models, attack, samples, self.predictions)
            for attack, samples in self.samples.items()
        }

    @cached_property
    def raw(self) -> Mapping[str, Resampled]:
        """The rates of each attack, with those of resampled texts."""
        return {attack: Resampled(outcomes, seed=self.spec.seed) for attack, outcomes in self.outcomes.items()}

    @cached_property
    def clean(self) -> Mapping[str, Resampled]:
        """The same on the texts that the target gets right before."""
        outcomes, seed = self.outcomes, self.spec.seed
        return {attack: Resampled(outcomes[attack], clean=True, seed=seed) for attack in outcomes}

    @cached_property
    def numbers(self) -> TransferNumbers:
        """Tables 1 to 4, Figure 3, asymmetry, the importance of words."""
        return TransferNumbers(
            texts=self.manifest.inputs["data"]["size"],
            models={name: self._model_numbers(name) for name in self.spec.names},
            attacks={attack: self._attack_numbers(attack) for attack in self.samples},
            spread=self._spread(),
            maps=tuple(self._maps()),
        )

    def _model_numbers(self, name: str) -> ModelNumbers:
        traits, effort = traits_of(name), self.store.effort(scores_part(name))
        return ModelNumbers(
            reference=self._recorded.get(name, {}).get("reference", ""),
            architecture=traits.architecture,
            input_class=traits.input_class,
            clean_accuracy=self._accuracy(name),
            second_accuracy=self._accuracy(second(name)),
            model_rows=effort.model_rows,
            model_seconds=round(effort.model_seconds, 3),
            failure=self.failures.get(name),
            second_failure=self.failures.get(second(name)),
        )

    def _accuracy(self, name: str) -> Interval:
        clean_predictions = self.predictions.get(name, {}).get(CLEAN)
        wrong = [] if clean_predictions is None else list(clean_predictions.wrong.values())
        return wilson(len(wrong) - sum(wrong), len(wrong))

    def _attack_numbers(self, attack: str) -> AttackTransfer:
        samples, runs = self.samples[attack], self.attack_runs
        records = {name: read_results(runs[name], [attack])[attack] for name in samples}
        return analyse_attack(self.outcomes[attack], self.raw[attack], self.clean[attack], records, samples)

    @cached_property
    def _recorded(self) -> Mapping[str, Mapping[str, Any]]:
        return recorded_models(self.store)

    @cached_property
    def _importances(self) -> Mapping[str, Mapping[str, Importances]]:
        return {name: read_importances(self.store, name) for name in self.models}

    def _spread(self) -> Spread | None:
        sample = (self.store.get(WORDS, WORDS) or {}).get("sample", ())[: self.spec.importance]
        measured = {
            name: [texts[id] for id in sample if id in texts] for name, texts in self._importances.items() if texts
        }
        return analyse_spread(measured, lambda name: traits_of(name).input_class, (BERT_FAMILY, CHARACTER))

    def _maps(self) -> Iterator[WordMap]:
        words, measured = self.store.get(WORDS, WORDS) or {}, self._importances.values()
        substitutes = {name: read_substitutes(self.store, name) for name in self.models}
        named = words.get("named", ()) if self.spec.map_text is not None else ()
        votes = {id: sum(texts[id].right for texts in measured if id in texts) for id in named}
        most_seen = [max(votes, key=lambda id: votes[id])] if votes else []
        for id in (*words.get("chosen", ())[: self.spec.maps], *most_seen):
            importances = {name: texts[id] for name, texts in self._importances.items() if id in texts}
            if importances:
                text, label = self._text_of(id)
                drops = {name: known[id] for name, known in substitutes.items() if id in known}
                yield make_map(id, label, Text.parse(text).words, importances, drops)

    def _text_of(self, id: str) -> tuple[str, str]:
        """A text and its class: as an attack recorded them, or as the user named it."""
        for run in self.attack_runs.values():
            for attack in run.attacks:
                document = run.store.get(attack, id)
                if document is not None:
                    return document["original"], document["label"]
        return self.spec.map_text or "", id.rpartition("=")[2]

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper finds, held against the numbers."""
        return check_claims(self.raw, self.clean, self.numbers)

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before believing the numbers."""
        warnings = [f"{name} could not be used to the end: {reason}" for name, reason in self.failures.items()]
        if self.failures:
            warnings.append("To try those again, name the models and data of the study once more, with --resume.")
        for name in self.models:
            warnings += self._doubts(name)
        return [*warnings, *warn_of_few(self.numbers.texts)]

    def _doubts(self, name: str) -> Iterator[str]:
        predictions, labels = self.predictions.get(name, {}), self._recorded.get(name, {}).get("labels", ())
        wrong = predictions[CLEAN].wrong if CLEAN in predictions else {}
        right = len(wrong) - sum(wrong.values())
        if wrong and labels and below_chance(right, len(wrong), len(labels)):
            yield (
                f"{name} is right on {right:,} of {len(wrong):,} texts, fewer than guessing would be: its classes may "
                "be in another order than those of the data. Say which is which with --label-map."
            )
        unanswered = sum(said.predicted.count(None) for said in predictions.values())
        if unanswered:
            yield f"{name} had no answer to {unanswered:,} texts, which are left out."
        for attack, samples in self.samples.items():
            if name in samples and not samples[name]:
                yield f"{attack} fooled {name} on no text: it is no source."

    @property
    def complete(self) -> bool:
        """Whether every model was attacked and has scored all texts, but for those that are marked with a reason."""
        names = [name for name in self.spec.names if name not in self.failures]
        seconds = dict.fromkeys((*self.spec.second, *self.spec.pool_members))
        if not all(name in self.attack_runs and self.attack_runs[name].complete for name in names):
            return False
        asked = [*names, *(second(name) for name in seconds if second(name) not in self.failures and name in names)]
        return not any(missing_cells(self.store, name, self.samples, retry=False) for name in asked)

    def problem(self) -> str | None:
        """The first failure, if no model could be used."""
        if self.predictions:
            return None
        return next((f"{name}: {reason}" for name, reason in self.failures.items()), None)

    def facts(self) -> Mapping[str, object]:
        """What the summary says besides the numbers."""
        return {name: getattr(self.spec, name) for name in ("pool", "attacked", "sampled")}

    def matrix_files(self) -> dict[Path, tuple[str, bool]]:
        """The files of the rates, each with its attack and whether only texts count that the target gets right."""
        names = {
            attack: f"{MATRIX}-{attack.replace('/', '-')}" if len(self.samples) > 1 else MATRIX
            for attack in self.samples
        }
        return {
            self.folder / f"{names[attack]}{'-clean' * clean}.csv": (attack, clean)
            for attack in self.samples
            for clean in (False, True)
        }

    def write_summary(self) -> None:
        """Write `summary.json`, the page, and the rates as csv files."""
        super().write_summary()
        for file, (attack, clean) in self.matrix_files().items():
            self.numbers.attacks[attack].matrix(clean=clean).write(file)

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Verify the attacks on every source, that every target was given the texts they found, and the summary.

        Parameters
        ----------
        model
            The models by name, if they are not where the study found them.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """
        verification = super().verify(model, trust=trust)
        sampled = {
            cell(attack, source): [record.id for record in records]
            for attack, samples in self.samples.items()
            for source, records in samples.items()
        }
        problems = [
            f"{name}: what it said of {texts} is not about the texts of that run"
            for name, said in self.predictions.items()
            for texts, answers in said.items()
            if texts != CLEAN and list(answers.ids) != sampled.get(texts)
        ]
        cells = sum(len(said) for said in self.predictions.values())
        return verification.with_problems(problems, checked=cells)

    def make_document(self) -> Document:
        """The page: the matrix, factors, classes, asymmetry, universal examples, words, claims."""
        from stockade.studies.transfer.page import transfer_document

        return transfer_document(self)


def run(spec: TransferSpec, folder: Path, runtime: Runtime, resume: bool) -> TransferResult:
    """Train, attack and score what is missing, then analyse."""
    if resume and (folder / MANIFEST).exists():
        recorded = read_manifest(folder).spec
        spec = spec.changed(
            {
                "models": with_recorded(spec.models, recorded.get("models", {}), "The model"),
                "second": with_recorded(spec.second, recorded.get("second", {}), "The second training of"),
            }
        )
    if runtime.workers > 1:
        check_references(spec)
    data = DataPool(spec.data, spec.data_options, limit=spec.size, seed=spec.seed)

    def describe() -> dict[str, Any]:
        spec.language.check()
        if spec.pool is not None:
            spec.data_options.load(spec.train_data)
        if not (folder / MANIFEST).exists():
            named = {**spec.models, **{second(name): model for name, model in spec.second.items()}}
            Roster(named, data, spec.model_options, spec.language, spec.seed).check()
        texts = prepare_texts(data.source(), limit=spec.size, seed=spec.seed)
        return {"data": describe_data(spec.data, texts)}

    with begin_study(folder, spec, describe, resume=resume) as workspace:
        data.hold_to(workspace.manifest.inputs["data"]["fingerprint"])
        runs = TransferJob(spec, workspace.store, workspace.folder, data, runtime).run()
        result = TransferResult.of_runs(workspace, runs)
        result.write_summary()
    return result


WORKFLOW: Workflow[TransferSpec] = Workflow(TransferSpec, run, TransferResult, reopens=True)
