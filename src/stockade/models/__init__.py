"""Victims: anything a user calls a model, as a `Classifier`.

    adapters.py                             from a reference or an object to a classifier
    builtin.py, pretrained.py, python.py    the adapters: built-in victims, Hugging Face, functions and estimators
    ensemble.py, ensemble_reference.py,
    mean_logits.py, calibration.py          several models as one
    huggingface.py, encoding.py             a Hugging Face classifier; texts to tensors
    masking.py                              copies of a text with words hidden
    word_tokens.py, input_vectors.py,
    white_box.py, internals.py              what is read and altered inside a model, word by word
    language.py, masked_lm.py,
    masked_places.py, pseudo_perplexity.py,
    sentence_encoder.py                     the language models that attacks ask besides the victim
    answers.py, lora.py                     checked answers of functions; low-rank changes of a base model
    zoo/                                    classifiers of our own by name

Importing this package is light; torch and transformers are imported when a neural model is first needed.
"""
