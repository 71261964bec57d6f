"""Words and tokens: which tokens of a model's input make up which word of a text, and which tokens are whole words.

Everything that looks into a model word by word goes through a `WordReader`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from stockade.core.errors import ModelError
from stockade.core.pairs import Stretch
from stockade.core.text import Text
from stockade.models.encoding import length_batches, sequence_of

BLANKS = ("\u0120", "\u2581")
"""What byte-level and unigram vocabularies write for the blank before a word."""
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class WordTokens:
    """A padded batch of some texts and, for each of them and each word, the positions of the word's tokens (none beyond
    the model's window).
    """

    numbers: list[int]
    """Which of the texts these are."""
    inputs: dict[str, Tensor]
    positions: list[list[list[int]]]


@dataclass(frozen=True, slots=True)
class WordReader:
    """A model and its tokenizer, which cuts texts at `maximum` tokens."""

    model: Any
    tokenizer: Any
    maximum: int | None

    def batches(self, texts: Sequence[Text], tokens: int, rows: int) -> Iterator[WordTokens]:
        """The texts (all single or all pairs) in batches of like lengths; one by one if nothing can be padded with."""
        if not self.tokenizer.is_fast:
            raise ModelError(
                "Looking into a model word by word needs a fast tokenizer, which knows where in the text each token "
                "stands."
            )
        lengths = [sum(map(len, _sides(text))) // _CHARACTERS_PER_TOKEN + 2 for text in texts]
        for batch in length_batches(lengths, tokens, 1 if self.tokenizer.pad_token_id is None else rows):
            yield self._read(batch, [texts[number] for number in batch])

    def _read(self, numbers: list[int], texts: Sequence[Text]) -> WordTokens:
        cut = {"truncation": True, "max_length": self.maximum} if self.maximum is not None else {}
        settings = {"padding": len(texts) > 1, "return_offsets_mapping": True, "return_tensors": "pt", **cut}
        encoded = self.tokenizer(*(list(side) for side in zip(*map(_sides, texts), strict=True)), **settings)
        offsets = encoded.pop("offset_mapping").tolist()
        positions = [_positions(text, offsets[row], encoded.sequence_ids(row)) for row, text in enumerate(texts)]
        takes = inspect.signature(self.model.forward).parameters
        inputs = {name: tensor.to(self.model.device) for name, tensor in encoded.items() if name in takes}
        return WordTokens(numbers, inputs, positions)


def _sides(text: Text) -> tuple[str, ...]:
    """What the tokenizer reads: one string, or two."""
    return (text.input,) if isinstance(text.input, str) else text.input


def _positions(text: Text, offsets: Sequence[Sequence[int]], sequences: Sequence[int | None]) -> list[list[int]]:
    """The tokens of each word, of whichever sides of a pair the words are."""
    tokens: list[list[int]] = []
    for stretch in text.stretches:
        number = sequence_of(stretch)
        tokens += tokens_of_words(text, offsets, [sequence == number for sequence in sequences], stretch)
    return tokens


def tokens_of_words(
    text: Text, offsets: Sequence[Sequence[int]], in_text: Sequence[bool], stretch: Stretch | None = None
) -> list[list[int]]:
    """The tokens of each word.

    Parameters
    ----------
    text
        The text.
    offsets
        Where each token begins and ends in its string.
    in_text
        Which tokens are of the words in question: neither special nor of another side of a pair.
    stretch
        The words in question; None for all.
    """
    words, shift = (text.indices, 0) if stretch is None else (stretch.words, stretch.start)
    tokens: list[list[int]] = [[] for _ in words]
    word = words.start
    for token, ((start, end), inside) in enumerate(zip(offsets, in_text, strict=True)):
        if not inside or end <= start:
            continue
        while word < words.stop and text.starts[word] + len(text.words[word]) <= start + shift:
            word += 1
        if word < words.stop and end + shift > text.starts[word]:
            tokens[word - words.start].append(token)
    return tokens


def whole_words(tokenizer: Any) -> list[tuple[str, bool]]:
    """Every entry of a tokenizer's vocabulary as text, and whether it is a whole word.

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
