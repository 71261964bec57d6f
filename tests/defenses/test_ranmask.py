"""RanMASK around victims whose smoothed answers can be computed by hand or by trying every mask."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import Probabilities
from stockade.core.text import Text, TextInput
from stockade.defenses.chain import wrap
from stockade.defenses.combine import ABSTAIN, combine, combine_normalised, predict_or_abstain
from stockade.defenses.defended import Defended
from stockade.defenses.ranmask import RanMask, lowest_rate, risk
from stockade.defenses.registry import make_defense
from stockade.engine.composite import make_scoring
from stockade.engine.language import FillingService
from stockade.engine.requests import Draw, Masked, Score
from stockade.engine.scoring import ScoringService
from stockade.models.huggingface import HuggingFaceClassifier
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import RandomVictim, WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0}, bias=-1.0)


def defended(victim: object = None, seed: int = 0, **options: object) -> Defended:
    return Defended(name="ranmask", defense=RanMask(**options), inner=victim or VICTIM, seed=seed)  # type: ignore[arg-type]


def masked_words(item: TextInput) -> int:
    return (item if isinstance(item, str) else item[1]).split().count("[MASK]")


def test_a_black_box_sees_copies_with_as_many_masks_as_the_rate_says() -> None:
    victim = WeightVictim({})
    defended(victim, rate=0.3, copies=50).predict_proba(["one two three four five six seven eight nine ten"])
    assert {masked_words(item) for item in victim.asked} == {3}
    assert len(victim.asked) == len(set(victim.asked))  # a copy that comes twice is computed once
    assert all(len(str(item).split()) == 10 for item in victim.asked)


def test_of_a_pair_the_premise_is_never_hidden() -> None:
    victim = WeightVictim({})
    defended(victim, rate=0.5, copies=10).predict_proba([("a b c d", "one two three four")])
    assert {item[0] for item in victim.asked} == {"a b c d"}
    assert {masked_words(item) for item in victim.asked} == {2}


def test_the_answer_nears_that_of_all_masks() -> None:
    """Of six words two are hidden; the share of the 15 masks that a class wins is what votes estimate."""
    text, victim = "so good and bad and dull", RandomVictim(seed=3, classes=3)
    words = text.split()
    rows = np.concatenate(
        [
            victim.predict_proba([" ".join("[MASK]" if at in hidden else word for at, word in enumerate(words))])
            for hidden in combinations(range(6), 2)
        ]
    )
    shares = np.bincount(rows.argmax(1), minlength=3) / len(rows)
    votes = defended(victim, rate=0.3, copies=4000, combine="vote").predict_proba([text])[0]
    assert votes == pytest.approx(shares, abs=0.04)
    means = defended(victim, rate=0.3, copies=4000).predict_proba([text])[0]
    assert means == pytest.approx(rows.mean(0), abs=0.02)


def test_votes_by_hand() -> None:
    """Two words, one stays: the good one in half of the copies, and only then the class is positive."""
    votes = defended(rate=0.5, copies=2000, combine="vote").predict_proba(["good film"])[0]
    assert votes[1] == pytest.approx(0.5, abs=0.05)
    assert (votes * 2000 == np.round(votes * 2000)).all()


@pytest.mark.parametrize("text", ["", "   ", "good", "\u3000"])
def test_texts_too_short_to_hide_anything_are_answered_as_they_are(text: str) -> None:
    plain = WeightVictim(VICTIM.weights, VICTIM.bias)
    assert defended(rate=0.9, copies=7).predict_proba([text])[0] == pytest.approx(plain.predict_proba([text])[0])
    assert defended(rate=0.9, copies=7, kept=3).predict_proba(["bad good"])[0] == pytest.approx(
        plain.predict_proba(["bad good"])[0]
    )


def test_the_same_text_has_the_same_answer_whatever_is_asked_with_it() -> None:
    model = defended(RandomVictim(1), rate=0.5, copies=5)
    texts = ["a b c d e f", "g h i j", "a b c d e f", "k l m"]
    together = model.predict_proba(texts)
    assert (together[0] == together[2]).all()
    for text, row in zip(texts, together, strict=True):
        assert (model.predict_proba([text])[0] == row).all()
    assert (defended(RandomVictim(1), seed=1, rate=0.5, copies=5).predict_proba(texts[:1])[0] != together[0]).any()


def test_fresh_draws_differ_from_question_to_question_and_fixed_ones_do_not() -> None:
    text = Text.parse("a b c d e f g h")
    for draws, same in (("fresh", False), ("fixed", True)):
        model = defended(RandomVictim(2), rate=0.5, copies=3, draws=draws)
        assert model.deterministic is same
        service = make_scoring(model)
        first, second = (service.answer_scores([Score([text], draw=Draw(7, number))])[0] for number in (0, 1))
        assert (first == second) is same


def test_fixed_masks_depend_on_the_length_alone() -> None:
    victim = WeightVictim({})
    defended(victim, rate=0.5, copies=6, draws="fixed").predict_proba(["a b c d", "e f g h"])
    shown = {tuple(word != "[MASK]" for word in str(item).split()) for item in victim.asked}
    assert len(victim.asked) == 2 * len(shown)


class SurprisedLM:
    """Finds words with an x in them surprising, all others not at all."""

    name = "toy"

    def surprisals(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[list[float]]:
        return [
            [float("x" in text[start:end]) for start, end in of_text]
            for text, of_text in zip(texts, spans, strict=True)
        ]


def test_surprising_words_are_hidden_first_with_a_language_model() -> None:
    victim = WeightVictim({})
    model = defended(victim, rate=0.3, copies=20, sampling="lm")
    service = make_scoring(model, filling=FillingService(SurprisedLM))  # type: ignore[arg-type]
    service.answer_scores([Score([Text.parse("a xb c d e xf g h xi j")])])
    assert victim.asked == ["a [MASK] c d e [MASK] g h [MASK] j"]


def test_a_randomised_model_is_asked_for_every_copy() -> None:
    victim = WeightVictim({}, deterministic=False)
    defended(victim, rate=0.5, copies=40).predict_proba(["good film"])
    assert len(victim.asked) == 40


def test_the_surrogate_shows_mean_probabilities_of_the_same_masks() -> None:
    voting = defended(RandomVictim(5), rate=0.5, copies=9, combine="vote")
    surrogate = voting.surrogate()
    assert surrogate is not None
    expected = defended(RandomVictim(5), rate=0.5, copies=9).predict_proba(["a b c d e f"])
    assert (surrogate.predict_proba(["a b c d e f"]) == expected).all()


@pytest.mark.parametrize(
    "options",
    [
        {"rate": 0.0},
        {"rate": 1.0},
        {"rate": -0.1},
        {"curriculum": 1.5},
        {"copies": 0},
        {"kept": 0},
        {"kept": 3, "most_kept": 2},
    ],
)
def test_bad_options(options: dict[str, float]) -> None:
    with pytest.raises(OptionError, match="ranmask"):
        RanMask(**options)  # type: ignore[arg-type]


def test_options_are_checked_by_type() -> None:
    with pytest.raises(OptionError, match="sampling"):
        make_defense("ranmask:sampling=loud")


def test_it_must_stand_directly_around_the_model() -> None:
    with pytest.raises(OptionError, match="ranmask and ranmask cannot be combined"):
        wrap(VICTIM, [make_defense("ranmask"), make_defense("ranmask")])
    with pytest.raises(OptionError, match=r"so safer cannot stand between them: .* --defense safer --defense ranmask"):
        wrap(VICTIM, [make_defense("ranmask"), make_defense("safer")])
    with pytest.raises(ModelError, match="directly around the model"):
        wrap(wrap(VICTIM, [make_defense("safer")]), [make_defense("ranmask")])


class FailingVictim(WeightVictim):
    """Raises when a text has the word it cannot bear."""

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        if any("boom" in str(item) for item in inputs):
            raise RuntimeError("boom")
        return super().predict_proba(inputs)


def test_a_fault_costs_only_the_text_that_causes_it() -> None:
    model = defended(FailingVictim({"good": 1.0}), rate=0.5, copies=8)
    answers = make_scoring(model).answer_scores(
        [Score([Text.parse("boom good film at")]), Score([Text.parse("good day")])]
    )
    assert "boom" in str(answers[0])
    assert isinstance(answers[1], list)
    with pytest.raises(ModelError, match="has no answer"):
        model.predict_proba(["boom good film at"])


def test_an_even_vote_is_no_answer() -> None:
    model = defended(rate=0.5, copies=100)
    assert predict_or_abstain(model, ["good film", "bad film", ""]) == [ABSTAIN, "negative", "negative"]


def test_abstaining_is_the_binomial_test_at_its_edge() -> None:
    """60 of 100 have p = 0.0569, 61 of 100 p = 0.0352."""

    class Counting(RandomVictim):
        def __init__(self, positive: int) -> None:
            super().__init__(deterministic=False)
            self.left = positive
            self.classes = 2

        def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
            rows = []
            for _ in inputs:
                self.left -= 1
                rows.append([0.1, 0.9] if self.left >= 0 else [0.9, 0.1])
            return np.array(rows)

    for positive, expected in ((60, ABSTAIN), (61, "1"), (39, "0"), (40, ABSTAIN)):
        assert predict_or_abstain(defended(Counting(positive), rate=0.5, copies=100), ["a b c"]) == [expected]


def test_only_what_votes_can_abstain() -> None:
    with pytest.raises(OptionError, match="vote"):
        predict_or_abstain(VICTIM, ["a"])
    with pytest.raises(OptionError, match="alpha"):
        predict_or_abstain(defended(), ["a"], alpha=1.0)


def test_normalised_logits_are_means_of_unit_rows_of_what_the_model_gives() -> None:
    """With a bias on the last layer the logits' common part is not zero, so their lengths differ from centred ones."""
    bert = tiny_bert()
    with torch.no_grad():
        bert.classifier.bias.copy_(torch.tensor([3.0, 2.0]))
    model = HuggingFaceClassifier(bert, tiny_tokenizer())
    text = "the film was great"
    copies = [" ".join("[MASK]" if at == hidden else word for at, word in enumerate(text.split())) for hidden in (0, 2)]
    logits = model.logits_encoded(model.encode(copies))
    assert abs(logits.mean()) > 1.0
    keep = np.array([[False, True, True, True], [True, True, False, True]])
    request = Masked(text.split(), None, keep, logits=True)
    assert ScoringService(model).answer_masked([request])[0] == pytest.approx(logits)
    mean = (logits / np.linalg.norm(logits, axis=1, keepdims=True)).mean(0)
    expected = np.exp(mean) / np.exp(mean).sum()
    assert combine_normalised(logits).probabilities == pytest.approx(expected)
    assert combine(model.predict_proba(copies), "normalised-logit").probabilities != pytest.approx(expected, abs=1e-4)


