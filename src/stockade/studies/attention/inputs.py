"""What the study is about: the texts that every model gets right, and what each model allows to be done to it.

The paper takes 100 such texts, so that no model is excused on a text it cannot read anyway. Their order is that of
`stockade attack --limit`: by a hash of seed and row id, so it is the same on every computer, and a smaller choice is
part of every larger one. Both are found once, before the first attack, and recorded in the manifest.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stockade.core.errors import DataError, ModelError, RunError
from stockade.core.protocols import AttentiveClassifier, Classifier, RepresentingClassifier, ZeroingClassifier
from stockade.core.text import Text
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.sampling import seeded_places
from stockade.datasets.source import DataSource, Label, Row
from stockade.experiment.inputs import describe_model, fingerprint_of, reference_of
from stockade.experiment.pool import DataPool, ModelPool

if TYPE_CHECKING:
    from stockade.studies.attention.study import AttentionSpec

RANDOM, LIST, GREEDY, GREEDY_EC = "random", "list", "gs-gr", "gs-ec"
BY_ATTENTION = ("asmin-gr", "asmax-gr", "asmin-ec", "asmax-ec")
ATTACKS = (RANDOM, LIST, *BY_ATTENTION, GREEDY, GREEDY_EC)
"""In the order of the paper's table."""

_LEAST_AT_ONCE, _AHEAD = 64, 2
_BLACK_BOX = "the model does not show {}: it is no Hugging Face model"
_ANY_TEXT = Text.parse("a text")


@dataclass(frozen=True, slots=True)
class Selection:
    """The texts of the study.

    Parameters
    ----------
    ids
        Those that all models get right, in seeded order.
    classified
        How many texts the models were asked about to find them.
    total
        How many there are in the data.
    correct
        For each model how many of the classified ones it gets right.
    """

    ids: tuple[str, ...]
    classified: int
    total: int
    correct: Mapping[str, int]

    def described(self, reference: str, fingerprint: str) -> dict[str, Any]:
        """What the manifest records of the data."""
        return {"reference": reference, "fingerprint": fingerprint, **dataclasses.asdict(self)}

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> Selection:
        """The selection that a manifest records."""
        return cls(tuple(described["ids"]), described["classified"], described["total"], described["correct"])


def select_texts(
    source: DataSource,
    models: Mapping[str, Classifier],
    *,
    limit: int | None = None,
    seed: int = 0,
    label_map: Mapping[str, str] | None = None,
) -> Selection:
    """Choose the first texts in seeded order that all models get right.

    Parameters
    ----------
    source
        The data.
    models
        The models by name.
    limit
        How many texts; all that there are if None.
    seed
        Decides the order.
    label_map
        The model's class for a label of the data, where their names differ.
    """
    classes = {
        name: prepare_examples(source, model.labels, label_map=label_map).classes for name, model in models.items()
    }
    order = sorted((row.id for row in source.rows()), key=seeded_places(seed))
    chosen: list[str] = []
    correct = dict.fromkeys(models, 0)
    classified = 0
    while classified < len(order) and (limit is None or len(chosen) < limit):
        size = len(order) if limit is None else max(_LEAST_AT_ONCE, _AHEAD * limit)
        rows = _rows(source, order[classified : classified + size])
        right = {name: _right(model, rows, classes[name]) for name, model in models.items()}
        for index, row in enumerate(rows):
            classified += 1
            for name in models:
                correct[name] += right[name][index]
            if all(answers[index] for answers in right.values()):
                chosen.append(row.id)
                if len(chosen) == limit:
                    break
    if not chosen:
        counts = ", ".join(f"{name} {count}" for name, count in correct.items())
        raise DataError(
            f"{source.name} has no text that all models get right (of {classified} texts: {counts}). "
            "Are the labels swapped? Set them with --label-map, or choose other data."
        )
    return Selection(tuple(chosen), classified, len(order), correct)


def selected_examples(
    source: DataSource, labels: Sequence[str], ids: Sequence[str], label_map: Mapping[str, str] | None = None
) -> ExampleSet:
    """The chosen texts, in the order of the data, with the classes of a model.

    Parameters
    ----------
    source
        The data.
    labels
        The classes of the model.
    ids
        The chosen texts.
    label_map
        As for `select_texts`.
    """
    everything = prepare_examples(source, labels, label_map=label_map)
    wanted = frozenset(ids)
    rows = [(row.id, row.label) for row in source.rows() if row.id in wanted]
    counts = Counter(labels[everything.classes[label]] for _, label in rows)
    return dataclasses.replace(
        everything,
        size=len(rows),
        ids=tuple(row_id for row_id, _ in rows),
        label_counts={label: counts[label] for label in labels},
    )


def _rows(source: DataSource, ids: Sequence[str]) -> list[Row]:
    """The rows with these ids, in their order."""
    places = {row_id: place for place, row_id in enumerate(ids)}
    return sorted((row for row in source.rows() if row.id in places), key=lambda row: places[row.id])


