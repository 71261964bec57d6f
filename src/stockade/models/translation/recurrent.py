"""A recurrent translator: a BiLSTM of two layers reads the source, an LSTM of two layers with attention writes.

Attention is that of GNMT (Wu et al. 2016): the first layer of the decoder looks at the source, and what it finds is
read by the second layer and by the output layer. No step waits for the attention of the step before it, so all steps of
a training sentence are computed together. OpenNMT's LSTM, which the paper attacks, feeds the attention of a step into
the next one instead.

Padding does not change an answer: it stands on the right, and the backward half of the encoder reads each sentence
reversed within its own length.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_outputs import BaseModelOutput

from stockade.models.translation.common import DecoderCache, TranslationConfig, TranslationModel


class RecurrentTranslationConfig(TranslationConfig):
    """Sizes of a `RecurrentTranslator`; `hidden_size` is that of one direction, a decoder layer has twice as many."""

    model_type = "stockade-bilstm-mt"

    hidden_size: int = 128
    encoder_layers: int = 2


class _Encoder(nn.Module):
    """The source side, with the embedding of both sides."""

    def __init__(self, config: RecurrentTranslationConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.width, padding_idx=config.pad_token_id)
        sizes = [config.width, *[2 * config.hidden_size] * (config.encoder_layers - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(size, config.hidden_size, batch_first=True) for size in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(size, config.hidden_size, batch_first=True) for size in sizes)
        self.dropout = nn.Dropout(config.dropout)

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: object) -> BaseModelOutput:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        lengths = mask.sum(1, keepdim=True)
        columns = torch.arange(input_ids.shape[1], device=input_ids.device)
        mirrored = torch.where(columns < lengths, lengths - 1 - columns, columns)[:, :, None]
        vectors = self.embedding(input_ids)
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            vectors = self.dropout(vectors)
            ahead = forwards(vectors)[0]
            back = backwards(vectors.gather(1, mirrored.expand_as(vectors)))[0]
            vectors = torch.cat([ahead, back.gather(1, mirrored.expand_as(back))], 2)
        return BaseModelOutput(last_hidden_state=vectors * mask[:, :, None])


class RecurrentTranslator(TranslationModel):
    """LSTMs from sub-words to sub-words."""

    config_class = RecurrentTranslationConfig
    base_model_prefix = "recurrent"
    config: RecurrentTranslationConfig

    def __init__(self, config: RecurrentTranslationConfig) -> None:
        super().__init__(config)
        size = 2 * config.hidden_size
        self.encoder = _Encoder(config)
        self.start = nn.Linear(size, 2 * size)
        self.first = nn.LSTM(config.width, size, batch_first=True)
        self.query = nn.Linear(size, size, bias=False)
        self.second = nn.LSTM(2 * size, size, batch_first=True)
        self.readout = nn.Linear(2 * size, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """torch's own first weights, with forget gates that begin half open; embeddings of unit length on average."""
        if isinstance(module, nn.LSTM):
            module.reset_parameters()
            for name, bias in module.named_parameters():
                if name.startswith("bias_ih"):
                    with torch.no_grad():
                        bias[module.hidden_size : 2 * module.hidden_size] = 1.0
        elif isinstance(module, nn.Linear):
            module.reset_parameters()
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
            with torch.no_grad():
                module.weight[self.config.pad_token_id] = 0.0

    def decode(
        self,
        tokens: Tensor,
        encoded: BaseModelOutput,
        mask: Tensor | None,
        cache: DecoderCache | None,
        attentions: list[Tensor] | None,
    ) -> Tensor:
        source = cast(Tensor, encoded[0])
        states = self._states(source, mask, cache)
        vectors = self.dropout(self.encoder.embedding(tokens) * math.sqrt(self.config.width))
        first, states[0:2] = _read(self.first, vectors, states[0:2])
        context = self._look(first, source, mask, attentions)
        second, states[2:4] = _read(self.second, self.dropout(torch.cat([first, context], 2)), states[2:4])
        if cache is not None:
            cache.tensors.update(zip(_STATES, states, strict=True))
            cache.steps += tokens.shape[1]
        read = torch.tanh(self.readout(self.dropout(torch.cat([second, context], 2))))
        return cast(Tensor, self.dropout(read))

    def _states(self, source: Tensor, mask: Tensor | None, cache: DecoderCache | None) -> list[Tensor]:
        """Hidden states and cells of both layers: those of the cache, or those to begin at."""
        if cache is not None and cache.steps:
            return [cache.tensors[name] for name in _STATES]
        lengths = source.shape[1] if mask is None else mask.sum(1, keepdim=True).clamp(min=1)
        begin = torch.tanh(self.start(source.sum(1) / lengths))
        first, second = begin.chunk(2, 1)
        return [first, torch.zeros_like(first), second, torch.zeros_like(second)]

    def _look(self, states: Tensor, source: Tensor, mask: Tensor | None, attentions: list[Tensor] | None) -> Tensor:
        """For each position the mean of the source's states, weighted by attention.

        Scores are not divided by the square root of the width, as in Luong et al. (2015): states of an LSTM are small,
        and divided scores take thousands of steps to tell words apart.
        """
        query = self.query(states)
        over = None if mask is None else mask[:, None, :]
        if attentions is None:
            return functional.scaled_dot_product_attention(query, source, source, attn_mask=over, scale=1.0)
        scores = query @ source.transpose(1, 2)
        weights = scores.softmax(-1) if over is None else scores.masked_fill(~over, -torch.inf).softmax(-1)
        attentions.append(weights[:, None])
        return cast(Tensor, weights @ source)


_STATES = ("first state", "first cell", "second state", "second cell")


def _read(layer: nn.LSTM, vectors: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The outputs of an LSTM layer and its states after them, rows × size each."""
    outputs, (hidden, cell) = layer(vectors, (states[0][None].contiguous(), states[1][None].contiguous()))
    return outputs, [hidden[0], cell[0]]
