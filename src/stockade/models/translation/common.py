"""What the translators of our own share: their config, their loss, and the cache of a decoder."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from stockade.models.translation.smoothed_loss import smoothed_loss

IGNORED = -100
"""The label of positions that do not count, as everywhere in transformers."""


class TranslationConfig(PreTrainedConfig):
    """What both translators have.

    `width` is that of the embedding, which source, target and the output layer share. `max_source_tokens` is where
    sources are cut.
    """

    is_encoder_decoder: bool = True
    vocab_size: int = 10_000
    width: int = 128
    dropout: float = 0.3
    max_source_tokens: int = 512
    pad_token_id: int = 0
    bos_token_id: int = 1
    eos_token_id: int = 2
    decoder_start_token_id: int = 1


class DecoderCache:
    """What a decoder remembers of the steps so far: tensors by name, a row per sentence."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.steps = 0

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these rows only, in this order; a row may come more than once."""
        self.tensors = {name: tensor.index_select(0, indices) for name, tensor in self.tensors.items()}


class TranslationModel(PreTrainedModel):
    """An encoder and a decoder, called as every sequence-to-sequence model of transformers is.

    A subclass has an `encoder` with an `embedding`, and answers `decode`.
    """

    config: TranslationConfig
    main_input_name = "input_ids"

    def get_encoder(self, *_: Any, **__: Any) -> nn.Module:
        encoder: nn.Module = self.get_submodule("encoder")
        return encoder

    def get_input_embeddings(self) -> nn.Module:
        return self.get_submodule("encoder.embedding")

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.get_submodule("encoder").embedding = value

    def get_output_embeddings(self) -> None:
        """None: the output layer is the input embedding itself, not a layer whose weights are tied to it."""

    @property
    def output_weight(self) -> Tensor:
        """The output layer, tokens × width."""
        return self.get_parameter("encoder.embedding.weight")

    def decode(
        self,
        tokens: Tensor,
        encoded: BaseModelOutput,
        mask: Tensor | None,
        cache: DecoderCache | None,
        attentions: list[Tensor] | None,
    ) -> Tensor:
        """What the output layer reads at each position.

        Parameters
        ----------
        tokens
            The target tokens so far, or those that the cache does not have yet.
        encoded
            The encoder's output.
        mask
            True at real tokens of the source; None if all are.
        cache
            What the decoder remembers of the tokens before these, changed in place.
        attentions
            A list to append attention over the source to, layer by layer: rows × heads × positions × source tokens.
        """
        raise NotImplementedError

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        labels: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: DecoderCache | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        label_smoothing: float = 0.0,
        **_: object,
    ) -> Seq2SeqLMOutput:
        """Logits of the next token at each position; with `labels` the loss and no logits, which would be huge."""
        if encoder_outputs is None:
            encoder_outputs = self.get_encoder()(input_ids=input_ids, attention_mask=attention_mask)
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("give decoder_input_ids or labels")
            decoder_input_ids = self.shifted(labels)
        mask = real_tokens(attention_mask)
        cache = (past_key_values or DecoderCache()) if use_cache else None
        attentions: list[Tensor] | None = [] if output_attentions else None
        states = self.decode(decoder_input_ids, encoder_outputs, mask, cache, attentions)
        loss = logits = None
        if labels is None:
            logits = states @ self.output_weight.T
        else:
            counted = labels != IGNORED
            loss = smoothed_loss(states[counted], self.output_weight, labels[counted], label_smoothing)
        return Seq2SeqLMOutput(
            loss=loss,  # type: ignore[arg-type]  # the fields are declared as FloatTensor and as transformers' caches
            logits=logits,  # type: ignore[arg-type]
            past_key_values=cache,  # type: ignore[arg-type]
            cross_attentions=None if attentions is None else tuple(attentions),  # type: ignore[arg-type]
            encoder_last_hidden_state=encoder_outputs[0],
        )

    def shifted(self, labels: Tensor) -> Tensor:
        """The decoder's input for these labels: the start token, then all labels but the last."""
        start = labels.new_full((len(labels), 1), self.config.decoder_start_token_id)
        before = torch.cat([start, labels[:, :-1]], 1)
        return before.masked_fill(before == IGNORED, self.config.pad_token_id)


def real_tokens(attention_mask: Tensor | None) -> Tensor | None:
    """A mask that is True at real tokens; None where nothing is padded, which is faster."""
    if attention_mask is None:
        return None
    mask = attention_mask.bool()
    return None if bool(mask.all()) else mask


@lru_cache(maxsize=16)
def sinusoids(length: int, width: int) -> Tensor:
    """The position vectors of Vaswani et al. (2017): sines in the first half, cosines in the second."""
    frequencies = torch.exp(torch.arange(0, width, 2) * (-torch.log(torch.tensor(10_000.0)) / width))
    angles = torch.arange(length)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], 1)


def positions(start: int, end: int, width: int, like: Tensor) -> Tensor:
    """The position vectors from `start` to before `end`, on the device of another tensor."""
    length = max(64, 1 << (end - 1).bit_length())  # few different tables, each used often
    return sinusoids(length, width)[start:end].to(like.device, like.dtype)
