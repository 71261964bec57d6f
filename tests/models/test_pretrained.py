"""What a folder or hub name may not do: run code, answer with random weights, or end in a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertModel

from stockade.core.errors import ModelError
from stockade.models.adapters import load_model
from stockade.models.huggingface import HuggingFaceClassifier

from .conftest import tiny_bert


def test_a_folder_answers_like_the_model_that_was_saved(bert_folder: Path, bert: Any, tokenizer: Any) -> None:
    texts = ["a great film", "not great"]
    expected = HuggingFaceClassifier(bert, tokenizer).predict_proba(texts)
    for reference in (bert_folder, str(bert_folder)):
        np.testing.assert_allclose(load_model(reference).predict_proba(texts), expected, atol=1e-12)


def test_half_precision_weights_are_computed_in_float32(bert_folder: Path) -> None:
    tiny_bert().half().save_pretrained(bert_folder)
    assert HuggingFaceClassifier.from_pretrained(bert_folder).model.dtype == torch.float32


def test_pickled_weights_are_refused_unless_allowed_by_name(bert_folder: Path, bert: Any) -> None:
    (bert_folder / "model.safetensors").unlink()
    torch.save(bert.state_dict(), bert_folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin.*allow_pickle=True / --allow-pickle"):
        load_model(bert_folder)
    assert load_model(bert_folder, allow_pickle=True).labels == ("LABEL_0", "LABEL_1")


def test_code_of_the_models_own_is_refused_and_not_run(bert_folder: Path, tmp_path: Path) -> None:
    config = json.loads((bert_folder / "config.json").read_text())
    config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.EvilConfig"}}
    (bert_folder / "config.json").write_text(json.dumps(config))
    (bert_folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(ModelError, match="trust_remote_code=True / --trust-remote-code"):
        load_model(bert_folder)
    assert not (tmp_path / "ran").exists()


def test_a_model_without_a_classification_head_is_refused(bert_folder: Path, bert: Any) -> None:
    (bert_folder / "model.safetensors").unlink()
    BertModel(bert.config).save_pretrained(bert_folder)
    with pytest.raises(ModelError, match=r"not a trained classifier: it was saved as BertModel .*classifier\.bias"):
        load_model(bert_folder)


@pytest.mark.parametrize(
    ("remove", "message"),
    [
        ("config.json", "has no config.json"),
        ("model.safetensors", "has no weights"),
        ("tokenizer.json", "has no tokenizer"),
    ],
)
def test_an_incomplete_folder_is_told_what_it_lacks(bert_folder: Path, remove: str, message: str) -> None:
    (bert_folder / remove).unlink()
    with pytest.raises(ModelError, match=message):
        load_model(bert_folder)


def test_corrupt_weights_are_one_sentence(bert_folder: Path) -> None:
    (bert_folder / "model.safetensors").write_bytes(b"not a tensor in sight")
    with pytest.raises(ModelError, match="cannot be loaded as a text classifier") as caught:
        load_model(bert_folder)
    assert "\n" not in str(caught.value)


def test_missing_folders_files_and_unreachable_hub_names_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="There is no folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="There is no folder"):
        load_model("./nowhere")
    (tmp_path / "weights.bin").write_bytes(b"")
    with pytest.raises(ModelError, match="is a file"):
        load_model(tmp_path / "weights.bin")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="no folder here and cannot be had from the Hugging Face hub") as caught:
        load_model("nobody/has-this-model")
    assert "\n" not in str(caught.value)


def test_loading_is_silent_and_leaves_the_log_level_alone(bert_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    before = logging.get_verbosity()
    load_model(bert_folder)
    assert capfd.readouterr() == ("", "")
    assert logging.get_verbosity() == before
