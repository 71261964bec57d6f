"""The curve from one run without a cap is the curve of real searches under caps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from stockade.attacks.bae import BAE, Mode
from stockade.attacks.textfooler import TextFooler
from stockade.core.example import Example
from stockade.core.records import Record
from stockade.core.text import Text
from stockade.studies.bae.analysis import CAPS, accuracy_curve, fooled_within
from stockade.workflows.attack.searches import make_record
from tests.attacks.driving import attack
from tests.records import record
from tests.studies.made_studies import failure, skipped, success
from tests.toys import BagEncoder, ListMaskedLM, WeightVictim

ODD_CAPS = (0.07, 0.29, 1 / 3, 0.57, 0.58, 2.0)
VOCABULARY = [f"{a}{b}" for a in "bcdfglmnprst" for b in ("ar", "en", "il", "om", "ut")]
TEXTS = 24


@dataclass(frozen=True)
class Near:
    word: str
    cosine: float = 0.9


@dataclass(frozen=True)
class World:
    """A victim that needs several words, a masked LM and neighbours that offer weak and strong ones, all drawn from a
    seed.
    """

    victim: WeightVictim
    masked_lm: ListMaskedLM
    near: dict[str, tuple[Near, ...]]
    text: str

    @classmethod
    def draw(cls, seed: int) -> World:
        rng = Random(seed)
        weights = {word: rng.uniform(-0.5, 0.7) for word in VOCABULARY}
        text = rng.choices(VOCABULARY, k=rng.randint(1, 11))
        bias = rng.uniform(0.5, 2.0) - sum(weights[word] for word in text)
        offered = {word: rng.sample(VOCABULARY, 3) for word in ["", *VOCABULARY]}
        near = {word: tuple(map(Near, rng.sample(VOCABULARY, 3))) for word in VOCABULARY}
        return cls(WeightVictim(weights, bias), ListMaskedLM(offered), near, " ".join(text))

    def neighbours(self, word: str, *, count: int = 50, min_cosine: float | None = None) -> tuple[Near, ...]:
        return tuple(near for near in self.near.get(word, ()) if near.word != word)[:count]

    def record(self, search: Any) -> Record:
        searched = attack(self.victim, self.text, search, masked_lm=self.masked_lm, encoder=BagEncoder())
        example = Example("0", Text.parse(self.text), 1)
        return make_record("toy", example, searched.trial, self.victim.labels, searched.queries, searched.rows)


def bae(mode: Mode) -> Callable[[], Any]:
    return lambda: BAE(mode=mode, threshold=-1.0, same_pos=False)


ANYTHING: dict[str, Any] = {"scale": "cosine", "threshold": -1.0, "same_pos": False, "stop_words": "none"}
SEARCHES: dict[str, Callable[[], Any]] = {
    "bae-r": bae("R"),
    "bae-i": bae("I"),
    "bae-r/i": bae("R/I"),
    "bae-r+i": bae("R+I"),
    "textfooler": lambda: TextFooler(**ANYTHING),
    "textfooler@authors": lambda: TextFooler(**ANYTHING, accept="beats-original"),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_the_derived_curve_is_that_of_real_runs_under_caps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    search, caps = SEARCHES[name](), (*CAPS, *ODD_CAPS)
    free, real = [], [[] for _ in caps]  # type: ignore[var-annotated]
    for seed in range(TEXTS):
        world = World.draw(seed)
        monkeypatch.setattr("stockade.attacks.textfooler.load_neighbours", lambda world=world: world)
        uncapped = world.record(search)
        free.append(uncapped)
        for under, cap, derived in zip(real, caps, fooled_within(uncapped, caps), strict=True):
            capped = world.record(replace(search, max_changed=cap))
            assert (capped.status == "success") == derived, (seed, cap)
            if derived:
                assert capped.adversarial == uncapped.adversarial
            under.append(capped)
    assert list(accuracy_curve(free, caps)) == [accuracy_curve(under, [99.0])[0] for under in real]
    edits = {len(entry.edits) for entry in free if entry.status == "success"}
    assert len(edits) >= 3, "the toys must need several edits for the comparison to say anything"
    assert any(entry.status == "failed" for entry in free)


def test_a_success_counts_from_the_first_cap_that_allows_its_edits() -> None:
    two_edits = success(0, "bae-r", ("one", "x"), ("two", "y"))
    assert fooled_within(two_edits, [0.0, 0.1, 0.19, 0.2, 0.5]) == [False, False, False, True, True]
    assert fooled_within(failure(0, "bae-r"), [0.0, 1.0]) == [False, False]


def test_no_cap_loses_an_edit_to_the_rounding_of_floats() -> None:
    """70 % of 90 words are 63 edits; the product of the floats is below that."""
    words = " ".join(["one"] * 90)
    long = success(0, "bae-r", *[("one", "x")] * 63, original=words)
    assert fooled_within(long, [0.69, 0.7]) == [False, True]


def test_accuracy_is_over_all_texts_without_errors() -> None:
    records = [
        success(0, "a", ("one", "x")),
        success(1, "a", ("one", "x"), ("two", "y")),
        failure(2, "a"),
        skipped(3, "a"),
        record(4, "error", "a"),
    ]
    assert [share["value"] for share in accuracy_curve(records, [0.0, 0.1, 0.2])] == [3 / 4, 2 / 4, 1 / 4]
    assert [share["value"] for share in accuracy_curve([], [0.0, 0.1])] == [None, None]
