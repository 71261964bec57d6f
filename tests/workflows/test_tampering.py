"""What verify notices: every single edit of every column, every field of the manifest and the summary, but for those
that docs/runs.md calls harmless; and whole rows that are exchanged or left out, even when the summary is written again.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import StockadeError
from stockade.experiment.result import DIGEST, SUMMARY, Result, Verification
from stockade.experiment.store import FILE_NAME
from stockade.experiment.workspace import MANIFEST
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 3.0, "great": 1.0, "bad": -3.0, "dull": -1.0}, bias=0.2)
DATA = [
    ("a good film", "positive"),
    ("a great film with a good cast", "positive"),
    ("a dull film", "negative"),
    ("a bad and dull film", "negative"),
    ("a film", "negative"),
    ("good " * 30, "positive"),
]
"""Attacked with a budget of 12 queries and at most 20 words: successes, failures, one that is wrong, one error."""
RUNS = Path(__file__).parents[2] / "docs" / "runs.md"
Place = tuple[Any, ...]


def attacked(folder: Path) -> None:
    st.attack(VICTIM, DATA, ["pwws", "deepwordbug"], out=folder, similarity=False, budget=12, max_words=20)


def certified(folder: Path) -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.6)
    st.certify(robust, DATA, ["ranmask-gap:most=80,selection=20", "ranmask-exact"], out=folder, max_words=20)


MAKERS = {"attack": attacked, "certify": certified}


@pytest.fixture(scope="module", params=MAKERS)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / str(request.param)
    MAKERS[request.param](folder)
    assert checked(folder).holds
    statuses = {row["status"] for row in st.load(folder).rows()}
    assert statuses == (
        {"success", "failed", "skipped", "error"} if "attack" in folder.name else {"certified", "error"}
    )
    return folder


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / original.name))


def checked(folder: Path) -> Verification:
    result = st.load(folder)
    return result.verify(VICTIM) if result.kind == "attack" else result.verify()


def is_noticed(folder: Path) -> bool:
    try:
        return not checked(folder).holds
    except StockadeError:  # exit code 2
        return True


@cache
def harmless() -> frozenset[tuple[str, str]]:
    """The files and fields that docs/runs.md says may be edited."""
    table = RUNS.read_text(encoding="utf-8").split("| harmless edit |")[1].split("\n\n")[0]
    return frozenset(re.findall(r"^\| `(\S+)` `(\S+)` ", table, re.MULTILINE))


def leaves(value: object, place: Place = ()) -> Iterator[Place]:
    """Where the single values of a JSON document are, with empty lists and mappings."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from leaves(item, (*place, key))
    if not isinstance(value, dict | list) or not value:
        yield place


def changed(value: object) -> object:
    """Another value that could stand there."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return {"success": "failed", "failed": "skipped", "certified": "abstained"}.get(value, value + "x")
    return "x" if value is None else [0] if isinstance(value, list) else {"x": 0}


def edited(document: Any, place: Place) -> Any:
    if not place:
        return changed(document)
    document = copy.deepcopy(document)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = changed(inner[place[-1]])
    return document


def test_every_field_of_the_manifest_and_the_summary(run: Path) -> None:
    unnoticed = set()
    for name in (MANIFEST, SUMMARY):
        path = run / name
        before = path.read_text(encoding="utf-8")
        content = json.loads(before)
        edits = {".".join(map(str, place)): edited(content, place) for place in leaves(content)}
        edits |= {f"no {key}": {other: content[other] for other in content if other != key} for key in content}
        for field, edit in edits.items():
            path.write_text(json.dumps(edit), encoding="utf-8")
            if not is_noticed(run):
                unnoticed.add((name, field.removeprefix("no ")))
        path.write_text(before, encoding="utf-8")
    assert unnoticed == {(name, field) for name, field in harmless() if name != FILE_NAME}
    assert checked(run).holds


def test_every_column_of_every_table(run: Path) -> None:
    path, edits = run / FILE_NAME, 0
    unnoticed: set[tuple[str, str]] = set()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert sorted(tables) == ["effort", "results"]
        for table in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for rowid, *values in connection.execute(f"SELECT rowid, * FROM {table}").fetchall():
                for column, value in zip(columns, values, strict=True):
                    for place, other in other_values(column, value):
                        update = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
                        connection.execute(update, (other, rowid))
                        edits += 1
                        if not is_noticed(run):
                            unnoticed.add((FILE_NAME, ".".join(map(str, (table, column, *place)))))
                        connection.execute(update, (value, rowid))
    expected = {(name, field) for name, field in harmless() if name == FILE_NAME}
    if run.name == "attack":
        expected.discard((FILE_NAME, "effort.model_seconds"))
    assert unnoticed == expected
    assert edits > 200
    assert checked(run).holds


def other_values(column: str, value: Any) -> Iterator[tuple[Place, object]]:
    """Other values of a cell; of a document one for each of its fields, not deeper than two."""
    if column != "document":
        yield (), changed(value)
        return
    document = json.loads(value)
    for place in {place[:2] for place in leaves(document)}:
        yield place, json.dumps(edited(document, place))


def rewritten(folder: Path, change: Callable[[sqlite3.Connection], object]) -> Verification:
    """A run after a change of its rows, with a summary that was made from them."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        change(connection)
    result: Result = st.load(folder)
    result.write_summary()
    return checked(folder)


