"""A word-level recurrent classifier: embedding, LSTM (one direction or two, any depth), pooling over the words, linear.

Padding does not change an answer: reading from left to right never sees what comes later, so padding on the
right is simply left out of the pooling; the backward half of a two-way LSTM reads packed sequences.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from stockade.models.zoo.heads import classifier_output, pool, torch_defaults, usable_mask


class LstmConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """Sizes of an `LstmForSequenceClassification`."""

    model_type = "stockade-lstm"

    vocab_size: int = 2
    embedding_size: int = 50
    hidden_size: int = 64
    layers: int = 1
    bidirectional: bool = False
    pooling: str = "max"
    dropout: float = 0.5
    pad_token_id: int = 0


class LstmForSequenceClassification(PreTrainedModel):  # type: ignore[no-untyped-call]
    """An LSTM over word embeddings. Reads right-padded `input_ids`, or `inputs_embeds` where gradients are needed."""

    config_class = LstmConfig
    base_model_prefix = "lstm"
    config: LstmConfig

    def __init__(self, config: LstmConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id)
        self.recurrent = nn.LSTM(
            config.embedding_size,
            config.hidden_size,
            num_layers=config.layers,
            batch_first=True,
            dropout=config.dropout if config.layers > 1 else 0.0,
            bidirectional=config.bidirectional,
        )
        self.dropout = nn.Dropout(config.dropout)
        directions = 2 if config.bidirectional else 1
        self.classifier = nn.Linear(config.hidden_size * directions, config.num_labels or 2)
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embedding = cast(nn.Embedding, value)

    def _init_weights(self, module: nn.Module) -> None:
        torch_defaults(module)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        **_: object,
    ) -> SequenceClassifierOutput:
        mask = usable_mask(input_ids, attention_mask, inputs_embeds)
        vectors = self.embedding(input_ids) if inputs_embeds is None else inputs_embeds
        states = (
            self._both_ways(vectors, mask) if self.config.bidirectional else self.recurrent(self.dropout(vectors))[0]
        )
        logits = self.classifier(self.dropout(pool(states, mask, self.config.pooling)))
        return classifier_output(logits, labels)

    def _both_ways(self, vectors: Tensor, mask: Tensor) -> Tensor:
        lengths = mask.sum(1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.dropout(vectors), lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.recurrent(packed)[0], batch_first=True, total_length=vectors.shape[1])[0]
