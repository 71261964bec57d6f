"""Makes transformers' Auto classes know the zoo, when the first model is loaded and not before."""

from __future__ import annotations

from functools import cache

MODEL_TYPES = ("stockade-cnn", "stockade-lstm", "stockade-attention", "stockade-bilm")


@cache
def register_zoo() -> None:
    """Register every model of the zoo with `AutoConfig`, `AutoTokenizer` and the Auto class of its task."""
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForSequenceClassification,
        AutoTokenizer,
        PreTrainedTokenizerFast,
    )

    from stockade.models.zoo.attention import AttentionConfig, AttentionForSequenceClassification
    from stockade.models.zoo.bilm import BiLm, BiLmConfig
    from stockade.models.zoo.cnn import CnnConfig, CnnForSequenceClassification
    from stockade.models.zoo.lstm import LstmConfig, LstmForSequenceClassification

    for task, config, model in (
        (AutoModelForSequenceClassification, CnnConfig, CnnForSequenceClassification),
        (AutoModelForSequenceClassification, LstmConfig, LstmForSequenceClassification),
        (AutoModelForSequenceClassification, AttentionConfig, AttentionForSequenceClassification),
        (AutoModel, BiLmConfig, BiLm),
    ):
        AutoConfig.register(config.model_type, config, exist_ok=True)
        task.register(config, model, exist_ok=True)
        AutoTokenizer.register(  # type: ignore[no-untyped-call]
            config, fast_tokenizer_class=PreTrainedTokenizerFast, exist_ok=True
        )
