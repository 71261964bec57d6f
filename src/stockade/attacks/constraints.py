"""What a replacement must keep of the word it replaces, besides the meaning of the sentence (which is `similarity`)."""

from __future__ import annotations

from collections.abc import Sequence

from stockade.core.text import Text
from stockade.lexicon import compatible, load_tagger


def of_same_pos(text: Text, index: int, words: Sequence[str], *, noun_verb_exchange: bool) -> list[str]:
    """The words that read as the same part of speech as the word at `index`, each tagged in its place."""
    if not words:
        return []
    tagger = load_tagger()
    own = tagger.tag_word(text.words, index)
    tags = tagger.tag_candidates(text.words, index, list(words))
    return [word for word, tag in zip(words, tags, strict=True) if compatible(own, tag, noun_verb_exchange)]
