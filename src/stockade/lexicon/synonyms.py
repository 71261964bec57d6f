"""The substitution sets of word attacks and of rules: WordNet synonyms that share a word's part of speech."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stockade.core.text import is_single_word, match_case
from stockade.lexicon.pos import load_tagger, wordnet_pos
from stockade.lexicon.wordnet import load_wordnet


def same_pos_synonyms(words: Sequence[str], indices: Iterable[int] | None = None) -> dict[int, Sequence[str]]:
    """What may replace each word of a text: its WordNet synonyms as the part of speech that it has there.

    Parameters
    ----------
    words
        The words of the text.
    indices
        The words to look up; all by default.

    Returns
    -------
    dict of int to sequence of str
        For each index the synonyms, single words in the case of the word they replace, in WordNet's order; none for a
        word of a class that WordNet does not cover.
    """
    wordnet, tags = load_wordnet(), load_tagger().tag(words)
    synonyms: dict[int, Sequence[str]] = {}
    for index in range(len(words)) if indices is None else indices:
        word, pos = words[index], wordnet_pos(tags[index])
        synonyms[index] = [] if pos is None else usable_synonyms(word, wordnet.synonyms(word, pos))
    return synonyms


def usable_synonyms(word: str, synonyms: Iterable[str]) -> list[str]:
    """Single words in the case of the word they replace, each once and none that is the word itself.

    Parameters
    ----------
    word
        The word to replace.
    synonyms
        What could replace it.
    """
    cased = dict.fromkeys(match_case(synonym, word) for synonym in synonyms if is_single_word(synonym))
    cased.pop(word, None)
    return list(cased)
