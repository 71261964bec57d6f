"""Small word-level classifiers of our own, each a `transformers.PreTrainedModel` with its config and tokenizer.

Nothing is imported here: `registry.register_zoo()` makes the Auto classes know the models when the first one
is loaded.
"""
