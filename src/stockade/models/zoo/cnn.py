"""A convolutional classifier over words (Kim 2014, §2, one channel): filters of several widths, max over time, linear.

The transfer study also has CNNs of 2, 4 and 6 layers and leaves open what the further ones are. Ours are convolutions
of width 3 over the states before, normalised, with a residual connection; the maximum is taken after the last.

Padding does not change an answer: a window begins at every real word, sees zeros past the end, and windows
that begin past the end are left out of the maximum and of the next layer. A text shorter than a filter, even the empty
one, has one such window.

Attack texts are near copies of each other, so a batch holds few distinct words. Outside training the filters
are therefore applied once to each distinct word of the batch, and a window's answer is the sum of its words'
parts: the same numbers as the convolution (a convolution is such a sum) at a fraction of the cost.

Differences to Kim: zeros stand only behind the text, not before it; AdamW instead of AdaDelta with an L2 ball.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from stockade.models.zoo.heads import ZooClassifier, ZooConfig
from stockade.models.zoo.words import DistinctVectors, Words


class CnnConfig(ZooConfig):
    """Sizes of a `CnnForSequenceClassification`."""

    model_type = "stockade-cnn"

    widths: list[int] | tuple[int, ...] = (3, 4, 5)
    filters: int = 64
    layers: int = 1


class ResidualConvolution(nn.Module):
    """A further layer: what it adds to a word's state comes from the word and its two neighbours."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.convolution = nn.Conv1d(size, size, 3, padding=1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        normed = self.norm(states) * real
        added: Tensor = self.dropout(torch.relu(self.convolution(normed.transpose(1, 2)).transpose(1, 2)))
        return (states + added) * real


class CnnForSequenceClassification(ZooClassifier):
    """Kim's CNN, perhaps with further layers, over any input of the zoo."""

    config_class = CnnConfig
    base_model_prefix = "cnn"
    config: CnnConfig
    distinct_words = True

    def __init__(self, config: CnnConfig) -> None:
        super().__init__(config)
        self.convolutions = nn.ModuleList(nn.Conv1d(self.word_size, config.filters, width) for width in config.widths)
        size = config.filters * len(config.widths)
        self.deeper = nn.ModuleList(ResidualConvolution(size, config.dropout) for _ in range(config.layers - 1))
        self.classifier = nn.Linear(size, config.num_labels or 2)
        self.post_init()

    def encode(self, words: Words, layers: list[Tensor] | None) -> Tensor:
        real = _window_starts(words.mask).unsqueeze(2)
        if layers is None and not self.deeper:
            windows = [answers.masked_fill_(~real, -torch.inf).amax(1) for answers in self._windows(words)]
            return torch.relu(torch.cat(windows, 1))
        states = torch.relu(torch.cat(self._windows(words), 2)) * real
        for layer in [None, *self.deeper]:
            states = states if layer is None else layer(states, real)
            if layers is not None:
                layers.append(states)
        return states.masked_fill(~real, -torch.inf).amax(1)

    def _windows(self, words: Words) -> list[Tensor]:
        """The answer of each width's filters to the window that begins at each word: (texts, words, filters)."""
        if isinstance(words, DistinctVectors):
            return self._windows_of_distinct(words)
        vectors = (words.vectors * words.mask.unsqueeze(2)).transpose(1, 2)
        return [
            convolution(functional.pad(vectors, (0, convolution.kernel_size[0] - 1))).transpose(1, 2)
            for convolution in self._filters()
        ]

    def _windows_of_distinct(self, words: DistinctVectors) -> list[Tensor]:
        """The same, from the filters' answers to the distinct words of the batch."""
        (rows, length), distinct = words.places.shape, len(words.table)
        places = functional.pad(words.places, (0, max(self.config.widths) - 1))
        answers = []
        for convolution in self._filters():
            width = convolution.kernel_size[0]
            parts = torch.matmul(words.table, convolution.weight.permute(2, 1, 0))
            parts[0] += cast(Tensor, convolution.bias)  # every window has one first word
            windows = places.unfold(1, width, 1)[:, :length] + torch.arange(width, device=places.device) * distinct
            sums = functional.embedding_bag(windows.reshape(rows * length, width), parts.flatten(0, 1), mode="sum")
            answers.append(sums.view(rows, length, -1))
        return answers

    def _filters(self) -> list[nn.Conv1d]:
        return [cast(nn.Conv1d, convolution) for convolution in self.convolutions]


def _window_starts(mask: Tensor) -> Tensor:
    """Where a window may begin: at every word, and at the first place of an empty text."""
    starts = mask.clone()
    starts[:, 0] = True
    return starts
