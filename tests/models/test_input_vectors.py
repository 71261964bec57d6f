"""Which tokens a Hugging Face classifier's answer depends on, and what it says when some are noisy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from stockade.core.errors import ModelError
from stockade.core.protocols import ImportanceClassifier, ImportanceObjective, NoisedClassifier, NoisedCopies
from stockade.core.text import Text
from stockade.engine.requests import Importance, Noised
from stockade.engine.white_box import WhiteBoxService
from stockade.models.huggingface import HuggingFaceClassifier
from tests.toys import WeightVictim

from .conftest import tiny_bert, tiny_tokenizer

TEXT = Text.parse("The film, was -- greatly (bad)!")
PLACES = [[1], [2], [4], [7, 8], [10]]
"""Where its words stand: [CLS] the film , was - - great ##ly ( bad ) ! [SEP]."""
TEXTS = [TEXT, Text.parse("films"), Text.parse("a great film is not bad .")]


@pytest.fixture
def model() -> HuggingFaceClassifier:
    return HuggingFaceClassifier(tiny_bert(num_labels=3), tiny_tokenizer())


def gradient_norms(model: HuggingFaceClassifier, text: Text, objective: ImportanceObjective) -> list[float]:
    """The gradient of the objective as it is written, by autograd from the input vectors."""
    encoded = model.tokenizer(str(text), return_tensors="pt")
    network = model.model.double()
    vectors = network.get_input_embeddings()(encoded.pop("input_ids")).detach().requires_grad_(True)
    logits = network(inputs_embeds=vectors, **encoded).logits
    best = logits.argmax(1)
    value = {
        "loss_pred": functional.cross_entropy(logits, best),
        "logit_pred": logits[0, best[0]],
        "half_sq_norm": 0.5 * logits.square().sum(),
    }[objective]
    value.backward()
    model.model.float()
    assert vectors.grad is not None
    norms: list[float] = vectors.grad[0].norm(dim=1).tolist()
    return norms


@pytest.mark.parametrize("objective", ["loss_pred", "logit_pred", "half_sq_norm"])
def test_importance_is_the_length_of_the_gradient_at_the_tokens_of_each_word(
    model: HuggingFaceClassifier, objective: ImportanceObjective
) -> None:
    expected = gradient_norms(model, TEXT, objective)
    (scores,) = model.token_importance([TEXT], objective)
    assert [len(tokens) for tokens in scores] == [1, 1, 1, 2, 1]
    for tokens, places in zip(scores, PLACES, strict=True):
        assert tokens == pytest.approx([expected[place] for place in places], rel=1e-4)


@pytest.mark.parametrize(
    "string", ["(the) film... was; great!", "film.film,film", "--- bad --- ", "the-film's greatly"]
)
def test_the_tokens_of_a_word_spell_the_word_whatever_stands_between(string: str, model: HuggingFaceClassifier) -> None:
    texts = [Text.parse(string), Text.parse("a film")]
    vocabulary = set(model.tokenizer.get_vocab())
    for batch in model.word_reader.batches(texts, 2048, 8):
        for row, number in enumerate(batch.numbers):
            for word, places in zip(texts[number].words, batch.positions[row], strict=True):
                spelt = model.tokenizer.convert_ids_to_tokens(batch.inputs["input_ids"][row, places].tolist())
                joined = "".join(piece.removeprefix("##") for piece in spelt)
                assert joined == word or (word not in vocabulary and "[UNK]" in spelt)
    for text, tokens in zip(texts, model.token_importance(texts, "loss_pred"), strict=True):
        assert len(tokens) == len(text.words)
        assert all(tokens)


