"""Which name stands in for a name: the rule on tables counted by hand, files that are no tables, the command."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from stockade.cli.lexicon import command
from stockade.core.errors import DataError, OptionError, ResourceMissing
from stockade.core.text import Text
from stockade.lexicon import entities as named_entities
from stockade.lexicon.entities import (
    EntityCounts,
    EntityTable,
    Mention,
    choose_entities,
    count_entities,
    single_words,
    table_hash,
)
from tests.entities import ListFinder

PLACES = ListFinder({"Paris": "GPE", "London": "GPE", "New York": "GPE", "Monday": "DATE", "Anna": "PERSON"})


def counts(**classes: dict[str, int]) -> EntityCounts:
    """Counts of one type."""
    return EntityCounts(dict.fromkeys(classes, 1), {name: {"GPE": names} for name, names in classes.items()})


def chosen(of: str, **classes: dict[str, int]) -> str | None:
    return choose_entities(counts(**classes))[of].get("GPE")


def test_entities_are_counted_by_class_and_type_without_their_possessive_endings() -> None:
    texts = [("good", "Paris and New York on Monday"), ("bad", "London's rain"), ("good", "PARIS, Paris’s best")]
    counted = count_entities(iter(texts), PLACES)
    assert counted.texts == {"good": 2, "bad": 1}
    assert counted.entities["good"] == {"GPE": {"Paris": 2, "New York": 1, "PARIS": 1}, "DATE": {"Monday": 1}}
    assert counted.entities["bad"] == {"GPE": {"London": 1}}
    assert counted.total == 6


def test_a_finder_that_reads_ahead_does_not_mix_the_classes_up() -> None:
    class Ahead(ListFinder):
        def find(self, strings):  # type: ignore[no-untyped-def]
            return super().find(list(strings))

    texts = [("good", "Paris"), ("bad", "London"), ("good", "Monday")]
    assert count_entities(texts, Ahead(PLACES.types)) == count_entities(texts, PLACES)


def test_the_most_frequent_entity_of_the_other_classes_is_chosen() -> None:
    assert chosen("a", a={"Rome": 9}, b={"Paris": 2, "London": 3}) == "London"
    assert chosen("b", a={"Rome": 9}, b={"Paris": 2, "London": 3}) == "Rome"


def test_the_other_classes_are_counted_together() -> None:
    assert chosen("a", a={}, b={"Paris": 3, "Rome": 2}, c={"Rome": 2}) == "Rome"


def test_what_is_among_the_fifteen_most_frequent_of_the_class_is_not_chosen() -> None:
    towns = {f"Town{number:02}": 100 - number for number in range(15)}
    other = {"Town14": 50, "Paris": 40}
    assert chosen("a", a=towns, b=other) == "Paris"  # Town14 is the fifteenth of its own class
    assert chosen("a", a={"First": 200, **towns}, b=other) == "Town14"  # now it is the sixteenth


def test_what_is_not_among_the_thirty_most_frequent_of_the_others_is_not_chosen() -> None:
    long = {f"New Town {number:02}": 100 - number for number in range(29)}
    assert chosen("a", a={}, b={**long, "Paris": 1}) == "Paris"  # the thirtieth
    assert chosen("a", a={}, b={**long, "New Town 29": 50, "Paris": 1}) is None  # the thirty-first


@pytest.mark.parametrize("entity", ["New York", "U.S.", "$5", "9 a.m."])
def test_only_what_is_read_as_one_word_is_chosen(entity: str) -> None:
    assert chosen("a", a={}, b={entity: 5, "Saint-Denis": 1}) == "Saint-Denis"


def test_equally_frequent_entities_are_taken_in_the_order_of_their_letters_whatever_the_order_of_the_data() -> None:
    assert chosen("a", a={}, b={"Rome": 2, "Oslo": 2}) == "Oslo"
    assert chosen("a", a={}, b={"Oslo": 2, "Rome": 2}) == "Oslo"
    towns = {f"Town{number:02}": 1 for number in reversed(range(16))}  # Town15 is the sixteenth by its letters
    assert chosen("a", a=towns, b={"Town14": 9, "Town15": 1}) == "Town15"


def test_a_class_without_a_choice_is_in_the_table_and_its_types_are_not() -> None:
    assert choose_entities(counts(a={"Rome": 1}, b={"Rome": 1})) == {"a": {}, "b": {}}


def test_only_words_that_are_an_entity_by_themselves_are_found_in_a_text() -> None:
    text = Text.parse("Paris's rain, New York on Monday; anti-London (London)")
    (mentions,) = PLACES.find([str(text)])
    assert Mention(0, 5, "GPE") in mentions
    assert single_words(text, mentions) == {0: "GPE", 5: "DATE", 7: "GPE"}


def test_a_table_is_read_as_it_was_written_and_hashed_by_its_bytes(tmp_path: Path) -> None:
    table = EntityTable({"good": {"GPE": "Köln"}, "bad": {}}, {"data": "x.csv"})
    table.write(tmp_path / "a.json")
    table.write(tmp_path / "b.json")
    assert EntityTable.read(tmp_path / "a.json") == table
    assert table_hash(tmp_path / "a.json") == table_hash(tmp_path / "b.json")
    EntityTable({"good": {"GPE": "Bonn"}}).write(tmp_path / "b.json")
    assert table_hash(tmp_path / "a.json") != table_hash(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", 'no "schema"'),
        (b'{"classes": {}}', 'no "schema"'),
        (b'{"schema": 2, "classes": {}}', "format 2; this version of Stockade reads format 1"),
        (b'{"schema": 1, "classes": {}}', "at least one class"),
        (b'{"schema": 1, "classes": ["a"]}', "at least one class"),
        (b'{"schema": 1, "classes": {"a": {}}, "about": 3}', "damaged"),
        (b'{"schema": 1, "classes": {"a": "Paris"}}', 'class "a" must map types to single words'),
        (b'{"schema": 1, "classes": {"a": {"GPE": 3}}}', "single words"),
        (b'{"schema": 1, "classes": {"a": {"GPE": "New York"}}}', "single words"),
        (b'{"schema": 1, "classes": {"a": {"GPE": ""}}}', "single words"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        EntityTable.read(tmp_path / "t.json")
    assert "t.json" in str(caught.value)
    assert "stockade lexicon entities" in str(caught.value)


def test_a_missing_table_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no entity table .*nowhere\.json"):
        EntityTable.read(tmp_path / "nowhere.json")
    for path in (tmp_path, "a\0b"):
        with pytest.raises(DataError, match="cannot be read"):
            EntityTable.read(path)
    with pytest.raises(DataError, match="cannot be written"):
        EntityTable({"a": {}}).write(tmp_path)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_entities, "load_finder", lambda: PLACES)
    monkeypatch.setattr(named_entities, "finder_name", lambda: PLACES.name)


def entities(*words: object) -> str:
    return CliRunner().invoke(command, ["entities", *map(str, words)], catch_exceptions=False).output


def write_rows(path: Path, *rows: tuple[str, object]) -> Path:
    path.write_text("".join(json.dumps({"review": text, "mark": label}) + "\n" for text, label in rows))
    return path


COLUMNS = ("--text-column", "review", "--label-column", "mark")


@pytest.mark.usefixtures("listed")
def test_the_command_writes_the_table_and_says_what_is_in_it(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "d.jsonl", ("Paris in May", "good"), ("Monday in London", "bad"), ("Anna", "good"))
    out = tmp_path / "t.json"
    output = entities(data, "--out", out, *COLUMNS)
    table = EntityTable.read(out)
    assert table.classes == {
        "bad": {"GPE": "Paris", "PERSON": "Anna"},
        "good": {"DATE": "Monday", "GPE": "London"},
    }
    assert table.about["data"] == "d.jsonl"
    assert table.about["finder"] == "a list"
    assert table.about["texts"] == {"bad": 1, "good": 2}
    assert len(table.about["fingerprint"]) == 64
    assert "bad\n    GPE Paris  PERSON Anna" in output
    assert f"4 named entities in 3 texts; table written to {out}" in output


@pytest.mark.usefixtures("listed")
def test_labels_can_be_given_the_model_s_names(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "d.jsonl", ("Paris", 0), ("London", 4))
    entities(data, "--out", tmp_path / "t.json", *COLUMNS)
    assert set(EntityTable.read(tmp_path / "t.json").classes) == {"0", "4"}
    entities(data, "--out", tmp_path / "t.json", *COLUMNS, "--label-map", "0=negative", "--label-map", "4=positive")
    assert set(EntityTable.read(tmp_path / "t.json").classes) == {"negative", "positive"}


class EveryWord:
    """Takes each word for an entity."""

    name = "every word"

    def find(self, strings: Iterable[str]) -> Iterator[tuple[Mention, ...]]:
        for text in map(Text.parse, strings):
            yield tuple(Mention(at, at + len(word), "X") for at, word in zip(text.starts, text.words, strict=True))


@pytest.mark.usefixtures("listed")
def test_builtin_reviews_are_called_by_their_names_and_a_sample_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_entities, "load_finder", EveryWord)
    output = entities("builtin:reviews", "--out", tmp_path / "t.json", "--limit", 60, "--label-map", "negative=bad")
    assert "in 60 texts" in output
    table = EntityTable.read(tmp_path / "t.json")
    assert table.about["data"] == "builtin:reviews:test"
    assert set(table.classes) == {"bad", "positive"}


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([("Paris", 1), ("London", 1)], COLUMNS, "has only the class"),
        ([("Paris", 1), ("London", 0)], (*COLUMNS, "--limit", "1"), "among the 1 rows of its sample"),
        ([("nothing here", 1), ("nor here", 0)], COLUMNS, r"no entity table: 0 named entities were found in 2 texts"),
        ([("Paris", 1), ("Paris", 0)], COLUMNS, r"no entity table: 2 named entities"),
        ([("Paris", 1), ("London", None)], COLUMNS, "has no label"),
        ([("Paris", 1), ("London", 0)], ("--text-column", "review", "--label-column", "x"), 'no column "x"'),
        ([(f"Paris {number}", f"l{number}") for number in range(1001)], COLUMNS, "more than 1,000 different labels"),
    ],
)
def test_data_that_gives_no_table_is_refused(
    tmp_path: Path, rows: list[tuple[str, object]], options: tuple[str, ...], message: str
) -> None:
    data = write_rows(tmp_path / "d.jsonl", *rows)
    with pytest.raises(DataError, match=message):
        entities(data, "--out", tmp_path / "t.json", *options)
    assert not (tmp_path / "t.json").exists()


@pytest.mark.usefixtures("listed")
def test_options_that_cannot_work_are_refused(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "d.jsonl", ("Paris", 1), ("London", 0))
    for options, message in (
        (["--out", tmp_path / "no" / "t.json"], "There is no folder"),
        (["--out", tmp_path / "t.json", "--label-map", "positive"], "not of the form DATA=NAME"),
        (["--out", tmp_path / "t.json", "--limit", "0"], "--limit is 0"),
    ):
        with pytest.raises(OptionError, match=message):
            entities(data, *COLUMNS, *options)


def test_without_spacy_the_command_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_entities, "PIPELINE", "no-such-pipeline")
    with pytest.raises(ResourceMissing, match=r"pip install 'stockade\[spacy\]'"):
        entities("builtin:reviews", "--out", tmp_path / "t.json")


def spacy_is_here() -> bool:
    try:
        return bool(named_entities.finder_name())
    except ResourceMissing:
        return False


@pytest.mark.skipif(not spacy_is_here(), reason="needs spaCy and its pipeline: pip install 'stockade[spacy]'")
def test_spacy_finds_places_and_days_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Text.parse("We flew from Paris to New York, and on Monday to London's airport.")
    finder = named_entities.load_finder()
    assert named_entities.load_finder() is finder
    first, second, half = finder.find([str(text), "", "\ud800 We met Monday."])
    assert single_words(text, first) == {3: "GPE", 9: "DATE", 11: "GPE"}
    assert second == ()
    assert [mention.type for mention in half] == ["DATE"]
    monkeypatch.setattr(named_entities, "_MOST_CHARACTERS", 40)
    (beginning,) = finder.find(["We met on Monday, " + "word " * 20 + "and again on Tuesday."])
    assert [mention.type for mention in beginning] == ["DATE"]
