"""From what a user calls a model to a `Classifier`: one adapter for each kind of model.

| model | adapter |
|---|---|
| `builtin:NAME` | `builtin`: a classifier that comes with the installation |
| `chat:URL#MODEL` | `chat`: a chat model that is asked to name a class |
| `ensemble:A,B,…` | `ensemble`: the mean of the logits of several models |
| a folder, a hub name, `(model, tokenizer)`, a text-classification pipeline | `huggingface` |
| `https://…`, `http://…` | `https`, `http`: a service that answers batches of texts |
| `onnx:FOLDER` | `onnx`: an ONNX model and its tokenizer |
| `sklearn:FILE` | `sklearn`: a scikit-learn pipeline saved with skops, joblib or pickle |
| `zero-shot:FOLDER` | `zero-shot`: a model of natural language inference, asked about each label |
| `spacy:FOLDER`, `fasttext:FILE` | `spacy`, `fasttext`: models of these libraries |
| `python:package.module:attribute`, a function, an estimator with `predict_proba`, a `Classifier` | `python` |

An adapter is known by its scheme, the word before the colon of `SCHEME:…`, and asked by its `matches` about names
without a scheme and about Python objects. Adapters are imported when they are first asked. Users add their own with
`register_model`, packages through the entry point group `stockade.models`; those are asked before the ones above.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, TypeVar

from stockade.core.errors import ModelError, OptionError, unknown_name
from stockade.core.protocols import Classifier
from stockade.core.registry import home_of, load_class

_ADAPTERS = {
    "builtin": "stockade.models.builtin:BuiltinAdapter",
    "chat": "stockade.models.chat:ChatAdapter",
    "ensemble": "stockade.models.ensemble:EnsembleAdapter",
    "huggingface": "stockade.models.pretrained:HuggingFaceAdapter",
    "fasttext": "stockade.models.fasttext_file:FastTextAdapter",
    "http": "stockade.models.http_service:HttpAdapter",
    "https": "stockade.models.http_service:HttpAdapter",
    "onnx": "stockade.models.onnx_runtime:OnnxAdapter",
    "sklearn": "stockade.models.scikit_learn:SklearnAdapter",
    "spacy": "stockade.models.spacy_textcat:SpacyAdapter",
    "zero-shot": "stockade.models.zero_shot:ZeroShotAdapter",
    "python": "stockade.models.python:PythonAdapter",
}
"""The adapters of the package, in the order in which they are asked about objects."""
_GROUP = "stockade.models"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE)
OUTPUTS = ("probabilities", "logits", "labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How to load a model. An adapter takes what concerns it and leaves the rest alone.

    Parameters
    ----------
    labels : sequence of str, optional
        Names of the classes in the order of the model's columns, in place of the model's own.
    outputs : {"probabilities", "logits", "labels"}, optional
        What the model answers with; "labels" for one that only names classes. If None, what the kind of model says of
        itself, and probabilities where it says nothing.
    device : str, optional
        Where a neural model is computed: "auto", "cpu", "cuda" or "mps".
    allow_pickle : bool
        Whether pickled weights, which can run code, may be opened.
    trust_remote_code : bool
        Whether code that comes with a model may be run.
    timeout : float, optional
        How many seconds a call may take: of a Python model, which is then asked in a process of its own, or of a
        service.
    settings : Mapping
        What only models of one kind need, by name; an adapter that has settings checks them.
    allow_private : bool
        Whether a service may have an address of this machine or of a private network.
    max_cost : float, optional
        The most that the queries of a model with prices may cost, in the currency of its prices.
    """

    labels: Sequence[str] | None = None
    outputs: str | None = None
    device: str | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    timeout: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    allow_private: bool = False
    max_cost: float | None = None

    def __post_init__(self) -> None:
        check_outputs(self.outputs)
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise OptionError(f"--timeout is {self.timeout:g}, expected seconds above 0, such as 10.")
        if self.max_cost is not None and not 0 < self.max_cost < math.inf:
            raise OptionError(f"--max-cost is {self.max_cost:g}, expected an amount above 0, such as 5.")


