"""The study of FireBERT's neighbourhoods: an attack on the first model, then what all models say around its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from stockade.attacks.registry import NamedAttack
from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Classifier
from stockade.core.records import Record
from stockade.core.text import Text
from stockade.defenses.five import Five
from stockade.experiment.inputs import describe_data, describe_model
from stockade.experiment.pool import DataPool, ModelPool
from stockade.experiment.progress import Progress, Runtime
from stockade.experiment.result import Workflow
from stockade.experiment.spec import Attacks, Count
from stockade.experiment.workspace import Workspace
from stockade.lexicon.neighbours import load_neighbours
from stockade.report.document import Document
from stockade.studies.claims import Claim
from stockade.studies.firebert.analysis import FirebertNumbers, analyse, check_claims
from stockade.studies.firebert.neighbourhoods import CODEC, Question, Surveyor, TextPair
from stockade.studies.frame import Option, StudyResult, StudySpec, begin_study, finished
from stockade.studies.records import warn_of_few
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.attack.run import attack_examples
from stockade.workflows.attack.spec import AttackSpec

RUN, PAIRS = "run", "neighbourhoods"
"""The folder of the attack, and the part of the store that holds what models say around texts."""


class FirebertSpec(StudySpec):
    """What decides the study firebert: models, of which the first is attacked, data, and the options below."""

    kind: ClassVar[str] = "study-firebert"
    summary: ClassVar[str] = (
        "FireBERT's Figures 5 to 7: classes of the neighbours of important words, and of noise around them."
    )
    several_models: ClassVar[bool] = True

    attacks: Annotated[Attacks, Option("--attack", "NAME[@PRESET][:OPTION=VALUE,…]")] = Field(
        default=("textfooler",), validate_default=True
    )
    """The attack that makes the adversarial texts, on the first model."""
    neighbours: Count = 20
    """How many neighbours of a word are tried."""
    deviation: Annotated[float, Field(gt=0)] = 0.25
    """The standard deviation of the noise on a word's vector; the paper's Figure 7 has 0.25."""
    samples: Count = 200
    """How many copies with noise."""
    figures: Count = 2
    """How many texts have figures: those with the fewest changed words."""

    @field_validator("attacks")
    @classmethod
    def _one_attack(cls, attacks: tuple[NamedAttack, ...]) -> tuple[NamedAttack, ...]:
        if len(attacks) > 1:
            names = ", ".join(attack.key for attack in attacks)
            raise OptionError(f"The study firebert looks around the texts of one attack (found: {names}): name one.")
        return attacks

    @property
    def attack(self) -> AttackSpec:
        """What decides the attack on the first model."""
        return AttackSpec.of(
            model=next(iter(self.models.values())),
            attacks=self.attacks,
            **{name: getattr(self, name) for name in StudySpec.model_fields if name != "models"},
            defenses=(),
            similarity=False,
        )


class FirebertResult(StudyResult[FirebertNumbers]):
    """The study of FireBERT's neighbourhoods: `numbers`, `claims`, `pairs`, and `run` with the attack."""

    kind: ClassVar[str] = FirebertSpec.kind
    spec_type: ClassVar[type[StudySpec]] = FirebertSpec

    def open_runs(self) -> Mapping[str, AttackResult]:
        return {RUN: AttackResult.open(self.folder / RUN)}

    @property
    def models(self) -> tuple[str, ...]:
        """The models, the attacked one first."""
        return tuple(self.manifest.inputs["models"])

    @cached_property
    def pairs(self) -> tuple[TextPair, ...]:
        """What every model says around every text that fools the first."""
        return tuple(map(CODEC.read, self.store.documents(PAIRS)))

    @cached_property
    def numbers(self) -> FirebertNumbers:
        """Shares of neighbours and of noise that have the true class."""
        return analyse(self.pairs, self.models, self.spec.deviation)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper says of its example, for all texts."""
        return check_claims(self.numbers)

    @property
    def attacked(self) -> AttackResult:
        """The attack on the first model."""
        run = self.runs[RUN]
        assert isinstance(run, AttackResult)
        return run

    def shown(self) -> list[str]:
        """The texts that have figures."""
        return [record.id for record in shown_texts(successes_of(self.attacked), self.spec.figures)]

    @property
    def warnings(self) -> list[str]:
        """Those of the attack, and what this study adds."""
        return [*self.attacked.summary["warnings"], *warn_of_few(self.numbers.successes)]

    @property
    def complete(self) -> bool:
        """Whether the attack is done and every model was asked around every text that it made."""
        return super().complete and len(self.pairs) == len(self.models) * len(successes_of(self.attacked))

    def facts(self) -> Mapping[str, object]:
        spec, data = self.spec, self.manifest.inputs["data"]
        options = {name: getattr(spec, name) for name in ("neighbours", "deviation", "samples")}
        return {"attack": self.attacked.attacks[0], "texts": data["size"], "total": data["rows"], **options}

    def make_document(self) -> Document:
        """The page: shares around originals and adversarial texts, figures of a few of them."""
        from stockade.studies.firebert.page import firebert_document

        return firebert_document(self)


def successes_of(run: AttackResult) -> list[Record]:
    """The texts that fool the first model."""
    return list(run.records(run.attacks[0], "success"))


def shown_texts(successes: Sequence[Record], count: int) -> list[Record]:
    """The texts that have figures: those with the fewest changed words, like the paper's, the first of equals."""
    return sorted(successes, key=lambda record: len(record.edits))[:count]


