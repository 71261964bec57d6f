"""PWWS with a table of named entities: which words get the table's name, and which stay words like any other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from stockade import attack as run_attack
from stockade.attacks.pwws import PWWS, words_by_class
from stockade.attacks.registry import make_attack
from stockade.core.errors import DataError, ResourceMissing, RunError
from stockade.lexicon import entities as named_entities
from stockade.lexicon.entities import EntityTable
from tests.attacks.driving import attack
from tests.attacks.test_pwws import FakeTagger, FakeWordNet
from tests.entities import ListFinder
from tests.toys import WeightVictim

FINDER = ListFinder({"film": "GPE", "Paris": "GPE", "London": "GPE", "today": "DATE", "New Film": "GPE"})
WEIGHTS = {"film": 1.0, "picture": 0.9, "movie": 0.8, "rome": -1.0, "monday": -1.0, "paris": 1.0, "today": 1.0}


@pytest.fixture(autouse=True)
def language(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("stockade.attacks.pwws", "stockade.lexicon.synonyms"):
        monkeypatch.setattr(f"{module}.load_wordnet", FakeWordNet)
        monkeypatch.setattr(f"{module}.load_tagger", FakeTagger)
    monkeypatch.setattr("stockade.attacks.pwws.finder_name", lambda: FINDER.name)
    monkeypatch.setattr("stockade.attacks.pwws.load_finder", lambda: FINDER)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "t.json"
    EntityTable({"positive": {"GPE": "Rome", "DATE": "Monday"}, "negative": {"GPE": "Oslo"}}).write(path)
    return str(path)


def test_the_name_stands_in_place_of_synonyms(table: str) -> None:
    """ "film" has the synonyms "movie" and "picture", neither of which would fool the victim."""
    result = attack(WeightVictim(WEIGHTS), "a film", PWWS(entities=table))
    assert result.words == ("a", "rome")
    assert result.queries == 1 + 2 + 1 + 1  # the original, two words hidden, one candidate, and that again
    assert attack(WeightVictim(WEIGHTS), "a film", PWWS()).trial.status == "failed"


@pytest.mark.parametrize("preset", ["paper", "authors", "textattack"])
def test_every_preset_takes_a_table(table: str, preset: str) -> None:
    made = make_attack(f"pwws:entities={table}", preset)
    assert made.options["entities"] == table
    assert attack(WeightVictim(WEIGHTS), "film", made.attack).words == ("rome",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("paris .", "rome ."),
        ("Paris .", "Rome ."),
        ("PARIS !", "ROME !"),
        ("Paris's", "Rome's"),
        ("We left today", "We left Monday"),
        ("we left today", "we left monday"),
    ],
)
def test_the_name_takes_the_case_and_the_ending_of_the_word_it_replaces(table: str, text: str, expected: str) -> None:
    weights = {**WEIGHTS, "paris's": 1.0, "rome's": -1.0}
    assert str(attack(WeightVictim(weights), text, PWWS(entities=table)).trial.text) == expected


def test_the_true_class_decides_which_name(table: str) -> None:
    weights = {"paris": -1.0, "oslo": 1.0, "rome": -2.0}
    assert attack(WeightVictim(weights), "Paris", PWWS(entities=table), label=0).words == ("Oslo",)


def test_parts_of_longer_names_and_types_without_a_name_are_words_like_any_other(table: str) -> None:
    weights = {"film": 1.0, "picture": -1.0, "movie": 0.5, "today": -0.5}
    assert attack(WeightVictim(weights), "New Film", PWWS(entities=table)).words == ("New", "Picture")
    flipped = {"today": -1.0, "monday": 5.0}  # the class "negative" has no DATE
    result = attack(WeightVictim(flipped), "today", PWWS(entities=table), label=0)
    assert result.trial.reason == "no word has a synonym"


def test_a_word_that_is_the_name_already_has_no_candidate(tmp_path: Path) -> None:
    EntityTable({"positive": {"GPE": "Film"}}).write(tmp_path / "t.json")
    victim = WeightVictim({"film": 1.0, "picture": -1.0})
    result = attack(victim, "Film", PWWS(entities=str(tmp_path / "t.json")))
    assert result.trial.reason == "no word has a synonym"


def test_a_class_that_is_missing_in_the_table_is_attacked_by_synonyms(tmp_path: Path) -> None:
    EntityTable({"negative": {"GPE": "Rome"}}).write(tmp_path / "t.json")
    victim = WeightVictim({"film": 1.0, "picture": -1.0, "rome": -5.0})
    assert attack(victim, "film", PWWS(entities=str(tmp_path / "t.json"))).words == ("picture",)


@pytest.mark.parametrize(
    ("classes", "labels", "expected"),
    [
        (("negative", "positive"), ("negative", "positive"), [0, 1]),
        (("Positive", "NEG"), ("negative", "positive"), [1, 0]),
        (("0", "1"), ("negative", "positive"), [0, 1]),
        (("1", "5"), ("1", "2", "3", "4", "5"), [0, 4]),
        (("LABEL_1",), ("LABEL_0", "LABEL_1"), [1]),
    ],
)
def test_classes_are_matched_as_labels_of_data_are(
    classes: tuple[str, ...], labels: tuple[str, ...], expected: list[int]
) -> None:
    content = json.dumps({"schema": 1, "classes": {name: {"GPE": "Rome"} for name in classes}}).encode()
    assert list(words_by_class(content, "t.json", labels)) == expected


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (
            ("negative", "postive"),
            r'"postive" in t.json is none of .*\(negative, positive\).*--label-map postive=CLASS',
        ),
        (("negative", "neg"), r'"neg" in t.json .* twice'),
        (("7",), r'"7" in t.json is none'),
    ],
)
def test_a_class_that_the_model_has_not_is_an_error(classes: tuple[str, ...], message: str) -> None:
    content = json.dumps({"schema": 1, "classes": {name: {} for name in classes}}).encode()
    with pytest.raises(DataError, match=message):
        words_by_class(content, "t.json", ("negative", "positive"))


DATA = [("a film", 1), ("dull", 0), ("Paris", 1)]


def victim() -> WeightVictim:
    return WeightVictim({**WEIGHTS, "dull": -1.0})


def test_a_run_records_the_table_and_is_not_resumed_with_another(table: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = run_attack(victim(), DATA, f"pwws:entities={table}", similarity=False, out=out)
    described = json.loads((out / "manifest.json").read_text())["spec"]["attacks"][0]
    assert described["options"]["entities"] == table
    assert described["resources"]["entity_finder"] == "a list"
    assert [record.adversarial for record in run.records("pwws", "success")] == ["a rome", "Rome"]
    again = {"similarity": False, "out": out, "resume": True}
    run_attack(victim(), DATA, f"pwws:entities={table}", **again)  # type: ignore[arg-type]
    EntityTable({"positive": {"GPE": "Bonn"}}).write(table)
    with pytest.raises(RunError, match=r"resources\.entities was"):
        run_attack(victim(), DATA, f"pwws:entities={table}", **again)  # type: ignore[arg-type]


def test_a_run_without_a_table_records_nothing_more(tmp_path: Path) -> None:
    run_attack(victim(), DATA, "pwws", similarity=False, out=tmp_path / "run")
    assert "resources" not in json.loads((tmp_path / "run" / "manifest.json").read_text())["spec"]["attacks"][0]


def test_a_table_or_a_finder_that_is_missing_ends_the_command_before_there_is_a_run(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with pytest.raises(DataError, match="There is no entity table"):
        run_attack(victim(), DATA, f"pwws:entities={table}x", similarity=False, out=out)
    monkeypatch.setattr("stockade.attacks.pwws.finder_name", named_entities.finder_name)
    monkeypatch.setattr(named_entities, "PIPELINE", "no-such-pipeline")
    with pytest.raises(ResourceMissing, match=r"pip install 'stockade\[spacy\]'"):
        run_attack(victim(), DATA, f"pwws:entities={table}", similarity=False, out=out)
    assert not out.exists()


def test_a_table_of_other_classes_ends_the_command(tmp_path: Path) -> None:
    EntityTable({"sports": {"GPE": "Rome"}}).write(tmp_path / "t.json")
    with pytest.raises(DataError, match=r'"sports" in .* is none of the model\'s classes'):
        run_attack(victim(), DATA, f"pwws:entities={tmp_path / 't.json'}", similarity=False, out=tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