class Adapter(Protocol):
    """Makes classifiers of one kind of model; has a constructor without arguments.

    Attributes that are True say which options concern it beyond those of all models: `limits_calls` (`timeout`),
    `takes_settings` (`settings`), `counts_cost` (`max_cost`). An option that nobody would heed is refused.
    """

    def matches(self, model: object) -> bool:
        """Whether this adapter reads the model: a reference of its scheme, a name without one, or any object."""

    def load(self, model: object, options: LoadOptions) -> Classifier:
        """The classifier; a model that cannot be loaded is a `ModelError` of one sentence."""


AdapterClass = TypeVar("AdapterClass", bound=type[Adapter])


class AdapterRegistry:
    """The adapters by scheme, in the order in which they are asked."""

    def __init__(self, table: Mapping[str, str], group: str) -> None:
        self._table, self._group = table, group
        self._registered: dict[str, Adapter] = {}
        self._imported: dict[str, Adapter] = {}

    @property
    def schemes(self) -> tuple[str, ...]:
        """What may stand before the colon of a reference: the user's adapters, those of packages, our own."""
        return tuple(dict.fromkeys((*reversed(self._registered), *self._plugins, *self._table)))

    def find(self, model: object) -> Adapter:
        """The adapter of a reference's scheme, or else the first that takes the model."""
        scheme = _scheme_of(model)
        if scheme and scheme not in self.schemes and not Path(str(model)).exists():
            raise _unknown_scheme(scheme, self.schemes)
        for candidate in (scheme,) if scheme in self.schemes else self.schemes:
            adapter = self._adapter(candidate)
            if adapter.matches(model):
                return adapter
        raise ModelError(f"No adapter takes {model!r:.80} for a model (asked: {', '.join(self.schemes)}).")

    def register(self, scheme: str, adapter_class: type) -> None:
        """Add an adapter; the same class may come again, as when a cell of a notebook is run twice."""
        if not _SCHEME.fullmatch(f"{scheme}:") or scheme != scheme.lower():
            raise OptionError(
                f'"{scheme}" cannot be the scheme of a model: expected two or more lower-case letters or digits.'
            )
        adapter, owner = _made(adapter_class), self._home(scheme)
        if owner not in (None, home_of(adapter_class)):
            raise OptionError(f'The scheme "{scheme}" belongs to the adapter {owner} already: choose another.')
        self._registered = {**self._registered, scheme: adapter}

    def _home(self, scheme: str) -> str | None:
        if scheme in self._registered:
            return home_of(type(self._registered[scheme]))
        return self._table.get(scheme) or (self._plugins[scheme].value if scheme in self._plugins else None)

    def _adapter(self, scheme: str) -> Adapter:
        if scheme in self._registered:
            return self._registered[scheme]
        if scheme not in self._imported:
            imported = load_class(self._table[scheme]) if scheme in self._table else _load_plugin(self._plugins[scheme])
            self._imported[scheme] = _made(imported)
        return self._imported[scheme]

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self._group) if point.name not in self._table}


MODEL_ADAPTERS = AdapterRegistry(_ADAPTERS, _GROUP)


def register_model(scheme: str) -> Callable[[AdapterClass], AdapterClass]:
    """Class decorator: load models with an adapter of your own.

    The class has `matches(model)`, which says whether it takes a reference or a Python object, and `load(model,
    options)`, which makes a `Classifier` of it. References that begin with `SCHEME:` then work wherever a model is
    expected, and so do objects that it matches.

    Parameters
    ----------
    scheme : str
        What stands before the colon of such a reference, in lower case.
    """

    def add(adapter_class: AdapterClass) -> AdapterClass:
        MODEL_ADAPTERS.register(scheme, adapter_class)
        return adapter_class

    return add


