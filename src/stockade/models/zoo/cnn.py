"""A word-level convolutional classifier (Kim 2014, §2, one channel): embedding, filters of several widths,
max over time, linear.

Padding does not change an answer: a window begins at every real word, sees zeros past the end, and windows
that begin past the end are left out of the maximum. A text shorter than a filter, even the empty one, has one
such window.

Attack texts are near copies of each other, so a batch holds few distinct words. Outside training the filters
are therefore applied once to each distinct word of the batch, and a window's answer is the sum of its words'
parts: the same numbers as the convolution (a convolution is such a sum) at a fraction of the cost.

Differences to the paper: zeros stand only behind the text, not before it; AdamW instead of AdaDelta with an
L2 ball.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from stockade.models.zoo.heads import classifier_output, torch_defaults, usable_mask

_FEW_TEXTS = 2
"""So few texts share no words worth looking for: the plain convolution is faster."""


class CnnConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """Sizes of a `CnnForSequenceClassification`."""

    model_type = "stockade-cnn"

    vocab_size: int = 2
    embedding_size: int = 50
    widths: list[int] | tuple[int, ...] = (3, 4, 5)
    filters: int = 64
    dropout: float = 0.5
    pad_token_id: int = 0


class CnnForSequenceClassification(PreTrainedModel):  # type: ignore[no-untyped-call]
    """Kim's CNN over word embeddings. Reads right-padded `input_ids`, or `inputs_embeds` for methods that
    need gradients.
    """

    config_class = CnnConfig
    base_model_prefix = "cnn"
    config: CnnConfig

    def __init__(self, config: CnnConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_size, config.filters, width) for width in config.widths
        )
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(config.filters * len(config.widths), config.num_labels or 2)
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
        inferring = not self.training and not torch.is_grad_enabled()
        if input_ids is not None and inferring and len(input_ids) > _FEW_TEXTS:
            pooled = self._pool_of_distinct_words(input_ids, mask)
        else:
            vectors = self.embedding(input_ids) if inputs_embeds is None else inputs_embeds
            pooled = self._pool_of_vectors(vectors, mask)
        logits = self.classifier(self.dropout(torch.relu(pooled)))
        return classifier_output(logits, labels)

    def _pool_of_vectors(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """The maximum of every filter over the windows of each text, by plain convolution."""
        vectors = (vectors * mask.unsqueeze(2)).transpose(1, 2)
        past_end = _past_end(mask).unsqueeze(1)
        answers = []
        for convolution in self._filters():
            windows = convolution(functional.pad(vectors, (0, convolution.kernel_size[0] - 1)))
            answers.append(windows.masked_fill(past_end, -torch.inf).amax(2))
        return torch.cat(answers, 1)

    def _pool_of_distinct_words(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        """The same maximum, from the filters' answers to the distinct words of the batch."""
        rows, length = input_ids.shape
        ids = input_ids.masked_fill(~mask, self.config.pad_token_id)
        ids = functional.pad(ids, (0, max(self.config.widths) - 1), value=self.config.pad_token_id)
        words, places = torch.unique(ids, return_inverse=True)
        vectors, past_end = self.embedding(words), _past_end(mask).unsqueeze(2)
        answers = []
        for convolution in self._filters():
            width = convolution.kernel_size[0]
            parts = torch.matmul(vectors, convolution.weight.permute(2, 1, 0)).view(width * len(words), -1)
            windows = places.unfold(1, width, 1)[:, :length] + torch.arange(width, device=ids.device) * len(words)
            sums = functional.embedding_bag(windows.reshape(rows * length, width), parts, mode="sum").view(
                rows, length, -1
            )
            answers.append(sums.masked_fill_(past_end, -torch.inf).amax(1) + cast(Tensor, convolution.bias))
        return torch.cat(answers, 1)

    def _filters(self) -> list[nn.Conv1d]:
        return [cast(nn.Conv1d, convolution) for convolution in self.convolutions]


def _past_end(mask: Tensor) -> Tensor:
    """Where a window may not begin: at padding, except that the first window of an empty text stays."""
    past_end = ~mask
    past_end[:, 0] = False
    return past_end