def test_of_a_pair_the_hypothesis_is_looked_at(model: HuggingFaceClassifier) -> None:
    pair = Text.parse("film was bad", premise="film was great")
    encoded = model.tokenizer("film was great", "film was bad", return_tensors="pt")
    vectors = model.model.get_input_embeddings()(encoded.pop("input_ids")).detach().requires_grad_(True)
    logits = model.model(inputs_embeds=vectors, **encoded).logits
    functional.cross_entropy(logits, logits.argmax(1)).backward()
    assert vectors.grad is not None
    (scores,) = model.token_importance([pair], "loss_pred")
    assert [value for (value,) in scores] == pytest.approx(vectors.grad[0, 5:8].norm(dim=1).tolist(), rel=1e-4)


def test_a_model_that_is_sure_still_has_an_order() -> None:
    """Very large logits: the loss's gradient is below single precision, its direction is that of the
    difference of the two logits.
    """
    model = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer())
    with torch.no_grad():
        model.model.classifier.weight.mul_(3000)
        model.model.classifier.bias.mul_(3000)
    (scores,) = model.token_importance([TEXT], "loss_pred")
    vectors = model.model.get_input_embeddings()(torch.tensor([model.tokenizer(str(TEXT))["input_ids"]]))
    vectors = vectors.detach().requires_grad_(True)
    logits = model.model(inputs_embeds=vectors).logits
    gap = (logits[0, 1] - logits[0, 0]).abs()
    assert gap > 110  # exp(-110) is zero in single precision
    gap.backward()
    assert vectors.grad is not None
    chance = torch.exp(-gap.detach().double())
    expected = vectors.grad[0].norm(dim=1).double() * chance / (1 + chance)
    for tokens, places in zip(scores, PLACES, strict=True):
        assert min(tokens) > 0
        assert list(tokens) == pytest.approx(expected[places].tolist(), rel=1e-3)


def test_a_single_logit_is_read_as_two() -> None:
    """With two logits -z/2 and z/2 the loss of the predicted class has the slope sigmoid(-|z|) in z."""
    model = HuggingFaceClassifier(tiny_bert(num_labels=1), tiny_tokenizer())
    vectors = model.model.get_input_embeddings()(torch.tensor([model.tokenizer(str(TEXT))["input_ids"]]))
    vectors = vectors.detach().requires_grad_(True)
    logit = model.model(inputs_embeds=vectors).logits[0, 0]
    logit.backward()
    assert vectors.grad is not None
    slope = {"loss_pred": torch.sigmoid(-logit.abs()), "logit_pred": 0.5, "half_sq_norm": logit.abs() / 2}
    for objective, factor in slope.items():
        (scores,) = model.token_importance([TEXT], objective)  # type: ignore[arg-type]
        assert scores[4][0] == pytest.approx(
            float(vectors.grad[0, 10].norm() * torch.as_tensor(factor).detach()), rel=1e-4
        )


def test_importance_is_the_same_in_any_batch(model: HuggingFaceClassifier) -> None:
    for text, together in zip(TEXTS, model.token_importance(TEXTS, "loss_pred"), strict=True):
        (alone,) = model.token_importance([text], "loss_pred")
        assert [list(tokens) for tokens in together] == [pytest.approx(list(tokens), rel=1e-3) for tokens in alone]


def test_words_beyond_the_window_have_no_tokens() -> None:
    model = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer(maximum=6))
    (scores,) = model.token_importance([Text.parse("the film was great and bad")], "loss_pred")
    assert [len(tokens) for tokens in scores] == [1, 1, 1, 1, 0, 0]


def test_noise_is_added_to_the_word_vectors_of_the_named_tokens(model: HuggingFaceClassifier) -> None:
    noise = np.random.default_rng(5).standard_normal((3, 2, 16), dtype=np.float32) * 2
    vectors = model.model.get_input_embeddings()(torch.tensor([model.tokenizer(str(TEXT))["input_ids"]] * 3))
    vectors = vectors.detach().clone()
    vectors[:, [10, 8]] += torch.from_numpy(noise)
    with torch.no_grad():
        expected = model.model(inputs_embeds=vectors).logits.double().softmax(1).numpy()
    request = NoisedCopies(TEXT, ((4, 0), (3, 1)), 2.0, 3, 5)
    assert model.predict_noised([request]) == pytest.approx(expected, abs=1e-6)
    assert not np.allclose(expected[0], expected[1], atol=1e-3)


