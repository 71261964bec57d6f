"""Chat models as classifiers: `chat:URL#MODEL`, an endpoint that speaks the API of OpenAI.

The model is asked to name a class. Where it shows log-probabilities, the probabilities of the labels' first tokens are
the scores; otherwise it is a model of labels alone. Temperature is 0, which makes answers as steady as the service can:
not all are, and an attack asks about a few texts twice and warns. Tokens are counted, and with prices their cost.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stockade.core.errors import ModelError, ModelGone, NoAnswer, OptionError
from stockade.core.protocols import Probabilities
from stockade.core.text import TextInput, valid_unicode
from stockade.core.trust import check_vouched
from stockade.datasets.wording import clip
from stockade.models.chat_answers import label_probabilities, parse_label
from stockade.models.http_service import TIMEOUT
from stockade.models.json_paths import fill
from stockade.models.service import Service, ServiceSettings
from stockade.models.settings import make_settings

if TYPE_CHECKING:
    from stockade.models.adapters import LoadOptions

SCHEME = "chat:"
_PATH = "/chat/completions"
_PROMPT = "Classify the text into exactly one of these classes: {labels}. Answer with the class alone.\n\nText: {text}"
_PROBE = "a plain sentence"
_MILLION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings(ServiceSettings):
    """The settings of a chat model.

    Parameters
    ----------
    prompt : str
        What the model is asked, with places for `{text}` and, if you like, `{labels}` and `{premise}`.
    system : str
        The system message; none if empty.
    logprobs : {"auto", "on", "off"}
        Whether the scores are the probabilities of the labels' first tokens; auto asks the service once.
    top_logprobs : int
        How many tokens it shows.
    max_tokens : int
        The longest answer.
    temperature : float
        0 for the likeliest answer; above it answers are random.
    price_in, price_out : float, optional
        What a million tokens of requests and of answers cost.
    unparsed : str, optional
        The class of an answer that names none, such as a refusal; otherwise the text is left out.
    extra : Mapping
        Further fields of a request; one that is null is left out.
    headers, concurrency, retries, backoff, max_wait, rate, breaker, cooldown, max_bytes, seed
        As for every service.
    """

    prompt: str = _PROMPT
    system: str = ""
    logprobs: Literal["auto", "on", "off"] = "auto"
    top_logprobs: int = 20
    max_tokens: int = 16
    temperature: float = 0.0
    price_in: float | None = None
    price_out: float | None = None
    unparsed: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what nobody can mean."""
        ServiceSettings.check(self)
        if "{text}" not in self.prompt:
            raise OptionError("The setting prompt has no place for the text: write {text} where it should stand.")
        if self.max_tokens < 1 or not 1 <= self.top_logprobs <= 20 or not 0 <= self.temperature <= 2:
            raise OptionError(
                f"The settings are max_tokens {self.max_tokens}, top_logprobs {self.top_logprobs} and temperature "
                f"{self.temperature:g}; expected 1 or more, 1 to 20 and 0 to 2."
            )
        if any(price is not None and price < 0 for price in (self.price_in, self.price_out)):
            raise OptionError("A price is below 0, expected what a million tokens cost.")


class ChatAdapter:
    """Reads `chat:URL#MODEL`."""

    limits_calls = takes_settings = counts_cost = True

    def matches(self, model: object) -> bool:
        """True for references of the scheme."""
        return isinstance(model, str) and model.startswith(SCHEME)

    def load(self, model: object, options: LoadOptions) -> ChatClassifier:
        """The chat model as a classifier; nothing is asked yet."""
        check_vouched(str(model), "asks")
        url, _, name = str(model).removeprefix(SCHEME).partition("#")
        if not url or not name:
            raise ModelError(f"{model} is incomplete; expected chat:URL#MODEL, such as chat:https://host/v1#my-model.")
        if options.outputs not in (None, "labels", "probabilities"):
            raise OptionError("--outputs logits has no meaning for a chat model: leave it out, or use labels.")
        written = {**options.settings, **({"logprobs": "off"} if options.outputs == "labels" else {})}
        settings = make_settings(ChatSettings, "chat models", written)
        service = Service(
            url.rstrip("/") + ("" if url.rstrip("/").endswith(_PATH) else _PATH),
            settings,
            timeout=options.timeout or TIMEOUT,
            allow_private=options.allow_private,
        )
        return ChatClassifier(service, name, settings, labels=options.labels, max_cost=options.max_cost)


