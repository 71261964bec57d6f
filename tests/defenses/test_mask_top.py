"""The baseline of FIVE: the most important words hidden."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stockade.core.errors import ModelError, OptionError
from stockade.core.text import Text
from stockade.defenses.chain import wrap
from stockade.defenses.defended import Defended
from stockade.defenses.mask_top import MaskTop, piece_of
from stockade.defenses.registry import make_defense
from stockade.models.huggingface import HuggingFaceClassifier
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import WeightVictim

from .firebert_kit import OpenVictim, log_odds

WEIGHTS = {"great": 3.0, "film": -1.0, "the": 9.0}


def test_the_hidden_text_counts_as_often_as_there_are_copies() -> None:
    victim = OpenVictim(WEIGHTS, bias=-9.0)
    defended = Defended(name="mask-top", defense=MaskTop(copies=4), inner=victim)
    (row,) = defended.predict_proba(["the (great) film"])
    assert log_odds(row) == pytest.approx((2 + 4 * -1) / 5)
    assert victim.asked == ["the (great) film", "the [MASK] film"]
    assert defended.deterministic


def test_several_words_are_hidden_together() -> None:
    victim = OpenVictim(WEIGHTS)
    Defended(name="mask-top", defense=MaskTop(words=2), inner=victim).predict_proba(["the  great, sad film!"])
    assert victim.asked[1] == "the [MASK] sad [MASK]"


def test_a_model_with_a_mask_token_sees_it() -> None:
    """ "greatly" is two pieces and becomes one mask."""
    model = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer())
    text = "was greatly"
    ids = torch.tensor([[2, 8, 4, 3]])
    with torch.no_grad():
        hidden = model.model(input_ids=ids).logits.double().log_softmax(1).numpy()
    clean = np.log(model.predict_proba([text]))
    (row,) = Defended(name="mask-top", defense=MaskTop(copies=1), inner=model).predict_proba([text])
    expected = (hidden + clean)[0] / 2
    assert log_odds(row) == pytest.approx(expected[1] - expected[0], abs=1e-5)


def test_a_word_is_found_among_the_pieces_between_blanks() -> None:
    text = Text.parse("  one, (two)three\t-- four's\n five")
    pieces = str(text).split()
    assert [pieces[piece_of(text, index)] for index in text.indices] == [
        "one,",
        "(two)three",
        "(two)three",
        "four's",
        "five",
    ]


def test_a_text_without_words_that_count_is_answered_as_it_is() -> None:
    victim = OpenVictim(WEIGHTS)
    assert Defended(name="mask-top", defense=MaskTop(), inner=victim).predict_proba(["", "the"]) == pytest.approx(
        victim.predict_proba(["", "the"])
    )


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ModelError, match="mask-top needs the model's gradients"):
        wrap(WeightVictim({}), [make_defense("mask-top")])
    with pytest.raises(OptionError, match="mask-top alters what the model reads, so fuse cannot stand between"):
        wrap(OpenVictim({}), [make_defense("mask-top"), make_defense("fuse")])
    with pytest.raises(OptionError, match="mask-top hides 0 words in 8 copies"):
        make_defense("mask-top", words=0)


def test_of_a_pair_the_premise_stays_and_a_black_box_sees_the_mask_it_was_told() -> None:
    victim = OpenVictim(WEIGHTS)
    Defended(name="mask-top", defense=MaskTop(mask="___"), inner=victim).predict_proba(
        [("the great day", "the great film")]
    )
    assert victim.asked == [("the great day", "the great film"), ("the great day", "the ___ film")]