def run(spec: FirebertSpec, folder: Path, runtime: Runtime, resume: bool) -> FirebertResult:
    """Attack the first model, unless that is done, then ask all models around the texts that fool it."""
    models = ModelPool(spec.models, spec.model_options, language=spec.language)
    data = DataPool(spec.data, spec.data_options, limit=spec.limit, seed=spec.seed)
    first = models.names[0]

    def load(name: str) -> Classifier:
        classifier = models.bare(name)
        data.check_answers(classifier)
        Five().check(classifier)
        return classifier

    def describe() -> dict[str, Any]:
        spec.language.check()
        described = {}
        labels = load(first).labels
        for name in models.names:
            classifier = load(name)
            if set(classifier.labels) != set(labels):
                raise ModelError(
                    f"The model {name} has the classes {', '.join(classifier.labels)}, and {first} "
                    f"{', '.join(labels)}: expected the same."
                )
            described[name] = describe_model(spec.models[name], classifier)
        return {"models": described, "data": describe_data(spec.data, data.examples(labels))}

    with begin_study(folder, spec, describe, resume=resume) as workspace:
        attacked = finished(AttackResult, folder / RUN)
        if attacked is None:
            classifier = load(first)
            attacked = attack_examples(
                spec.attack, folder / RUN, runtime, True, classifier, data.examples(classifier.labels)
            )
        recorded = workspace.manifest.inputs["models"]
        models.hold_to({name: recorded[name]["fingerprint"] for name in models.names})
        _look_around(spec, workspace, attacked, models.names, load, runtime)
        result = FirebertResult.of_runs(workspace, {RUN: attacked})
        result.write_summary()
    return result


def _look_around(
    spec: FirebertSpec,
    workspace: Workspace,
    attacked: AttackResult,
    names: Sequence[str],
    load: Any,
    runtime: Runtime,
) -> None:
    """Ask every model around every text of which the store has nothing yet, at the words that matter to the first."""
    store, records = workspace.store, successes_of(attacked)
    shown = {record.id for record in shown_texts(records, spec.figures)}
    for position, name in enumerate(names):
        done = store.ids(PAIRS)
        missing = [record for record in records if _key(name, record.id) not in done]
        if not missing:
            continue
        places = {} if name == names[0] else _places(store.documents(PAIRS), names[0])
        surveyor = Surveyor(load(name), load_neighbours(), spec.neighbours, spec.deviation, spec.samples, spec.seed)
        questions = []
        for record in missing:
            original, adversarial = places.get(record.id, (None, None))
            texts = ((record.original, original), (record.adversarial or "", adversarial))
            for text, index in texts:
                questions.append(Question(Text.parse(text, record.premise), index, record.id in shown))
        answers = surveyor.ask(questions)
        for at, record in enumerate(missing):
            pair = TextPair(name, record.id, record.label, answers[2 * at], answers[2 * at + 1])
            store.add(
                PAIRS,
                _key(name, record.id),
                CODEC.encode(pair),
                position=position * len(records) + records.index(record),
            )
        if runtime.observer is not None:
            runtime.observer(Progress(part=f"{name}: neighbourhoods", done=len(records), total=len(records)))


def _places(documents: Any, first: str) -> dict[str, tuple[int | None, int | None]]:
    """The words that the first model was asked around, by text."""
    pairs = (CODEC.read(document) for document in documents)
    return {pair.id: (pair.original.index, pair.adversarial.index) for pair in pairs if pair.model == first}


def _key(model: str, text: str) -> str:
    return f"{model}/{text}"


WORKFLOW: Workflow[FirebertSpec] = Workflow(FirebertSpec, run, FirebertResult, reopens=True)
