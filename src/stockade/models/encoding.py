"""Texts to token ids to padded tensors, for any Hugging Face tokenizer, with as little overhead as possible.

Every text is tokenised once, without padding. Its ids are stored as bytes: they are the key that two equal texts
share, and a batch is put together from them by one copy. Fast tokenizers are called through their Rust object, slow
ones through transformers; word-level ones read each blank-separated piece once and remember its ids.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stockade.core.pairs import Stretch
from stockade.core.text import Text, TextInput

_ID = "i"
_ID_BYTES = array(_ID).itemsize
ID_TYPE = np.dtype(_ID)
_REMEMBERED = 100_000
_NO_LIMIT = 1_000_000
"""Tokenizers without a limit give a huge number."""
_SPECIAL_TOKENS = 8
"""More than any tokenizer adds to a pair; no token is shorter than a byte, so few bytes are few tokens."""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """One tokenised text: its ids, and its segment ids where they matter, as the bytes of C integers."""

    ids: bytes
    types: bytes = b""

    @property
    def key(self) -> Hashable:
        """Equal keys are the same text to the model."""
        return (self.ids, self.types) if self.types else self.ids

    def __len__(self) -> int:
        return len(self.ids) // _ID_BYTES


class PieceMemory(dict[str, bytes]):
    """The ids of blank-separated pieces; the tokenizer reads each piece once.

    Only for tokenizers that read a text piece by piece and add nothing: lower-casing, cut at blanks, one id per word.
    A text then costs a few look-ups instead of the whole Rust pipeline, with the same ids.
    """

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self._backend = backend

    @classmethod
    def of(cls, tokenizer: Any) -> PieceMemory | None:
        """A memory for `tokenizer`, or None if its ids may depend on more than the piece."""
        if not tokenizer.is_fast or tokenizer.truncation_side != "right":
            return None
        backend = tokenizer.backend_tokenizer
        if type(backend.model).__name__ != "WordLevel" or backend.num_special_tokens_to_add(False):
            return None
        state = json.loads(backend.to_str())
        cutters = (state["pre_tokenizer"] or {}).get("pretokenizers", [state["pre_tokenizer"]])
        plain = state["normalizer"] in (None, {"type": "Lowercase"}) and cutters[0] == {"type": "Whitespace"}
        apart = not any(
            " " in token["content"] or token["lstrip"] or token["rstrip"] for token in state["added_tokens"]
        )
        return cls(backend) if plain and apart else None

    def __missing__(self, piece: str) -> bytes:
        if len(self) >= _REMEMBERED:
            self.clear()
        self._backend.no_truncation()
        self._backend.no_padding()
        self[piece] = ids = array(_ID, self._backend.encode(piece).ids).tobytes()
        return ids


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """A tokenizer and what must be known of it to make batches."""

    tokenizer: Any
    maximum: int | None
    with_types: bool = field(kw_only=True)
    """Whether the model reads segment ids."""
    singles_have_types: bool = field(default=False, kw_only=True)
    """Whether those of a single text are not all zero."""
    pieces: PieceMemory | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, tokenizer: Any, model: nn.Module, inputs: Iterable[str]) -> TextEncoder:
        """The encoder for `model`, whose forward takes the arguments `inputs`."""
        with_types = "token_type_ids" in tokenizer.model_input_names and "token_type_ids" in inputs
        singles = with_types and any(tokenizer("a", truncation=True, max_length=8)["token_type_ids"])
        maximum, pieces = maximum_length(tokenizer, model), PieceMemory.of(tokenizer)
        return cls(tokenizer, maximum, with_types=with_types, singles_have_types=singles, pieces=pieces)

    def encode(self, inputs: Sequence[TextInput]) -> list[EncodedText]:
        """The ids of each text, cut to what the model can read; of a pair, the longer side is cut first."""
        if not inputs:
            return []
        texts = [text for text in inputs if isinstance(text, str)]
        paired = len(texts) < len(inputs)
        if self.pieces is not None and not paired:
            limit = None if self.maximum is None else self.maximum * _ID_BYTES
            ids_of = self.pieces.__getitem__
            return [EncodedText(b"".join(map(ids_of, text.split(" ")))[:limit]) for text in texts]
        if not self.with_types or not (paired or self.singles_have_types):
            return [EncodedText(array(_ID, ids).tobytes()) for ids, _ in self._ids(inputs, False)]
        typed = [self.singles_have_types or not isinstance(text, str) for text in inputs]
        return [
            EncodedText(array(_ID, ids).tobytes(), array(_ID, types).tobytes() if has_types else b"")
            for (ids, types), has_types in zip(self._ids(inputs, True), typed, strict=True)
        ]

    def _ids(self, inputs: Sequence[TextInput], types: bool) -> Iterable[tuple[list[int], list[int]]]:
        if not self.tokenizer.is_fast:
            return [self._slow_ids(text) for text in inputs]
        backend = self.tokenizer.backend_tokenizer
        backend.no_padding()
        backend.encode_special_tokens = bool(getattr(self.tokenizer, "split_special_tokens", False))
        if self.maximum is None:
            backend.no_truncation()
        else:
            side = self.tokenizer.truncation_side
            backend.enable_truncation(self.maximum, stride=0, strategy="longest_first", direction=side)
        encodings = backend.encode_batch_fast(list(inputs))
        return ((encoding.ids, encoding.type_ids if types else []) for encoding in encodings)

    def _slow_ids(self, text: TextInput) -> tuple[list[int], list[int]]:
        sides = (text,) if isinstance(text, str) else text
        cut = {} if self.maximum is None else {"truncation": "longest_first", "max_length": self.maximum}
        encoded = self.tokenizer(*([side] for side in sides), **cut)  # as lists: an empty second text alone is ignored
        return encoded["input_ids"][0], encoded.get("token_type_ids", [[]])[0]

    def visible_words(self, texts: Sequence[Text]) -> list[Sequence[int]]:
        """For each text the words that are left when it is cut to what the model can read.

        A slow tokenizer cannot tell where its tokens stand; all words then count as read.
        """
        if self.maximum is None or not self.tokenizer.is_fast:
            return [text.indices for text in texts]
        return [self._visible_words(text, self.maximum) for text in texts]

    def _visible_words(self, text: Text, maximum: int) -> Sequence[int]:
        sides = (text.input,) if isinstance(text.input, str) else text.input
        if sum(len(side.encode("utf-8", "surrogatepass")) for side in sides) + _SPECIAL_TOKENS <= maximum:
            return text.indices
        cut = self.tokenizer(*sides, truncation="longest_first", max_length=maximum, return_offsets_mapping=True)
        if len(cut["input_ids"]) < maximum:
            return text.indices
        offsets, sequences = cut["offset_mapping"], cut.sequence_ids()
        shown = [_words_between(text, stretch, offsets, sequences) for stretch in text.stretches]
        return shown[0] if len(shown) == 1 else [index for words in shown for index in words]

    def tensors(self, batch: Sequence[EncodedText], device: torch.device) -> dict[str, Tensor]:
        """The batch as the model's arguments, padded to its longest text on the tokenizer's side."""
        return {name: torch.from_numpy(values).to(device) for name, values in self.arrays(batch).items()}

    def arrays(self, batch: Sequence[EncodedText], width: int | None = None) -> dict[str, NDArray[np.int64]]:
        """The same as arrays, padded to a width that no text exceeds, if one is named."""
        lengths = np.fromiter(map(len, batch), dtype=np.int64, count=len(batch))
        width = max(1, int(lengths.max())) if width is None else width
        columns = np.arange(width)
        right = self.tokenizer.padding_side != "left"
        mask = columns < lengths[:, None] if right else columns >= width - lengths[:, None]
        pad = self.tokenizer.pad_token_id
        arrays = {
            "input_ids": _filled(mask, pad if pad is not None else 0, b"".join([text.ids for text in batch])),
            "attention_mask": mask.astype(np.int64),
        }
        if self.with_types and any(text.types for text in batch):
            types = b"".join([text.types or bytes(len(text.ids)) for text in batch])
            arrays["token_type_ids"] = _filled(mask, self.tokenizer.pad_token_type_id, types)
        return arrays


def sequence_of(stretch: Stretch) -> int:
    """Which sequence of a tokenizer's input the words of a side are in."""
    return 1 if stretch.side == "hypothesis" else 0


