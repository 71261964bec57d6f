"""Which words attention points at, by each rule for words of several pieces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stockade.core.statistics import wilson
from stockade.core.text import Text
from stockade.experiment.store import ResultStore
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.studies.attention.choices import WordChoice, choose, measure_choices, piece_shares, read_choices
from stockade.studies.attention.inputs import Victim, describe_victim
from stockade.studies.attention.inside import AttentionView
from tests.studies.attention.toys import toy_bert


def test_a_sum_chooses_the_long_word_and_a_mean_does_not() -> None:
    """The first word has three pieces, the last is beyond the window."""
    choice = choose("7", [[0.1, 0.1, 0.2], [0.3], [0.05], []])
    assert choice.pieces == (3, 1, 1, 0)
    assert choice.most == {"sum": 0, "mean": 1, "max": 1}
    assert choice.least == {"sum": 2, "mean": 2, "max": 2}
    assert choose("8", [[], []]).most == {}


def test_shares_of_words_of_several_pieces() -> None:
    choices = [
        WordChoice("1", (3, 1, 1, 0), dict.fromkeys(("sum", "mean", "max"), 2), {"sum": 0, "mean": 1, "max": 1}),
        WordChoice("2", (1, 2), dict.fromkeys(("sum", "mean", "max"), 0), dict.fromkeys(("sum", "mean", "max"), 1)),
        WordChoice("3", (0,), {}, {}),
    ]
    shares = piece_shares(choices)
    assert shares is not None
    assert (shares.texts, shares.words, shares.all_words) == (2, 5, wilson(2, 5))
    assert shares.asmax == {"sum": wilson(2, 2), "mean": wilson(1, 2), "max": wilson(1, 2)}
    assert shares.asmin == dict.fromkeys(("sum", "mean", "max"), wilson(0, 2))
    assert piece_shares([]) is None


def test_choices_are_those_of_the_attack_and_measured_once(tmp_path: Path) -> None:
    store, model = ResultStore(tmp_path, writable=True), HuggingFaceClassifier(*toy_bert())
    texts = {"0": Text.parse("the film was greatly bad"), "1": Text.parse("films"), "2": Text.parse("!")}
    described = json.loads(json.dumps(describe_victim("toy", model, list(texts.values()))))
    victim = Victim.read("toy", described)
    assert victim.attention_layers == 2
    measure_choices(store, victim, lambda: model, texts, AttentionView(layer=1))
    choices = read_choices(store, "toy")
    assert list(choices) == ["0", "1"]
    assert choices["0"].pieces == (1, 1, 1, 2, 1)
    (words,) = model.word_attention([texts["0"]], 1, "mean")
    assert choices["0"].most["sum"] == int(words.argmax())
    measure_choices(store, victim, lambda: pytest.fail("a model was loaded"), {"0": texts["0"]}, AttentionView())
