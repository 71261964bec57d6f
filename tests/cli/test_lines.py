"""Jobs whose output goes to a log say how far they are, without filling it."""

from __future__ import annotations

import pytest

from stockade.cli import progress
from stockade.cli.lines import SECONDS_BETWEEN_LINES, Lines
from stockade.runs.attack import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_line_a_minute_with_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    lines = Lines(clock)
    for done in range(1, 41):
        clock.now += 5
        lines.tell("pwws", f"{done} of 1000 texts", done, 1_000)
    assert capsys.readouterr().err.splitlines() == [
        "stockade: pwws: 12 of 1000 texts, about 1 h 22 min left",
        "stockade: pwws: 24 of 1000 texts, about 1 h 21 min left",
        "stockade: pwws: 36 of 1000 texts, about 1 h 20 min left",
    ]


def test_each_part_has_its_own_pace_and_what_was_there_before_is_not_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    lines = Lines(clock)
    clock.now += 50
    lines.tell("fast", "1 of 2", 1, 2)
    clock.now += 120
    lines.tell("resumed", "98 of 100", 98, 100)
    clock.now += 60
    lines.tell("resumed", "100 of 100", 100, 100)
    assert capsys.readouterr().err.splitlines() == [
        "stockade: resumed: 98 of 100, about 4 min left",
        "stockade: resumed: 100 of 100, less than a minute left",
    ]


def test_commands_use_them_when_nobody_looks_at_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "Lines", lambda: Lines(clock))
    with progress.watch("demo: ") as observer:
        observer(Progress("pwws", "success", 1, 10))
        assert capsys.readouterr().err == ""
        clock.now += SECONDS_BETWEEN_LINES
        observer(Progress("pwws", "success", 5, 10))
    assert capsys.readouterr().err == "stockade: demo: pwws: 5 of 10 texts, about 1 min left\n"
