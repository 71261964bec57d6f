"""Builds an untrained translator: from an architecture and parallel sentences to a network and its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from stockade.core.errors import DataError, OptionError, unknown_name
from stockade.models.translation import ARCHITECTURES
from stockade.models.translation.common import TranslationModel
from stockade.models.translation.recurrent import RecurrentTranslationConfig, RecurrentTranslator
from stockade.models.translation.tokenizer import train_tokenizer
from stockade.models.translation.transformer import TransformerTranslationConfig, TransformerTranslator
from stockade.models.zoo.build import with_options

_SHARED: Mapping[str, Any] = {"vocabulary": 10_000, "width": 128, "dropout": 0.3, "max_source_tokens": 512}
_SIZES: Mapping[str, Mapping[str, Any]] = {
    "transformer-mt": {**_SHARED, "encoder_layers": 4, "decoder_layers": 4, "heads": 4, "inner_width": 256},
    "bilstm-mt": {**_SHARED, "hidden_size": 128, "encoder_layers": 2},
}


def build_translator(
    architecture: str,
    pairs: Sequence[tuple[str, str]],
    *,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> tuple[TranslationModel, Any]:
    """Build an untrained translator, and its tokenizer from the sentences of both sides.

    Parameters
    ----------
    architecture
        `transformer-mt` or `bilstm-mt`.
    pairs
        Source and target sentences.
    seed
        The same seed gives the same weights.
    options
        Sizes in place of the defaults; an unknown one is answered with those there are.
    """
    name = architecture.lower()
    if name not in ARCHITECTURES:
        raise unknown_name("architecture of a translator", architecture, ARCHITECTURES)
    if not pairs:
        raise DataError("A translator cannot be built without sentences: its sub-words come from them (found none).")
    sizes = with_options(_SIZES[name], options or {}, name)
    tokenizer = train_tokenizer(
        (side for pair in pairs for side in pair), sizes.pop("vocabulary"), sizes["max_source_tokens"]
    )
    fields = {**sizes, "vocab_size": len(tokenizer)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "bilstm-mt":
            return RecurrentTranslator(RecurrentTranslationConfig(**fields)).eval(), tokenizer
        if sizes["width"] % sizes["heads"] or sizes["width"] % 2:
            raise OptionError(
                f"width {sizes['width']} cannot be shared out among {sizes['heads']} heads; expected an even multiple."
            )
        return TransformerTranslator(TransformerTranslationConfig(**fields)).eval(), tokenizer
