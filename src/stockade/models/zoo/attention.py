"""A BiLSTM with attention over its states (Yang et al. 2016, eq. 5-7, on words): how much each word counts is a softmax
of a learned query times a layer of its state.

For pairs both sides are read by the same encoder, and the classifier reads [p, h, |p − h|, p · h] (Conneau et al.
2017). A pair comes as one row: the first side, a separator, the second side with token types 1. The one-word study
names a BiLSTM with attention and leaves sizes, query and the treatment of pairs open.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_outputs import SequenceClassifierOutput

from stockade.models.zoo.heads import ZooClassifier, ZooConfig, classifier_output
from stockade.models.zoo.lstm import read_through


class AttentionConfig(ZooConfig):
    """Sizes of an `AttentionForSequenceClassification`; `pairs` says whether it reads two sides."""

    model_type = "stockade-attention"

    hidden_size: int = 100
    layers: int = 1
    pairs: bool = False
    separator_token_id: int | None = None


class AttentionForSequenceClassification(ZooClassifier):
    """The BiLSTM with attention. With `output_attentions` the words' shares come as `attentions[0]` (texts, words):
    zeros at padding and separators, and the words of a side together 1.
    """

    config_class = AttentionConfig
    base_model_prefix = "attention"
    config: AttentionConfig

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(config)
        size, depth = 2 * config.hidden_size, range(1, config.layers)
        self.recurrent = nn.LSTM(self.word_size, config.hidden_size, batch_first=True, bidirectional=True)
        self.deeper = nn.ModuleList(
            nn.LSTM(size, config.hidden_size, batch_first=True, bidirectional=True) for _ in depth
        )
        self.attention = nn.Linear(size, size)
        self.query = nn.Linear(size, 1, bias=False)
        self.classifier = nn.Linear(4 * size if config.pairs else size, config.num_labels or 2)
        self.post_init()

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = False,
        output_attentions: bool | None = False,
        **_: object,
    ) -> SequenceClassifierOutput:
        words = self.read(input_ids, attention_mask, inputs_embeds)
        sides = self._sides(input_ids, words.mask, token_type_ids)
        order = (~sides).long().argsort(dim=1, stable=True)  # a side's words first, as they follow each other
        mask = sides.gather(1, order)
        vectors = words.dense.repeat(len(sides) // len(words.mask), 1, 1)
        states = [_reordered(vectors, order)]
        for layer in [self.recurrent, *self.deeper]:
            read = read_through(cast(nn.LSTM, layer), self.dropout(states[-1]), mask)
            states.append(read + states[-1] if len(states) > 1 else read)
        sentences, shares = self._pool(states[-1], mask)
        compared = _compared(*sentences.chunk(2)) if self.config.pairs else sentences
        logits = self.classifier(self.dropout(compared))
        layers = (
            [self._rejoined(layer * mask.unsqueeze(2), order) for layer in states] if output_hidden_states else None
        )
        attentions = [self._rejoined(shares.unsqueeze(2), order).squeeze(2)] if output_attentions else None
        return classifier_output(logits, labels, layers, attentions)

    def _sides(self, ids: Tensor | None, mask: Tensor, types: Tensor | None) -> Tensor:
        """Where the words of each side stand: (texts, words), for pairs all first sides and then all second ones."""
        if not self.config.pairs:
            return mask
        second = torch.zeros_like(mask) if types is None else types.bool() & mask
        if ids is None:  # the separator is then the word before the second side
            separator = functional.pad(second[:, 1:], (0, 1)) & ~second
        else:
            separator = ids.eq(self.config.separator_token_id or 0)
        return torch.cat([mask & ~second & ~separator, second & ~separator])

    def _pool(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The attended state of each text and the words' shares in it; zeros for an empty text."""
        scores = self.query(torch.tanh(self.attention(states))).squeeze(2)
        shares = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(1) * mask
        return (shares.unsqueeze(2) * states).sum(1), shares

    def _rejoined(self, values: Tensor, order: Tensor) -> Tensor:
        """Values of the sides' words back where the words stand in the row."""
        places = order.unsqueeze(2).expand_as(values)
        back = torch.zeros_like(values).scatter(1, places, values)
        return back[: len(back) // 2] + back[len(back) // 2 :] if self.config.pairs else back


def _reordered(values: Tensor, order: Tensor) -> Tensor:
    return values.gather(1, order.unsqueeze(2).expand(-1, -1, values.shape[2]))


def _compared(first: Tensor, second: Tensor) -> Tensor:
    return torch.cat([first, second, (first - second).abs(), first * second], 1)
