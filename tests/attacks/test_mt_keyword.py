"""GS-EC on a translator whose logits and vectors a person can compute."""

from __future__ import annotations

import itertools
import math
from random import Random
from typing import Any

import numpy as np
import pytest

from stockade.attacks.constraints import MaxEditDistance
from stockade.attacks.mt_keyword import MtKeyword
from stockade.attacks.registry import make_attack
from stockade.core.errors import ModelError, OptionError
from stockade.core.text import Text
from stockade.core.translation import ZeroableSource, hinge_loss
from tests.attacks.translating import attack
from tests.toy_translators import LogitTranslator, TableTranslator

LOGITS = {
    "a": {"ein": 9.0},
    "red": {"rot": 4.0, "Hund": 1.0},
    "house": {"Haus": 3.0, "Hund": 2.0},
    "dog": {"Hund": 3.0, "Haus": 1.0},
    "hound": {"Hund": 3.0},
    "puppy": {"Welpe": 3.0, "Hund": 2.5},
}
VECTORS = {"dog": (4.0, 0.0), "hound": (1.0, 1.0), "puppy": (0.5, 0.0), "red": (9.0, 0.0)}


def translator(**options: Any) -> LogitTranslator:
    return LogitTranslator(LOGITS, VECTORS, **options)


def test_the_nearest_word_that_succeeds_stands_at_the_weakest_place() -> None:
    """The loss is 3 - 2 at "house", and half of that when it is zeroed; zeroing another word changes nothing. There
    "dog" moves the sentence vector by 4 and "hound" by 2: both make a Hund; "puppy", which moves it by 0.5, does not.
    """
    result = attack(translator(), "a red house", MtKeyword(keyword="Hund"))
    assert result.trial.status == "success"
    assert result.source == "a red hound"
    assert result.trial.adversarial_translation == "ein rot Hund"
    assert result.queries == 1 + 3 + 4  # the source, each word zeroed, each word of the vocabulary


def test_where_zeroing_lowers_the_loss_nowhere_the_word_with_the_largest_effect_is_replaced() -> None:
    """The loss is 1 at "house". Zeroing it doubles that, zeroing "red" makes its 3 a 3.3, which is no minimum."""
    victim = LogitTranslator(LOGITS, VECTORS, zeroing={"a": 1.0, "red": 1.1, "house": 2.0})
    assert attack(victim, "a red house", MtKeyword(keyword="Hund")).source == "a red hound"


def test_where_no_word_succeeds_the_nearest_that_lowers_the_loss_is_taken_or_the_one_that_lowers_it_most() -> None:
    logits = {
        "one": {"x": 9.0},
        "two": {"y": 9.0},
        "near": {"z": 5.0},
        "far": {"z": 3.0},
        "there": {"z": 3.0, "Hund": 4.0},
    }
    vectors = {"near": (1.0,), "far": (5.0,)}
    watched = [LogitTranslator(logits, vectors), LogitTranslator(logits, vectors)]
    attack(watched[0], "one two", MtKeyword(keyword="Hund", words=2, descend="nearest"))
    attack(watched[1], "one two", MtKeyword(keyword="Hund", words=2, descend="steepest"))
    second_rounds = [{str(source.text) for source in victim.asked if source.zeroed == 1} for victim in watched]
    assert "near two" in second_rounds[0]
    assert "far two" in second_rounds[1]


def exhaustive_choice(victim: LogitTranslator, source: str, keyword: str, words: list[str]) -> str | None:
    """GS-EC written down plainly: one round, every place, every word."""
    tokens = victim.target_tokens(keyword)

    def loss(text: Text, zeroed: int | None = None) -> float:
        (steps,) = victim.greedy_steps([ZeroableSource(text, zeroed)], tokens)
        return hinge_loss(steps, range(len(tokens)), tokens)

    text = Text.parse(source)
    gains = [loss(text) - loss(text, place) for place in text.indices]
    if max(gains) <= 0:
        gains = [abs(gain) for gain in gains]
    place = gains.index(max(gains))
    home = victim.sentence_vectors([source])[0]
    best = None
    for word in words:
        if word == text.words[place]:
            continue
        changed = text.replace(place, word)
        distance = float(np.abs(victim.sentence_vectors([str(changed)])[0] - home).sum())
        if keyword in victim.translate([str(changed)])[0].split() and (best is None or distance < best[0] - 1e-4):
            best = (distance, str(changed))
    return None if best is None else best[1]


