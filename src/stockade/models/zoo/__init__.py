"""Classifiers of our own by name (`docs/zoo.md`), each a `transformers.PreTrainedModel` with its config and tokenizer.

    names.py                                  what there is
    build.py, inputs.py                       from a name and a task's texts to a model
    embeddings.py, elmo.py, checkpoints.py    what a model begins at
    heads.py                                  what all classifiers share: input, body, linear layer
    cnn.py, lstm.py, attention.py             the bodies
    tokenizers.py, words.py, readers.py       the inputs: word ids, characters, a language model
    bilm_encoder.py, bilm.py                  the language model as an input, and to be pre-trained

Nothing is imported here: `register_zoo` makes transformers' Auto classes know the models when the first one is loaded.
"""

from __future__ import annotations

from functools import cache


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
        AutoTokenizer.register(config, fast_tokenizer_class=PreTrainedTokenizerFast, exist_ok=True)
