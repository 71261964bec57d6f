"""Which words of a long text a model reads, and that no other is attacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from stockade.attacks.bae import BAE
from stockade.attacks.bert_attack import BertAttack
from stockade.attacks.deepwordbug import DeepWordBug
from stockade.attacks.pwws import PWWS
from stockade.attacks.textfooler import TextFooler
from stockade.core.protocols import WindowedClassifier
from stockade.core.text import Text, TextInput
from stockade.models.huggingface import HuggingFaceClassifier
from tests.attacks.driving import attack
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import BagEncoder, ListMaskedLM, WeightVictim, words_of


def victim(maximum: int = 8, side: str = "right") -> HuggingFaceClassifier:
    tokenizer = tiny_tokenizer(maximum)
    tokenizer.truncation_side = side
    return HuggingFaceClassifier(tiny_bert(), tokenizer)


def test_a_short_text_is_read_whole() -> None:
    assert victim().visible_words([Text.parse("the film"), Text.parse("the film was bad and bad")]) == [
        range(2),
        range(6),
    ]


def test_a_long_text_is_read_up_to_the_last_token_that_fits() -> None:
    text = Text.parse("the film was greatly bad and not bad")  # 6 tokens fit; greatly has two
    assert victim().visible_words([text]) == [range(5)]
    split = Text.parse("the film was bad and greatly bad")  # the first piece of the sixth word is the last token
    assert victim().visible_words([split]) == [range(6)]


def test_punctuation_takes_its_place() -> None:
    assert victim().visible_words([Text.parse("the film . . was bad and not bad")]) == [range(4)]


def test_a_tokenizer_that_cuts_on_the_left_reads_the_end() -> None:
    assert victim(side="left").visible_words([Text.parse("the film was bad and not bad film")]) == [range(2, 8)]


def test_of_a_pair_the_hypothesis_counts() -> None:
    pair = Text.parse("the film was bad and not bad", premise="a film")
    assert victim(10).visible_words([pair]) == [range(5)]
    assert isinstance(victim(), WindowedClassifier)


def test_of_both_sides_each_is_cut_where_the_model_stops_reading() -> None:
    """Ten tokens, three of them special: the longer premise is cut to four words, the hypothesis is read whole."""
    both = Text.parse("a film was", premise="the film was bad and not bad", sides="both")
    assert victim(10).visible_words([both]) == [[0, 1, 2, 3, 7, 8, 9]]
    premise = Text.parse("a film was", premise="the film was bad and not bad", sides="premise")
    assert victim(10).visible_words([premise]) == [range(4)]
    assert victim(32).visible_words([both]) == [range(10)]


@dataclass
class ShortSighted(WeightVictim):
    """Reads the first `window` words only."""

    window: int = 4

    def predict_proba(self, inputs: Sequence[TextInput]) -> Any:
        visible = [" ".join(words_of(item)[: self.window]) for item in inputs]
        self.asked += inputs
        return WeightVictim(self.weights, self.bias).predict_proba(visible)

    def visible_words(self, texts: Sequence[Text]) -> list[range]:
        return [range(min(self.window, len(text))) for text in texts]


MLM = ListMaskedLM({"the": ["bad"], "good": ["more"], "": ["it"], "film": ["here"]})


@pytest.mark.parametrize(
    "method",
    [
        BAE(mode="R", threshold=0.0, same_pos=False),
        TextFooler(threshold=0.0, window=None, min_cosine=0.0),
        PWWS(),
        DeepWordBug(),
        DeepWordBug(scoring="replace-1", one_shot=False),
    ],
    ids=lambda method: type(method).__name__,
)
def test_words_beyond_the_window_are_not_attacked(method: Any) -> None:
    model = ShortSighted({"good": 1.0, "film": 0.1}, bias=-0.3, window=4)
    result = attack(model, "see the good film the good film", method, masked_lm=MLM, encoder=BagEncoder())
    assert result.trial.status == "success", result.trial.reason
    assert result.trial.text is not None
    assert {edit.index for edit in result.trial.text.edits} <= {0, 1, 2, 3}
    tails = {words_of(item)[-3:] for item in model.asked if len(words_of(item)) == 7}
    assert tails == {("the", "good", "film")}


def test_words_pushed_out_of_the_window_are_counted() -> None:
    model = ShortSighted({"good": 1.0}, bias=-0.5, window=4)
    lm = ListMaskedLM({"the": ["very"]})
    method = BAE(mode="I", threshold=0.0)
    result = attack(model, "see it the good film", method, masked_lm=lm, encoder=BagEncoder())
    assert str(result.trial.text) == "see it the very good film"
    assert result.trial.truncated_words == 1
    roomy = attack(
        ShortSighted({"good": 1.0, "very": -1.0}, bias=-0.5, window=9),
        "see it the good film",
        method,
        masked_lm=lm,
        encoder=BagEncoder(),
    )
    assert roomy.trial.status == "success"
    assert roomy.trial.truncated_words == 0


def test_a_text_of_which_no_word_is_read_fails_with_a_reason() -> None:
    result = attack(ShortSighted({}, bias=1.0, window=0), "good film", BertAttack())
    assert result.trial.status == "failed"
    assert result.trial.reason == "the model reads no word of the text"