def load_model(
    reference: object,
    *,
    labels: Sequence[str] | None = None,
    device: str | None = None,
    outputs: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    timeout: float | None = None,
    settings: Mapping[str, Any] | None = None,
    allow_private: bool = False,
    max_cost: float | None = None,
) -> Classifier:
    """Load the classifier that a reference names, or make one of a Python object.

    Parameters
    ----------
    reference : str, Path or object
        `builtin:NAME`, `python:package.module:attribute`, `ensemble:A,B`, `sklearn:FILE`, a folder or a name on the
        Hugging Face hub; or the model itself: a function of a list of texts, an estimator with `predict_proba`,
        `(model, tokenizer)`, a text-classification pipeline, a `Classifier`. docs/models.md has them all.
    labels : sequence of str, optional
        Names of the classes in the order of the model's columns, in place of the model's own.
    device : str, optional
        Where a neural model is computed: "auto", "cpu", "cuda" or "mps".
    outputs : {"probabilities", "logits", "labels"}, optional
        What the model answers with; "labels" for one that only names classes.
    allow_pickle : bool
        Allow pickled models, which can run code when they are opened.
    trust_remote_code : bool
        Allow a model of the hub to run code of its own.
    timeout : float, optional
        How many seconds a call may take. A Python model is asked in a process of its own, which is killed when it takes
        longer, and started anew for the next call.
    settings : Mapping, optional
        What only models of this kind need, by name.
    allow_private : bool
        Allow a service at an address of this machine or of a private network.
    max_cost : float, optional
        The most that the queries of a model with prices may cost.

    Returns
    -------
    Classifier
    """
    options = LoadOptions(
        labels=labels,
        device=device,
        outputs=outputs,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
        timeout=timeout,
        settings=settings or {},
        allow_private=allow_private,
        max_cost=max_cost,
    )
    return load_with(reference, options)


def load_with(model: object, options: LoadOptions) -> Classifier:
    """The classifier that a reference or object means, loaded by the adapter that takes it."""
    adapter = MODEL_ADAPTERS.find(model)
    refused = [
        sentence
        for attribute, value, sentence in (
            ("limits_calls", options.timeout, "--timeout is for Python models and services, which may hang"),
            ("takes_settings", options.settings or None, "--setting is for models that have settings"),
            ("counts_cost", options.max_cost, "--max-cost is for models whose queries have a price"),
        )
        if value is not None and not getattr(adapter, attribute, False)
    ]
    if refused:
        name = str(model) if isinstance(model, str | Path) else type(model).__name__
        raise OptionError(f"{refused[0]}; {name} is none (docs/models.md): leave the option out.")
    return adapter.load(model, options)


def check_outputs(outputs: str | None) -> None:
    """Refuse what a model cannot answer with."""
    if outputs is not None and outputs not in OUTPUTS:
        raise OptionError(f'outputs is "probabilities", "logits" or "labels", not "{outputs}".')


def _scheme_of(model: object) -> str | None:
    match = _SCHEME.match(str(model)) if isinstance(model, str | Path) else None
    return match[1] if match else None


def _unknown_scheme(scheme: str, schemes: Sequence[str]) -> ModelError:
    problem = str(unknown_name("model scheme", scheme, schemes))
    hint = (
        " Write an adapter with register_model, or give a function of a list of texts as "
        "python:package.module:function."
    )
    return ModelError(problem if "Did you mean" in problem else problem + hint)


def _made(adapter_class: object) -> Adapter:
    lacking = [name for name in ("matches", "load") if not callable(getattr(adapter_class, name, None))]
    if not isinstance(adapter_class, type) or lacking:
        raise OptionError(f"{adapter_class!r} is no model adapter: expected a class with matches and load.")
    adapter: Adapter = adapter_class()
    return adapter


def _load_plugin(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception as problem:
        raise ModelError(
            f'The model adapter "{point.name}" cannot be loaded from {point.value} ({type(problem).__name__}: '
            f"{problem}). Repair or uninstall the package that adds it."
        ) from problem
