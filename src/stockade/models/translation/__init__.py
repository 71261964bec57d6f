"""Translators: models of our own, any sequence-to-sequence model of transformers, and Python functions.

    load.py                                   from a reference to a `Translator`
    neural.py, inside.py                      a network and its tokenizer as a translator, and what attacks read inside
    decoding.py                               batched greedy and beam search with a cached decoder
    transformer.py, recurrent.py, common.py   the networks of our own
    smoothed_loss.py                          label-smoothed cross-entropy without the whole table of logits
    tokenizer.py, build.py                    from parallel sentences to an untrained network and its tokenizer

Nothing is imported here: `register_translators` makes transformers' Auto classes know the models when the first one is
loaded.
"""

from __future__ import annotations

from functools import cache

ARCHITECTURES = {
    "transformer-mt": "self-attentive encoder and decoder",
    "bilstm-mt": "two-layer BiLSTM encoder, LSTM decoder with attention",
}
"""The architectures that can be trained, and what they are."""


@cache
def register_translators() -> None:
    """Register the translators of our own with `AutoConfig`, `AutoTokenizer` and `AutoModelForSeq2SeqLM`."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedTokenizerFast

    from stockade.models.translation.recurrent import RecurrentTranslationConfig, RecurrentTranslator
    from stockade.models.translation.transformer import TransformerTranslationConfig, TransformerTranslator

    for config, model in (
        (TransformerTranslationConfig, TransformerTranslator),
        (RecurrentTranslationConfig, RecurrentTranslator),
    ):
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModelForSeq2SeqLM.register(config, model, exist_ok=True)
        AutoTokenizer.register(config, fast_tokenizer_class=PreTrainedTokenizerFast, exist_ok=True)
