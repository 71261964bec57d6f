"""How fluent a masked LM finds a text: its pseudo-perplexity (Salazar et al., Masked Language Model Scoring, ACL 2020).

Every piece of the text is hidden in turn, with all other pieces in sight:

    PPPL(x) = exp(-1/N * sum_i ln p(x_i | x without i))

over the N pieces of the model's tokenizer; lower is more fluent. A word of several pieces counts once for each, and
only one of them is hidden at a time, so the rest of a rare word helps to guess it. Pieces that the vocabulary does not
know, and special tokens that stand in a text, are context but not scored; a text without a scored piece has no
pseudo-perplexity. A text longer than the model can read is cut at its end.

Difference to the paper: it pools the pieces of a whole corpus into one number; here every text has its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

from stockade.core.text import valid_unicode
from stockade.models.encoding import length_batches
from stockade.models.masked_lm import MaskedLM
from stockade.models.masked_places import EncodedPlace

_BATCH_TOKENS = 4096
_BATCH_ROWS = 128
"""Each row needs the scores of the whole vocabulary, so rows are bounded besides tokens."""
_AT_ONCE = 20_000
"""Hidden pieces that are tokenised and sorted by length together: enough for full batches, few enough for memory."""
_LARGEST_EXPONENT = 700.0


def pseudo_perplexities(model: MaskedLM, texts: Sequence[str]) -> list[float | None]:
    """The pseudo-perplexity of each text, in order; equal texts are computed once.

    One forward pass per scored piece, in batches of like lengths; the vocabulary is scored at the hidden piece only.
    """
    unique = list(dict.fromkeys(texts))
    totals, counts = [0.0] * len(unique), [0] * len(unique)
    hidden = _hidden_pieces(model, unique)
    while chunk := list(islice(hidden, _AT_ONCE)):
        for batch in length_batches([len(place) for _, place, _ in chunk], _BATCH_TOKENS, _BATCH_ROWS):
            numbers, places, pieces = zip(*(chunk[index] for index in batch), strict=True)
            for number, loss in zip(numbers, model.losses(places, pieces), strict=True):
                totals[number] += loss
                counts[number] += 1
    values = {
        text: _exponential(total / count) if count else None
        for text, total, count in zip(unique, totals, counts, strict=True)
    }
    return [values[text] for text in texts]


def _hidden_pieces(model: MaskedLM, texts: Sequence[str]) -> Iterator[tuple[int, EncodedPlace, int]]:
    """The number of the text, the text with one piece hidden, and the piece."""
    for number, text in enumerate(texts):
        for place, piece in model.hidden_in_turn(valid_unicode(text)):
            yield number, place, piece


def _exponential(value: float) -> float:
    """exp that cannot overflow: beyond it the text is as little fluent as a number can say."""
    return math.exp(min(value, _LARGEST_EXPONENT))
