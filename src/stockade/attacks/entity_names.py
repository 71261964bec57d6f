"""The names that an entity table puts in place of a text's own, for attacks that replace named entities."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from stockade.core.errors import DataError
from stockade.core.example import Example
from stockade.core.text import Text, match_case
from stockade.engine.requests import ClassNames
from stockade.lexicon.entities import EntityTable, load_finder, read_bytes, single_words, split_possessive


async def entity_swaps(path: str, example: Example) -> dict[int, list[str]]:
    """For each word of the text that is an entity of a type in the table its one candidate; none if it is that word
    already. Words that are not in the result are words like any other.
    """
    words = words_by_class(read_bytes(path), path, await ClassNames()).get(example.label, {})
    if not words:
        return {}
    text = example.text
    (mentions,) = load_finder().find([str(text)])
    types = single_words(text, mentions)
    swaps = {i: _in_place(words[kind], text, i) for i, kind in types.items() if kind in words}
    return {i: [swap] if swap != text.words[i] else [] for i, swap in swaps.items()}


@lru_cache(maxsize=16)
def words_by_class(content: bytes, name: str, labels: tuple[str, ...]) -> Mapping[int, Mapping[str, str]]:
    """The rows of a table by the number of the model's class, matched by name as labels of data are.

    A class of the model without a row is attacked without names; a row without a class is an error, because a
    misspelled name would silently switch the table off.
    """
    from stockade.datasets.labels import align_labels
    from stockade.datasets.source import as_label

    table = EntityTable.parse(content, name)
    matched: dict[int, Mapping[str, str]] = {}
    for written, words in table.classes.items():
        label = as_label(written)
        assert label is not None  # every string is a label
        try:
            index = align_labels([label], None, labels)[label]
        except DataError:
            index = -1
        if index < 0 or index in matched:
            problem = "is none of" if index < 0 else "stands for one class twice of"
            raise DataError(
                f'The class "{written}" in {name} {problem} the model\'s classes ({", ".join(labels)}). Rename it in '
                f"the file, or make the table with --label-map {written}=CLASS."
            )
        matched[index] = words
    return matched


def _in_place(name: str, text: Text, index: int) -> str:
    """A name in the case of the word it replaces, with that word's possessive ending. Names keep their capitals in a
    text that has any, so that "today" becomes "Monday"; a text in lower case stays so.
    """
    word, ending = split_possessive(text.words[index])
    cased = match_case(name, word) if str(text) != str(text).lower() else name.lower()
    return cased + ending