def _right(model: Classifier, rows: Sequence[Row], classes: Mapping[Label, int]) -> list[bool]:
    answers = model.predict_proba([row.input for row in rows]).argmax(1).tolist()
    return [answer == classes[row.label] for answer, row in zip(answers, rows, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """One model of the study.

    Parameters
    ----------
    name, reference, fingerprint, labels
        What the study calls it, where it came from, and what it is.
    kind
        "self-attentive", "recurrent" or "other".
    missing
        The attacks that it does not allow, with the reason.
    without_layers, without_self_attention
        Why its hidden vectors, and the weights of its self-attention, cannot be read; None if they can.
    """

    name: str
    reference: str
    fingerprint: str | None
    labels: tuple[str, ...]
    kind: str
    missing: Mapping[str, str]
    without_layers: str | None
    without_self_attention: str | None

    @property
    def attacks(self) -> tuple[str, ...]:
        """The attacks that it allows."""
        return tuple(attack for attack in ATTACKS if attack not in self.missing)

    @property
    def without_attention(self) -> str | None:
        """Why nobody can say how much attention a word gets; None if that can be read."""
        return self.missing.get("asmax-gr")

    @classmethod
    def read(cls, name: str, described: Mapping[str, Any]) -> Victim:
        """The model that a manifest records."""
        fields = [field.name for field in dataclasses.fields(cls) if field.name not in ("name", "labels")]
        return cls(name=name, labels=tuple(described["labels"]), **{field: described[field] for field in fields})


def describe_victim(reference: object, model: Classifier, texts: Sequence[Text]) -> dict[str, Any]:
    """What the manifest records of a model.

    Parameters
    ----------
    reference
        The model as it was given.
    model
        What was loaded.
    texts
        The first of them with a word in it is what the model is asked about.
    """
    from stockade.models.internals import kind_of

    text = next((text for text in texts if len(text)), _ANY_TEXT)
    return {
        **describe_model(reference, model),
        "kind": kind_of(model),
        "missing": _missing_attacks(model, text),
        "without_layers": _without_layers(model, text),
        "without_self_attention": _without_self_attention(model),
    }


def _missing_attacks(model: Classifier, text: Text) -> dict[str, str]:
    """Each attack that asks for something the model does not show."""
    zeroing = _reason(ZeroingClassifier, model, "its input vectors", lambda m: m.predict_zeroed([(text, 0)]))
    vectors = _reason(RepresentingClassifier, model, "its sentence vectors", lambda m: m.represent([text.input]))
    attention = _reason(AttentiveClassifier, model, "its attention", lambda m: m.word_attention([text], 0, "mean"))
    needs = {GREEDY: [zeroing], GREEDY_EC: [zeroing, vectors]}
    needs |= {name: [attention, vectors] if name.endswith("-ec") else [attention] for name in BY_ATTENTION}
    reasons = {attack: next((reason for reason in needs.get(attack, ()) if reason), None) for attack in ATTACKS}
    return {attack: reason for attack, reason in reasons.items() if reason is not None}


def _reason(protocol: Any, model: Classifier, what: str, ask: Callable[[Any], object]) -> str | None:
    """Why the model does not answer; None if it does."""
    if not isinstance(model, protocol):
        return _BLACK_BOX.format(what)
    try:
        ask(model)
    except ModelError as error:
        return str(error).partition(":")[0].rstrip(".")
    return None


def _without_layers(model: Classifier, text: Text) -> str | None:
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.internals import hidden_by_word

    if not isinstance(model, HuggingFaceClassifier):
        return "it is no Hugging Face model"
    try:
        hidden_by_word(model, [text])
    except ModelError as error:
        return str(error).rstrip(".")
    return None


def _without_self_attention(model: Classifier) -> str | None:
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.internals import self_attention

    if isinstance(model, HuggingFaceClassifier) and self_attention(model):
        return None
    return "it has no layer of self-attention"


class AttentionInputs:
    """The models and data of a study, loaded when they are needed.

    Parameters
    ----------
    spec
        Names or objects, and how they are loaded.
    """

    def __init__(self, spec: AttentionSpec) -> None:
        self._spec = spec
        self._models = ModelPool(spec.models, spec.model_options, language=spec.language, held=None)
        self._data = DataPool(spec.data, spec.data_options)
        self._loaded: dict[str, Classifier] = {}

    def describe(self) -> dict[str, Any]:
        """Choose the texts, find out what each model allows, and say what the manifest records of both."""
        spec, source = self._spec, self._data.source()
        spec.language.check()
        models = {name: self._load(name) for name in spec.models}
        label_map = spec.data_options.label_map
        selection = select_texts(source, models, limit=spec.limit, seed=spec.seed, label_map=label_map)
        chosen = frozenset(selection.ids)
        texts = [Text.parse(row.text, row.premise) for row in source.rows() if row.id in chosen]
        return {
            "models": {name: describe_victim(spec.models[name], model, texts) for name, model in models.items()},
            "data": selection.described(reference_of(spec.data), source.fingerprint()),
        }

    def model(self, victim: Victim) -> Classifier:
        """A model, which must be the one that the study was begun with."""
        model = self._load(victim.name)
        if fingerprint_of(model) != victim.fingerprint:
            raise RunError(
                f"The model {victim.name} is not the one the study was begun with (another fingerprint): start again "
                "with another folder."
            )
        return model

    def examples(self, model: Classifier, selection: Selection, fingerprint: str) -> ExampleSet:
        """The chosen texts with the classes of a model, of data that must have this fingerprint."""
        self._data.hold_to(fingerprint)
        label_map = self._spec.data_options.label_map
        return selected_examples(self._data.source(), model.labels, selection.ids, label_map)

    def _load(self, name: str) -> Classifier:
        if name not in self._loaded:
            model = self._models.defended(name, self._spec.defenses, seed=self._spec.seed)
            self._data.check_answers(model)
            self._loaded[name] = model
        return self._loaded[name]
