"""Replacements that turn a word into its opposite: the text fools the model, but it also says something else.

A masked LM likes "bad" as much as "good" after "this is". A replacement counts when WordNet lists the new word, or a
base form of it, as an antonym of the old one in the same part of speech, or the other way round. `indirect` also
counts adjectives that are opposites through a synonym or through their head ("parched", like "dry", against "wet").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stockade.core.records import Record
from stockade.core.statistics import wilson
from stockade.lexicon.wordnet import POS_ORDER, WordNet, load_wordnet


def are_antonyms(one: str, other: str, wordnet: WordNet, *, indirect: bool = False) -> bool:
    return any(
        _lists(wordnet, first, second, pos, indirect)
        for pos in POS_ORDER
        for first, second in ((one, other), (other, one))
    )


def _lists(wordnet: WordNet, word: str, candidate: str, pos: str, indirect: bool) -> bool:
    opposites = {name.lower() for name in wordnet.antonyms(word, pos, indirect=indirect)}
    return bool(opposites) and not opposites.isdisjoint({candidate.lower(), *wordnet.lemmas(candidate, pos)})


def has_antonym(record: Record, wordnet: WordNet, *, indirect: bool = False) -> bool:
    """Whether at least one replacement of the text is an antonym of the word it replaces."""
    return any(
        are_antonyms(edit.before, edit.after, wordnet, indirect=indirect)
        for edit in record.edits
        if edit.op == "replace"
    )


def measure_antonyms(found: Sequence[Record]) -> dict[str, Any]:
    """The share of these successes with an antonym in them, with 95 % Wilson intervals."""
    wordnet = load_wordnet()
    direct = sum(has_antonym(record, wordnet) for record in found)
    indirect = sum(has_antonym(record, wordnet, indirect=True) for record in found)
    return {
        "successes": len(found),
        "direct": {"count": direct, "share": wilson(direct, len(found))},
        "with_indirect": {"count": indirect, "share": wilson(indirect, len(found))},
    }
