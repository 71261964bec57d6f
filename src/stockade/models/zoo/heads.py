"""What the zoo's classifiers share: the way from ids to words to a sentence vector to an answer.

A classifier is an input (word ids, characters, or a character-aware language model), a body that reads the words'
vectors, and a linear layer. Only the body differs between architectures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from stockade.core.errors import ModelError
from stockade.models.zoo.bilm_encoder import BiLmSizes
from stockade.models.zoo.readers import CharacterReader, CharacterSizes, ElmoReader
from stockade.models.zoo.words import Vectors, Words, read_ids


class ZooConfig(PreTrainedConfig):
    """What every classifier of the zoo has.

    `unit` is "word", "character" or "language-model". For the latter two, `reader` holds the sizes of the reader,
    `blank_token_id` the id that ends a word and `mark_token_ids` those that are words of their own.
    """

    vocab_size: int = 2
    embedding_size: int = 50
    dropout: float = 0.5
    pad_token_id: int = 0
    unit: str = "word"
    reader: dict[str, Any] | None = None
    blank_token_id: int | None = None
    mark_token_ids: list[int] | tuple[int, ...] = ()


class ZooClassifier(PreTrainedModel):
    """A classifier of right-padded `input_ids`. Where gradients are needed `inputs_embeds` stand in for the vectors of
    the ids; a model that reads characters needs the ids as well, because they say where words begin.

    A subclass sets `classifier` and answers `encode`.
    """

    config: ZooConfig
    classifier: nn.Linear

    distinct_words = False
    """Whether the body gains from knowing which words of a batch are the same."""

    def __init__(self, config: ZooConfig) -> None:
        super().__init__(config)
        self.reader = _reader(config)
        if self.reader is None:
            self.embedding = nn.Embedding(config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id)
        self.dropout = nn.Dropout(config.dropout)

    @property
    def word_size(self) -> int:
        """The width of the vectors that the body reads."""
        return self.config.embedding_size if self.reader is None else self.reader.width

    def get_input_embeddings(self) -> nn.Module:
        """The table of the words' vectors, or of the characters'."""
        return self.embedding if self.reader is None else self.reader.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        table = cast(nn.Embedding, value)
        if isinstance(self.reader, ElmoReader):
            self.reader.bilm.embedding = table
        elif self.reader is not None:
            self.reader.embedding = table
        else:
            self.embedding = table

    def _init_weights(self, module: nn.Module) -> None:
        torch_defaults(module)

    def encode(self, words: Words, layers: list[Tensor] | None) -> Tensor:
        """The sentence vectors of a batch; the states of each layer are appended to `layers` if wanted."""
        raise NotImplementedError

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = False,
        output_attentions: bool | None = False,
        **_: object,
    ) -> SequenceClassifierOutput:
        words = self.read(input_ids, attention_mask, inputs_embeds)
        layers = [words.dense] if output_hidden_states else None
        logits = self.classifier(self.dropout(self.encode(words, layers)))
        return classifier_output(logits, labels, layers)

    def read(self, input_ids: Tensor | None, attention_mask: Tensor | None, inputs_embeds: Tensor | None) -> Words:
        """The words of a batch."""
        if self.reader is not None:
            if input_ids is None:
                raise ModelError(
                    "A model that reads characters was given inputs_embeds without input_ids, which say where words "
                    "begin; give both."
                )
            mask = usable_mask(input_ids, attention_mask, None)
            return cast(Words, self.reader(input_ids, mask, inputs_embeds))
        mask = usable_mask(input_ids, attention_mask, inputs_embeds)
        if inputs_embeds is not None:
            return Vectors(inputs_embeds, mask)
        assert input_ids is not None
        return read_ids(self.embedding, input_ids, mask, self.distinct_words)


def _reader(config: ZooConfig) -> CharacterReader | ElmoReader | None:
    sizes, blank = config.reader or {}, config.blank_token_id
    if config.unit == "word":
        return None
    if blank is None:
        raise ModelError(f'A model of unit "{config.unit}" needs blank_token_id in its config (found none).')
    if config.unit == "character":
        character_sizes = CharacterSizes(**sizes)
        return CharacterReader(config.vocab_size, character_sizes, blank, config.mark_token_ids, config.pad_token_id)
    if config.unit == "language-model":
        frozen = bool(sizes.get("frozen", True))
        others = {name: value for name, value in sizes.items() if name != "frozen"}
        return ElmoReader(BiLmSizes(**others), blank, config.mark_token_ids, frozen)
    raise ModelError(f'unit is "word", "character" or "language-model", not "{config.unit}".')


def usable_mask(input_ids: Tensor | None, attention_mask: Tensor | None, inputs_embeds: Tensor | None) -> Tensor:
    """True at real tokens. Without an attention mask every position is real."""
    if (input_ids is None) == (inputs_embeds is None):
        raise ValueError("give either input_ids or inputs_embeds")
    if attention_mask is not None:
        return attention_mask.bool()
    shaped = input_ids if input_ids is not None else inputs_embeds
    assert shaped is not None
    return torch.ones(shaped.shape[:2], dtype=torch.bool, device=shaped.device)


def pool(states: Tensor, mask: Tensor, how: str) -> Tensor:
    """The mean or the maximum of the states at real words; zeros for an empty text."""
    real = mask.unsqueeze(2)
    if how == "mean":
        return (states * real).sum(1) / real.sum(1).clamp(min=1)
    if how == "max":
        highest = states.masked_fill(~real, -torch.inf).amax(1)
        return highest.masked_fill(~mask.any(1, keepdim=True), 0.0)
    raise ValueError(f'pooling is "mean" or "max", not "{how}"')


def classifier_output(
    logits: Tensor,
    labels: Tensor | None,
    layers: Sequence[Tensor] | None = None,
    attentions: Sequence[Tensor] | None = None,
) -> SequenceClassifierOutput:
    """Logits, with the cross-entropy when the true classes are given."""
    loss = None if labels is None else functional.cross_entropy(logits, labels)
    return SequenceClassifierOutput(
        loss=loss,  # type: ignore[arg-type]  # the fields are declared as FloatTensor
        logits=logits,  # type: ignore[arg-type]
        hidden_states=None if layers is None else tuple(layers),  # type: ignore[arg-type]
        attentions=None if attentions is None else tuple(attentions),  # type: ignore[arg-type]
    )


def torch_defaults(module: nn.Module) -> None:
    """Initialise a layer as torch does: transformers' own 0.02 is meant for deep stacks with layer norms."""
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
