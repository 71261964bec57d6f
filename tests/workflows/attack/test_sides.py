"""Attacks on the premise of a pair, from the option to the page, the export and verify."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import stockade as st
from stockade.core.errors import OptionError, RunError
from stockade.core.pairs import Sides
from stockade.core.protocols import Probabilities
from stockade.core.text import Edit, Text, TextInput
from stockade.experiment.export import export_to
from stockade.report.diff import premise_pieces, record_pieces
from stockade.report.document import Document
from stockade.report.examples import Examples, record_example
from stockade.workflows.attack.result import AttackResult
from stockade.workflows.evaluate.premade import load_premade

PAIRS = [(("A good man runs.", "The movie is good."), "yes"), (("A bad man runs.", "The movie is bad."), "no")]
WEIGHTS = {"good": 2.0, "bad": -2.0, "movie": 0.5, "man": 0.5, "hero": -9.0, "film": -9.0, "villain": 9.0}


class Reads:
    """Two classes, by the words of both sides; "hero" and "film", which no text has, turn a yes into a no."""

    labels, deterministic = ("no", "yes"), True

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        assert all(isinstance(item, tuple) for item in inputs)
        odds = [sum(WEIGHTS.get(w.lower(), 0.0) for side in item for w in Text.parse(side).words) for item in inputs]
        return np.array([(1 / (1 + math.exp(o)), 1 / (1 + math.exp(-o))) for o in odds])


@dataclass(frozen=True)
class Swap:
    """Tries one word in every place from the left, and takes the first text that fools the model."""

    word: str = "hero"

    async def search(self, example: st.Example, rng: Any) -> st.Outcome:
        for index in example.indices:
            text = example.text.replace(index, self.word)
            if example.fooled((await st.Score([text]))[0]):
                return st.Outcome.found(text)
        return st.Outcome.failed("no")


def attacked(tmp_path: Path, sides: Sides, **options: Any) -> AttackResult:
    result: AttackResult = st.attack(
        Reads(), PAIRS[:1], Swap(), sides=sides, similarity=False, out=tmp_path / sides, **options
    )
    return result


def test_the_premise_is_edited_recorded_and_verified(tmp_path: Path) -> None:
    result = attacked(tmp_path, "premise")
    (record,) = result.records()
    assert record.status == "success"
    assert (record.premise, record.adversarial_premise) == ("A good man runs.", "hero good man runs.")
    assert (record.original, record.adversarial) == ("The movie is good.", "The movie is good.")
    assert record.edits == (Edit("replace", 0, "A", "hero", "premise"),)
    assert record.perturbed_percent == pytest.approx(25)
    assert record.adversarial_input == ("hero good man runs.", "The movie is good.")
    assert result.manifest.spec["sides"] == "premise"
    assert result.verify(Reads()).holds
    (row,) = result.rows()
    assert (row["adversarial_premise"], row["edits"][0]["side"]) == ("hero good man runs.", "premise")
    export_to(result.rows(), "parquet", tmp_path / "rows.parquet", result.layout)
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist()[0]["edits"][0]["side"] == "premise"


def test_the_hypothesis_is_the_default_and_both_begins_with_the_premise(tmp_path: Path) -> None:
    (hypothesis,) = st.attack(Reads(), PAIRS[:1], Swap(), similarity=False).records()
    assert hypothesis.adversarial_input == ("A good man runs.", "hero movie is good.")
    assert hypothesis.adversarial_premise is None
    assert hypothesis.edits[0].side == "hypothesis"
    (both,) = attacked(tmp_path, "both").records()
    assert both.adversarial_input == ("hero good man runs.", "The movie is good.")
    assert both.perturbed_percent == pytest.approx(100 / 8)


def test_diffs_pages_and_the_terminal_show_the_edit_where_it_was_made(tmp_path: Path) -> None:
    result = attacked(tmp_path, "premise")
    (record,) = result.records()
    pieces = premise_pieces(record)
    assert isinstance(pieces, tuple)
    assert [(piece.kind, piece.before, piece.after) for piece in pieces] == [
        ("replace", "A", "hero"),
        ("same", " good man runs.", " good man runs."),
    ]
    assert [piece.kind for piece in record_pieces(record)] == ["same"]
    page = result.document().to_html()
    assert '<p class="premise"><del><s>A</s></del><ins><b>hero</b></ins> good man runs.</p>' in page
    console = Console(file=StringIO(), width=200, color_system=None)
    example = record_example(record)
    Document(title="", blocks=(Examples(items=[example]),)).to_terminal(console)
    assert "premise: [-A-]{+hero+} good man runs." in console.file.getvalue()  # type: ignore[attr-defined]
    assert (
        "Premise: ~~A~~ **hero** good man runs."
        in Document(title="", blocks=(Examples(items=[example]),)).to_markdown()
    )


def test_similarity_is_that_of_the_side_that_was_edited(tmp_path: Path) -> None:
    (premise,) = st.attack(Reads(), PAIRS[:1], Swap(), sides="premise", out=tmp_path / "a").records()
    swapped = [(("The movie is good.", "A good man runs."), "yes")]
    (hypothesis,) = st.attack(Reads(), swapped, Swap(), out=tmp_path / "b").records()
    assert premise.similarity == hypothesis.similarity
    assert premise.similarity < 0.99


def test_single_texts_and_translators_have_no_sides(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--sides premise is for pairs, and the data are single texts"):
        st.attack(Reads(), [("a good film", "yes")], Swap(), sides="premise", out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(OptionError, match="--sides is for classifiers"):
        st.attack(lambda texts: texts, [("a", "b")], "mt-typo", sides="both")
    with pytest.raises(OptionError, match="sides"):
        st.attack(Reads(), PAIRS, Swap(), sides="left")  # type: ignore[arg-type]


def test_a_run_is_not_resumed_on_another_side(tmp_path: Path) -> None:
    attacked(tmp_path, "premise")
    with pytest.raises(RunError, match='sides was "premise", now "both"'):
        st.attack(Reads(), PAIRS[:1], Swap(), sides="both", similarity=False, out=tmp_path / "premise", resume=True)


def test_a_folder_from_before_there_were_sides_is_resumed_as_the_hypothesis(tmp_path: Path) -> None:
    result = attacked(tmp_path, "hypothesis")
    recorded = dict(result.manifest.spec)
    del recorded["sides"]
    assert type(result.spec).decisive(recorded) == type(result.spec).decisive(result.manifest.spec)
    assert type(result.spec).read(recorded, tmp_path).sides == "hypothesis"


def test_a_defended_model_reads_the_edited_premise() -> None:
    result = st.attack(Reads(), PAIRS[:1], Swap(), defenses="safer", sides="premise", similarity=False)
    (record,) = result.records()
    assert record.adversarial_premise == "hero good man runs."


def test_an_export_is_a_pre_made_set_with_the_edited_premise(tmp_path: Path) -> None:
    result = attacked(tmp_path, "premise")
    (tmp_path / "made.jsonl").write_text("\n".join(json.dumps(row) for row in result.rows()))
    (row,) = load_premade(tmp_path / "made.jsonl").rows()
    assert (row.premise, row.text) == ("hero good man runs.", "The movie is good.")
