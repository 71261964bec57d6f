"""The store of results: what goes in comes back, in order, whatever happens to the process."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.errors import RunError
from stockade.core.text import Edit
from stockade.experiment.store import Codec, Effort, ResultStore
from stockade.workflows.attack.result import CODEC
from tests.records import record


@given(st.text(), st.text(), st.floats(0, 1))
def test_a_record_comes_back_as_it_was_whatever_its_characters(original: str, after: str, score: float) -> None:
    edits = (Edit("replace", 0, original, after),)
    stored = record("7", "success", original=original, adversarial=after, edits=edits, similarity=score)
    assert CODEC.read(CODEC.encode(stored)) == stored


def test_lone_surrogates_survive_the_database(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, writable=True)
    store.add("pwws", "0", {"text": "broken \ud800 pair"})
    assert ResultStore(tmp_path).get("pwws", "0") == {"text": "broken \ud800 pair"}


def test_documents_come_back_in_the_order_of_the_data_part_by_part(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, writable=True)
    for position in (2, 0, 1):
        store.add("toy", str(position), {"id": position}, position=position, status="failed" if position else "success")
    store.add("another", "0", {"id": 10})
    reader = ResultStore(tmp_path)
    assert [document["id"] for document in reader.documents()] == [0, 1, 2, 10]
    assert [document["id"] for document in reader.documents("toy", "failed")] == [1, 2]
    assert reader.parts() == ["toy", "another"]
    assert reader.ids("toy") == {"0", "1", "2"}
    assert reader.get("toy", "9") is None


def test_a_result_is_replaced_not_doubled(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, writable=True)
    store.add("toy", "0", {"similarity": None}, position=3)
    store.replace("toy", [("0", {"similarity": 0.9}), ("missing", {"similarity": 0.1})])
    assert list(store.documents()) == [{"similarity": 0.9}]


def test_effort_adds_up_over_the_sessions_of_an_interrupted_job(tmp_path: Path) -> None:
    for session in range(2):
        store = ResultStore(tmp_path, writable=True)
        assert store.session == session
        store.add("toy", str(2 * session), {}, effort=Effort(1.0, 0.5, 10))
        store.add("toy", str(2 * session + 1), {}, effort=Effort(3.0, 1.5, 30))
        store.close()
    reader = ResultStore(tmp_path)
    assert reader.effort("toy") == Effort(6.0, 3.0, 60)
    assert reader.effort("unknown") == Effort(0.0, 0.0, 0)


def test_after_settling_one_file_holds_everything(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, writable=True)
    store.add("toy", "0", {"kept": True})
    store.settle()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "run.sqlite").write_bytes((tmp_path / "run.sqlite").read_bytes())
    assert ResultStore(copy).get("toy", "0") == {"kept": True}


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no run\.sqlite"):
        ResultStore(tmp_path)
    (tmp_path / "run.sqlite").write_bytes(b"not a database" * 500)
    with pytest.raises(RunError, match="cannot be read"):
        ResultStore(tmp_path)


def test_a_document_of_another_shape_is_refused_in_one_sentence() -> None:
    codec: Codec[int] = Codec(lambda value: {"value": value}, lambda document: int(document["value"]))
    assert codec.read({"value": 3}) == 3
    with pytest.raises(RunError, match="cannot be read"):
        codec.read({"other": 3})