def documents(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    first = connection.execute("SELECT part FROM results ORDER BY rowid").fetchone()[0]
    query = "SELECT id, document FROM results WHERE part = ?"
    return {identity: json.loads(document) for identity, document in connection.execute(query, (first,))}


def put(connection: sqlite3.Connection, identity: str, document: dict[str, Any]) -> None:
    part = document.get("attack", document.get("method"))
    query = "UPDATE results SET document = ?, status = ? WHERE part = ? AND id = ?"
    connection.execute(query, (json.dumps(document), document["status"], part, identity))


def overwrite(connection: sqlite3.Connection, *, rename: bool) -> None:
    """The text that came out best in the place of another one."""
    rows = documents(connection)
    put(connection, "4", {**rows["0"], "id": "4"} if rename else rows["0"])


def swap_label(connection: sqlite3.Connection) -> None:
    put(connection, "4", {**documents(connection)["4"], "label": "positive"})


def swap_order(connection: sqlite3.Connection) -> None:
    for identity, position in (("0", 1), ("1", 0)):
        connection.execute("UPDATE results SET position = ? WHERE id = ?", (position, identity))


SET_EDITS: dict[str, Callable[[sqlite3.Connection], object]] = {
    "a copy of another row": lambda connection: overwrite(connection, rename=False),
    "a copy of another row under this id": lambda connection: overwrite(connection, rename=True),
    "a swapped label": swap_label,
    "another order": swap_order,
    "another status": lambda connection: connection.execute("UPDATE results SET status = 'success' WHERE id = '5'"),
    "a row more": lambda connection: connection.execute(
        "INSERT INTO results SELECT part, '9', 6, status, document FROM results WHERE id = '0'"
    ),
    "another part": lambda connection: connection.execute("UPDATE results SET part = part || '@old' WHERE id = '5'"),
}


@pytest.mark.parametrize("edit", SET_EDITS)
def test_the_set_is_protected_even_from_whoever_writes_the_summary_again(run: Path, edit: str) -> None:
    verification = rewritten(run, SET_EDITS[edit])
    assert verification.problems
    assert verification.exit_code == 1


def test_the_hash_of_the_rows_must_be_there_and_theirs(run: Path) -> None:
    (run / DIGEST).write_text("0" * 64)
    assert checked(run).problems == (f"the stored rows are not those that the summary was made from: {DIGEST} differs",)
    (run / DIGEST).unlink()
    (problem,) = checked(run).problems
    assert "is missing" in problem


def test_rows_that_are_left_out_make_a_run_incomplete(run: Path) -> None:
    verification = rewritten(run, lambda connection: connection.execute("DELETE FROM results WHERE id IN ('4', '5')"))
    assert verification.problems == ()
    assert not verification.holds
    assert verification.exit_code == 3
    assert all("4 of 6 texts have a result" in sentence for sentence in verification.incomplete)
    assert verification.sentence == "8 results checked: incomplete"


def test_a_folder_without_a_commitment_is_checked_as_far_as_it_goes(run: Path) -> None:
    """As versions before made it: the rows hold, and nobody can tell whether there were others."""
    manifest = json.loads((run / MANIFEST).read_text())
    del manifest["checksum"], manifest["inputs"]["data"]["commitment"]
    (run / MANIFEST).write_text(json.dumps(manifest))
    (run / DIGEST).unlink()
    verification = checked(run)
    assert verification.problems == ()
    (sentence,) = verification.incomplete
    assert "recorded no commitment" in sentence
    assert verification.exit_code == 3


def test_equal_texts_and_labels_have_equal_commitments(tmp_path: Path) -> None:
    def commitment(folder: str, data: list[tuple[str, str]]) -> str:
        run = st.attack(VICTIM, data, "pwws", similarity=False, budget=1, out=tmp_path / folder)
        return str(run.manifest.inputs["data"]["commitment"])

    first = commitment("a", DATA)
    assert commitment("b", DATA) == first
    assert commitment("c", [*DATA[1:], DATA[0]]) != first
    assert commitment("d", [(DATA[0][0], "negative"), *DATA[1:]]) != first
