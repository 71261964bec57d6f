"""What the study is about: its models, and what each allows to be done to it.

That and the texts are found once, before the first attack, and recorded in the manifest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stockade.core.errors import ModelError, OptionError, RunError
from stockade.core.protocols import AttentiveClassifier, Classifier, RepresentingClassifier, ZeroingClassifier
from stockade.core.text import Text
from stockade.datasets.examples import ExampleSet
from stockade.experiment.inputs import describe_model, fingerprint_of, reference_of
from stockade.experiment.pool import DataPool, ModelPool
from stockade.studies.attention.texts import Selection, select_texts, selected_examples
from stockade.workflows.attack.run import check_paired

if TYPE_CHECKING:
    from stockade.studies.attention.study import AttentionSpec

RANDOM, LIST, GREEDY, GREEDY_EC = "random", "list", "gs-gr", "gs-ec"
BY_ATTENTION = ("asmin-gr", "asmax-gr", "asmin-ec", "asmax-ec")
ATTACKS = (RANDOM, LIST, *BY_ATTENTION, GREEDY, GREEDY_EC)
"""In the order of the paper's table."""
SHOWN = ("asmin-ec", "asmax-ec")
"""The attacks whose attention Figure 1 shows."""
LAST_LAYER = "asmax-ec-last"
"""The paper's pilot study: asmax-ec by the attention of the last layer."""

_BLACK_BOX = "the model does not show {}: it is no Hugging Face model"
_ANY_TEXT = Text.parse("a text")


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
    attention_layers
        How many layers of self-attention it has.
    """

    name: str
    reference: str
    fingerprint: str | None
    labels: tuple[str, ...]
    kind: str
    missing: Mapping[str, str]
    without_layers: str | None
    without_self_attention: str | None
    attention_layers: int = 0

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
        fields = [field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]
        values = {field: described[field] for field in fields if field not in ("name", "labels")}
        layers = described.get("attention_layers", 0)  # which the first studies did not record
        return cls(name=name, labels=tuple(described["labels"]), attention_layers=layers, **values)

    def pilot(self, layer: int) -> bool:
        """Whether the last layer is another than this one, so that the paper's pilot study has something to compare."""
        last = self.attention_layers - 1
        return last > 0 and layer not in (-1, last) and "asmax-ec" not in self.missing


def describe_victim(reference: object, model: Classifier, texts: Sequence[Text], layer: int = 0) -> dict[str, Any]:
    """What the manifest records of a model.

    Parameters
    ----------
    reference
        The model as it was given.
    model
        What was loaded.
    texts
        The first of them with a word in it is what the model is asked about.
    layer
        The layer whose attention counts.
    """
    from stockade.models.internals import kind_of

    text = next((text for text in texts if len(text)), _ANY_TEXT)
    return {
        **describe_model(reference, model),
        "kind": kind_of(model),
        "missing": _missing_attacks(model, text, layer),
        "without_layers": _without_layers(model, text),
        "without_self_attention": _without_self_attention(model),
        "attention_layers": _attention_layers(model),
    }


def _missing_attacks(model: Classifier, text: Text, layer: int) -> dict[str, str]:
    """Each attack that asks for something the model does not show."""
    zeroing = _reason(ZeroingClassifier, model, "its input vectors", lambda m: m.predict_zeroed([(text, 0)]))
    vectors = _reason(RepresentingClassifier, model, "its sentence vectors", lambda m: m.represent([text.input]))
    attention = _reason(AttentiveClassifier, model, "its attention", lambda m: m.word_attention([text], layer, "mean"))
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
    return None if _attention_layers(model) else "it has no layer of self-attention"


def _attention_layers(model: Classifier) -> int:
    from stockade.models.huggingface import HuggingFaceClassifier
    from stockade.models.internals import self_attention

    return len(self_attention(model)) if isinstance(model, HuggingFaceClassifier) else 0


def _check_layer(
    layer: int, models: Mapping[str, Classifier], described: Mapping[str, Mapping[str, Any]], text: Text
) -> None:
    """Refuse a layer that no model with attention has."""
    if not layer or any("asmax-gr" not in model["missing"] for model in described.values()):
        return
    for name, model in models.items():
        if "asmax-gr" not in _missing_attacks(model, text, 0):
            reason = described[name]["missing"]["asmax-gr"]
            raise OptionError(
                f"--layer is {layer}, which no model has ({name}: {reason}). Name one that there is: 0 is the first, "
                "-1 the last."
            )


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
        texts = [Text.parse(row.text, row.premise, spec.sides) for row in source.rows() if row.id in chosen]
        check_paired(spec.sides, texts)
        described = {
            name: describe_victim(spec.models[name], model, texts, spec.layer) for name, model in models.items()
        }
        _check_layer(spec.layer, models, described, next((text for text in texts if len(text)), _ANY_TEXT))
        return {"models": described, "data": selection.described(reference_of(spec.data), source.fingerprint())}

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
