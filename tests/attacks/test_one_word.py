"""RANDOM, LIST, GS and the attention attacks on victims that a person can compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import stockade as st
from stockade.attacks.nearest_flip import Estimate, margin
from stockade.attacks.one_word import OneWord
from stockade.attacks.random_word import RandomWord
from stockade.attacks.registry import make_attack
from stockade.attacks.synonym_list import SynonymList
from stockade.core.errors import ModelError, OptionError
from stockade.core.example import Example, Scores
from stockade.core.protocols import Probabilities, WordVocabulary
from stockade.core.text import Text
from stockade.lexicon.neighbours import Neighbours, use_neighbours
from stockade.report.diff import record_pieces
from tests.attacks.driving import attack
from tests.toys import OpenVictim, WeightVictim

WEIGHTS = {"great": 3.0, "fine": 1.0, "film": 0.5, "dull": -1.0, "bad": -2.0, "awful": -4.0}


@pytest.mark.parametrize(
    ("name", "changed"), [("gs-gr", 1), ("asmax-gr", 0), ("asmin-gr", 2), ("gs-ec", 1), ("asmax-ec", 0)]
)
def test_the_word_the_model_points_at_is_replaced(name: str, changed: int) -> None:
    """Great is missed most; attention falls from left to right."""
    trial = attack(OpenVictim(WEIGHTS), "film great fine", make_attack(name).attack).trial
    if trial.text is not None:
        assert [edit.index for edit in trial.text.edits] == [changed]
    else:
        assert trial.reason == f'no word of the vocabulary in place of "{("film", "great", "fine")[changed]}" fools it'


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({"where": "gs"}, 1),
        ({"where": "asmax"}, 0),
        ({"where": "asmin"}, 2),
        ({"where": "asmax", "layer": 1}, 2),
        ({"where": "asmax", "query": "first"}, 2),
        ({"where": "gs", "layer": 1, "query": "first"}, 1),
    ],
)
def test_the_layer_and_the_query_of_the_attention_can_be_chosen(options: dict[str, Any], changed: int) -> None:
    """In layer 1, or from the first token, attention rises from left to right; what is missed does not ask for it."""
    weights = {"film": 1.0, "great": 1.5, "fine": 1.0, "awful": -9.0}
    trial = attack(OpenVictim(weights), "film great fine", OneWord(**options)).trial
    assert trial.text is not None
    assert [edit.index for edit in trial.text.edits] == [changed]


class Pieces(OpenVictim):
    """Reads "unremarkable" in three pieces, all other words in one: it gets most attention, its pieces get least."""

    def piece_attention(self, texts: Sequence[Text], layer: int, query: str) -> list[list[NDArray[np.float32]]]:
        shares = {"unremarkable": [0.1, 0.1, 0.2], "great": [0.3], "film": [0.25], "thoughtful": [0.35, 0.05]}
        return [[np.array(shares[word], dtype=np.float32) for word in text.words] for text in texts]

    def word_attention(self, texts: Sequence[Text], layer: int, query: Any) -> list[NDArray[np.float32]]:
        return [np.array([sum(word) for word in words]) for words in self.piece_attention(texts, layer, query)]


@pytest.mark.parametrize(
    ("where", "pieces", "changed"),
    [
        ("asmax", "sum", 0),  # 0.4 against 0.3 and 0.25
        ("asmax", "mean", 1),  # 0.133 against 0.3 and 0.25
        ("asmax", "max", 1),  # 0.2 against 0.3 and 0.25
        ("asmin", "sum", 2),
        ("asmin", "mean", 0),
        ("asmin", "max", 0),
        ("asmax", None, 3),  # the most of a piece, 0.35; by the mean, 0.2, it would be the second word
    ],
)
def test_what_the_attention_of_several_pieces_is_can_be_chosen(where: Any, pieces: Any, changed: int) -> None:
    weights = {"unremarkable": 1.0, "great": 1.0, "film": 1.0, "thoughtful": 1.0, "awful": -9.0}
    options = {} if pieces is None else {"pieces": pieces}
    string = "unremarkable great film" + (" thoughtful" if pieces is None else "")
    trial = attack(Pieces(weights), string, OneWord(where=where, **options)).trial
    assert trial.text is not None
    assert [edit.index for edit in trial.text.edits] == [changed]
    with pytest.raises(OptionError, match="pieces of asmax-gr cannot be 'first'"):
        make_attack("asmax-gr:pieces=first")


class Signs(OpenVictim):
    """Shows the digits and signs of its vocabulary besides its words."""

    def word_vocabulary(self) -> WordVocabulary:
        words = [number for number, word in enumerate(self.vocabulary.words) if word.isalpha()]
        chosen = tuple(self.vocabulary.words[number] for number in words)
        return WordVocabulary(chosen, self.vocabulary.vectors[words])

    def whole_vocabulary(self) -> WordVocabulary:
        return self.vocabulary

    def predict_proba(self, inputs: Sequence[Any]) -> Probabilities:
        odds = [sum(self.weights.get(word, 0.0) for word in str(text).split()) for text in inputs]
        return np.array([(1 / (1 + math.exp(value)), 1 / (1 + math.exp(-value))) for value in odds])


@pytest.mark.parametrize("name", ["gs-gr", "gs-ec", "asmax-gr", "random"])
def test_digits_and_punctuation_are_written_unless_only_letters_may_be(name: str, tmp_path: Any) -> None:
    """The paper's examples: "with ! interest", "Yes, I 0."; no word of letters fools this victim."""
    victim = Signs({"great": 3.0, "interest": 1.0, "vast": 2.0, "!": -9.0, "0": -8.0})
    data = [("great interest", "positive")]
    (record,) = st.attack(victim, data, name, similarity=False, out=tmp_path / "all").records()
    assert record.status == "success"
    assert record.edits[0].after in ("!", "0")
    assert st.load(tmp_path / "all").verify(victim).holds
    changed = [piece for piece in record_pieces(record) if piece.kind != "same"]
    assert [(piece.kind, piece.after) for piece in changed] == [("replace", record.edits[0].after)]
    method: Any = make_attack(name).attack
    (letters,) = st.attack(victim, data, replace(method, vocabulary="letters"), similarity=False).records()
    assert letters.status == "failed"


