"""HotFlip on a linear victim, where the first-order estimate is exact."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

import stockade as st
from stockade.attacks.hotflip import HotFlip, Space
from stockade.core.errors import ModelError
from stockade.core.protocols import WhiteBoxClassifier, WordVocabulary
from stockade.core.text import Text
from tests.attacks.driving import attack
from tests.toys import OpenVictim, WeightVictim

WORDS = ("great", "fine", "odd", "bad", "film", "movie")
VECTORS = np.array([[1, 0.0], [1, 0.1], [1, -0.5], [1, -0.6], [0.1, 1], [0, 1]], dtype=np.float32)


class LinearVictim(WeightVictim):
    """Log-odds = the sum of the second coordinates of its words' vectors, tenfold; so the gradient is the same
    everywhere.
    """

    def __init__(self) -> None:
        weights = {word: 10 * float(vector[1]) for word, vector in zip(WORDS, VECTORS, strict=True)}
        super().__init__({**weights, "great": 1.0, "film": 1.5}, bias=0.0)

    def word_gradients(self, texts: Sequence[Text], label: int) -> list[NDArray[np.float32]]:
        direction = np.array([0.0, -1.0 if label == 1 else 1.0], dtype=np.float32)
        return [np.tile(direction, (len(text.words), 1)) for text in texts]

    def word_vocabulary(self) -> WordVocabulary:
        return VOCABULARY


VOCABULARY = WordVocabulary(WORDS, VECTORS)


class NounTagger:
    def universal(self, words: tuple[str, ...]) -> list[str]:
        return ["VERB" if word == "odd" else "NOUN" for word in words]


@pytest.fixture(autouse=True)
def tagger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.attacks.hotflip.load_tagger", NounTagger)


def test_near_words_are_those_above_the_cosine_without_the_word_itself() -> None:
    space = Space(VOCABULARY)
    assert [WORDS[i] for i in space.near(0, 0.8)] == ["fine", "odd", "bad"]
    assert [WORDS[i] for i in space.near(0, 0.99)] == ["fine"]
    right_angles = Space(WordVocabulary(("up", "right", "down"), np.array([[0, 1], [1, 0], [0, -1]], dtype=np.float32)))
    assert right_angles.near(0, 0.0).tolist() == [1]  # a cosine of exactly 0 is enough


def test_the_flip_with_the_largest_first_order_rise_is_taken() -> None:
    victim = LinearVictim()
    assert isinstance(victim, WhiteBoxClassifier)
    result = attack(victim, "great", HotFlip())
    assert result.words == ("bad",)
    # the original, then the two near words of the same tag
    assert result.queries == 1 + 2


def test_the_part_of_speech_and_the_cosine_are_kept() -> None:
    assert attack(LinearVictim(), "great", HotFlip(min_cosine=0.87)).trial.status == "failed"
    assert attack(LinearVictim(), "great", HotFlip(min_cosine=0.87, same_pos=False)).words == ("odd",)


def test_no_more_than_the_allowed_number_of_flips() -> None:
    victim = LinearVictim()
    victim.bias = 20.0
    assert attack(victim, "great great great", HotFlip()).trial.reason == "no success with 2 flips"
    assert attack(victim, "great great great", HotFlip(max_changed=0.34)).trial.reason == "no success with 1 flips"


def test_only_the_beam_is_scored() -> None:
    """Three words are near "great"; by the gradient "bad" is the best."""
    for beam, scored in ((1, 1), (2, 2), (9, 3)):
        result = attack(LinearVictim(), "great", HotFlip(beam=beam, same_pos=False))
        assert (result.words, result.queries) == (("bad",), 1 + scored)


def test_the_number_of_flips_is_an_option() -> None:
    """Each flip of "great" to "bad" lowers the log-odds from 1 to -6: one is enough from 2, two from 9."""
    victim = LinearVictim()
    victim.bias = 7.0
    assert attack(victim, "great great", HotFlip(max_flips=1)).trial.reason == "no success with 1 flips"
    assert attack(victim, "great great", HotFlip(max_flips=2)).words == ("bad", "bad")


def test_stop_words_are_neither_flipped_nor_written_unless_told_otherwise() -> None:
    victim = OpenVictim({"the": 1.0, "film": 0.5, "of": -2.0, "bad": -1.0}, {
        "the": (1.0, 9.0), "film": (0.5, 9.0), "of": (-2.0, 9.0), "bad": (-1.0, 9.0),
    })  # fmt: skip
    assert attack(victim, "the film", HotFlip()).words == ("the", "bad")  # 1 - 1 is no longer positive
    assert attack(victim, "the film", HotFlip(stop_words="none")).words == ("of", "film")


def test_a_black_box_is_told_what_is_missing() -> None:
    with pytest.raises(ModelError, match="needs the model's gradients"):
        st.attack(lambda texts: [[0.2, 0.8]] * len(texts), [("great", 1)], "hotflip", similarity=False)


def test_gradients_of_a_built_in_victim_agree_with_differences() -> None:
    """The gradient's promise: moving one word's vector a little changes the loss by the dot product."""
    import torch

    from stockade.models.adapters import load_model
    from stockade.models.huggingface import HuggingFaceClassifier

    model = load_model("builtin:sentiment-lstm", device="cpu")
    assert isinstance(model, HuggingFaceClassifier)
    text = Text.parse("a truly wonderful , moving film")
    (gradient,) = model.word_gradients([text], 1)
    token = model.tokenizer.convert_tokens_to_ids("wonderful")
    table = model.model.get_input_embeddings().weight
    step = np.array([Random(0).gauss(0, 1e-3) for _ in range(table.shape[1])], dtype=np.float32)
    losses = []
    for sign in (1.0, -1.0):
        with torch.no_grad():
            table[token] += sign * torch.from_numpy(step)
        losses.append(-np.log(model.predict_proba([str(text)])[0, 1]))
        with torch.no_grad():
            table[token] -= sign * torch.from_numpy(step)
    assert (losses[0] - losses[1]) / 2 == pytest.approx(float(gradient[2] @ step), rel=0.05, abs=1e-7)
