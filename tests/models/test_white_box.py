"""What a Hugging Face classifier shows of its inside: words zeroed, sentence vectors, attention."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
import pytest
import torch

from stockade.core.attention import attention_of_words
from stockade.core.errors import ModelError
from stockade.core.pairs import Sides
from stockade.core.protocols import AttentiveClassifier, RepresentingClassifier, ZeroingClassifier
from stockade.core.text import Text
from stockade.models.adapters import load_model
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.models.zoo.build import build_model

from .conftest import tiny_bert, tiny_tokenizer

TEXTS = [Text.parse("the film was greatly bad"), Text.parse("films"), Text.parse("a great film is not bad .")]


@pytest.fixture
def model() -> HuggingFaceClassifier:
    return HuggingFaceClassifier(tiny_bert(num_labels=3), tiny_tokenizer())


def test_the_classifier_shows_all_three(model: HuggingFaceClassifier) -> None:
    assert isinstance(model, AttentiveClassifier)
    assert isinstance(model, ZeroingClassifier)
    assert isinstance(model, RepresentingClassifier)


def test_a_zeroed_word_has_zero_vectors_at_all_its_pieces(model: HuggingFaceClassifier) -> None:
    """ "greatly" is two pieces, at tokens 4 and 5 behind [CLS]; positions and segments stay as they are."""
    text = TEXTS[0]
    ids = torch.tensor(model.tokenizer(str(text))["input_ids"])
    vectors = model.model.get_input_embeddings()(ids).detach().clone()
    vectors[4:6] = 0
    with torch.no_grad():
        expected = model.model(inputs_embeds=vectors[None]).logits.double().softmax(1).numpy()
    zeroed = model.predict_zeroed([(text, 3), (TEXTS[1], 0), (text, 0)])
    assert zeroed[0] == pytest.approx(expected[0], abs=1e-6)
    assert zeroed[2] != pytest.approx(expected[0], abs=1e-3)
    assert model.predict_proba([str(text)])[0] != pytest.approx(expected[0], abs=1e-3)


def test_zeroing_is_the_same_in_any_batch(model: HuggingFaceClassifier) -> None:
    places = [(text, index) for text in TEXTS for index in text.indices]
    together = model.predict_zeroed(places)
    alone = np.concatenate([model.predict_zeroed([place]) for place in places])
    assert together == pytest.approx(alone, abs=1e-6)


def test_of_a_pair_the_hypothesis_is_zeroed(model: HuggingFaceClassifier) -> None:
    pair = Text.parse("film was bad", premise="film was great")
    encoded = model.tokenizer("film was great", "film was bad", return_tensors="pt")
    vectors = model.model.get_input_embeddings()(encoded.pop("input_ids")).detach().clone()
    vectors[0, 5] = 0  # [CLS] film was great [SEP] film
    with torch.no_grad():
        expected = model.model(inputs_embeds=vectors, **encoded).logits.double().softmax(1).numpy()
    assert model.predict_zeroed([(pair, 0)]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("sides", "index", "token"), [("premise", 0, 1), ("premise", 2, 3), ("both", 1, 2), ("both", 3, 5)]
)
def test_of_a_pair_the_side_that_is_attacked_is_zeroed(
    model: HuggingFaceClassifier, sides: Sides, index: int, token: int
) -> None:
    """The tokens are [CLS] film was great [SEP] film was bad [SEP]."""
    pair = Text.parse("film was bad", premise="film was great", sides=sides)
    encoded = model.tokenizer("film was great", "film was bad", return_tensors="pt")
    vectors = model.model.get_input_embeddings()(encoded.pop("input_ids")).detach().clone()
    vectors[0, token] = 0
    with torch.no_grad():
        expected = model.model(inputs_embeds=vectors, **encoded).logits.double().softmax(1).numpy()
    assert model.predict_zeroed([(pair, index)]) == pytest.approx(expected, abs=1e-6)


def test_the_attention_of_both_sides_is_that_of_each(model: HuggingFaceClassifier) -> None:
    texts = [Text.parse("a bad film", premise="the greatly bad film", sides=sides) for sides in get_args(Sides)]
    hypothesis, premise, both = (model.word_attention([text], 0, "mean")[0] for text in texts)
    assert both == pytest.approx(np.concatenate([premise, hypothesis]), abs=1e-6)
    assert (len(premise), len(hypothesis)) == (4, 3)


def test_the_sentence_vector_is_what_the_last_layer_reads(model: HuggingFaceClassifier) -> None:
    probabilities, vectors = model.represent([text.input for text in TEXTS])
    layer = model.model.classifier
    logits = vectors @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    assert torch.tensor(logits).double().softmax(1).numpy() == pytest.approx(probabilities, abs=1e-6)
    assert probabilities == pytest.approx(model.predict_proba([text.input for text in TEXTS]), abs=1e-6)


def test_attention_is_a_distribution_over_tokens(model: HuggingFaceClassifier) -> None:
    """The words' sums plus [CLS] and [SEP] are one; the kernel that keeps no weights is put back."""
    text = TEXTS[0]
    kernel = model.model.config._attn_implementation
    (mean,) = model.word_attention([text], 0, "mean")
    assert model.model.config._attn_implementation == kernel
    model.model.set_attn_implementation("eager")
    inputs = model.tokenizer(str(text), return_tensors="pt")
    with torch.no_grad():
        weights = model.model(**inputs, output_attentions=True).attentions[0][0].mean(0)
    received = weights.mean(0).numpy()
    assert received.sum() == pytest.approx(1, abs=1e-5)
    assert mean == pytest.approx([received[1], received[2], received[3], received[4:6].sum(), received[6]], abs=1e-6)
    (first,) = model.word_attention([text], 0, "first")
    assert first[0] == pytest.approx(float(weights[0, 1]), abs=1e-6)