class ChatClassifier:
    """A chat model that is asked to name the class of a text.

    Parameters
    ----------
    service : Service
        The endpoint.
    model : str
        The model's name there.
    settings : ChatSettings
        The prompt, and how answers are read.
    labels : sequence of str
        The classes.
    max_cost : float, optional
        What may be spent; needs prices.
    """

    batch_rows = 1

    def __init__(
        self,
        service: Service,
        model: str,
        settings: ChatSettings,
        *,
        labels: Sequence[str] | None,
        max_cost: float | None = None,
    ) -> None:
        if labels is None or len({label.casefold().strip() for label in labels}) != len(labels) or len(labels) < 2:
            raise ModelError(
                "A chat model needs two or more different classes to choose from: name them with --labels."
            )
        if settings.unparsed is not None and settings.unparsed not in labels:
            raise OptionError(f"The setting unparsed is {settings.unparsed}, which is none of {', '.join(labels)}.")
        if max_cost is not None and (settings.price_in is None or settings.price_out is None):
            raise OptionError("--max-cost needs prices: --setting price_in=… and price_out=…, per million tokens.")
        self.labels = tuple(labels)
        self.deterministic = settings.temperature == 0.0
        self.workers = settings.concurrency
        self.service, self._model, self._settings = service, model, settings
        self._spending = Spending(settings.price_in, settings.price_out, max_cost)

    @cached_property
    def label_only(self) -> bool:
        """Whether it shows no log-probabilities; asked with one short text unless a setting says so."""
        if self._settings.logprobs != "auto":
            return self._settings.logprobs == "off"
        try:
            return label_probabilities(self._choice(_PROBE, logprobs=True), self.labels) is None
        except (ModelGone, NoAnswer):
            raise
        except ModelError:  # it does not know the field, or its tokens begin several labels
            self._choice(_PROBE, logprobs=False)
            return True

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """A row for each text, asked one after the other; the engine asks several at once."""
        rows = [self._row(item) for item in inputs]
        return np.array(rows, dtype=np.float64).reshape(len(inputs), len(self.labels))

    def start_worker(self) -> None:
        """Nothing to prepare: threads share the connections."""

    def usage(self) -> dict[str, Any]:
        """Requests, tokens and, with prices, cost so far."""
        return self._spending.described()

    def fingerprint(self) -> str:
        """A hash of the URL, the model's name and what it is asked; the service may still change it unseen."""
        settings = self._settings
        asked = [settings.prompt, settings.system, settings.temperature, settings.max_tokens, settings.unparsed]
        content = [
            str(self.service.endpoint),
            self._model,
            self.labels,
            settings.logprobs,
            *asked,
            dict(settings.extra),
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _row(self, item: TextInput) -> list[float]:
        with self.service.secrets.hidden():
            choice = self._choice(item, logprobs=not self.label_only)
            if not self.label_only:
                row = label_probabilities(choice, self.labels)
                if row is None:
                    raise ModelError("The chat model showed no log-probabilities this time, as it did before.")
                if row:
                    return row
            return self._labelled(choice)

    def _labelled(self, choice: Mapping[str, Any]) -> list[float]:
        message = choice.get("message")
        answer = str((message.get("content") if isinstance(message, Mapping) else None) or "")
        index = parse_label(answer, self.labels)
        if index is None and self._settings.unparsed is not None:
            index = self.labels.index(self._settings.unparsed)
        if index is None:
            raise ModelError(
                f'The chat model answered "{clip(answer)}", which names none of the classes {", ".join(self.labels)}. '
                "Improve the prompt, or say with --setting unparsed=CLASS what such an answer means."
            )
        return [float(number == index) for number in range(len(self.labels))]

    def _choice(self, item: TextInput, *, logprobs: bool) -> Mapping[str, Any]:
        self._spending.check()
        answer = self.service.ask(self._request(item, logprobs))
        choices = answer.get("choices") if isinstance(answer, Mapping) else None
        if not (isinstance(choices, list) and choices and isinstance(choices[0], Mapping)):
            raise ModelError(
                f"{self.service.endpoint} answered without choices; expected a chat completion of OpenAI's API."
            )
        self._spending.add(answer)
        choice: Mapping[str, Any] = choices[0]
        return choice

    def _request(self, item: TextInput, logprobs: bool) -> dict[str, Any]:
        settings = self._settings
        premise, text = ("", item) if isinstance(item, str) else item
        if not isinstance(item, str) and "{premise}" not in settings.prompt:
            raise ModelError(
                "The prompt reads single texts, and the data are pairs of a premise and a hypothesis: write {premise} "
                "where the premise should stand."
            )
        places = {"{text}": text, "{premise}": premise, "{labels}": ", ".join(self.labels)}
        messages = [{"role": "system", "content": settings.system}] if settings.system else []
        messages.append(
            {"role": "user", "content": fill(settings.prompt, {k: valid_unicode(v) for k, v in places.items()})}
        )
        request = {
            "model": self._model,
            "messages": messages,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            **({"logprobs": True, "top_logprobs": settings.top_logprobs} if logprobs else {}),
            **settings.extra,
        }
        return {name: value for name, value in request.items() if value is not None}


class Spending:
    """What the queries of a chat model have cost, counted from several threads.

    Parameters
    ----------
    price_in, price_out
        What a million tokens of requests and of answers cost; None if nobody has said.
    limit
        What may be spent. Requests that are under way when it is reached are still paid for.
    """

    def __init__(self, price_in: float | None, price_out: float | None, limit: float | None) -> None:
        self._price_in, self._price_out, self._limit = price_in, price_out, limit
        self._lock = threading.Lock()
        self._requests = self._tokens_in = self._tokens_out = 0
        self._backends: set[str] = set()

    @property
    def cost(self) -> float | None:
        """The cost so far; None without prices."""
        if self._price_in is None or self._price_out is None:
            return None
        return (self._tokens_in * self._price_in + self._tokens_out * self._price_out) / _MILLION

    def check(self) -> None:
        """End the run when the limit is reached."""
        if self._limit is not None and (self.cost or 0.0) >= self._limit:
            raise ModelGone(
                f"--max-cost {self._limit:g} is reached: {self._requests:,} requests have cost {self.cost:.4g}. What "
                "is finished is kept; resume with a larger --max-cost, which counts anew."
            )

    def add(self, answer: Mapping[str, Any]) -> None:
        """Count what an answer says it has used."""
        usage = answer.get("usage")
        tokens = (
            [usage.get(name) for name in ("prompt_tokens", "completion_tokens")] if isinstance(usage, Mapping) else []
        )
        counted = len(tokens) == 2 and all(isinstance(count, int) and count >= 0 for count in tokens)
        if not counted and self._limit is not None:
            raise ModelGone("The chat model does not say how many tokens it has used, so --max-cost cannot be kept.")
        with self._lock:
            self._requests += 1
            if counted:
                self._tokens_in += int(tokens[0] or 0)
                self._tokens_out += int(tokens[1] or 0)
            if answer.get("system_fingerprint"):
                self._backends.add(str(answer["system_fingerprint"])[:64])

    def described(self) -> dict[str, Any]:
        """The counters as a summary has them."""
        with self._lock:
            return {
                "requests": self._requests,
                "tokens_in": self._tokens_in,
                "tokens_out": self._tokens_out,
                **({} if self.cost is None else {"cost": round(self.cost, 9)}),
                **({"backends": sorted(self._backends)} if self._backends else {}),
            }
