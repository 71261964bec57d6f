"""What the entries of a tokenizer's vocabulary are: whole words or pieces of words."""

from __future__ import annotations

from typing import Any

BLANKS = ("\u0120", "\u2581")
"""What byte-level and unigram vocabularies write for the blank before a word."""


def whole_words(tokenizer: Any) -> list[tuple[str, bool]]:
    """Every vocabulary entry as text, and whether it is a whole word.

    WordPiece marks the pieces (##); byte-level and unigram vocabularies mark the whole words, with a sign for the
    blank before.
    """
    tokens: list[str] = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    special = set(tokenizer.all_special_tokens)
    counts = {sign: sum(token.startswith(sign) for token in tokens) for sign in BLANKS}
    blank = max(counts, key=lambda sign: counts[sign])
    marks_words = counts[blank] > len(tokens) // 20
    words = []
    for token in tokens:
        if marks_words:
            words.append((token.removeprefix(blank), token.startswith(blank) and token not in special))
        else:
            words.append((token.removeprefix("##"), not token.startswith("##") and token not in special))
    return words