def test_a_black_box_gives_logits_that_sum_to_zero() -> None:
    keep = np.array([[True, False], [False, True]])
    [rows] = ScoringService(VICTIM).answer_masked([Masked(["good", "bad"], None, keep, logits=True)])
    assert np.asarray(rows).sum(1) == pytest.approx([0.0, 0.0])
    assert np.asarray(rows)[:, 1] - np.asarray(rows)[:, 0] == pytest.approx([3.0, -5.0])


def test_presets_say_whose_way_of_answering_they_are() -> None:
    names = ("combine", "kept", "copies", "rate")
    assert [make_defense("ranmask").options[name] for name in names] == ["probability", 1, 100, 0.3]
    assert make_defense("ranmask@paper").options == {**make_defense("ranmask").options, "combine": "vote"}
    assert [make_defense("ranmask@vote").options[name] for name in names] == ["vote", 1, 100, 0.3]
    assert [make_defense("ranmask@authors").options[name] for name in names] == ["normalised-logit", 2, 100, 0.3]
    assert make_defense("ranmask@authors:rate=0.9").defense.masks(np.random.default_rng(0), 10).sum(1).tolist() == (
        [2] * 100
    ), "one of ten words would stay, the released code keeps two"


def test_the_risk_of_two_lengths_of_the_paper() -> None:
    short = risk(19, 0.3, 0.1)
    assert (short.attacked, short.hidden) == (2, 6)
    assert short.probability == pytest.approx(0.456, abs=5e-4)
    long = risk(43, 0.9, 0.1)
    assert (long.attacked, long.hidden) == (4, 39)
    assert long.probability == pytest.approx(8.1e-6, rel=1e-2)


@given(st.integers(1, 60), st.floats(0, 1), st.floats(0, 1), st.integers(1, 3))
def test_the_risk_is_the_ratio_of_the_numbers_of_masks(words: int, rate: float, attacked: float, kept: int) -> None:
    result = risk(words, rate, attacked, kept)
    masks = comb(words - result.attacked, result.hidden) / comb(words, result.hidden)
    assert result.probability == pytest.approx(masks)


def test_the_lowest_rate_that_protects() -> None:
    rate = lowest_rate(19, 0.1)
    assert rate is not None
    assert risk(19, rate, 0.1).probability < 0.5 <= risk(19, rate - 0.05, 0.1).probability
    assert lowest_rate(19, 0.0) is None  # nothing was attacked, so nothing can be hidden


@pytest.mark.parametrize(("words", "rate", "attacked"), [(0, 0.3, 0.1), (5, 1.2, 0.1), (5, 0.3, -0.1)])
def test_a_risk_of_bad_input(words: int, rate: float, attacked: float) -> None:
    with pytest.raises(OptionError):
        risk(words, rate, attacked)
