"""Builds a model of the zoo for a task: from a name, the task's texts and its classes to a model and its tokenizer.

    model, tokenizer = build_model("BiLSTM-W-GloVe-2", texts, ["no", "yes"], sources=Sources(glove="vectors.txt"))

The model is untrained (or its encoder pre-trained, where the name says so). The same seed gives the same weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from stockade.core.errors import DataError, OptionError, unknown_name
from stockade.core.text import TextInput
from stockade.models.zoo.attention import AttentionConfig, AttentionForSequenceClassification
from stockade.models.zoo.bilm import BiLm, BiLmConfig, BiLmWords
from stockade.models.zoo.bilm_encoder import sizes_as_dict
from stockade.models.zoo.checkpoints import CHECKPOINTS, NOPT_OPTIONS, from_checkpoint, never_pretrained
from stockade.models.zoo.cnn import CnnConfig, CnnForSequenceClassification
from stockade.models.zoo.inputs import (
    character_input,
    character_options,
    language_model_input,
    language_model_options,
    language_model_sizes,
    own_sizes,
    word_input,
    word_options,
)
from stockade.models.zoo.lstm import LstmConfig, LstmForSequenceClassification
from stockade.models.zoo.names import ZooName, parse_zoo_name
from stockade.models.zoo.tokenizers import MAXIMUM_CHARACTERS, blank_and_marks, byte_tokenizer

_POOLINGS = ("max", "mean")
_LSTM: Mapping[str, Any] = {"hidden_size": 128, "dropout": 0.5, "pooling": "max"}
_CNN: Mapping[str, Any] = {"widths": (3, 4, 5), "filters": 64, "dropout": 0.5}
_BODIES: Mapping[str, tuple[type[PreTrainedModel], type[Any], Mapping[str, Any], Mapping[str, Any]]] = {
    "LSTM": (LstmForSequenceClassification, LstmConfig, _LSTM, {}),
    "BiLSTM": (LstmForSequenceClassification, LstmConfig, _LSTM, {"bidirectional": True}),
    "CNN": (CnnForSequenceClassification, CnnConfig, _CNN, {}),
    "word-LSTM": (LstmForSequenceClassification, LstmConfig, {**_LSTM, "hidden_size": 150, "dropout": 0.3}, {}),
    "word-CNN": (CnnForSequenceClassification, CnnConfig, {**_CNN, "filters": 150, "dropout": 0.3}, {}),
    "BiLSTM-attention": (
        AttentionForSequenceClassification,
        AttentionConfig,
        {"hidden_size": 100, "layers": 1, "dropout": 0.5},
        {},
    ),
}
"""Model, config, options with their defaults, and what the name fixes."""
_CHECKPOINT: Mapping[str, Any] = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
_CHARACTER_DROPOUT = 0.25
"""LSTMs over characters learn slowly with more."""
_STRETCH = 3.0
"""torch's first weights make words so alike that the LSTMs take long to tell them apart."""
_LANGUAGE_MODEL_ONLY: Mapping[str, Any] = {"words": 20_000, "dropout": 0.1, "maximum": MAXIMUM_CHARACTERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the weights come from that a model begins at.

    Parameters
    ----------
    glove, word2vec, fasttext : Path or str, optional
        Files of word vectors.
    elmo : Path or str, optional
        A folder with a language model: a saved biLM or published ELMo files.
    checkpoint : Path or str, optional
        The folder or hub name of a pre-trained transformer.
    """

    glove: Path | str | None = None
    word2vec: Path | str | None = None
    fasttext: Path | str | None = None
    elmo: Path | str | None = None
    checkpoint: Path | str | None = None

    def vectors(self, embedding: str) -> Path | str | None:
        """The file for a name's embedding."""
        return {"GloVe": self.glove, "W2vec": self.word2vec, "fastText": self.fasttext}.get(embedding)


def build_model(
    name: str,
    inputs: Sequence[TextInput],
    labels: Sequence[str],
    *,
    sources: Sources | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> tuple[PreTrainedModel, Any]:
    """Build an untrained model of the zoo for a task, and its tokenizer.

    Parameters
    ----------
    name : str
        A name of the zoo, such as `BiLSTM-W-GloVe-2`, in any case.
    inputs : sequence of str or (str, str)
        The task's texts, or its pairs: the vocabulary comes from them.
    labels : sequence of str
        The names of the classes.
    sources : Sources, optional
        Where pre-trained weights come from.
    seed : int
        The same seed gives the same weights.
    options : mapping, optional
        Sizes in place of the defaults; an unknown one is answered with those there are.
    """
    parsed = parse_zoo_name(name)
    texts, pairs = _texts(inputs)
    classes = _classes(labels)
    with _seeded(seed):
        return _build(parsed, texts, pairs, classes, sources or Sources(), seed, options or {})


def build_bilm(
    texts: Sequence[str], *, seed: int = 0, options: Mapping[str, Any] | None = None
) -> tuple[BiLm, PreTrainedTokenizerFast]:
    """Build an untrained language model, and its tokenizer; `BiLmWords` makes its labels.

    Parameters
    ----------
    texts : sequence of str
        The texts whose frequent words it learns to predict.
    seed : int
        The same seed gives the same weights.
    options : mapping, optional
        Sizes in place of the defaults.
    """
    texts, _ = _texts(texts)
    settings = with_options({**own_sizes(), **_LANGUAGE_MODEL_ONLY}, options or {}, "biLM")
    sizes = language_model_sizes(settings)
    tokenizer = byte_tokenizer(lowercase=True, maximum=settings["maximum"])
    words = BiLmWords.of(tokenizer, texts, settings["words"])
    blank, marks = blank_and_marks(tokenizer)
    config = BiLmConfig(
        sizes=sizes_as_dict(sizes),
        words=len(words),
        dropout=settings["dropout"],
        blank_token_id=blank,
        mark_token_ids=marks,
    )
    with _seeded(seed), torch.no_grad():
        model = BiLm(config)
        model.encoder.projection.weight.mul_(_STRETCH)
    return model, tokenizer


def _build(
    name: ZooName,
    texts: list[str],
    pairs: bool,
    classes: Mapping[str, Any],
    sources: Sources,
    seed: int,
    options: Mapping[str, Any],
) -> tuple[PreTrainedModel, Any]:
    architecture = name.architecture
    if architecture == "biLM":
        raise OptionError("biLM is a language model, not a classifier: make it with build_bilm.")
    if architecture in CHECKPOINTS:
        chosen = {**with_options(_CHECKPOINT, options, str(name)), **classes} if options else classes
        return from_checkpoint(architecture, sources.checkpoint, chosen)
    if architecture == "BERT-NOPT":
        return never_pretrained(texts, with_options(NOPT_OPTIONS, options, str(name)), classes)
    model_class, config_class, body, fixed = _BODIES[architecture]
    if name.unit == "C" and "hidden_size" in body:
        body = {**body, "dropout": _CHARACTER_DROPOUT}
    embedding = name.embedding or str(options.get("embedding", "GloVe"))
    settings = with_options({**_input_options(name, embedding, sources), **body}, options, str(name))
    if settings.get("pooling", "max") not in _POOLINGS:
        raise OptionError(f'pooling is one of {", ".join(_POOLINGS)}, not "{settings["pooling"]}".')
    if name.unit == "C":
        read = character_input(texts, settings, seed=seed)
    elif name.unit == "WC":
        read = language_model_input(settings, sources.elmo)
    else:
        sides, file = pairs and architecture == "BiLSTM-attention", sources.vectors(embedding)
        read = word_input(texts, settings, embedding, file, seed=seed, pairs=pairs, sides=sides)
    fields = {**read.fields, **{key: settings[key] for key in body}, **fixed, **classes}
    if name.layers:
        fields["layers"] = name.layers
    if architecture == "BiLSTM-attention":
        fields |= {"pairs": pairs, "separator_token_id": read.tokenizer.sep_token_id}
    model = model_class(config_class(**fields))
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for key, value in read.start.items():
            weights[key].copy_(value)
    model.train(False)
    return model, read.tokenizer


def _input_options(name: ZooName, embedding: str, sources: Sources) -> dict[str, Any]:
    """The options of what a name reads; a name that does not say which word vectors has them as an option."""
    if name.unit == "C":
        return character_options()
    if name.unit == "WC":
        return language_model_options(sources.elmo is not None)
    words = word_options(embedding, sources.vectors(embedding) is not None)
    return words if name.unit else {"embedding": "GloVe", **words}


def _texts(inputs: Sequence[TextInput]) -> tuple[list[str], bool]:
    """All sides of all inputs, and whether there are pairs among them."""
    if not inputs:
        raise DataError("A model cannot be built without texts: its vocabulary comes from them (found none).")
    texts: list[str] = []
    pairs = False
    for number, text in enumerate(inputs):
        sides = (text,) if isinstance(text, str) else text
        paired = isinstance(text, tuple | list) and len(text) == 2
        if not (paired or isinstance(text, str)) or not all(isinstance(side, str) for side in sides):
            raise DataError(f"Input {number} is {text!r}; expected a text or a pair of texts.")
        pairs = pairs or paired
        texts += sides
    return texts, pairs


def _classes(labels: Sequence[str]) -> dict[str, Any]:
    names = [str(label) for label in labels]
    if len(names) < 2 or len(set(names)) < len(names):
        raise OptionError(f"A classifier needs two or more different labels (found: {', '.join(names) or 'none'}).")
    return {"id2label": dict(enumerate(names)), "label2id": {name: number for number, name in enumerate(names)}}


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Inside, torch's random numbers follow from the seed; outside they go on as if nothing had happened."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def with_options(defaults: Mapping[str, Any], options: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The defaults with the user's options in their place: names that exist, values like the defaults."""
    for name, value in options.items():
        if name not in defaults:
            raise unknown_name(f"option of {model}", name, defaults)
        expected = _expected(defaults[name], value)
        if expected:
            raise OptionError(f"The option {name} of {model} is {value!r}; expected {expected}.")
    return {**defaults, **options}


def _expected(default: Any, value: Any) -> str | None:
    """What a value like the default would be, if this is none; None if all is well."""
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(default, str):
        return None if isinstance(value, str) else "a name"
    if isinstance(default, int):
        return None if _is_count(value) else "a whole number of 1 or more"
    if isinstance(default, float):
        fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1
        return None if fits else "a number from 0 to below 1"
    pairs = not isinstance(default[0], int)
    if not isinstance(value, list | tuple) or not value:
        return "a list of pairs of whole numbers" if pairs else "a list of whole numbers"
    if pairs:
        fits = all(isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_count, pair)) for pair in value)
        return None if fits else "a list of pairs of whole numbers of 1 or more"
    return None if all(map(_is_count, value)) else "a list of whole numbers of 1 or more"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