def test_the_attention_of_a_word_is_the_sum_the_mean_or_the_most_of_its_pieces(model: HuggingFaceClassifier) -> None:
    """ "greatly" is two pieces; a word beyond the window has none."""
    (pieces,) = model.piece_attention(TEXTS[:1], 0, "mean")
    assert [len(word) for word in pieces] == [1, 1, 1, 2, 1]
    for rule, join in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        (words,) = attention_of_words(model, TEXTS[:1], 0, "mean", rule)  # type: ignore[arg-type]
        assert words == pytest.approx([join(word) for word in pieces], abs=1e-6)
    short = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer(maximum=4))
    (words,) = attention_of_words(short, TEXTS[:1], 0, "mean", "mean")
    assert (words > 0).tolist() == [True, True, False, False, False]


def test_the_whole_vocabulary_has_the_signs_that_are_read_as_one(model: HuggingFaceClassifier) -> None:
    letters, everything = model.word_vocabulary(), model.whole_vocabulary()
    signs = set(everything.words) - set(letters.words)
    assert signs == {"."}  # neither [UNK] nor pieces
    assert all(word.isalpha() for word in letters.words)
    table = model.model.get_input_embeddings().weight.detach().numpy()
    number = model.tokenizer.convert_tokens_to_ids(".")
    assert everything.vectors[everything.words.index(".")] == pytest.approx(table[number])


def test_placeholders_of_a_published_vocabulary_are_not_written() -> None:
    victim = load_model("builtin:sentiment-bert")
    signs = set(victim.whole_vocabulary().words) - set(victim.word_vocabulary().words)  # type: ignore[attr-defined]
    assert {"0", "!", "?", "1990"} <= signs
    assert not any(word.startswith(("[", "##")) and len(word) > 1 for word in signs)


def test_attention_is_the_same_in_any_batch(model: HuggingFaceClassifier) -> None:
    for text, together in zip(TEXTS, model.word_attention(TEXTS, 1, "mean"), strict=True):
        assert together == pytest.approx(model.word_attention([text], 1, "mean")[0], abs=1e-6)


