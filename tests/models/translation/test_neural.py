"""Networks as translators: translations, and what attacks read inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from tokenizers.processors import TemplateProcessing
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
    PreTrainedTokenizerFast,
)

from stockade.core.errors import ModelError, OptionError
from stockade.core.text import Text
from stockade.core.translation import GreedySteps, InspectableTranslator, ZeroableSource
from stockade.models.translation.inside import piece_offsets
from stockade.models.translation.neural import NeuralTranslator
from tests.models.translation.kit import ARCHITECTURES, number_pairs, tiny_translator

SOURCES = [source for source, _ in number_pairs(12, seed=3)]


def bart() -> tuple[Any, Any]:
    """A tiny BART over whole words, with random weights."""
    words = ["<pad>", "<s>", "</s>", "one", "two", "three", "four", "five", "six", "read", ":", "."]
    backend = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="."))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", bos_token="<s>", eos_token="</s>", model_max_length=16
    )
    sizes: dict[str, Any] = {
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
    }
    tokens: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    tokens["forced_eos_token_id"] = None
    torch.manual_seed(0)
    config = BartConfig(vocab_size=len(words), max_position_embeddings=64, init_std=0.9, **sizes, **tokens)
    return BartForConditionalGeneration(config), tokenizer


def translator(kind: str) -> NeuralTranslator:
    return NeuralTranslator(*(bart() if kind == "bart" else tiny_translator(kind)))


KINDS = (*ARCHITECTURES, "bart")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 3])
def test_translation_does_not_depend_on_the_sentences_beside_it(kind: str, beam: int) -> None:
    model = translator(kind)
    assert isinstance(model, InspectableTranslator)
    together = model.translate([*SOURCES, SOURCES[0], ""], beam=beam)
    assert together[:-1] == [model.translate([source], beam=beam)[0] for source in [*SOURCES, SOURCES[0]]]
    assert model.translate([]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_those_of_the_translation(kind: str) -> None:
    model = translator(kind)
    steps = model.greedy_steps([ZeroableSource(Text.parse(source)) for source in SOURCES], wanted=[5, 7])
    assert [one.translation for one in steps] == model.translate(SOURCES)
    for one in steps:
        assert len(one.tokens) == len(one.wanted) == len(one.highest)
        assert tuple(one.highest_tokens[:, 0]) == one.tokens  # greedy decoding takes the largest logit
        assert (one.highest[:, 0] >= one.highest[:, 1]).all()
        chose = np.array(one.tokens) == 5
        assert ((one.margins(0, 5) < 0) == chose).all()


def test_margins_of_hand_made_steps() -> None:
    steps = GreedySteps(
        "x",
        (4, 6),
        wanted=np.array([[1.0], [3.0]], dtype=np.float32),
        highest=np.array([[2.5, 1.0], [3.0, 2.0]], dtype=np.float32),
        highest_tokens=np.array([[4, 6], [6, 4]]),
    )
    assert steps.margins(0, 6).tolist() == [1.5, -1.0]


@pytest.mark.parametrize("kind", KINDS)
def test_logits_of_steps_are_those_of_a_forward_pass_on_the_translation(kind: str) -> None:
    model = translator(kind)
    (steps,) = model.greedy_steps([ZeroableSource(Text.parse("one two three"))], wanted=range(9))
    before = [model.rules.start, *steps.tokens[:-1]]
    inputs = model.encoder.tensors(model.encoder.encode(["one two three"]), torch.device("cpu"))
    with torch.inference_mode():
        logits = model.model(**inputs, decoder_input_ids=torch.tensor([before])).logits[0]
    np.testing.assert_allclose(steps.wanted, logits[:, :9], atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_zeroed_word_counts_as_a_word_with_a_zero_vector(kind: str) -> None:
    model = translator(kind)
    text = Text.parse("one two three")
    zeroed, plain = model.greedy_steps([ZeroableSource(text, 1), ZeroableSource(text)], wanted=[6, 8])
    table = model.model.get_encoder().get_input_embeddings().weight
    (token,) = model.tokenizer("two", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        before = table[token].clone()
        table[token] = 0.0  # the source side alone would change: the first step has not written the word yet
        (changed,) = model.greedy_steps([ZeroableSource(text)], wanted=[6, 8])
        table[token] = before
    np.testing.assert_allclose(zeroed.wanted[0], changed.wanted[0], atol=1e-5)
    assert not np.allclose(zeroed.wanted[0], plain.wanted[0], atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_sentence_vector_is_the_mean_of_the_encoders_states(kind: str) -> None:
    model = translator(kind)
    vectors = model.sentence_vectors(["one two", "three four five six"])
    inputs = model.encoder.tensors(model.encoder.encode(["one two"]), torch.device("cpu"))
    with torch.inference_mode():
        expected = model.model.get_encoder()(**inputs)[0][0].mean(0)
    np.testing.assert_allclose(vectors[0], expected, atol=1e-5)
    assert len(model.sentence_vectors([])) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_attention_over_words_adds_up_to_at_most_one(kind: str) -> None:
    model = translator(kind)
    texts = [Text.parse(source) for source in SOURCES]
    for text, shown in zip(texts, model.source_attention(texts), strict=True):
        assert shown.translation == model.translate([str(text)])[0]
        assert shown.weights.shape == (len(shown.pieces), len(text.words))
        assert (shown.weights >= 0).all()
        assert (shown.weights.sum(1) <= 1 + 1e-5).all()
    with pytest.raises(OptionError, match="there is no layer 9"):
        model.source_attention(texts[:1], layer=9)


def test_prefix_is_read_but_is_no_word_of_the_source() -> None:
    model, tokenizer = bart()
    prefixed, plain = NeuralTranslator(model, tokenizer, prefix="read : "), NeuralTranslator(model, tokenizer)
    assert prefixed.translate(["one two"]) == plain.translate(["read : one two"])
    text = Text.parse("one two")
    zeroed = prefixed.greedy_steps([ZeroableSource(text, 1)], [3])[0]
    same = plain.greedy_steps([ZeroableSource(Text.parse("read : one two"), 2)], [3])[0]
    np.testing.assert_allclose(zeroed.wanted, same.wanted)
    assert prefixed.source_attention([text])[0].weights.shape[1] == 2
    assert prefixed.fingerprint() != plain.fingerprint()
    assert prefixed.visible_words([text]) == [range(2)]
    long = Text.parse("one " * 30)
    assert prefixed.visible_words([long]) == [range(12)]  # 16 tokens less <s>, </s>, read and :
    with pytest.raises(OptionError, match="must end with a blank"):
        NeuralTranslator(model, tokenizer, prefix="read:")


def test_source_longer_than_the_model_is_cut() -> None:
    model = translator("bart")
    assert model.translate(["one two " * 40]) == model.translate(["one two " * 7])


def test_word_vocabulary_has_the_words_of_both_languages() -> None:
    words = translator("transformer-mt").word_vocabulary().words
    assert {"one", "zwei"} <= set(words)


def test_target_tokens_are_the_pieces_of_the_word_inside_a_sentence() -> None:
    model = translator("transformer-mt")
    assert model.decoded([model.target_tokens("zwei")]) == ["zwei"]
    whole = model.tokenizer("eins zwei drei", add_special_tokens=False)["input_ids"]
    pieces = list(model.target_tokens("zwei"))
    assert any(whole[start : start + len(pieces)] == pieces for start in range(len(whole)))
    assert len(model.target_tokens("Weihnachtsmann")) > 1


def test_fingerprint_follows_the_weights() -> None:
    first, second = translator("bilstm-mt"), translator("bilstm-mt")
    assert first.fingerprint() == second.fingerprint()
    third = NeuralTranslator(*tiny_translator("bilstm-mt", seed=1))
    assert third.fingerprint() != first.fingerprint()


def test_positions_of_pieces_without_offsets() -> None:
    assert piece_offsets("ein Hund.", ["▁ein", "▁Hu", "nd", ".", "</s>"]) == [(0, 3), (4, 6), (6, 8), (8, 9), (9, 9)]
    assert piece_offsets("ein Zoo da", ["▁ein", "<unk>", "▁da"]) == [(0, 3), (3, 8), (8, 10)]


def marian(folder: Path) -> NeuralTranslator:
    """A tiny Marian with random weights, whose tokenizer cannot tell where its tokens stand."""
    sentencepiece = pytest.importorskip("sentencepiece")
    for side, name in enumerate(("source", "target")):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([pair[side] for pair in number_pairs(200)]),
            model_prefix=str(folder / name),
            vocab_size=20,
            minloglevel=2,
        )
    pieces = [
        processor.id_to_piece(number)
        for name in ("source", "target")
        for processor in [sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.model"))]
        for number in range(3, processor.get_piece_size())
    ]
    entries = ["</s>", "<unk>", *dict.fromkeys(pieces), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(entries)}))
    files: Any = [str(folder / name) for name in ("source.model", "target.model", "vocab.json")]
    tokenizer = MarianTokenizer(*files)
    sizes: dict[str, Any] = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    heads: dict[str, Any] = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    special: dict[str, Any] = {"pad_token_id": len(entries) - 1, "decoder_start_token_id": len(entries) - 1}
    torch.manual_seed(0)
    config = MarianConfig(vocab_size=len(entries), eos_token_id=0, init_std=0.5, **sizes, **heads, **special)
    return NeuralTranslator(MarianMTModel(config), tokenizer)


def test_words_are_found_without_a_fast_tokenizer(tmp_path: Path) -> None:
    model = marian(tmp_path)
    assert not model.tokenizer.is_fast
    text = Text.parse("one two six")
    zeroed, plain = model.greedy_steps([ZeroableSource(text, 1), ZeroableSource(text)], model.target_tokens("zwei"))
    assert plain.translation == model.translate([str(text)])[0]
    assert not np.allclose(zeroed.wanted[0], plain.wanted[0], atol=1e-3)
    (shown,) = model.source_attention([text])
    assert shown.weights.shape == (len(shown.pieces), 3)
    assert (shown.weights > 0).all()


def test_what_is_no_translator_is_refused_in_one_sentence() -> None:
    model, tokenizer = bart()
    with pytest.raises(ModelError, match="without a tokenizer"):
        NeuralTranslator(model, None)
    with pytest.raises(OptionError, match="expected a whole number from 1 up"):
        NeuralTranslator(model, tokenizer).translate(["one"], beam=0)
    model.config.is_encoder_decoder = False
    with pytest.raises(ModelError, match="not a sequence-to-sequence model"):
        NeuralTranslator(model, tokenizer)
    with pytest.raises(OptionError, match="token 5000 is not in the vocabulary"):
        translator("bart").greedy_steps([ZeroableSource(Text.parse("one"))], [5000])
