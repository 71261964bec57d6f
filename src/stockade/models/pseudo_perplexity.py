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
from dataclasses import dataclass

import torch
from torch import Tensor

from stockade.core.text import valid_unicode
from stockade.models.encoding import length_batches
from stockade.models.masked_lm import MaskedLM

_BATCH_TOKENS = 4096
_BATCH_ROWS = 128
"""Each row needs the scores of the whole vocabulary, so rows are bounded besides tokens."""
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A tokenised text and the positions that are scored."""

    ids: tuple[int, ...]
    scored: tuple[int, ...]


def pseudo_perplexities(model: MaskedLM, texts: Sequence[str]) -> list[float | None]:
    """The pseudo-perplexity of each text, in order; equal texts are computed once.

    One forward pass per scored piece, in batches of like lengths; the vocabulary is scored at the hidden piece only.
    """
    unique = list(dict.fromkeys(texts))
    pieces = _tokenised(model, unique)
    rows = [(text, position) for text, found in enumerate(pieces) for position in found.scored]
    totals = [0.0] * len(unique)
    for batch in length_batches([len(pieces[text].ids) for text, _ in rows], _BATCH_TOKENS, _BATCH_ROWS):
        chosen = [rows[index] for index in batch]
        for (text, _), loss in zip(chosen, _losses(model, [(pieces[text], at) for text, at in chosen]), strict=True):
            totals[text] += loss
    values = {
        text: _exponential(total / len(found.scored)) if found.scored else None
        for text, total, found in zip(unique, totals, pieces, strict=True)
    }
    return [values[text] for text in texts]


def _tokenised(model: MaskedLM, texts: Sequence[str]) -> list[_Pieces]:
    tokenizer = model._tokenizer
    cut = {"truncation": True, "max_length": model._maximum, "verbose": False}
    rows = tokenizer([valid_unicode(text) for text in texts], **cut)["input_ids"] if texts else []
    special = set(tokenizer.all_special_ids)
    return [_Pieces(tuple(ids), tuple(at for at, piece in enumerate(ids) if piece not in special)) for ids in rows]


def _losses(model: MaskedLM, batch: Sequence[tuple[_Pieces, int]]) -> Iterator[float]:
    """-ln p of each row's hidden piece."""
    tokenizer = model._tokenizer
    width = max(len(pieces.ids) for pieces, _ in batch)
    ids = torch.full((len(batch), width), tokenizer.pad_token_id or 0)
    attention = torch.zeros_like(ids)
    positions = torch.tensor([position for _, position in batch])
    for row, (pieces, _) in enumerate(batch):
        ids[row, : len(pieces.ids)] = torch.tensor(pieces.ids)
        attention[row, : len(pieces.ids)] = 1
    rows = torch.arange(len(batch))
    hidden = ids[rows, positions]
    ids[rows, positions] = tokenizer.mask_token_id
    with torch.inference_mode():
        states = model._hidden(ids, attention)
        logits: Tensor = model._head(states[rows.to(states.device), positions.to(states.device)]).float()
        losses = torch.nn.functional.cross_entropy(logits, hidden.to(logits.device), reduction="none")
    yield from losses.tolist()


def _exponential(value: float) -> float:
    """exp that cannot overflow: beyond it the text is as little fluent as a number can say."""
    return math.exp(min(value, _LARGEST_EXPONENT))
