"""A recurrent classifier over words: LSTM (one direction or two, any depth), pooling over the words, linear.

Padding does not change an answer: reading from left to right never sees what comes later, so padding on the
right is simply left out of the pooling; the backward half of a two-way LSTM reads packed sequences.

The transfer study has LSTMs of 1, 2 and 4 layers and leaves open how the words' states become one vector and how four
layers are made to learn from ten thousand sentences. Ours takes the maximum over the words, and each further layer adds
to the states before it (a residual connection).
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from stockade.models.zoo.heads import ZooClassifier, ZooConfig, pool
from stockade.models.zoo.words import Words


class LstmConfig(ZooConfig):
    """Sizes of an `LstmForSequenceClassification`; `hidden_size` is that of one direction."""

    model_type = "stockade-lstm"

    hidden_size: int = 64
    layers: int = 1
    bidirectional: bool = False
    pooling: str = "max"


class LstmForSequenceClassification(ZooClassifier):
    """An LSTM over any input of the zoo."""

    config_class = LstmConfig
    base_model_prefix = "lstm"
    config: LstmConfig

    def __init__(self, config: LstmConfig) -> None:
        super().__init__(config)
        size = config.hidden_size * (2 if config.bidirectional else 1)
        self.recurrent = _layer(self.word_size, config)
        self.deeper = nn.ModuleList(_layer(size, config) for _ in range(config.layers - 1))
        self.classifier = nn.Linear(size, config.num_labels or 2)
        self.post_init()

    def encode(self, words: Words, layers: list[Tensor] | None) -> Tensor:
        states = read_through(self.recurrent, self.dropout(words.dense), words.mask)
        for layer in [None, *self.deeper]:
            if layer is not None:
                states = states + read_through(cast(nn.LSTM, layer), self.dropout(states), words.mask)
            if layers is not None:
                layers.append(states * words.mask.unsqueeze(2))
        return pool(states, words.mask, self.config.pooling)


def _layer(size: int, config: LstmConfig) -> nn.LSTM:
    return nn.LSTM(size, config.hidden_size, batch_first=True, bidirectional=config.bidirectional)


def read_through(layer: nn.LSTM, vectors: Tensor, mask: Tensor) -> Tensor:
    """The states of one layer; both ways it needs to know where each text ends."""
    if not layer.bidirectional:
        return cast(Tensor, layer(vectors)[0])
    lengths = mask.sum(1).clamp(min=1).cpu()
    packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=vectors.shape[1])[0]