def test_more_caution_asks_about_more_words() -> None:
    victim = random_victim(0, words=3000)
    best = sorted(victim.weights, key=lambda word: -victim.weights[word])
    string = f"{best[20]} {best[300]} {best[450]}"
    few, more, most = (
        attack(victim, string, OneWord(how="ec", sample=60, caution=caution)).queries for caution in (1, 3, 1e6)
    )
    assert few < more < most
    assert most >= len(best) - 1  # nothing is ruled out


def test_ec_takes_the_nearest_word_that_fools() -> None:
    """1.5 + w < 0 needs w below -1.5: bad and awful fool, and bad moves the sum of weights less."""
    for name in ("gs-ec", "gs-ec@exhaustive"):
        assert attack(OpenVictim(WEIGHTS), "film great fine", make_attack(name).attack).words[1] == "bad"


def test_gr_tries_every_word_before_it_gives_up() -> None:
    victim = OpenVictim({**WEIGHTS, "great": 100.0, "rich": 50.0})
    result = attack(victim, "great rich", OneWord())
    assert result.trial.reason == 'no word of the vocabulary in place of "great" fools it'
    assert result.queries == 2 + len(victim.weights) - 1  # two zeroed words, then all words but the one that stands


def test_case_is_kept_and_the_result_depends_on_the_seed_alone() -> None:
    found = [attack(OpenVictim(WEIGHTS), "Great fine", OneWord(), seed=seed).words[0] for seed in (1, 1, 2, 3, 4, 5)]
    assert found[0] == found[1]
    assert set(found) <= {"Dull", "Bad", "Awful"}
    assert len(set(found)) > 1


