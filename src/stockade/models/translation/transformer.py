"""A Transformer translator (Vaswani et al. 2017) that learns from small data.

Layer norms stand before each block (Xiong et al. 2020), so that a short warm-up is enough; source, target and output
layer share one embedding. The default sizes are those that suit Multi30k: four layers on each side, 128 wide.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_outputs import BaseModelOutput

from stockade.models.translation.common import (
    DecoderCache,
    TranslationConfig,
    TranslationModel,
    positions,
    real_tokens,
)


class TransformerTranslationConfig(TranslationConfig):
    """Sizes of a `TransformerTranslator`."""

    model_type = "stockade-transformer-mt"

    encoder_layers: int = 4
    decoder_layers: int = 4
    heads: int = 4
    inner_width: int = 256


class _Attention(nn.Module):
    """Attention of several heads; keys and values come from the same vectors."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)

    def keys_and_values(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Rows × heads × positions × width of a head, twice."""
        keys, values = self.key_value(vectors).chunk(2, -1)
        return self._by_head(keys), self._by_head(values)

    def forward(
        self,
        vectors: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
        attentions: list[Tensor] | None = None,
    ) -> Tensor:
        query = self._by_head(self.query(vectors))
        if attentions is not None:
            scores = query @ keys.transpose(2, 3) / math.sqrt(query.shape[3])
            weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -torch.inf).softmax(-1)
            attentions.append(weights)
            mixed = weights @ values
        else:
            mixed = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask, is_causal=causal)
        return cast(Tensor, self.output(mixed.transpose(1, 2).flatten(2)))

    def _by_head(self, vectors: Tensor) -> Tensor:
        return vectors.view(*vectors.shape[:2], self.heads, -1).transpose(1, 2)


class _Block(nn.Module):
    """Self-attention, attention over the source in a decoder, and a feed-forward layer, each added to what it reads."""

    def __init__(self, config: TransformerTranslationConfig, decodes: bool) -> None:
        super().__init__()
        width = config.width
        self.self_norm, self.self_attention = nn.LayerNorm(width), _Attention(width, config.heads)
        if decodes:
            self.source_norm, self.source_attention = nn.LayerNorm(width), _Attention(width, config.heads)
        self.inner_norm = nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, config.inner_width), nn.Linear(config.inner_width, width)
        self.dropout = nn.Dropout(config.dropout)

    def encode(self, vectors: Tensor, mask: Tensor | None) -> Tensor:
        normed = self.self_norm(vectors)
        keys, values = self.self_attention.keys_and_values(normed)
        vectors = vectors + self.dropout(self.self_attention(normed, keys, values, mask))
        return self._transform(vectors)

    def decode(
        self,
        vectors: Tensor,
        source: Tensor,
        mask: Tensor | None,
        cache: DecoderCache | None,
        layer: int,
        attentions: list[Tensor] | None,
    ) -> Tensor:
        normed = self.self_norm(vectors)
        keys, values = self.self_attention.keys_and_values(normed)
        if cache is not None:
            if f"keys {layer}" in cache.tensors:
                keys = torch.cat([cache.tensors[f"keys {layer}"], keys], 2)
                values = torch.cat([cache.tensors[f"values {layer}"], values], 2)
            else:
                pair = self.source_attention.keys_and_values(source)
                cache.tensors[f"source keys {layer}"], cache.tensors[f"source values {layer}"] = pair
            cache.tensors[f"keys {layer}"], cache.tensors[f"values {layer}"] = keys, values
            source_keys, source_values = (
                cache.tensors[f"source keys {layer}"],
                cache.tensors[f"source values {layer}"],
            )
        else:
            source_keys, source_values = self.source_attention.keys_and_values(source)
        causal = vectors.shape[1] > 1
        vectors = vectors + self.dropout(self.self_attention(normed, keys, values, causal=causal))
        looked_at = self.source_attention(
            self.source_norm(vectors), source_keys, source_values, mask, attentions=attentions
        )
        return self._transform(vectors + self.dropout(looked_at))

    def _transform(self, vectors: Tensor) -> Tensor:
        inner = functional.relu(self.inner(self.inner_norm(vectors)))
        return cast(Tensor, vectors + self.dropout(self.outer(inner)))


class _Encoder(nn.Module):
    """The source side, with the embedding of both sides."""

    def __init__(self, config: TransformerTranslationConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.width, padding_idx=config.pad_token_id)
        self.layers = nn.ModuleList(_Block(config, decodes=False) for _ in range(config.encoder_layers))
        self.norm = nn.LayerNorm(config.width)
        self.dropout = nn.Dropout(config.dropout)

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def embed(self, ids: Tensor, start: int = 0) -> Tensor:
        """Embedded tokens of either side with their positions, counted from `start`."""
        vectors = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        placed = vectors + positions(start, start + ids.shape[1], vectors.shape[2], vectors)
        return cast(Tensor, self.dropout(placed))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: object) -> BaseModelOutput:
        mask = real_tokens(attention_mask)
        over = None if mask is None else mask[:, None, None, :]
        vectors = self.embed(input_ids)
        for layer in self.layers:
            vectors = cast(_Block, layer).encode(vectors, over)
        return BaseModelOutput(last_hidden_state=self.norm(vectors))


class TransformerTranslator(TranslationModel):
    """A Transformer from sub-words to sub-words."""

    config_class = TransformerTranslationConfig
    base_model_prefix = "transformer"
    config: TransformerTranslationConfig

    def __init__(self, config: TransformerTranslationConfig) -> None:
        super().__init__(config)
        self.encoder = _Encoder(config)
        self.layers = nn.ModuleList(_Block(config, decodes=True) for _ in range(config.decoder_layers))
        self.norm = nn.LayerNorm(config.width)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Xavier, as in the paper; embeddings so that they have unit length on average."""
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
            with torch.no_grad():
                module.weight[self.config.pad_token_id] = 0.0
        elif isinstance(module, nn.LayerNorm):
            module.reset_parameters()

    def decode(
        self,
        tokens: Tensor,
        encoded: BaseModelOutput,
        mask: Tensor | None,
        cache: DecoderCache | None,
        attentions: list[Tensor] | None,
    ) -> Tensor:
        start = 0 if cache is None else cache.steps
        over = None if mask is None else mask[:, None, None, :]
        vectors = self.encoder.embed(tokens, start)
        for number, layer in enumerate(self.layers):
            vectors = cast(_Block, layer).decode(vectors, encoded[0], over, cache, number, attentions)
        if cache is not None:
            cache.steps += tokens.shape[1]
        return cast(Tensor, self.norm(vectors))
