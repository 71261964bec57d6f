"""Jobs whose output goes to a log say how far they are, without filling it."""

from __future__ import annotations

import pytest

import stockade as st
from stockade.cli import progress
from stockade.cli.progress import SECONDS_BETWEEN_LINES, Lines
from stockade.experiment.progress import Progress, within


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
        lines.show(Progress(part="pwws", done=done, total=1_000))
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
    lines.show(Progress(part="fast", done=1, total=2))
    clock.now += 120
    lines.show(Progress(part="resumed", done=98, total=100, unit="trials", before=0.97))
    clock.now += 60
    lines.show(Progress(part="resumed", done=100, total=100, unit="trials", before=0.97))
    assert capsys.readouterr().err.splitlines() == [
        "stockade: resumed: 98 of 100 trials, about 4 min left",
        "stockade: resumed: 100 of 100 trials, less than a minute left",
    ]


def test_time_left_follows_the_share_of_queries_where_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    lines = Lines(clock)
    clock.now += 60
    lines.show(Progress(part="pwws", done=1, total=40, fraction=0.25))  # most queries of many texts are spent already
    clock.now += 60
    lines.show(Progress(part="pwws", done=2, total=40, fraction=0.5))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("stockade: pwws: 1 of 40 texts")
    assert second == "stockade: pwws: 2 of 40 texts, about 2 min left"


def test_commands_use_them_when_nobody_looks_at_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "Lines", lambda: Lines(clock))
    with progress.watch() as watching:
        observer = within("demo", watching)
        assert observer is not None
        observer(Progress(part="pwws", status="success", done=1, total=10))
        assert capsys.readouterr().err == ""
        clock.now += SECONDS_BETWEEN_LINES
        observer(Progress(part="pwws", status="success", done=5, total=10))
    assert capsys.readouterr().err == "stockade: demo: pwws: 5 of 10 texts, about 1 min left\n"


def test_a_run_tells_how_much_of_its_work_is_done_between_texts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.experiment.progress.QUIET_SECONDS", -1.0)
    rows = [(f"a good and fine film number {number}", 1) for number in range(12)]
    seen: list[Progress] = []
    st.attack(lambda texts: [[0.1, 0.9]] * len(texts), rows, "pwws", similarity=False, observer=seen.append)
    ended = [progress for progress in seen if progress.status is not None]
    assert [progress.done for progress in ended] == list(range(1, 13))
    shares = [progress.share for progress in seen]
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1.0
    assert len(seen) > len(ended), "the share is told between texts"
