"""What the models of a job are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.core.errors import OptionError
from stockade.experiment.inputs import models_by_name, name_models


def predict(texts: list[str]) -> list[list[float]]:
    return [[0.5, 0.5]] * len(texts)


def test_names_are_short_and_different() -> None:
    models = ["builtin:sentiment-bert", Path("./models/bert/"), "org/bert", "python:my:predict", predict, len, (1, 2)]
    names = name_models(models, None)
    assert names == ("sentiment-bert", "bert", "bert-2", "predict", "predict-2", "len", "int")
    assert name_models(["../", lambda texts: texts], None) == ("model", "lambda")
    assert name_models(["x", "y"], ["a", "b"]) == ("a", "b")
    for bad in ("", "..", "a/b", "a b"):
        with pytest.raises(OptionError, match="cannot be a folder"):
            name_models(["x"], [bad])


def test_models_may_come_alone_in_a_list_or_with_names() -> None:
    assert models_by_name("builtin:sentiment-cnn") == {"sentiment-cnn": "builtin:sentiment-cnn"}
    assert models_by_name(["a/m", "b/m"]) == {"m": "a/m", "m-2": "b/m"}
    assert models_by_name({"mine": predict}) == {"mine": predict}
    pair = (predict, "its tokenizer")
    assert models_by_name(pair) == {"predict": pair}


def test_an_ensemble_is_called_after_its_members() -> None:
    assert name_models(["ensemble:builtin:sentiment-cnn,models/lstm/"], None) == ("sentiment-cnn+lstm",)
    many = ",".join(f"models/{number}-with-quite-a-long-name" for number in range(7))
    assert name_models([f"ensemble:{many}"], None) == ("ensemble-of-7",)
