"""The language model of `bilm_encoder.py` with a head that predicts the words before and behind, for pre-training.

model, tokenizer = build_bilm(texts)
words = BiLmWords.of(tokenizer, texts, model.config.words)
model(**batch, labels=padded(words.labels(batch_texts), -1)).loss
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

from stockade.core.errors import ModelError
from stockade.models.zoo.bilm_encoder import PADDING, BiLmEncoder, BiLmSizes
from stockade.models.zoo.tokenizers import MARKS

BEGIN_AND_END = 2
"""The head's first two words stand for the begin and the end of a text."""
_WORD = re.compile(rf"[{re.escape(MARKS)}]|[^ {re.escape(MARKS)}]+")


class BiLmConfig(PreTrainedConfig):
    """A `BiLm`: the sizes of its encoder, and the number of words it can predict (0: none, as in published weights)."""

    model_type = "stockade-bilm"

    sizes: dict[str, Any] | None = None
    words: int = 0
    dropout: float = 0.1
    blank_token_id: int | None = None
    mark_token_ids: list[int] | tuple[int, ...] = ()
    pad_token_id: int = PADDING


@dataclass
class BiLmOutput(ModelOutput):
    """`loss` is the mean over both directions; `hidden_states` leave the begin and end of the text out."""

    loss: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    mask: Tensor | None = None


class BiLm(PreTrainedModel):
    """The language model with its head: an adaptive softmax, one for both directions."""

    config_class = BiLmConfig
    base_model_prefix = "bilm"
    config: BiLmConfig

    def __init__(self, config: BiLmConfig) -> None:
        super().__init__(config)
        sizes = BiLmSizes(**(config.sizes or {}))
        assert config.blank_token_id is not None
        self.encoder = BiLmEncoder(sizes, config.blank_token_id, config.mark_token_ids)
        self.dropout = nn.Dropout(config.dropout)
        self.head = _head(sizes.projection_size, config.words) if config.words else None
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.embedding

    def _init_weights(self, module: nn.Module) -> None:
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **_: object
    ) -> BiLmOutput:
        """`labels` (texts, words) are the words' numbers in the head's vocabulary, 2 and up; negative: unknown."""
        mask = torch.ones_like(input_ids).bool() if attention_mask is None else attention_mask.bool()
        states, cut = self.encoder(input_ids, mask, dropout=self.dropout)
        loss = None if labels is None else self._loss(states[-1], cut.mask, labels)
        return BiLmOutput(loss=loss, hidden_states=tuple(layer[:, 1:-1] for layer in states), mask=cut.mask)

    def _loss(self, states: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        if self.head is None:
            raise ModelError("This language model has no words to predict, so it cannot be trained; leave labels out.")
        width = mask.shape[1]
        labels = functional.pad(labels[:, :width], (0, max(0, width - labels.shape[1])), value=-1)
        words = functional.pad(torch.where(mask, labels, -1), (1, 1), value=-1)
        words[:, 0] = 0
        words[torch.arange(len(words)), mask.sum(1) + 1] = 1
        ahead, behind = self.dropout(states).chunk(2, 2)
        read = torch.cat([ahead[:, :-1].flatten(0, 1), behind[:, 1:].flatten(0, 1)])
        wanted = torch.cat([words[:, 1:].flatten(), words[:, :-1].flatten()])
        return cast(Tensor, self.head(read[wanted >= 0], wanted[wanted >= 0]).loss)


def _head(size: int, words: int) -> nn.AdaptiveLogSoftmaxWithLoss:
    cutoffs = [cutoff for cutoff in (2_000, 10_000) if cutoff < words - 1] or [max(1, words // 2)]
    return nn.AdaptiveLogSoftmaxWithLoss(size, words, cutoffs)


@dataclass(frozen=True)
class BiLmWords:
    """The words that a biLM learns to predict, with their numbers in the head, 2 and up."""

    normalizer: Any
    numbers: dict[str, int]

    @classmethod
    def of(cls, tokenizer: Any, texts: Iterable[str], size: int) -> BiLmWords:
        """The most frequent words of the texts, as many as fit into a head of that size; ties as they come."""
        normalizer = tokenizer.backend_tokenizer.normalizer
        counts = Counter(word for text in texts for word in _WORD.findall(normalizer.normalize_str(text)))
        words = [word for word, _ in counts.most_common(max(0, size - BEGIN_AND_END))]
        return cls(normalizer, {word: number for number, word in enumerate(words, BEGIN_AND_END)})

    def __len__(self) -> int:
        return len(self.numbers) + BEGIN_AND_END

    def labels(self, texts: Sequence[str]) -> list[list[int]]:
        """For each text the numbers of its words, as the model cuts them; −1 for words it does not predict."""
        cut = (_WORD.findall(self.normalizer.normalize_str(text)) for text in texts)
        return [[self.numbers.get(word, -1) for word in words] for words in cut]