def test_noise_depends_on_the_seed_and_not_on_the_batch(model: HuggingFaceClassifier) -> None:
    requests = [
        NoisedCopies(TEXT, ((0, 0),), 3.0, 4, 1),
        NoisedCopies(TEXTS[2], ((1, 0), (5, 0)), 3.0, 2, 2),
        NoisedCopies(TEXTS[1], ((0, 1),), 3.0, 3, 1),
        NoisedCopies(TEXT, ((0, 0),), 3.0, 4, 9),
    ]
    together = model.predict_noised(requests)
    alone = np.concatenate([model.predict_noised([request]) for request in requests])
    assert together == pytest.approx(alone, abs=1e-6)
    assert not np.allclose(together[:4], together[9:], atol=1e-3)


def test_hardly_any_noise_changes_hardly_anything(model: HuggingFaceClassifier) -> None:
    clean = model.predict_proba([str(TEXT)])
    assert model.predict_noised([NoisedCopies(TEXT, ((4, 0),), 1e-6, 2, 0)]) == pytest.approx(
        clean.repeat(2, 0), abs=1e-5
    )


def test_the_classifier_is_left_as_it_was(model: HuggingFaceClassifier) -> None:
    before = model.predict_proba([str(TEXT)])
    model.token_importance([TEXT], "loss_pred")
    model.predict_noised([NoisedCopies(TEXT, ((4, 0),), 5.0, 2, 0)])
    assert (model.predict_proba([str(TEXT)]) == before).all()
    assert all(weight.grad is None for weight in model.model.parameters())


def test_the_service_answers_each_request_with_its_own_rows(model: HuggingFaceClassifier) -> None:
    assert isinstance(model, ImportanceClassifier)
    assert isinstance(model, NoisedClassifier)
    rows: list[int] = []
    service = WhiteBoxService(model, lambda count, seconds: rows.append(count))
    requests = [Importance(text, objective) for text in TEXTS for objective in ("loss_pred", "half_sq_norm")]
    answers = service.answer_importance([*requests, Importance(TEXT)])
    assert answers[0] == answers[-1]
    for request, answer in zip(requests, answers, strict=False):
        (alone,) = model.token_importance([request.text], request.objective)
        assert [len(tokens) for tokens in answer] == [len(tokens) for tokens in alone]  # type: ignore[union-attr]
        assert answer[-1] == pytest.approx(alone[-1], rel=1e-3)  # type: ignore[index]
    assert rows == [3, 3]
    few, many = NoisedCopies(TEXT, ((0, 0),), 1.0, 2, 3), NoisedCopies(TEXTS[1], ((0, 0),), 1.0, 5, 4)
    first, second = service.answer_noised([Noised(few), Noised(many)])
    assert first == pytest.approx(model.predict_noised([few]), abs=1e-6)
    assert second == pytest.approx(model.predict_noised([many]), abs=1e-6)


def test_a_request_that_cannot_be_answered_costs_no_other(model: HuggingFaceClassifier) -> None:
    good = NoisedCopies(TEXT, ((0, 0),), 1.0, 2, 3)
    answers = WhiteBoxService(model).answer_noised([Noised(good), Noised(NoisedCopies(TEXT, ((0, 7),), 1.0, 2, 3))])
    assert answers[0] == pytest.approx(model.predict_noised([good]), abs=1e-6)
    assert "IndexError" in str(answers[1])


def test_a_black_box_is_told_what_is_missing() -> None:
    service = WhiteBoxService(WeightVictim({}))
    with pytest.raises(ModelError, match="gradients of its tokens"):
        service.answer_importance([Importance(TEXT)])
    with pytest.raises(ModelError, match="input vectors"):
        service.answer_noised([Noised(NoisedCopies(TEXT, ((0, 0),), 1.0, 1, 0))])
