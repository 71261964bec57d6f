"""Services as models: `https://host/path`, asked with batches of texts as JSON.

What is sent and where the scores stand in the answer is said by settings, in the fragment of the URL
(`https://host/predict#scores=results[*].probabilities&batch_size=16`) or by `--setting`. What the numbers are is said
by `outputs`, as for a function. Nothing is guessed, and every answer is checked.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

import numpy as np

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput, valid_unicode
from stockade.core.trust import check_vouched
from stockade.models.answers import read_answer
from stockade.models.json_paths import RequestTemplate, parse_path, value_at
from stockade.models.service import Service, ServiceSettings
from stockade.models.settings import make_settings

if TYPE_CHECKING:
    from stockade.models.adapters import LoadOptions

SCHEMES = ("http://", "https://")
TIMEOUT = 30.0
"""Seconds that an attempt may take unless the user says otherwise."""
_PROBE = "a plain sentence"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings(ServiceSettings):
    """The settings of a service.

    Parameters
    ----------
    request : str or Mapping
        What is sent: JSON in which `"{texts}"` stands for a list of texts, or `{text}` for a single one. A pair is a
        list of two texts; with a single text a request, `{premise}` and `{hypothesis}` have places of their own.
    scores : str
        Where the answer has the scores: for a list of texts a row (or number, or label) for each, for a single text its
        own.
    batch_size : int
        How many texts a request may have.
    method : {"POST", "PUT", "PATCH"}
        The HTTP method.
    deterministic : bool
        Whether the same text always gets the same answer.
    headers, concurrency, retries, backoff, max_wait, rate, breaker, cooldown, max_bytes, seed
        As for every service.
    """

    request: str | dict[str, Any] | list[Any] = '{"texts": "{texts}"}'
    scores: str = "scores"
    batch_size: int = 32
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    deterministic: bool = True

    def check(self) -> None:
        """Refuse what nobody can mean."""
        ServiceSettings.check(self)
        if self.batch_size < 1:
            raise OptionError(f"The setting batch_size is {self.batch_size}, expected 1 or more.")


class HttpAdapter:
    """Reads `http://…` and `https://…`."""

    limits_calls = takes_settings = True

    def matches(self, model: object) -> bool:
        """True for URLs."""
        return isinstance(model, str) and model.startswith(SCHEMES)

    def load(self, model: object, options: LoadOptions) -> HttpClassifier:
        """The service as a classifier; nothing is asked yet."""
        check_vouched(str(model), "asks")
        url, _, fragment = str(model).partition("#")
        written = dict(parse_qsl(fragment, keep_blank_values=True))
        if fragment and not written:
            raise ModelError(f"The fragment #{fragment[:60]} is no list of settings, expected #name=value&name=value.")
        settings = make_settings(HttpSettings, "services", {**written, **options.settings})
        service = Service(
            url,
            settings,
            timeout=options.timeout or TIMEOUT,
            allow_private=options.allow_private,
            method=settings.method,
        )
        return HttpClassifier(service, settings, labels=options.labels, outputs=options.outputs or "probabilities")


class HttpClassifier:
    """A service that answers texts with scores.

    Parameters
    ----------
    service : Service
        Who is asked.
    settings : HttpSettings
        What is sent, and where the scores are.
    labels : sequence of str, optional
        Names of the classes; without them those of the first answer, if it names any.
    outputs : {"probabilities", "logits", "labels"}
        What the service answers with.
    """

    def __init__(self, service: Service, settings: HttpSettings, *, labels: Sequence[str] | None, outputs: str) -> None:
        self.service, self._settings, self._outputs = service, settings, outputs
        self.deterministic = settings.deterministic
        self.label_only = outputs == "labels"
        self._path = parse_path(settings.scores)
        self._template = RequestTemplate(service.secrets.expand(_plain(settings.request)))
        self.workers = settings.concurrency
        self.batch_rows = settings.batch_size if self._template.batched else 1
        self._labels = None if labels is None else _checked_labels(labels)
        if self.label_only and self._labels is None:
            raise ModelError("A service that only names classes does not say which there are: name them with --labels.")
        self._lock = threading.Lock()

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes; asked about with one short text if the user has not named them."""
        if self._labels is None:
            self.predict_proba([_PROBE])
        assert self._labels is not None
        return self._labels

    @property
    def stated_labels(self) -> tuple[str, ...] | None:
        """The classes as far as they are known without asking the service."""
        return self._labels

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """A row for each text, asked in batches one after the other; the engine asks several at once."""
        if not inputs:
            return np.zeros((0, len(self.labels)))
        starts = range(0, len(inputs), self.batch_rows)
        return np.concatenate([self._answered(inputs[start : start + self.batch_rows]) for start in starts])

    def start_worker(self) -> None:
        """Nothing to prepare: threads share the connections."""

    def fingerprint(self) -> str:
        """A hash of the URL and of what is asked there; a change of the model behind it cannot be seen from here."""
        asked = [str(self.service.endpoint), self._settings.method, self._settings.scores, self._outputs]
        content = json.dumps([*asked, _plain(self._settings.request), self._labels], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def _answered(self, batch: Sequence[TextInput]) -> Probabilities:
        clean = [_valid(item) for item in batch]
        with self.service.secrets.hidden():
            answer = value_at(self.service.ask(self._template.filled(clean)), self._path)
            rows = answer if self._template.batched else [answer]
            probabilities, names = read_answer(rows, len(batch), self._labels, self._outputs)
        with self._lock:
            self._labels = self._labels or names
        return probabilities


def _plain(request: Any) -> Any:
    """The template as values, so that a secret cannot break out of the JSON text that it stands in."""
    if not isinstance(request, str):
        return request
    try:
        return json.loads(request)
    except ValueError:
        return request  # the template says what is wrong with it


def _valid(item: TextInput) -> TextInput:
    return valid_unicode(item) if isinstance(item, str) else (valid_unicode(item[0]), valid_unicode(item[1]))


def _checked_labels(labels: Sequence[str]) -> tuple[str, ...]:
    names = tuple(str(label) for label in labels)
    if len(names) < 2 or len(set(names)) != len(names):
        raise ModelError(f"A classifier needs two or more different labels, found: {', '.join(names) or 'none'}.")
    return names
