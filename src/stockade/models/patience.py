"""How long to wait for a service: between attempts, between requests, and while it seems to be down."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

from stockade.core.errors import ModelGone

Clock = Callable[[], float]
Sleep = Callable[[float], None]
_MOST_OPENINGS = 3
"""How often a service may seem to be down, with no answer in between, before it is given up."""


def backoff_seconds(base: float, longest: float, attempt: int, seed: int, content: bytes) -> float:
    """The pause after a failed attempt: twice as long each time, and shortened by up to half at random.

    The randomness keeps requests that failed together from coming back together. It depends on the seed and on what is
    asked alone, so a run waits alike when it is repeated.

    Parameters
    ----------
    base, longest
        Seconds after the first attempt, and at most.
    attempt
        How many attempts there were before.
    seed, content
        The run's setting, and the request.
    """
    jitter = Random(f"{seed}:{attempt}:{hashlib.sha256(content).hexdigest()}").uniform(0.5, 1.0)
    return float(jitter * min(longest, base * 2.0**attempt))


def retry_after_seconds(header: str | None) -> float | None:
    """How many seconds a service asks to be left alone; None if it does not say.

    Parameters
    ----------
    header
        The value of Retry-After: seconds, or a date.
    """
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


class RateLimit:
    """Lets requests go one by one with a distance in time, and holds all of them back when the service asks for it.

    Parameters
    ----------
    rate
        The most requests per second; None for any.
    clock, sleep
        The time, and how to wait; tests have their own.
    """

    def __init__(self, rate: float | None, clock: Clock = time.monotonic, sleep: Sleep = time.sleep) -> None:
        self._interval = 0.0 if rate is None else 1.0 / rate
        self._clock, self._sleep = clock, sleep
        self._lock, self._next = threading.Lock(), 0.0

    def wait(self) -> None:
        """Wait for one's turn."""
        with self._lock:
            turn = max(self._next, self._clock())
            self._next = turn + self._interval
        if (pause := turn - self._clock()) > 0:
            self._sleep(pause)

    def hold(self, seconds: float) -> None:
        """No request begins for so many seconds."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)


class CircuitBreaker:
    """Leaves a service alone for a while after many failures in a row, and gives it up if that does not help.

    Parameters
    ----------
    name
        What errors call the service.
    failures
        How many attempts in a row may fail.
    cooldown
        For how many seconds it is then left alone.
    clock, sleep
        The time, and how to wait.
    """

    def __init__(
        self, name: str, failures: int, cooldown: float, clock: Clock = time.monotonic, sleep: Sleep = time.sleep
    ) -> None:
        self._name, self._limit, self._cooldown = name, failures, cooldown
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._in_a_row = self._openings = 0
        self._closed_until, self._problem = 0.0, ""

    def wait(self) -> None:
        """Wait while the service is left alone; raises `ModelGone` when it was given up."""
        with self._lock:
            if self._openings > _MOST_OPENINGS:
                raise ModelGone(
                    f"{self._name} does not answer: {self._problem} It was left alone {_MOST_OPENINGS} times for "
                    f"{self._cooldown:g} s without a change. What is finished is kept; resume when it is back."
                )
            pause = self._closed_until - self._clock()
        if pause > 0:
            self._sleep(pause)

    def failed(self, problem: str) -> None:
        """An attempt brought no answer. What was under way when the breaker opened does not count."""
        with self._lock:
            if self._clock() < self._closed_until:
                return
            self._in_a_row += 1
            if self._in_a_row >= self._limit:
                self._openings += 1
                self._in_a_row = self._limit - 1  # the next failure opens it again
                self._closed_until, self._problem = self._clock() + self._cooldown, problem

    def succeeded(self) -> None:
        """The service has answered."""
        with self._lock:
            self._in_a_row = self._openings = 0