def smooth_translator(size: int, seed: int) -> LogitTranslator:
    """A vocabulary on a plane: a word makes the keyword the likelier, the nearer it is to a point of its own."""
    rng = Random(seed)
    centre = (rng.uniform(-1, 1), rng.uniform(-1, 1))
    words = {}
    for number in range(size):
        words["w" + "".join(chr(ord("a") + int(digit)) for digit in str(number))] = (
            rng.uniform(-2, 2),
            rng.uniform(-2, 2),
        )
    logits = {word: {"Hund": 3.0 - 2.0 * math.dist(point, centre), "Katze": 2.0} for word, point in words.items()}
    return LogitTranslator({**logits, "the": {"die": 8.0}, "cat": {"Katze": 6.0, "Hund": 1.0}}, words)


@pytest.mark.parametrize("seed", range(6))
def test_the_estimate_chooses_what_an_exhaustive_scan_chooses(seed: int) -> None:
    victim = smooth_translator(600, seed)
    words = list(victim.vectors)
    expected = exhaustive_choice(smooth_translator(600, seed), "the cat", "Hund", words)
    assert expected is not None
    for options in ({"exhaustive": True}, {"sample": 40, "most": 80, "caution": 3.0}):
        result = attack(victim, "the cat", MtKeyword(keyword="Hund", words=1, **options))
        assert result.source == expected
        if "sample" in options:
            assert result.queries <= 1 + 2 + 40 + 80 + 96


@pytest.mark.parametrize("seed", range(10))
def test_on_a_small_vocabulary_the_choice_is_that_of_an_exhaustive_scan(seed: int) -> None:
    rng = Random(seed)
    targets = ["Hund", "Katze", "Haus"]
    logits = {
        word: {target: round(rng.uniform(0, 5), 1) for target in targets}
        for word in ("one", "two", "six", "ten", "pan")
    }
    victim = LogitTranslator(logits, {word: (rng.uniform(-1, 1), rng.uniform(-1, 1)) for word in logits})
    for source in ("one two", "six six ten"):
        written = victim.translate([source])[0].split()
        keyword = next(target for target in targets if target not in written) if set(targets) - set(written) else None
        if keyword is None:
            continue
        expected = exhaustive_choice(victim, source, keyword, list(logits))
        result = attack(victim, source, MtKeyword(keyword=keyword, words=1))
        assert (str(result.trial.text) if result.trial.status == "success" else None) == expected


def test_no_more_words_change_than_may() -> None:
    """Each word makes half of the keyword "ab": two must change."""
    logits = {"x": {"x": 5.0}, "y": {"y": 5.0}, "one": {"a": 6.0}, "two": {"b": 6.0}}
    victim = LogitTranslator(logits, {"one": (1.0,), "two": (1.0,)})

    class Joined(LogitTranslator):
        def translate(self, texts: Any, *, beam: int = 1) -> list[str]:
            return [translation.replace("a b", "ab") for translation in super().translate(texts)]

        def greedy_steps(self, sources: Any, wanted: Any) -> Any:
            steps = super().greedy_steps(sources, wanted)
            return [
                type(s)(s.translation.replace("a b", "ab"), s.tokens, s.wanted, s.highest, s.highest_tokens)
                for s in steps
            ]

    victim = Joined(logits, {"one": (1.0,), "two": (1.0,)})
    assert attack(victim, "x y", MtKeyword(keyword="ab", words=1)).trial.status == "failed"
    result = attack(victim, "x y", MtKeyword(keyword="ab", words=2))
    assert result.source == "one two"  # a keyword that is in no vocabulary: its sub-words are wanted
    assert attack(victim, "x y", MtKeyword(keyword="ab", max_changed=0.5)).trial.status == "failed"
    assert "even one" in str(attack(victim, "x y", MtKeyword(keyword="ab", max_changed=0.4)).trial.reason)


def test_the_keyword_itself_is_never_written() -> None:
    victim = LogitTranslator({"cat": {"Katze": 3.0}, "Hund": {"Hund": 9.0}}, {"Hund": (1.0,), "cat": (0.0,)})
    assert attack(victim, "cat", MtKeyword(keyword="Hund")).trial.status == "failed"


