"""Waiting for a service, by a clock that a test turns: nobody waits here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from stockade.core.errors import ModelGone
from stockade.models.patience import CircuitBreaker, RateLimit, backoff_seconds, retry_after_seconds


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


def test_pauses_double_and_their_random_part_is_seeded() -> None:
    pauses = [backoff_seconds(0.5, 60.0, attempt, 0, b"request") for attempt in range(10)]
    for attempt, pause in enumerate(pauses):
        full = min(60.0, 0.5 * 2**attempt)
        assert full / 2 <= pause <= full
    assert pauses == [backoff_seconds(0.5, 60.0, attempt, 0, b"request") for attempt in range(10)]
    assert backoff_seconds(0.5, 60.0, 3, 1, b"request") != pauses[3]
    assert backoff_seconds(0.5, 60.0, 3, 0, b"other") != pauses[3]


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), (None, None), ("soon", None), ("", None)]
)
def test_retry_after_in_seconds(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header) == seconds


def test_retry_after_as_a_date() -> None:
    moment = datetime.now(UTC) + timedelta(seconds=90)
    pause = retry_after_seconds(format_datetime(moment, usegmt=True))
    assert pause is not None
    assert 85 < pause < 91
    assert retry_after_seconds(format_datetime(moment - timedelta(days=1), usegmt=True)) == 0.0


def test_requests_keep_their_distance() -> None:
    clock = Clock()
    limit = RateLimit(4.0, clock, clock.sleep)
    for _ in range(5):
        limit.wait()
    assert clock.slept == [0.25] * 4
    limit.hold(10.0)
    limit.wait()
    assert clock.slept[-1] == 10.0


def test_without_a_rate_nobody_waits() -> None:
    clock = Clock()
    limit = RateLimit(None, clock, clock.sleep)
    for _ in range(100):
        limit.wait()
    assert clock.slept == []


def test_a_service_that_fails_is_left_alone_and_given_up_in_the_end() -> None:
    clock = Clock()
    breaker = CircuitBreaker("it", 3, 30.0, clock, clock.sleep)
    for _ in range(2):
        breaker.failed("no")
    breaker.wait()
    assert clock.slept == []
    breaker.failed("no")
    breaker.failed("no")  # was under way when it opened
    for opening in range(1, 4):
        breaker.wait()
        assert clock.slept == [30.0] * opening
        breaker.failed(f"failure {opening}")
    with pytest.raises(ModelGone, match=r"it does not answer: failure 3 .*3 times for 30 s.*resume when it is back"):
        breaker.wait()


def test_an_answer_closes_the_breaker() -> None:
    clock = Clock()
    breaker = CircuitBreaker("it", 2, 30.0, clock, clock.sleep)
    for _ in range(20):
        breaker.failed("no")
        breaker.failed("no")
        breaker.wait()
        breaker.succeeded()
    breaker.failed("no")
    slept = len(clock.slept)
    breaker.wait()
    assert len(clock.slept) == slept
