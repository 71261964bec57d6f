"""A run against a randomised model: both rules of success in records, summary, tables, pages, exports and verify."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.attacks.trial import CONFIRMATION
from stockade.core.errors import RunError
from stockade.core.records import Record
from stockade.core.statistics import wilson
from stockade.defenses.defended import Defended
from stockade.experiment.store import Effort, ResultStore
from stockade.report.document import Table
from stockade.report.examples import record_example
from stockade.workflows.attack.result import CODEC
from stockade.workflows.attack.summary import summarise_attack, summarise_classes
from stockade.workflows.attack.tables import summary_table
from tests.attacks.test_first_flip import Flips
from tests.records import record
from tests.toys import WeightVictim
from tests.workflows.evaluate.test_resume import interrupt_every

ATTACK = "deepwordbug@textattack"
DATA = [
    (f"{article} {word} film with many scenes in it", "positive")
    for word in ("good", "fine")
    for article in ("a", "i", "x", "y", "z")
]
"""A word of one letter cannot be misspelled."""
FIELDS = (
    "hits",
    "draws",
    "dismissed",
    "first_flip",
    "first_flip_text",
    "first_flip_premise",
    "first_flip_query",
    "first_flip_queries",
)


def victim(chance: float = 0.2) -> Defended:
    """Without "x", "y" or "z" it reads "good" and "fine" alone; any text fools it now and then."""
    inner = WeightVictim({"good": 3.0, "fine": 3.0, "x": 9.0, "y": 9.0, "z": 9.0}, bias=-2.0)
    return Defended(name="flips", defense=Flips(chance), inner=inner)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> st.AttackResult:
    out = tmp_path_factory.mktemp("runs") / "flips"
    result: st.AttackResult = st.attack(victim(), DATA, ATTACK, similarity=False, out=out)
    return result


def test_both_rules_are_in_every_record_that_was_attacked(run: st.AttackResult) -> None:
    attacked = [each for each in run.examples if each.status in ("success", "failed")]
    assert {each.status for each in attacked} == {"success", "failed"}
    for each in attacked:
        assert isinstance(each.first_flip, bool)
        assert (each.first_flip_text is not None) == each.first_flip
        assert each.first_flip_queries is not None
        assert each.first_flip_queries <= each.queries
        assert each.hit_rate == (None if each.draws is None else (each.hits or 0) / each.draws)
        if each.status == "success":
            assert each.first_flip
            assert "good" not in (each.adversarial or "")
            assert "fine" not in (each.adversarial or "")
    lucky = [each for each in attacked if each.first_flip and each.status == "failed"]
    assert lucky, "the model flips one time in five"
    assert all(each.dismissed and (each.hit_rate or 0) < 0.5 for each in lucky)
    others = [each for each in run.examples if each not in attacked]
    assert all(getattr(each, name) is None for each in others for name in FIELDS)


def test_the_summary_counts_both_with_intervals_computed_by_hand() -> None:
    flip: dict[str, Any] = {"first_flip": True, "first_flip_text": "a film", "first_flip_query": 4, "draws": 8}
    records = [
        record(0, "success", hits=8, dismissed=0, first_flip_queries=5, queries=5, **flip),
        record(1, "success", hits=8, dismissed=2, first_flip_queries=5, queries=9, **flip),
        record(2, "failed", hits=0, dismissed=1, first_flip_queries=5, queries=20, **flip),
        record(3, "failed", first_flip=False, dismissed=0, first_flip_queries=30, queries=30),
        record(4, "skipped"),
        record(5, "error"),
    ]
    summary = summarise_attack(records, Effort())
    assert summary["robust_accuracy"] == wilson(2, 5)
    assert summary["success_rate"] == wilson(2, 4)
    assert summary["first_flip_succeeded"] == 3
    assert summary["first_flip_robust_accuracy"] == wilson(1, 5)
    assert summary["first_flip_success_rate"] == wilson(3, 4)
    assert (summary["mean_queries"], summary["first_flip_mean_queries"]) == (16.0, 11.25)
    assert (summary["dismissed"], summary["mean_draws"]) == (3, 8.0)
    by_class = summarise_classes(records, ("negative", "positive"))["positive"]
    assert by_class["first_flip_success_rate"] == wilson(3, 4)
    assert "first_flip_success_rate" not in summarise_attack(
        [dataclasses.replace(each, first_flip=None) for each in records], Effort()
    )


def test_a_deterministic_model_has_one_rule_and_looks_as_ever() -> None:
    plain = st.attack(victim().inner, DATA, ATTACK, similarity=False)
    (summary,) = plain.summary["attacks"].values()
    assert not [name for name in summary if "first_flip" in name or name in ("dismissed", "mean_draws")]
    assert "confirmation" not in plain.manifest.inputs
    page = plain.document().to_markdown()
    assert "first flip" not in page
    assert "repeat" not in page
    assert all(getattr(each, name) is None for each in plain.examples for name in FIELDS)


def test_the_page_leads_with_what_repeats_and_says_the_first_flip_beside_it(run: st.AttackResult) -> None:
    (numbers,) = run.summary["attacks"].values()
    repeated, flipped = (round(100 * numbers[name]["value"]) for name in ("success_rate", "first_flip_success_rate"))
    assert repeated < flipped
    document = run.document()
    assert document.title == f"{ATTACK} fools {repeated} % of the texts repeatedly, {flipped} % at the first flip"
    page = document.to_markdown()
    assert (
        f"{numbers['succeeded']} of {numbers['attacked']} texts fooled in at least half of the model's answers" in page
    )
    assert f"By the first flip, as papers count: {numbers['first_flip_succeeded']} of {numbers['attacked']}" in page
    assert "under attack, first flip" in document.to_html()
    (table,) = [block for block in document.blocks if isinstance(block, Table) and "attack" in block.columns[:1]][:1]
    assert list(table.columns[3:7]) == [
        "robust, repeatable", "robust, first flip", "success, repeatable",
        "success, first flip",
    ]  # fmt: skip
    assert str(table.rows[0][5]).startswith(f"{100 * numbers['success_rate']['value']:.1f} %")
    assert str(table.rows[0][6]).startswith(f"{100 * numbers['first_flip_success_rate']['value']:.1f} %")


def test_beside_a_randomised_model_a_deterministic_one_has_the_same_by_both(run: st.AttackResult) -> None:
    plain = st.attack(victim().inner, DATA, ATTACK, similarity=False)
    table = summary_table([plain, run], ["before", "after"])
    before = table.rows[0]
    assert before[4] == before[5]
    assert before[6] == before[7]


def test_examples_say_draws_and_first_flip() -> None:
    flip: dict[str, Any] = {
        "hits": 2,
        "draws": 12,
        "hit_rate": 1 / 6,
        "dismissed": 3,
        "first_flip": True,
        "first_flip_queries": 7,
    }
    failed = record_example(record(0, "failed", **flip)).details
    assert failed[-3:] == (
        "fools the model in 17% of 12 draws",
        "first flip after 7 queries, which does not repeat",
        "3 flips that did not repeat",
    )
    assert "first flip after 7 queries" in record_example(record(0, "success", **flip)).details


def test_exports_hold_every_field(run: st.AttackResult, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from stockade.experiment.export import export_to

    assert set(FIELDS) <= set(run.to_pandas().columns)
    rows = list(run.rows())
    for format in ("jsonl", "csv", "parquet"):
        export_to(run.rows(), format, tmp_path / f"r.{format}", run.layout)
    written = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [{name: row[name] for name in FIELDS} for row in written] == [
        {name: row[name] for name in FIELDS} for row in rows
    ]
    kept = pq.read_table(tmp_path / "r.parquet").to_pylist()
    assert [row["first_flip"] for row in kept] == [row["first_flip"] for row in rows]
    assert [row["draws"] for row in kept] == [row["draws"] for row in rows]


def test_neither_concurrency_nor_a_resume_changes_anything(run: st.AttackResult, tmp_path: Path) -> None:
    alone = st.attack(victim(), DATA, ATTACK, similarity=False, concurrency=1, out=tmp_path / "alone")
    assert alone.examples == run.examples
    interrupted = 0
    stop = interrupt_every(2)
    options: dict[str, Any] = {"similarity": False, "out": tmp_path / "broken", "resume": True, "observer": stop}
    while True:
        try:
            resumed = st.attack(victim(), DATA, ATTACK, **options)
            break
        except KeyboardInterrupt:
            interrupted += 1
    assert interrupted
    assert sorted(map(repr, resumed.examples)) == sorted(map(repr, run.examples))


def test_a_first_flip_is_asked_again_with_the_random_choices_of_its_query(run: st.AttackResult) -> None:
    """The chance is one in five: that every first flip flips again is not by luck."""
    assert sum(bool(each.first_flip) for each in run.examples) > 2
    verification = run.verify(victim())
    assert verification.holds, verification.problems


def changed(run: st.AttackResult, folder: Path, **fields: Any) -> list[str]:
    """What `verify` says of a copy of the run in which the first failure with a first flip is another one."""
    copy = run.save(folder)
    wrong = next(each for each in copy.examples if each.status == "failed" and each.first_flip)
    copy.store.close()
    store = ResultStore(folder, writable=True)
    store.replace(ATTACK, [(wrong.id, {**CODEC.encode(wrong), **fields})])
    store.close()
    problems = st.load(folder).verify(victim()).problems
    mark = f"{ATTACK}, example {wrong.id}: "
    return [problem.removeprefix(mark) for problem in problems if problem.startswith(mark)]


def test_verify_sees_a_first_flip_that_was_made_up(run: st.AttackResult, tmp_path: Path) -> None:
    draws = {"first_flip_query": 999}
    assert changed(run, tmp_path / "a", **draws) == [
        "the first flip does not fool the model with the random choices of its query"
    ]
    assert changed(run, tmp_path / "b", first_flip=False) == [
        "recorded as no first flip, with the text "
        + next(each.first_flip_text or "" for each in run.examples if each.status == "failed" and each.first_flip)
    ]
    assert changed(run, tmp_path / "c", hits=8, draws=8, hit_rate=1.0) == ["recorded as failed, with 8 hits in 8 draws"]
    assert changed(run, tmp_path / "d", hit_rate=0.25, hits=1, draws=8) == [
        "recorded a hit rate of 0.25, and 1 hits in 8 draws"
    ]


def older(run: st.AttackResult, folder: Path) -> st.AttackResult:
    """The run as a version wrote it that knew one rule alone."""
    copy = run.save(folder)
    documents = [(each.id, _without(CODEC.encode(each))) for each in copy.examples]
    copy.store.close()
    store = ResultStore(folder, writable=True)
    store.replace(ATTACK, documents)
    store.close()
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["inputs"]["confirmation"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return st.AttackResult.open(folder)


def _without(document: Any) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in FIELDS}


def test_an_older_run_opens_with_the_rule_it_has(run: st.AttackResult, tmp_path: Path) -> None:
    old = older(run, tmp_path / "old")
    (numbers,) = old.summary["attacks"].values()
    assert numbers["success_rate"] == run.summary["attacks"][ATTACK]["success_rate"]
    assert "first_flip_success_rate" not in numbers
    assert "first flip" not in old.document().to_markdown()
    assert all(each.first_flip is None for each in old.examples)
    table = summary_table([old, run], ["old", "new"])
    assert (table.rows[0][5], table.rows[0][7]) == ("n/a", "n/a")


def test_an_older_run_is_not_gone_on_with_under_another_rule(run: st.AttackResult, tmp_path: Path) -> None:
    assert run.manifest.inputs["confirmation"] == CONFIRMATION
    older(run, tmp_path / "old")
    with pytest.raises(
        RunError, match=r"was made with another configuration: confirmation\.error was nothing, now 0.05"
    ):
        st.attack(victim(), DATA, ATTACK, similarity=False, out=tmp_path / "old", resume=True)


def test_the_fields_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "runs.md").read_text(encoding="utf-8")
    names = [field.name for field in dataclasses.fields(Record)]
    assert [name for name in names if f"`{name}`" not in page] == []
    flipped = record(0, "success", first_flip=True, hits=8, draws=8, first_flip_queries=3, dismissed=0)
    assert [name for name in summarise_attack([flipped], Effort()) if f"`{name}`" not in page] == []
