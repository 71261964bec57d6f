"""a or an: puts the article right that a new word has made wrong."""

from __future__ import annotations

import re

from stockade.core.text import Text, match_case

_SILENT_H = re.compile(r"hour|honou?r|honest|heir")
_BEGINS_LIKE_YOU_OR_ONE = re.compile(
    r"uni(?!n|m[pa]|d)|us[aeu]|ut(?![tm])|ub[ei]q|uk|ufo|ur[aio]|eu|ewe|on(?:e|ce)(?![a-z])|ouija"
)
_SPELT_OUT_WITH_VOWEL = frozenset("AEFHILMNORSX")


def article_for(word: str) -> str:
    """The article in front of a word, by its sound: "an hour", "a union", "an NFL game"."""
    if len(word) > 1 and word.isupper() and not re.search("[AEIOU]", word):
        return "an" if word[0] in _SPELT_OUT_WITH_VOWEL else "a"
    low = word.lower()
    if low[:1] in "aeiou":
        return "a" if _BEGINS_LIKE_YOU_OR_ONE.match(low) else "an"
    return "an" if _SILENT_H.match(low) or low.startswith(("8", "11", "18")) else "a"


def repaired(text: Text, before: Text, index: int) -> Text:
    """`text` with a or an in front of the words that an edit of `before` at `index` has changed put right.

    An article that was wrong already, or that is not in front of a changed word, is the author's and stays.
    """
    for at in range(max(1, index), min(index + 3, len(text))):
        article = text.words[at - 1]
        if article.lower() not in ("a", "an") or text.gaps[at].strip():
            continue
        origin = text.origins[at - 1]
        place = None if origin is None else before.position_of(origin)
        if place is None or place + 1 >= len(before) or before.words[place + 1] == text.words[at]:
            continue
        was_right = article_for(before.words[place + 1]) == article.lower()
        right = article_for(text.words[at])
        if was_right and right != article.lower():
            text = text.replace(at - 1, match_case(right, article) if article != "A" else right.capitalize())
    return text