def test_a_model_without_attention_and_a_missing_layer_say_so(model: HuggingFaceClassifier) -> None:
    with pytest.raises(ModelError, match="has no attention to look at"):
        load_model("builtin:sentiment-cnn").word_attention(TEXTS[:1], 0, "mean")  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="has 2 attention layers; there is no layer 7"):
        model.word_attention(TEXTS[:1], 7, "mean")


def test_words_beyond_the_window_have_no_tokens() -> None:
    model = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer(maximum=6))
    text = Text.parse("the film was great and bad and great")
    (attention,) = model.word_attention([text], 0, "mean")
    assert (attention[:4] > 0).all()
    assert (attention[4:] == 0).all()
    assert model.predict_zeroed([(text, 6)])[0] == pytest.approx(model.predict_proba([str(text)])[0], abs=1e-6)


ZOO_TEXTS = ["the film was great", "a bad film", "not a great day at all", "bad and long"]


def test_a_zeroed_word_of_a_character_model_has_zero_characters_and_keeps_its_blanks() -> None:
    model = HuggingFaceClassifier(*build_model("CNN-C-Random-1", ZOO_TEXTS, ["no", "yes"]))
    text = Text.parse("a bad film")
    encoded = model.tokenizer(str(text), return_tensors="pt")
    vectors = model.model.get_input_embeddings()(encoded["input_ids"]).detach().clone()
    vectors[0, 2:5] = 0
    with torch.no_grad():
        expected = model.model(inputs_embeds=vectors, **encoded).logits.double().softmax(1).numpy()
    assert model.predict_zeroed([(text, 1)] * 5) == pytest.approx(np.repeat(expected, 5, 0), abs=1e-6)
    assert model.word_vocabulary().words == ()


def test_attention_of_a_bilstm_is_its_pooling() -> None:
    model = HuggingFaceClassifier(
        *build_model("BiLSTM-attention", ZOO_TEXTS, ["no", "yes"], options={"embedding": "Random"})
    )
    texts = [Text.parse(text) for text in ZOO_TEXTS]
    for text, scores in zip(texts, model.word_attention(texts, 0, "mean"), strict=True):
        assert len(scores) == len(text.words)
        assert scores.sum() == pytest.approx(1, abs=1e-5)


def test_a_pair_is_read_side_by_side_and_the_hypothesis_is_shown() -> None:
    pairs = [("the film was great", "a bad film"), ("not a great day", "bad and long")]
    model = HuggingFaceClassifier(
        *build_model("BiLSTM-attention", pairs, ["no", "yes"], options={"embedding": "Random"})
    )
    text = Text.parse("a bad film", premise="the film was great")
    (scores,) = model.word_attention([text], 0, "mean")
    assert scores.sum() == pytest.approx(1, abs=1e-5)
    zeroed = model.predict_zeroed([(text, index) for index in text.indices])
    assert not np.allclose(zeroed[0], zeroed[1], atol=1e-6)
    assert model.represent([text.input])[1].shape == (1, model.model.classifier.in_features)


def test_a_tokenizer_that_cannot_pad_is_read_text_by_text(model: HuggingFaceClassifier) -> None:
    padless = tiny_tokenizer()
    padless.pad_token = None
    alone = HuggingFaceClassifier(model.model, padless)
    places = [(text, 0) for text in TEXTS]
    assert alone.predict_zeroed(places) == pytest.approx(model.predict_zeroed(places), abs=1e-6)
    for gradient, other in zip(alone.word_gradients(TEXTS, 1), model.word_gradients(TEXTS, 1), strict=True):
        assert gradient == pytest.approx(other, abs=1e-5)


def test_threads_that_compute_at_the_same_time_get_their_own_sentence_vectors() -> None:
    model = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer())
    batches = [model.encode(["the film was great"] * size) for size in (3, 5)]
    alone = [model.represent_encoded(batch)[1] for batch in batches]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            together = list(pool.map(lambda batch: model.represent_encoded(batch)[1], batches))
            for mine, expected in zip(together, alone, strict=True):
                assert mine.shape == expected.shape
                assert np.abs(mine - expected).max() < 1e-5
