"""TextFooler on victims, neighbours and an encoder whose answers a person can compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from stockade.attacks.registry import make_attack
from stockade.attacks.textfooler import Accept, TextFooler
from tests.attacks.driving import Result, attack
from tests.toys import BagEncoder, TableVictim, WeightVictim


@dataclass(frozen=True)
class Near:
    word: str
    cosine: float


class FakeNeighbours:
    def neighbours(self, word: str, *, count: int = 50, min_cosine: float | None = None) -> tuple[Near, ...]:
        table = {
            "great": (Near("fine", 0.9), Near("bad", 0.75), Near("awful", 0.6)),
            "film": (Near("movie", 0.95), Near("flop", 0.72)),
            "scene": (Near("shot", 0.8),),
        }
        found = table.get(word.lower(), ())
        return tuple(near for near in found if min_cosine is None or near.cosine >= min_cosine)[:count]


class NounTagger:
    def tag_word(self, words: tuple[str, ...], index: int) -> str:
        return "NN"

    def tag_candidates(self, words: tuple[str, ...], index: int, candidates: list[str]) -> list[str]:
        return ["JJ" if word == "flop" else "VB" if word == "fine" else "NN" for word in candidates]


@pytest.fixture(autouse=True)
def language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.attacks.textfooler.load_neighbours", FakeNeighbours)
    monkeypatch.setattr("stockade.attacks.constraints.load_tagger", NounTagger)


def run(
    weights: dict[str, float], attack_options: TextFooler, string: str = "such great film", bias: float = 0.0
) -> Result:
    return attack(WeightVictim(weights, bias), string, attack_options, encoder=BagEncoder())


def test_the_nearest_neighbours_are_tried_at_the_most_important_word() -> None:
    result = run({"great": 1.0, "fine": 0.5, "bad": -1.0}, TextFooler(threshold=0.0))
    assert result.words == ("such", "bad", "film")
    # the original, "great" and "film" deleted ("such" is a function word), two neighbours of "great" above 0.7
    assert result.queries == 1 + 2 + 2


def test_neighbours_below_the_word_cosine_are_not_tried() -> None:
    weights = {"great": 1.0, "fine": 0.9, "bad": 0.8, "awful": -3.0}
    assert run(weights, TextFooler(threshold=0.0)).trial.status == "failed"
    assert run(weights, TextFooler(threshold=0.0, min_cosine=0.5)).words == ("such", "awful", "film")


def test_nouns_and_verbs_exchange_but_adjectives_do_not() -> None:
    weights = {"great": 0.1, "bad": 0.1, "film": 1.0, "movie": 1.0, "flop": -3.0, "fine": -3.0}
    assert run(weights, TextFooler(threshold=0.0)).words == ("such", "fine", "film")
    strict = run(weights, TextFooler(threshold=0.0, noun_verb_exchange=False))
    assert strict.trial.status == "failed"
    free = run(weights, TextFooler(threshold=0.0, same_pos=False))
    assert free.words == ("such", "great", "flop")


@pytest.mark.parametrize("score_first", [True, False])
def test_only_candidates_that_keep_the_meaning_count(score_first: bool) -> None:
    """One word of three changed leaves a cosine of 2/3, 0.732 on the angular scale."""
    weights = {"great": 1.0, "fine": 0.5, "bad": -1.0}
    loose = TextFooler(threshold=0.72, window=None, score_first=score_first)
    strict = TextFooler(threshold=0.75, window=None, score_first=score_first)
    assert run(weights, loose).words == ("such", "bad", "film")
    refused = run(weights, strict)
    assert refused.trial.status == "failed"
    assert refused.queries == (1 + 2 + 2 + 1 if score_first else 1 + 2)


@pytest.mark.parametrize(
    ("accept", "last"), [("improves", "such bad film shot"), ("beats-original", "such bad movie shot")]
)
def test_the_authors_keep_a_step_that_beats_the_original_even_if_it_is_worse_than_the_last(
    accept: Accept, last: str
) -> None:
    """After great -> bad (2.0 to 0.5), film -> movie is a step back (0.2 to 0.3) but still better than the original."""
    victim = WeightVictim(
        {"great": 2.0, "fine": 1.9, "bad": 0.5, "film": 0.2, "movie": 0.3, "scene": 0.1, "shot": 0.05}
    )
    attack(victim, "such great film scene", TextFooler(threshold=0.0, accept=accept), encoder=BagEncoder())
    assert str(victim.asked[-1]) == last


def test_only_so_many_neighbours_are_tried() -> None:
    weights = {"great": 1.0, "fine": 0.5, "bad": -1.0}
    few = run(weights, TextFooler(threshold=0.0, candidates=1))
    assert (few.trial.status, few.queries) == ("failed", 1 + 2 + 1 + 1)
    assert run(weights, TextFooler(threshold=0.0, candidates=2)).words == ("such", "bad", "film")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hide": "delete"}, ("such", "bad", "film")),
        ({"hide": "unknown"}, ("such", "great", "movie")),
        ({"hide": "unknown", "unknown": "@"}, ("such", "bad", "film")),
    ],
)
def test_words_are_hidden_by_deletion_or_by_the_unknown_word(options: dict[str, Any], words: tuple[str, ...]) -> None:
    """Deleted, and hidden as "@", the model needs "great" more; hidden as "[UNK]" it needs "film"."""
    needs_great = {"such film": 0.1, "such great": 0.8, "such @ film": 0.1, "such great @": 0.8}
    needs_film = {"such [UNK] film": 0.8, "such great [UNK]": 0.1}
    fooled = {"such bad film": 0.1, "such great movie": 0.1}
    victim = TableVictim(table={**needs_great, **needs_film, **fooled}, otherwise=0.9)
    method = TextFooler(threshold=0.0, **options)
    assert attack(victim, "such great film", method, encoder=BagEncoder()).words == words


def test_the_threshold_is_on_the_scale() -> None:
    """One word of three changed leaves a cosine of 0.667, 0.732 on the angular scale."""
    weights = {"great": 1.0, "bad": -1.0}
    assert run(weights, TextFooler(threshold=0.7, window=None, scale="angular")).trial.status == "success"
    assert run(weights, TextFooler(threshold=0.7, window=None, scale="cosine")).trial.status == "failed"


def test_drift_is_seen_from_the_original_alone() -> None:
    """Two steps of 0.75 each from the text before; the second is 0.5 from the original."""
    weights = {"great": 1.0, "fine": 1.0, "bad": 0.2, "film": 1.0, "movie": -0.5}
    options = {"threshold": 0.7, "window": None, "scale": "cosine"}
    near, far = TextFooler(**options, reference="previous"), TextFooler(**options)  # type: ignore[arg-type]
    assert run(weights, near, "such great film today").words == ("such", "bad", "movie", "today")
    assert run(weights, far, "such great film today").trial.status == "failed"


def test_stop_words_are_left_alone_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    class Synonyms(FakeNeighbours):
        def neighbours(self, word: str, *, count: int = 50, min_cosine: float | None = None) -> tuple[Near, ...]:
            return (Near("so", 0.9),) if word.lower() == "such" else ()

    monkeypatch.setattr("stockade.attacks.textfooler.load_neighbours", Synonyms)
    weights = {"such": 1.0, "so": -1.0}
    assert run(weights, TextFooler(threshold=0.0)).trial.reason == "no word has a neighbour"
    assert run(weights, TextFooler(threshold=0.0, stop_words="none")).words == ("so", "great", "film")
    # To TextAttack a capitalised word is no stop word: questions begin with words that matter.
    cased = TextFooler(**{**make_attack("textfooler@textattack").options, "same_pos": False})
    assert run(weights, cased, "Such great film").words == ("So", "great", "film")
    assert run(weights, TextFooler(threshold=0.0), "Such great film").trial.reason == "no word has a neighbour"


def test_presets() -> None:
    paper, authors, textattack = (
        make_attack("textfooler", name).options for name in ("paper", "authors", "textattack")
    )
    assert (paper["min_cosine"], paper["hide"], paper["reference"]) == (0.7, "delete", "original")
    assert (authors["min_cosine"], authors["hide"], authors["scale"], authors["threshold"]) == (
        0.5,
        "unknown",
        "tf",
        0.5,
    )
    assert (textattack["scale"], textattack["score_first"], textattack["short"]) == ("angular", True, None)


def test_what_is_not_compared_is_ranked_by_its_gain() -> None:
    """A text under the window that is not compared with anything: of two winners the stronger one is taken. The
    paper's own rule compares it whole, without a threshold, so the most similar one wins.
    """
    weights = {"great": 1.0, "fine": -1.0, "bad": -2.0}
    encoder = BagEncoder()
    short = attack(WeightVictim(weights), "such great film", TextFooler(short=None), encoder=encoder)
    assert short.words == ("such", "bad", "film")
    assert not encoder.embedded
    weighty = BagEncoder({"bad": 3.0})
    for alike in (TextFooler(), TextFooler(window=None, threshold=0.0)):
        compared = attack(WeightVictim(weights), "such great film", alike, encoder=weighty)
        assert compared.words == ("such", "fine", "film")
