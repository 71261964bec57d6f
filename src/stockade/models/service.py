"""Asks a service over HTTP: JSON in, JSON out, within limits, and again where that may help.

Connections that fail, answers that do not come in time or break off, and the statuses 408, 425, 429 and 5xx are tried
again. Retry-After is heeded. A redirect is followed within the same host alone. Proxies and .netrc files of the system
are not read: a request goes where the user says, with the headers that the user names.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stockade.core.errors import ModelError, ModelGone, NoAnswer, OptionError
from stockade.datasets.wording import clip
from stockade.models.addresses import Endpoint, addresses_of
from stockade.models.patience import CircuitBreaker, RateLimit, backoff_seconds, retry_after_seconds
from stockade.models.secrets import Secrets, names_variable

if TYPE_CHECKING:
    import httpx

_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_HOPELESS = frozenset({401, 402, 403, 404, 405, 407, 410, 421})
"""Statuses that the next text would get as well."""
_MOST_REDIRECTS = 3
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How a service is asked; none of it changes what it answers.

    Parameters
    ----------
    headers : Mapping
        Headers of each request. Values come from environment variables: `Bearer ${MY_TOKEN}`.
    concurrency : int
        How many requests are under way at once.
    retries : int
        How often a request that failed is repeated.
    backoff : float
        Seconds before the first repetition; twice as many before each further one.
    max_wait : float
        The longest pause before a repetition, whatever the service asks for.
    rate : float, optional
        The most requests per second.
    breaker : int
        After how many failures in a row the service is left alone.
    cooldown : float
        For how many seconds.
    max_bytes : int
        The largest answer.
    seed : int
        Of the random part of pauses.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    concurrency: int = 8
    retries: int = 5
    backoff: float = 0.5
    max_wait: float = 60.0
    rate: float | None = None
    breaker: int = 20
    cooldown: float = 30.0
    max_bytes: int = 10_000_000
    seed: int = 0

    def check(self) -> None:
        """Refuse what nobody can mean."""
        for name, least in (("concurrency", 1), ("retries", 0), ("breaker", 1), ("max_bytes", 1)):
            if getattr(self, name) < least:
                raise OptionError(f"The setting {name} is {getattr(self, name)}, expected {least} or more.")
        for name in ("backoff", "max_wait", "cooldown"):
            if not 0 <= getattr(self, name) <= 3600:
                raise OptionError(f"The setting {name} is {getattr(self, name):g}, expected seconds from 0 to 3600.")
        if self.rate is not None and not 0 < self.rate < 1e6:
            raise OptionError(f"The setting rate is {self.rate:g}, expected requests per second above 0.")
        for name, value in self.headers.items():
            if not names_variable(value):
                raise OptionError(
                    f"The header {name} has its value in the settings, where it would be recorded. Put it into an "
                    f"environment variable and name that: headers.{name}=${{MY_VARIABLE}}."
                )


class Again(Exception):
    """An attempt that failed and may be repeated.

    Parameters
    ----------
    problem
        What happened, as a sentence.
    status
        The status of the answer, if there was one.
    pause
        How many seconds the service asks to wait.
    """

    def __init__(self, problem: str, status: int | None = None, pause: float | None = None) -> None:
        super().__init__(problem)
        self.status, self.pause = status, pause


class Service:
    """A service that answers JSON with JSON; it may be asked from several threads.

    Parameters
    ----------
    url
        Where it is.
    settings
        How it is asked.
    timeout
        How many seconds an attempt may take.
    allow_private
        Whether it may be this machine or in a private network.
    method
        The HTTP method.
    """

    def __init__(
        self, url: str, settings: ServiceSettings, *, timeout: float, allow_private: bool, method: str = "POST"
    ) -> None:
        settings.check()
        self.endpoint = Endpoint.parse(url)
        if settings.headers and self.endpoint.scheme == "http" and not allow_private:
            raise ModelError(f"{self.endpoint} would be told secrets without encryption: use https.")
        self.secrets = Secrets()
        self._headers = {name: self.secrets.expand(value) for name, value in settings.headers.items()}
        self._settings, self._timeout, self._method = settings, timeout, method
        self._allow_private = allow_private
        self._limit = RateLimit(settings.rate)
        self._breaker = CircuitBreaker(str(self.endpoint), settings.breaker, settings.cooldown)
        self._client: httpx.Client | None = None
        self.requests = 0
        try:
            addresses_of(self.endpoint, allow_private=allow_private)
        except NoAnswer as problem:
            raise ModelError(str(problem)) from None

    def ask(self, payload: object) -> Any:
        """The JSON that the service answers with.

        Parameters
        ----------
        payload
            What is sent, as JSON.
        """
        content = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        for attempt in range(self._settings.retries + 1):
            self._breaker.wait()
            self._limit.wait()
            try:
                answer = self._attempt(content, attempt)
            except Again as failure:
                last = self.secrets.redact(str(failure))
                if failure.status != 429:  # busy is not down
                    self._breaker.failed(last)
                pause = backoff_seconds(
                    self._settings.backoff, self._settings.max_wait, attempt, self._settings.seed, content
                )
                if failure.pause is not None:
                    pause = min(self._settings.max_wait, max(pause, failure.pause))
                    self._limit.hold(pause)
                elif attempt < self._settings.retries:
                    time.sleep(pause)
            else:
                self._breaker.succeeded()
                return answer
        raise NoAnswer(f"{self.endpoint} brought no answer in {self._settings.retries + 1} attempts: {last}")

    def _attempt(self, content: bytes, attempt: int) -> Any:
        endpoint = self.endpoint
        for _ in range(_MOST_REDIRECTS + 1):
            status, headers, body = self._exchange(endpoint, content, attempt)
            if status not in (301, 302, 303, 307, 308):
                return self._read(status, headers, body)
            onward = endpoint.redirected(headers.get("location", ""))
            if onward is None or status not in (307, 308):
                target = self.secrets.redact(clip(headers.get("location", "nowhere"), 120))
                raise ModelGone(
                    f"{self.endpoint} redirects to {target}, and requests are only followed within the same host "
                    "(status 307 or 308). Name the final URL."
                )
            endpoint = onward
        raise ModelGone(f"{self.endpoint} redirects more than {_MOST_REDIRECTS} times. Name the final URL.")

    def _exchange(self, endpoint: Endpoint, content: bytes, attempt: int) -> tuple[int, Mapping[str, str], bytes]:
        """One request and what came back: status, headers and body."""
        import httpx

        try:
            addresses = addresses_of(endpoint, allow_private=self._allow_private)
        except NoAnswer as problem:
            raise Again(str(problem)) from None
        client, deadline = self._connected(), time.monotonic() + self._timeout
        request = client.build_request(
            self._method,
            endpoint.at(addresses[attempt % len(addresses)]),
            content=content,
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": "stockade",
                **self._headers,
                "Host": endpoint.authority,
            },
            extensions={"sni_hostname": endpoint.host},
        )
        self.requests += 1
        try:
            response = client.send(request, stream=True)
            try:
                return response.status_code, response.headers, self._body(response, deadline)
            finally:
                response.close()
        except httpx.TimeoutException:
            raise Again(f"it did not answer within {self._timeout:g} s.") from None
        except httpx.HTTPError as error:
            raise Again(f"the connection failed ({type(error).__name__}: {clip(str(error), 160)}).") from None

    def _body(self, response: httpx.Response, deadline: float) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ModelError(f"{self.endpoint} answers in compressed form, although it was asked not to.")
        parts, size = [], 0
        for part in response.iter_raw(_CHUNK):
            size += len(part)
            if size > self._settings.max_bytes:
                raise ModelError(
                    f"{self.endpoint} answered with more than {self._settings.max_bytes:,} bytes. Use a smaller "
                    "batch_size, or allow more with --setting max_bytes=…"
                )
            if time.monotonic() > deadline:
                raise Again(f"it did not answer within {self._timeout:g} s.")
            parts.append(part)
        return b"".join(parts)

    def _read(self, status: int, headers: Mapping[str, str], body: bytes) -> Any:
        shown = self.secrets.redact(clip(body[:2000].decode("utf-8", "replace"), 160))
        if status in _AGAIN or status >= 500:
            raise Again(f"it answered {status} ({shown}).", status, retry_after_seconds(headers.get("retry-after")))
        if status in _HOPELESS:
            raise ModelGone(
                f"{self.endpoint} answered {status} ({shown}). Check the URL and the headers "
                f"({', '.join(self._settings.headers) or 'none'}). What is finished is kept."
            )
        if not 200 <= status < 300:
            raise ModelError(f"{self.endpoint} answered {status} ({shown}).")
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            if len(body) < 2 or not body.rstrip().endswith((b"}", b"]")):
                raise Again("its answer broke off.") from None
            raise ModelError(f"{self.endpoint} answered with something that is no JSON ({shown}).") from None

    def _connected(self) -> httpx.Client:
        """The client, made when it is first needed; a process that was forked makes its own."""
        import httpx

        if self._client is None:
            workers = self._settings.concurrency
            self._client = httpx.Client(
                timeout=httpx.Timeout(self._timeout),
                limits=httpx.Limits(max_connections=workers, max_keepalive_connections=workers),
                follow_redirects=False,
                trust_env=False,
            )
        return self._client
