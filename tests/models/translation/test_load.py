"""What can be named as a translator, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from stockade.core.errors import ModelError
from stockade.core.translation import InspectableTranslator, Translator
from stockade.models.translation.load import CallableTranslator, load_translator
from stockade.models.translation.neural import NeuralTranslator
from tests.models.translation.kit import ARCHITECTURES, tiny_translator
from tests.models.translation.test_neural import bart


def upper(texts: list[str]) -> list[str]:
    return [text.upper() for text in texts]


class Reverser:
    """A translator of a user's own."""

    deterministic = True

    def translate(self, texts: Sequence[str], *, beam: int = 1) -> list[str]:
        return [text[::-1] for text in texts]

    def fingerprint(self) -> str:
        return "reverser"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_folder_of_ours_gives_the_same_translations(tmp_path: Path, architecture: str) -> None:
    model, tokenizer = tiny_translator(architecture)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded, before = load_translator(tmp_path, device="cpu"), NeuralTranslator(model, tokenizer)
    assert isinstance(loaded, InspectableTranslator)
    assert loaded.translate(["one two", "six"]) == before.translate(["one two", "six"])
    assert loaded.fingerprint() == before.fingerprint()


def test_folder_of_transformers_gives_the_same_translations(tmp_path: Path) -> None:
    model, tokenizer = bart()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_translator(str(tmp_path)).translate(["one two"]) == load_translator((model, tokenizer)).translate(
        ["one two"]
    )


def test_python_functions_and_translators_of_a_users_own() -> None:
    shouting = load_translator(upper)
    assert isinstance(shouting, Translator)
    assert not isinstance(shouting, InspectableTranslator)
    assert shouting.translate(["ein Hund"], beam=5) == ["EIN HUND"]
    assert shouting.fingerprint() == load_translator(upper).fingerprint()
    named = load_translator("python:tests.models.translation.test_load:upper")
    assert named.translate(["a"]) == ["A"]
    mine = Reverser()
    assert load_translator(mine) is mine


def test_answers_of_functions_are_checked() -> None:
    with pytest.raises(ModelError, match="answered 2 texts with 1 items"):
        CallableTranslator(lambda texts: texts[:1]).translate(["a", "b"])
    with pytest.raises(ModelError, match="with a str"):
        CallableTranslator(lambda texts: "ab").translate(["a", "b"])
    with pytest.raises(ModelError, match="answered with a int"):
        CallableTranslator(lambda texts: [1]).translate(["a"])  # type: ignore[list-item]


def test_what_is_no_translator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a translator"):
        load_translator(7)
    with pytest.raises(ModelError, match="is not a translator"):
        load_translator(Reverser)
    with pytest.raises(ModelError, match="pass \\(model, tokenizer\\)"):
        load_translator(bart()[0])
    with pytest.raises(ModelError, match="expected \\(model, tokenizer\\)"):
        load_translator((1, 2, 3))
    with pytest.raises(ModelError, match=r"no config\.json"):
        load_translator(tmp_path)
    with pytest.raises(ModelError, match="There is no folder"):
        load_translator(tmp_path / "missing")


def test_classifier_is_refused_as_a_translator(tmp_path: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="cannot be loaded as a translator"):
        load_translator(tmp_path)
