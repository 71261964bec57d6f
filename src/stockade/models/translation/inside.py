"""What white-box attacks and studies read inside a translator: logits step by step, also with a word's vectors zeroed,
sentence vectors, and attention over the words of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stockade.core.errors import ModelError, OptionError
from stockade.core.text import Text
from stockade.core.translation import GreedySteps, SourceAttention, Vectors, ZeroableSource
from stockade.models.encoding import EncodedText, length_batches
from stockade.models.input_vectors import altered_vectors
from stockade.models.translation.common import TranslationModel
from stockade.models.translation.decoding import greedy_search
from stockade.models.white_box import eager_attention
from stockade.models.word_tokens import BLANKS, tokens_of_words

if TYPE_CHECKING:
    from stockade.models.translation.neural import NeuralTranslator

_TOKENS, _ROWS = 4096, 128


@dataclass(frozen=True, slots=True)
class _ReadSource:
    """A tokenised source and the positions of the tokens of each of its words (none beyond what the model reads)."""

    encoded: EncodedText
    words: list[list[int]]


class Inside:
    """What can be read inside one translator; made once for it."""

    def __init__(self, translator: NeuralTranslator) -> None:
        self._translator, self._model = translator, translator.model
        self._tokenizer, self._prefix = translator.tokenizer, translator.prefix

    def greedy_steps(self, sources: Sequence[ZeroableSource], wanted: Sequence[int]) -> list[GreedySteps]:
        """The greedy translation of each source step by step."""
        size = int(self._translator.model.get_encoder().get_input_embeddings().weight.shape[0])
        for token in wanted:
            if not 0 <= token < size:
                raise OptionError(f"The wanted token {token} is not in the vocabulary, which has {size} tokens.")
        read = [self._read(source.text) for source in sources]
        answers: dict[int, GreedySteps] = {}
        for numbers in length_batches([len(source.encoded) for source in read], _TOKENS, _ROWS):
            batch = [read[number] for number in numbers]
            zeroed = [sources[number].zeroed for number in numbers]
            answers.update(zip(numbers, self._steps(batch, zeroed, wanted), strict=True))
        return [answers[number] for number in range(len(sources))]

    def _steps(
        self, batch: Sequence[_ReadSource], zeroed: Sequence[int | None], wanted: Sequence[int]
    ) -> Iterator[GreedySteps]:
        inputs = self._inputs(batch)
        keep = torch.ones(inputs["input_ids"].shape, device=self._model.device)
        for row, (source, word) in enumerate(zip(batch, zeroed, strict=True)):
            if word is not None:
                keep[row, source.words[word]] = 0.0
        columns = torch.tensor(list(wanted), dtype=torch.long, device=self._model.device)
        rows: list[list[tuple[Any, Any, Any]]] = [[] for _ in batch]

        def note(numbers: Tensor, logits: Tensor, _: Any) -> None:
            values, tokens = logits.topk(2, 1)
            parts = (logits[:, columns].cpu().numpy(), values.cpu().numpy(), tokens.cpu().numpy())
            for number, *row in zip(numbers.tolist(), *parts, strict=True):
                rows[number].append((row[0], row[1], row[2]))

        encoded = self._encode(inputs, keep if any(word is not None for word in zeroed) else None)
        written = greedy_search(self._model, encoded, inputs["attention_mask"], self._translator.rules, note)
        for tokens, translation, steps in zip(written, self._translator.decoded(written), rows, strict=True):
            logits, highest, highest_tokens = (np.stack(part) for part in zip(*steps, strict=True))
            yield GreedySteps(translation, tuple(tokens), logits, highest, highest_tokens)

    def sentence_vectors(self, texts: Sequence[str]) -> Vectors:
        """The mean of the encoder's last states over the tokens of each sentence."""
        from stockade.models.translation.neural import mean_states

        def compute(batch: Sequence[EncodedText]) -> list[Vectors]:
            inputs = self._translator.encoder.tensors(batch, self._model.device)
            return list(mean_states(self._encode(inputs)[0], inputs["attention_mask"]))

        rows = self._translator.in_batches(texts, compute)
        return np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)

    def source_attention(self, texts: Sequence[Text], layer: int) -> list[SourceAttention]:
        """The attention of each step over the words of the source: the sum over tokens, the mean over heads."""
        read = [self._read(text) for text in texts]
        answers: dict[int, SourceAttention] = {}
        for numbers in length_batches([len(source.encoded) for source in read], _TOKENS, _ROWS):
            batch = [read[number] for number in numbers]
            answers.update(zip(numbers, self._attention(batch, layer), strict=True))
        return [answers[number] for number in range(len(texts))]

    def _attention(self, batch: Sequence[_ReadSource], layer: int) -> Iterator[SourceAttention]:
        inputs = self._inputs(batch)
        rows: list[list[NDArray[np.float32]]] = [[] for _ in batch]

        def note(numbers: Tensor, _: Tensor, output: Any) -> None:
            layers = getattr(output, "cross_attentions", None)
            if not layers:
                raise ModelError(f"{type(self._model).__name__} does not show its attention over the source.")
            if not -len(layers) <= layer < len(layers):
                raise OptionError(f"The decoder has {len(layers)} layers of attention; there is no layer {layer}.")
            weights = layers[layer][:, :, -1].mean(1).float().cpu().numpy()
            for number, row in zip(numbers.tolist(), weights, strict=True):
                rows[number].append(row)

        ours = isinstance(self._model, TranslationModel)
        with nullcontext() if ours else eager_attention(self._model):
            encoded, mask = self._encode(inputs), inputs["attention_mask"]
            arguments = {"output_attentions": True}
            written = greedy_search(self._model, encoded, mask, self._translator.rules, note, **arguments)
        ends = self._translator.rules.ends
        for tokens, translation, source, steps in zip(
            written, self._translator.decoded(written), batch, rows, strict=True
        ):
            count = len(tokens) - (1 if tokens[-1] in ends else 0)
            by_token = np.stack(steps)[:count]
            weights = [by_token[:, places].sum(1) for places in source.words]
            shares = np.stack(weights, 1) if weights else np.zeros((count, 0), dtype=np.float32)
            pieces = self._tokenizer.batch_decode([[token] for token in tokens[:count]])  # byte pairs as people write
            yield SourceAttention(translation, tuple(pieces), shares)

    def _encode(self, inputs: dict[str, Tensor], keep: Tensor | None = None) -> Any:
        """The encoder's output, with some input vectors zeroed."""
        encoder = self._model.get_encoder()
        with torch.inference_mode():
            if keep is None:
                return encoder(**inputs)
            with altered_vectors(encoder, partial(torch.mul, keep[:, :, None])):
                return encoder(**inputs)

    def _inputs(self, batch: Sequence[_ReadSource]) -> dict[str, Tensor]:
        return self._translator.encoder.tensors([source.encoded for source in batch], self._model.device)

    def _read(self, text: Text) -> _ReadSource:
        """The source tokenised as it is for a translation, and where its words are."""
        whole, before = text, 0
        if self._prefix:
            whole = Text.parse(self._prefix + str(text))
            before = len(Text.parse(self._prefix).words)
        encoded = self._translator.encoder.encode([str(whole)])[0]
        ids = np.frombuffer(encoded.ids, dtype=np.intc).tolist()
        offsets = self._offsets(str(whole), ids)
        inside = [token not in self._tokenizer.all_special_ids for token in ids]
        return _ReadSource(encoded, tokens_of_words(whole, offsets, inside)[before:])

    def _offsets(self, string: str, ids: list[int]) -> list[tuple[int, int]]:
        """Where in the string each token stands."""
        if self._tokenizer.is_fast:
            maximum = self._translator.encoder.maximum
            cut = {} if maximum is None else {"truncation": True, "max_length": maximum}
            mapping = self._tokenizer(string, return_offsets_mapping=True, **cut)["offset_mapping"]
            return [(start, end) for start, end in mapping]
        return piece_offsets(string, self._tokenizer.convert_ids_to_tokens(ids))


def piece_offsets(string: str, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Where in a string its pieces stand, for tokenizers that do not say: each piece is looked for behind the last.

    A piece that is not there to the letter, such as the unknown token, gets the stretch up to the next one that is.
    """
    offsets: list[tuple[int, int]] = []
    position, pending = 0, 0
    for piece in pieces:
        plain = piece.lstrip("".join(BLANKS))
        start = string.find(plain, position) if plain else -1
        if start < 0:
            pending += 1
            offsets.append((position, position))
            continue
        for index in range(len(offsets) - pending, len(offsets)):
            offsets[index] = (position, start)
        pending = 0
        position = start + len(plain)
        offsets.append((start, position))
    for index in range(len(offsets) - pending, len(offsets)):
        offsets[index] = (position, len(string))
    return offsets
