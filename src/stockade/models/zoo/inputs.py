"""What a model of the zoo reads, made from the task's texts: a tokenizer, the config's fields for it, first vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from stockade.core.errors import OptionError
from stockade.models.zoo.bilm_encoder import CHARACTERS, BiLmSizes, sizes_as_dict
from stockade.models.zoo.elmo import read_language_model
from stockade.models.zoo.embeddings import read_word_vectors, vector_table
from stockade.models.zoo.readers import CharacterSizes
from stockade.models.zoo.tokenizers import (
    MAXIMUM_CHARACTERS,
    MAXIMUM_WORDS,
    alphabet,
    blank_and_marks,
    byte_tokenizer,
    character_tokenizer,
    split_words,
    word_tokenizer,
)

_CHARACTER_SPREAD = 1.0
"""Wide enough that the words made of them differ by about as much as word vectors do (standard deviation 0.3)."""
_OWN_SIZES = ("character_size", "filters", "highways", "projection_size", "layers", "longest_word")
"""The sizes of a language model that are options: with `lm_` before them where they stand beside a classifier's."""


@dataclass(frozen=True)
class ModelInput:
    """A tokenizer, the config fields that go with it, and weights to begin at, by the name of the tensor."""

    tokenizer: PreTrainedTokenizerFast
    fields: Mapping[str, Any]
    start: Mapping[str, Tensor] = field(default_factory=dict)


def word_options(embedding: str, from_file: bool) -> dict[str, Any]:
    """The options of a word input; vectors from a file or package have a width of their own."""
    own_width = embedding == "GloVe" or from_file
    return {
        **({} if own_width else {"embedding_size": 100}),
        "vocabulary": 30_000,
        "minimum_count": 2,
        "maximum": MAXIMUM_WORDS,
    }


def word_input(
    texts: Sequence[str],
    settings: Mapping[str, Any],
    embedding: str,
    source: str | Path | None,
    *,
    seed: int,
    pairs: bool,
    sides: bool,
) -> ModelInput:
    """Word ids. The vocabulary is the texts' words that have a vector or are seen often enough, frequent ones first."""
    sentences, size = split_words(texts), settings.get("embedding_size", 0)
    vectors = read_word_vectors(embedding, source, sentences, size=size, seed=seed)
    with_vector = {} if vectors is None else vectors.index
    counts = Counter(word for sentence in sentences for word in sentence)
    least = settings["minimum_count"]
    frequent = [word for word, count in counts.most_common() if count >= least or word in with_vector]
    words = frequent[: settings["vocabulary"]]
    tokenizer = word_tokenizer(words, settings["maximum"], pairs=pairs, sides=sides)
    special = len(tokenizer) - len(words)
    table = vector_table([*[""] * special, *words], vectors, size=size, seed=seed)
    table[0] = 0.0
    fields = {"unit": "word", "vocab_size": len(table), "embedding_size": table.shape[1]}
    return ModelInput(tokenizer, fields, {"embedding.weight": torch.from_numpy(table)})


def character_options() -> dict[str, Any]:
    """The options of a character input."""
    return {**asdict(CharacterSizes()), "alphabet": 500, "maximum": MAXIMUM_CHARACTERS}


def character_input(texts: Sequence[str], settings: Mapping[str, Any], *, seed: int) -> ModelInput:
    """Characters, each word read by a convolution over its own."""
    sizes = CharacterSizes(**{name: settings[name] for name in asdict(CharacterSizes())})
    tokenizer = character_tokenizer(alphabet(texts, settings["alphabet"]), settings["maximum"])
    blank, marks = blank_and_marks(tokenizer)
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(len(tokenizer), sizes.character_size, generator=generator) * _CHARACTER_SPREAD
    table[0] = 0.0
    fields = {
        "unit": "character",
        "vocab_size": len(tokenizer),
        "embedding_size": sizes.character_size,
        "reader": {**asdict(sizes), "character_widths": list(sizes.character_widths)},
        "blank_token_id": blank,
        "mark_token_ids": marks,
    }
    return ModelInput(tokenizer, fields, {"reader.embedding.weight": table})


def language_model_options(from_file: bool) -> dict[str, Any]:
    """The options of a WC-ELMo input; the sizes only of a language model that is not read but made."""
    sizes = {} if from_file else {f"lm_{name}": size for name, size in own_sizes().items()}
    return {"frozen": True, **sizes, "maximum": MAXIMUM_CHARACTERS}


def own_sizes() -> dict[str, Any]:
    """The options of a language model of our own with their defaults."""
    sizes = sizes_as_dict(BiLmSizes())
    return {name: sizes[name] for name in _OWN_SIZES}


def language_model_sizes(settings: Mapping[str, Any], prefix: str = "") -> BiLmSizes:
    """The sizes that the options say."""
    sizes = BiLmSizes(**{name: settings[prefix + name] for name in _OWN_SIZES})
    widest = max(width for width, _ in sizes.filters)
    if sizes.longest_word < max(3, widest):
        raise OptionError(
            f"longest_word is {sizes.longest_word}, but the widest filter reads {widest} characters; expected at least "
            "that many, and 3."
        )
    return sizes


def language_model_input(settings: Mapping[str, Any], source: str | Path | None) -> ModelInput:
    """Bytes, read by a language model in both directions."""
    start: dict[str, Tensor] = {}
    if source is None:
        if settings["frozen"]:
            raise OptionError(
                "WC-ELMo reads its words with a language model, and none was given. Give a folder that build_bilm's "
                "model was saved in, or one with published ELMo options and weights; or set frozen to false to train "
                "one with the classifier."
            )
        sizes = language_model_sizes(settings, prefix="lm_")
        tokenizer = byte_tokenizer(lowercase=True, maximum=settings["maximum"])
    else:
        model, tokenizer = read_language_model(source)
        tokenizer.model_max_length = settings["maximum"]
        sizes = model.encoder.sizes
        start = {f"reader.bilm.{name}": value for name, value in model.encoder.state_dict().items()}
    blank, marks = blank_and_marks(tokenizer)
    fields = {
        "unit": "language-model",
        "vocab_size": CHARACTERS,
        "embedding_size": sizes.character_size,
        "reader": {**sizes_as_dict(sizes), "frozen": settings["frozen"]},
        "blank_token_id": blank,
        "mark_token_ids": marks,
    }
    return ModelInput(tokenizer, fields, start)