def random_victim(seed: int, words: int = 400, width: int = 4) -> OpenVictim:
    """A vocabulary in a plane of meaning: weights and vectors go together, with noise, as in a trained model."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(words, width))
    weights = 2 * vectors[:, 0] + 0.3 * rng.normal(size=words)
    names = ["".join(chr(97 + int(digit)) for digit in f"{number:04d}") for number in range(words)]
    return OpenVictim(
        dict(zip(names, weights.tolist(), strict=True)), {n: v.tolist() for n, v in zip(names, vectors, strict=True)}
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_estimate_finds_what_the_exhaustive_scan_finds_with_fewer_queries(seed: int) -> None:
    victim = random_victim(seed, words=3000)
    best = sorted(victim.weights, key=lambda word: -victim.weights[word])
    string = " ".join([best[20], best[300], best[450]])
    quick = attack(victim, string, OneWord(how="ec"))
    full = attack(victim, string, OneWord(how="ec", exhaustive=True))
    assert full.trial.status == "success"
    assert quick.words == full.words
    assert quick.queries < 0.8 * full.queries


def test_every_word_is_within_reach_of_the_estimate() -> None:
    """One word of 400 fools the model, against all that its vector says."""
    victim = random_victim(1)
    victim.weights = dict.fromkeys(victim.weights, 5.0)
    odd = victim.vocabulary.words[137]
    victim.weights[odd] = -50.0
    start = victim.vocabulary.words[0]
    assert attack(victim, f"{start} fine", OneWord(how="ec", sample=60)).words[0] == odd


def test_a_budget_cuts_the_scan_short_and_keeps_what_was_found() -> None:
    victim = random_victim(3)
    best = max(victim.weights, key=lambda word: victim.weights[word])
    short = attack(victim, best, OneWord(how="ec", sample=60), budget=100)
    assert short.queries <= 100
    assert short.trial.status == "success"
    scan = attack(victim, best, OneWord(how="ec", exhaustive=True), budget=200)
    assert (scan.queries, scan.trial.status) == (200, "success")  # of 399 words
    assert attack(victim, best, OneWord(how="ec", sample=60), budget=2).trial.status == "failed"


def test_the_slack_covers_the_errors_of_the_estimate() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(500, 3)).astype(np.float32)
    known = {int(n): (float(abs(vectors[n]).sum()), float(vectors[n, 0])) for n in rng.permutation(500)[:100]}
    estimate = Estimate.fitted(vectors, known, caution=1.0)
    margins = estimate.margins + estimate.margin_slack
    assert (margins >= vectors[:, 0]).mean() > 0.95
    assert np.corrcoef(estimate.distances, abs(vectors).sum(1))[0, 1] > 0.8


def test_the_margin_is_positive_where_the_model_is_fooled() -> None:
    text = Text.parse("film")
    scores = Scores((0.2, 0.5, 0.3))
    assert margin(Example("0", text, 1), scores) == pytest.approx(math.log(0.3 / 0.5))
    assert margin(Example("0", text, 0), scores) == pytest.approx(math.log(0.5 / 0.2))
    assert margin(Example("0", text, 0, target=1), scores) == pytest.approx(math.log(0.5 / 0.3))


def test_random_reports_the_share_of_draws() -> None:
    """Of the five other words for the only word, three fool the model: dull, bad, awful."""
    result = attack(OpenVictim(WEIGHTS), "great", RandomWord(draws=3000))
    assert result.trial.status == "success"
    assert result.queries == 3000
    assert result.trial.flip_share == pytest.approx(3 / 5, abs=0.04)
    none = attack(OpenVictim({"great": 9.0, "grand": 8.0}), "great great", RandomWord(draws=10)).trial
    assert (none.status, none.flip_share, none.reason) == ("failed", 0.0, "none of 10 draws fools the model")


def test_random_draws_from_the_lexicon_for_a_black_box() -> None:
    trial = attack(WeightVictim({"great": 3.0}, bias=-1.0), "a great film", RandomWord(draws=50)).trial
    assert trial.status == "success"
    assert trial.text is not None
    assert trial.text.words[1] != "great"


def test_list_goes_from_left_to_right_and_puts_words_back(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("great", "grand", "fine", "fair")
    table = Neighbours(words, np.array([[10, 1], [10, 2], [1, 10], [2, 10]], dtype=np.int8))
    monkeypatch.setattr("stockade.attacks.synonym_list.load_neighbours", lambda: table)
    victim = WeightVictim({"great": 1.0, "grand": 0.6, "fine": 0.5, "fair": -3.0})
    result = attack(victim, "great fine film", SynonymList())
    assert result.words == ("great", "fair", "film")
    assert victim.asked[1:3] == ["grand fine film", "great fair film"]
    assert attack(victim, "film film", SynonymList(), label=0).trial.reason == "no word has a synonym"


@pytest.mark.parametrize(
    ("options", "tried"),
    [
        ({}, []),
        ({"max_squared_distance": 0.6}, ["near"]),
        ({"max_squared_distance": 2.1}, ["near", "far"]),
        ({"max_squared_distance": 2.1, "neighbours": 1}, ["near"]),
        ({"max_squared_distance": 2.1, "stop_words": "function"}, []),
    ],
)
def test_list_tries_the_nearest_synonyms_of_words_that_are_no_stop_words(
    options: dict[str, Any], tried: list[str]
) -> None:
    """Directions 45 and 90 degrees from that of "those": squared distances 2 - 2 cos of 0.59 and 2."""
    table = Neighbours(("those", "near", "far"), np.array([[9, 0], [9, 9], [0, 9]], dtype=np.int8))
    victim = WeightVictim({}, bias=1.0)
    with use_neighbours(table):
        attack(victim, "those", SynonymList(**options))
    assert victim.asked == ["those", *tried]


@pytest.mark.parametrize("name", ["random", "list", "gs-gr", "gs-ec"])
def test_a_share_that_allows_no_word_is_kept(name: str) -> None:
    trial = attack(OpenVictim(WEIGHTS), "great fine film", make_attack(name, max_changed=0.3).attack).trial
    assert (trial.status, trial.reason) == ("failed", "the share of changed words does not allow even one")


@pytest.mark.parametrize(
    ("name", "missing"), [("gs-gr", "its input vectors"), ("gs-ec", "its input vectors"), ("asmax-gr", "its attention")]
)
def test_a_black_box_is_told_what_is_missing(name: str, missing: str) -> None:
    def predict(texts: list[Any]) -> list[list[float]]:
        return [[0.2, 0.8]] * len(texts)

    with pytest.raises(ModelError, match=f"needs the model to show {missing}, and this model does not"):
        st.attack(predict, [("great film", 1)], name, similarity=False)


def test_the_summary_has_the_mean_share_of_draws() -> None:
    data = [("great film", 1), ("a great day", 1)]
    run = st.attack("builtin:sentiment-cnn", data, "random:draws=40", similarity=False)
    attacked = [record for record in run.records() if record.status in ("success", "failed")]
    shares = [record.flip_share or 0.0 for record in attacked]
    assert any(shares)
    assert run.summary["attacks"]["random"]["mean_flip_share"] == pytest.approx(sum(shares) / len(shares), abs=1e-6)


def test_draws_never_write_the_word_that_stands() -> None:
    from stockade.attacks.random_word import _draw

    example = Example("0", Text.parse("great film"), 1)
    rng = Random(0)
    assert all(len(_draw(example, ("great", "film", "bad"), rng)[0].edits) == 1 for _ in range(100))


def test_refused_draws_are_drawn_again() -> None:
    """Only one of five words keeps within two letters of "great": the draws wanted are made all the same."""
    victim = OpenVictim({**WEIGHTS, "greet": 2.0})
    near = make_attack("random", draws=20, constraint="edit-distance(2)").attack
    assert attack(victim, "great", near).queries == 20
    nothing = make_attack("random", draws=20, constraint="edit-distance(0)").attack
    assert attack(victim, "great", nothing).trial.reason == "none of 0 draws fools the model"


class FaultyVictim(OpenVictim):
    """Shows its inside, but not of texts with the word "cursed": there it raises, or answers with NaN."""

    def __init__(self, fault: str) -> None:
        super().__init__({**WEIGHTS, "cursed": 4.0})
        self.fault = fault

    def predict_zeroed(self, places: Sequence[tuple[Text, int]]) -> Probabilities:
        cursed = [any(word == "cursed" for word in text.words) for text, _ in places]
        if self.fault == "raises" and any(cursed):
            raise RuntimeError("the curse")
        answers = super().predict_zeroed(places)
        answers[np.array(cursed)] = np.nan
        return answers


@pytest.mark.parametrize("fault", ["raises", "nan"])
def test_a_fault_inside_the_model_costs_only_the_queries_that_cause_it(fault: str) -> None:
    """All that is asked inside "cursed fine film" fails; words that replace its first one still fool the model."""
    data = [("great film", 1), ("cursed fine film", 1), ("fine great", 1)]
    run = st.attack(FaultyVictim(fault), data, "gs-gr", similarity=False)
    outcomes = {record.original: (record.status, record.failed_queries) for record in run.records()}
    assert outcomes == {"great film": ("success", 0), "cursed fine film": ("success", 3), "fine great": ("success", 0)}


def test_the_estimate_is_made_anew_once_as_many_words_are_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[int] = []
    fitted = Estimate.fitted

    def counting(vectors: NDArray[np.float32], numbers: dict[int, tuple[float, float]], caution: float) -> Estimate:
        known.append(len(numbers))
        return fitted(vectors, numbers, caution)

    monkeypatch.setattr(Estimate, "fitted", counting)
    victim = random_victim(0, words=3000)
    best = sorted(victim.weights, key=lambda word: -victim.weights[word])
    attack(victim, f"{best[20]} {best[300]}", OneWord(how="ec", sample=60))
    assert known == [60, 120]


@pytest.mark.parametrize("options", ["caution=-1", "caution=nan", "sample=0"])
def test_an_estimate_of_nothing_is_refused(options: str) -> None:
    with pytest.raises(OptionError, match="expected at least one word, and 0 or more"):
        make_attack(f"gs-ec:{options}")


def test_what_the_model_makes_of_a_word_alone_spares_queries() -> None:
    """The input vectors say nothing here; the sentence vectors of single words say all."""
    victim = random_victim(5, words=3000)
    noise = np.random.default_rng(9).normal(size=(3000, 4)).astype(np.float32)
    victim.vocabulary = WordVocabulary(victim.vocabulary.words, noise)
    best = sorted(victim.weights, key=lambda word: -victim.weights[word])
    string = " ".join([best[20], best[300], best[450]])
    quick = attack(victim, string, OneWord(how="ec", sample=200))
    full = attack(victim, string, OneWord(how="ec", exhaustive=True))
    assert quick.words == full.words
    assert quick.queries < 0.5 * full.queries