def _words_between(
    text: Text, stretch: Stretch, offsets: Sequence[tuple[int, int]], sequences: Sequence[int | None]
) -> range:
    """The words of a side that the tokens of a text begin and end in."""
    number, shift = sequence_of(stretch), stretch.start
    spans = [
        (start + shift, end + shift)
        for (start, end), sequence in zip(offsets, sequences, strict=True)
        if sequence == number and end > start
    ]
    if not spans:
        return range(0)
    first, last = spans[0][0], spans[-1][1]
    ends = [start + len(word) for start, word in zip(text.starts, text.words, strict=True)]
    low, high = stretch.words.start, stretch.words.stop
    return range(bisect_right(ends, first, low, high), bisect_left(text.starts, last, low, high))


def logits_of(output: Any) -> Tensor:
    """The logits of what a model answered."""
    logits: Tensor = output.logits if hasattr(output, "logits") else output[0]
    return logits


def length_batches(lengths: Sequence[int], tokens: int, rows: int) -> list[list[int]]:
    """The indices in order of length, cut into batches of at most `rows` texts and `tokens` padded tokens
    (but one text at least).
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        last = batches[-1] if batches else []
        if not last or len(last) >= rows or (len(last) + 1) * lengths[index] > tokens:
            batches.append([index])
        else:
            last.append(index)
    return batches


def in_length_batches(
    batch: Sequence[EncodedText],
    compute: Callable[[Sequence[EncodedText]], Iterable[Any]],
    tokens: int,
    rows: int,
) -> list[Any]:
    """`compute` on batches of like lengths; the rows of its answers in the order of `batch`."""
    answers: list[Any] = [None] * len(batch)
    for indices in length_batches([len(text) for text in batch], tokens, rows):
        for index, answer in zip(indices, compute([batch[index] for index in indices]), strict=True):
            answers[index] = answer
    return answers


def maximum_length(tokenizer: Any, model: nn.Module) -> int | None:
    """The most tokens the model can read: the least of what its tokenizer, config and position table say;
    None without a limit.

    RoBERTa and its kin begin counting positions behind the padding index, so their table of 514 serves 512
    tokens.
    """
    config = getattr(model, "config", None)
    limits = [tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
    for name, layer in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(layer, nn.Embedding):
            limits.append(layer.num_embeddings - (0 if layer.padding_idx is None else layer.padding_idx + 1))
    usable = [limit for limit in limits if isinstance(limit, int) and 0 < limit < _NO_LIMIT]
    return min(usable, default=None)


def _filled(mask: NDArray[np.bool_], padding: int, values: bytes) -> NDArray[np.int64]:
    rows = np.full(mask.shape, padding, dtype=np.int64)
    rows[mask] = np.frombuffer(values, dtype=ID_TYPE)
    return rows
