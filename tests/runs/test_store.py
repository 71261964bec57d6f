from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.errors import RunError
from stockade.core.text import Edit
from stockade.runs.store import Effort, Store, _from_json, _to_json
from tests.runs.records import record


@given(st.text(), st.text(), st.floats(0, 1))
def test_a_record_comes_back_as_it_was_whatever_its_characters(original: str, after: str, score: float) -> None:
    kept = record("7", "success", original=original, adversarial=after, edits=(Edit("replace", 0, original, after),))
    assert _from_json(_to_json(kept), None) == kept


def test_records_come_back_in_the_order_of_the_data(tmp_path: Path) -> None:
    with Store(tmp_path, writable=True) as store:
        for position in (2, 0, 1):
            store.add(record(position), position, 0, Effort())
        store.add(record(0, attack="another"), 0, 0, Effort())
    with Store(tmp_path) as store:
        assert [(r.attack, r.id) for r in store.records()] == [
            ("toy", "0"),
            ("toy", "1"),
            ("toy", "2"),
            ("another", "0"),
        ]
        assert store.finished_ids("toy") == {"0", "1", "2"}


def test_effort_adds_up_over_the_parts_of_an_interrupted_run(tmp_path: Path) -> None:
    for part in range(2):
        with Store(tmp_path, writable=True) as store:
            assert store.next_part() == part
            store.add(record(2 * part), 2 * part, part, Effort(1.0, 0.5, 10))
            store.add(record(2 * part + 1), 2 * part + 1, part, Effort(3.0, 1.5, 30))
    with Store(tmp_path) as store:
        assert store.effort("toy") == Effort(6.0, 3.0, 60)
        assert store.effort("unknown") == Effort(0.0, 0.0, 0)


def test_similarities_are_filled_in_where_they_are_missing(tmp_path: Path) -> None:
    with Store(tmp_path, writable=True) as store:
        store.add(record(0, "success"), 0, 0, Effort())
        store.add(record(1, "success"), 1, 0, Effort())
        store.add(record(2, "failed"), 2, 0, Effort())
        store.set_similarities("toy", [("0", 0.9)])
        assert [r.id for r in store.unmeasured("toy")] == ["1"]
        assert [r.similarity for r in store.records("toy")] == [0.9, None, None]


def test_two_processes_cannot_work_on_one_run(tmp_path: Path) -> None:
    with Store(tmp_path, writable=True), pytest.raises(RunError, match="Another process"):
        Store(tmp_path, writable=True)
    with Store(tmp_path, writable=True), Store(tmp_path) as reader:
        assert list(reader.records()) == []


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no run\.sqlite"):
        Store(tmp_path)
    (tmp_path / "run.sqlite").write_bytes(b"not a database" * 500)
    with pytest.raises(RunError, match="cannot be read"):
        Store(tmp_path)
