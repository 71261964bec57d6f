"""The names of the zoo, as data: importing this file loads nothing.

A name of the transfer study's pool is ARCHITECTURE-UNIT-EMBEDDING-LAYERS, `BiLSTM-W-GloVe-2` for instance: LSTM, BiLSTM
or CNN over words (W), characters (C) or both (WC), with what the input vectors begin at, and the number of layers. The
pool is 18 LSTMs, 18 BiLSTMs, 24 CNNs and BERT, RoBERTa, ALBERT, numbered 1 to 63 as in the study. Other papers' models
have names of their own.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from stockade.core.errors import OptionError, unknown_name

INPUTS = (
    ("W", "Random"),
    ("W", "GloVe"),
    ("W", "W2vec"),
    ("W", "fastText"),
    ("C", "Random"),
    ("WC", "ELMo"),
)
LAYERS = {"LSTM": (1, 2, 4), "BiLSTM": (1, 2, 4), "CNN": (1, 2, 4, 6)}
PRETRAINED = ("BERT", "RoBERTa", "ALBERT")


@dataclass(frozen=True, slots=True)
class ZooName:
    """A parsed name. Models outside the grid have an architecture only: no unit, no embedding, no layers (0)."""

    architecture: str
    unit: str = ""
    embedding: str = ""
    layers: int = 0

    def __str__(self) -> str:
        if not self.unit:
            return self.architecture
        return f"{self.architecture}-{self.unit}-{self.embedding}-{self.layers}"


@dataclass(frozen=True, slots=True)
class Family:
    """Names that go together: how they are written in short, and what they are."""

    pattern: str
    summary: str
    names: tuple[ZooName, ...]


def _grid(architecture: str) -> tuple[ZooName, ...]:
    return tuple(
        ZooName(architecture, unit, embedding, layers) for layers in LAYERS[architecture] for unit, embedding in INPUTS
    )


def _pattern(architecture: str) -> str:
    inputs = ",".join(f"{unit}-{embedding}" for unit, embedding in INPUTS)
    return f"{architecture}-{{{inputs}}}-{{{','.join(map(str, LAYERS[architecture]))}}}"


def _single(name: str, summary: str) -> Family:
    return Family(name, summary, (ZooName(name),))


FAMILIES = (
    Family(_pattern("LSTM"), "recurrent, left to right", _grid("LSTM")),
    Family(_pattern("BiLSTM"), "recurrent, both ways", _grid("BiLSTM")),
    Family(_pattern("CNN"), "convolutions over the words", _grid("CNN")),
    Family(", ".join(PRETRAINED), "a checkpoint of yours with a new head", tuple(ZooName(name) for name in PRETRAINED)),
    _single("BERT-NOPT", "three BERT layers without pre-training"),
    _single("BiLSTM-attention", "BiLSTM with attention pooling; reads pairs side by side"),
    _single("word-LSTM", "LSTM over GloVe words, 150 states"),
    _single("word-CNN", "CNN over GloVe words, widths 3, 4, 5 of 150 filters each"),
    _single("MiniLM-L6", "the packaged MiniLM with a new head"),
    _single("MiniLM-L3", "a checkpoint of yours with three BERT layers and a new head"),
    _single("biLM", "character-aware language model, the input of WC-ELMo; no classifier"),
)
ZOO_NAMES = tuple(name for family in FAMILIES for name in family.names)
POOL = ZOO_NAMES[:63]
"""The 63 models of the transfer study in its order."""
_SMALL = (
    "LSTM-W-Random-1",
    "LSTM-W-GloVe-1",
    "LSTM-W-W2vec-1",
    "LSTM-W-fastText-1",
    "LSTM-C-Random-1",
    "LSTM-WC-ELMo-1",
    "LSTM-W-GloVe-2",
    "BiLSTM-W-Random-1",
    "BiLSTM-W-GloVe-1",
    "BiLSTM-C-Random-1",
    "BiLSTM-W-GloVe-2",
    "CNN-W-Random-1",
    "CNN-W-GloVe-1",
    "CNN-W-W2vec-1",
    "CNN-W-fastText-1",
    "CNN-C-Random-1",
    "CNN-WC-ELMo-1",
    "CNN-W-GloVe-2",
    "BERT-NOPT",
    "MiniLM-L6",
)
POOLS: dict[str, tuple[str, ...]] = {
    "default": _SMALL,
    "full": (*(str(name) for name in POOL), "BERT-NOPT", "MiniLM-L3", "MiniLM-L6"),
}
"""Models that are trained and compared together, by the name of the pool. `default` has neighbours in every factor of
the transfer study and needs no files; `full` is the study's pool, and the transformers that stand in for those of its
own that cannot be had everywhere.
"""

_BY_TEXT = {str(name).lower(): name for name in ZOO_NAMES}


def parse_zoo_name(text: str) -> ZooName:
    """The name that `text` spells, whatever its case."""
    parsed = _BY_TEXT.get(text.strip().lower())
    if parsed is not None:
        return parsed
    near = difflib.get_close_matches(text.strip().lower(), _BY_TEXT, n=1)
    hint = f' Did you mean "{_BY_TEXT[near[0]]}"?' if near else ""
    patterns = "; ".join(family.pattern for family in FAMILIES)
    raise OptionError(f'There is no model "{text}" in the zoo (found: {patterns}).{hint}')


def pool_names(pool: str) -> tuple[str, ...]:
    """The models of a pool."""
    if pool not in POOLS:
        raise unknown_name("pool of models", pool, POOLS)
    return POOLS[pool]


def pool_id(name: str | ZooName) -> int:
    """The number, 1 to 63, that the transfer study gives a model of its pool."""
    parsed = parse_zoo_name(name) if isinstance(name, str) else name
    if parsed not in POOL:
        raise OptionError(f"{parsed} is not one of the {len(POOL)} models of the transfer study, so it has no number.")
    return POOL.index(parsed) + 1