def test_a_keyword_is_drawn_that_neither_reference_nor_translation_has() -> None:
    keywords = ("Haus", "EIN", "Baum", "Hund")
    drawn = set()
    for seed in range(30):
        result = attack(translator(), "a house", MtKeyword(), reference="Der Baum", keywords=keywords, seed=seed)
        assert result.trial.goal is not None
        drawn.add(result.trial.goal.keyword)
    assert drawn == {"Hund"}
    assert attack(translator(), "a house", MtKeyword(), keywords=("Haus",)).trial.status == "skipped"


def test_a_keyword_that_is_there_already_is_skipped() -> None:
    trial = attack(translator(), "a dog", MtKeyword(keyword="Hund")).trial
    assert (trial.status, trial.reason) == ("skipped", "the keyword is in the translation already")


def test_words_that_the_model_does_not_read_are_left_alone() -> None:
    result = attack(translator(longest=2), "a red house house house", MtKeyword(keyword="Hund"))
    assert result.source == "a dog house house house"


@pytest.mark.parametrize("source", ["", "… !"])
def test_a_source_without_words_fails_with_its_reason(source: str) -> None:
    trial = attack(translator(), source, MtKeyword(keyword="Hund")).trial
    assert (trial.status, trial.reason) == ("failed", "the source has no words")


def test_a_source_that_is_too_long_is_an_error() -> None:
    trial = attack(translator(), "a red house", MtKeyword(keyword="Hund"), max_words=2).trial
    assert (trial.status, trial.reason) == ("error", "the source has 3 words, more than the limit of 2")


def test_a_black_box_is_attacked_by_its_translations_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"red": "rot", "film": "Film", "movie": "Film", "picture": "Bild"}
    result = attack(TableTranslator(table), "a red picture", MtKeyword(keyword="Film", exhaustive=True))
    assert result.trial.status == "success"
    assert set(result.trial.adversarial_translation.split()) >= {"Film"}  # type: ignore[union-attr]
    with pytest.raises(ModelError, match="only translates"):
        attack(TableTranslator(table), "a red picture", MtKeyword(keyword="Film", loss="hinge"))


def test_the_budget_ends_a_search() -> None:
    trial = attack(translator(), "a red house", MtKeyword(keyword="Hund"), budget=4).trial
    assert trial.status == "failed"
    assert "budget of 4" in str(trial.reason)
    assert attack(translator(), "a red house", MtKeyword(keyword="Hund"), budget=8).trial.status == "success"


def test_constraints_hold_and_articles_are_put_right() -> None:
    assert (
        attack(translator(), "a red house", MtKeyword(keyword="Hund", constraint=MaxEditDistance(0))).trial.text is None
    )
    logits = {**LOGITS, "an": {"ein": 9.0}, "airedale": {"Hund": 3.0}, "a": {"ein": 9.0}}
    victim = LogitTranslator(logits, {"airedale": (1.0,)})
    assert attack(victim, "a red", MtKeyword(keyword="Hund")).source == "a airedale"
    assert attack(victim, "a red", MtKeyword(keyword="Hund", repair_articles=True)).source == "an airedale"
    one = attack(victim, "a red", MtKeyword(keyword="Hund", repair_articles=True, words=1))
    assert one.trial.status == "failed"


def test_a_success_must_come_again() -> None:
    class Fickle(LogitTranslator):
        """Makes a Hund in batches and none of a source that comes alone through `translate`."""

        def translate(self, texts: Any, *, beam: int = 1) -> list[str]:
            return [translation.replace("Hund", "Haus") for translation in super().translate(texts)]

    trial = attack(Fickle(LOGITS, VECTORS), "a red house", MtKeyword(keyword="Hund")).trial
    assert trial.status == "failed"
    assert "asked again" in str(trial.reason)


def test_a_randomised_translator_must_do_it_half_of_the_time() -> None:
    class Random3(TableTranslator):
        def __init__(self) -> None:
            super().__init__({"b": "Hund"}, deterministic=False)
            self.count = itertools.count()

        def translate(self, texts: Any, *, beam: int = 1) -> list[str]:
            lucky = len(texts) > 1 or next(self.count) % 4 == 3
            return super().translate(texts) if lucky else ["nichts"] * len(texts)

    trial = attack(Random3(), "a", MtKeyword(keyword="Hund", exhaustive=True)).trial
    assert trial.status == "failed"


@pytest.mark.parametrize("options", ["words=0", "sample=0", "most=-1", "caution=-1", "keyword=…", "descend=down"])
def test_options_that_cannot_be_are_refused(options: str) -> None:
    with pytest.raises(OptionError):
        make_attack(f"mt-keyword:{options}")
