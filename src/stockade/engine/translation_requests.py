"""What a search on a translator may ask for, besides what all may (`Vocabulary`, `VisibleWords`, `Embed` …)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.core.text import Text
from stockade.core.translation import ZeroableSource
from stockade.engine.batching import estimated_tokens
from stockade.engine.requests import Query, Request

KeywordLoss = Literal["auto", "hinge", "characters"]
"""How far a translation is from having a keyword: by logits, by letters, or by logits where the model shows them."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A translation and how far it is from what the search wants, 0 being there; rounded, because logits move a little
    with the batch they were computed in.
    """

    translation: str
    loss: float


@dataclass(frozen=True, slots=True)
class Translate(Query[list[str]]):
    """The greedy translation of each source, in order. Costs one logical query per source.

    A source may have the vectors of a word zeroed; for a translator that does not show its vectors the word is deleted.
    """

    texts: Sequence[ZeroableSource]

    @property
    def tokens(self) -> int:
        return _tokens(self.texts)


@dataclass(frozen=True, slots=True)
class TranslationLoss(Query[list[Attempt]]):
    """The greedy translation of each source and how far it is from having a keyword. Costs one logical query per
    source; sources with a zeroed word are as for `Translate`.

    Parameters
    ----------
    keyword
        What should be in the translation; its sub-words are the target, so it need not be in the vocabulary.
    loss
        "hinge" needs a translator that shows its logits; "auto" takes letters where it does not.
    """

    texts: Sequence[ZeroableSource]
    keyword: str = ""
    loss: KeywordLoss = "auto"

    @property
    def tokens(self) -> int:
        return _tokens(self.texts)


@dataclass(frozen=True, slots=True)
class Retranslate(Request[list[str]]):
    """The translation of a source that is sent to the model alone, `draws` times, past all caches. Costs no query."""

    text: Text
    draws: int = 1


@dataclass(frozen=True, slots=True)
class SourceVectors(Request[NDArray[np.float32]]):
    """The encoder's sentence vector of each source, a row each (white box); no columns for a black box."""

    texts: Sequence[Text]

    @property
    def tokens(self) -> int:
        return _tokens(self.texts)


def _tokens(texts: Sequence[Any]) -> int:
    """About how many tokens the model reads; the texts of a request are versions of each other."""
    if not texts:
        return 0
    first = texts[0].text if isinstance(texts[0], ZeroableSource) else texts[0]
    return len(texts) * estimated_tokens(str(first))
