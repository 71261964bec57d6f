"""Classifiers of our own by name (`docs/zoo.md`), each a `transformers.PreTrainedModel` with its config and tokenizer.

    names.py                                  what there is
    build.py, options.py, inputs.py           from a name and a task's texts to a model
    embeddings.py, elmo.py, checkpoints.py    what a model begins at
    heads.py                                  what all classifiers share: input, body, linear layer
    cnn.py, lstm.py, attention.py             the bodies
    words.py, cutting.py, characters.py       the inputs: word ids, characters
    bilm_encoder.py, elmo_reader.py, bilm.py  the language model as an input, and to be pre-trained

Nothing is imported here: `registry.register_zoo()` makes the Auto classes know the models when the first one
is loaded.
"""
