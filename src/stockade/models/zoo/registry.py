"""Makes transformers' Auto classes know the zoo, when the first model is loaded and not before."""

from __future__ import annotations

from functools import cache

MODEL_TYPES = ("stockade-cnn", "stockade-lstm")


@cache
def register_zoo() -> None:
    """Register every model of the zoo with `AutoConfig`, `AutoModelForSequenceClassification` and `AutoTokenizer`."""
    from transformers import (
        AutoConfig,
        AutoModelForSequenceClassification,
        AutoTokenizer,
        PreTrainedTokenizerFast,
    )

    from stockade.models.zoo.cnn import CnnConfig, CnnForSequenceClassification
    from stockade.models.zoo.lstm import LstmConfig, LstmForSequenceClassification

    for config, model in (
        (CnnConfig, CnnForSequenceClassification),
        (LstmConfig, LstmForSequenceClassification),
    ):
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModelForSequenceClassification.register(config, model, exist_ok=True)
        AutoTokenizer.register(  # type: ignore[no-untyped-call]
            config, fast_tokenizer_class=PreTrainedTokenizerFast, exist_ok=True
        )
