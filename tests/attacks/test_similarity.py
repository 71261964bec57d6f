"""Scales, windows and references of sentence similarity."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.attacks.similarity import Scale, Similarity, from_cosine, to_cosine, window_bounds
from stockade.core.text import Text
from stockade.engine.language import EmbeddingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from tests.toys import BagEncoder, WeightVictim


@pytest.mark.parametrize(
    ("scale", "value", "cosine", "angular", "tf"),
    [
        ("tf", 0.8, 0.98007, 0.936338, 0.8),
        ("tf", 0.7, 0.9553, 0.9045, 0.7),
        ("tf", 0.5, 0.8776, 0.8408, 0.5),
        ("tf", 0.1, 0.6216, 0.7135, 0.1),
        ("tf", 0.0, 0.5403, 0.6817, 0.0),
        ("cosine", 0.8, 0.8, 0.7952, 0.3565),
        ("cosine", 0.936338, 0.9363, 0.8858, 0.6413),
    ],
)
def test_the_same_threshold_on_three_scales(
    scale: Scale, value: float, cosine: float, angular: float, tf: float
) -> None:
    found = to_cosine(value, scale)
    assert found == pytest.approx(cosine, abs=6e-5)
    assert from_cosine(found, "angular") == pytest.approx(angular, abs=6e-5)
    assert from_cosine(found, "tf") == pytest.approx(tf, abs=6e-5)


@given(st.floats(-1.001, 1.001), st.sampled_from(["cosine", "angular", "tf"]))
def test_rounding_past_one_is_never_nan_and_scales_are_inverse(cosine: float, scale: Scale) -> None:
    value = from_cosine(cosine, scale)
    assert not math.isnan(value)
    assert to_cosine(value, scale) == pytest.approx(max(-1, min(1, cosine)), abs=1e-6)


@pytest.mark.parametrize(("index", "bounds"), [(0, (0, 15)), (7, (0, 15)), (12, (5, 20)), (13, (5, 20)), (19, (5, 20))])
def test_the_window_around_an_edited_word(index: int, bounds: tuple[int, int]) -> None:
    assert window_bounds(20, index, 15) == bounds


def test_a_text_shorter_than_the_window_is_compared_whole_or_not_at_all() -> None:
    assert window_bounds(10, 3, 15) == (0, 10)
    assert Similarity("tf", 0.8, 15, short=0.1).limit(10) == pytest.approx(to_cosine(0.1, "tf"))
    assert Similarity("cosine", 0.9, 15).limit(10) is None
    assert Similarity("cosine", 0.9, 15).limit(15) == 0.9


def keep(similarity: Similarity, candidates: list[Text], before: Text, index: int, encoder: BagEncoder) -> list[Text]:
    async def search() -> list[Text]:
        return await similarity.keep(candidates, before, index)

    scheduler = Scheduler.for_classifier(ScoringService(WeightVictim({})), embedding=EmbeddingService(lambda: encoder))
    (finished,) = scheduler.run([Search(search)])
    assert isinstance(finished.result, list)
    return finished.result


def test_one_changed_word_of_n_leaves_a_cosine_of_n_minus_one_over_n() -> None:
    text = Text.parse("one two three four")
    changed = text.replace(1, "other")
    assert keep(Similarity("cosine", 0.74), [changed], text, 1, BagEncoder()) == [changed]
    assert keep(Similarity("cosine", 0.76), [changed], text, 1, BagEncoder()) == []


def test_the_original_sees_drift_that_the_previous_text_does_not() -> None:
    text = Text.parse("one two three four")
    before = text.replace(0, "first")
    candidate = before.replace(1, "second")
    strict = 0.7
    assert keep(Similarity("cosine", strict, reference="previous"), [candidate], before, 1, BagEncoder()) == [candidate]
    assert keep(Similarity("cosine", strict, reference="original"), [candidate], before, 1, BagEncoder()) == []


def test_a_window_compares_only_the_words_around_the_edit() -> None:
    words = [f"w{i}" for i in range(20)]
    text = Text.parse(" ".join(words))
    encoder = BagEncoder()
    keep(Similarity("cosine", 0.5, window=15), [text.replace(19, "x"), text.insert_before(3, "new")], text, 19, encoder)
    assert encoder.embedded[0] == " ".join(words[5:])
    assert encoder.embedded[1] == " ".join([*words[5:19], "x"])


def test_an_insertion_has_one_word_more_in_its_window() -> None:
    words = [f"w{i}" for i in range(20)]
    text = Text.parse(" ".join(words))
    encoder = BagEncoder()
    keep(Similarity("cosine", 0.5, window=15), [text.insert_before(10, "new")], text, 10, encoder)
    assert encoder.embedded[0] == " ".join(words[3:18])
    assert encoder.embedded[1] == " ".join([*words[3:10], "new", *words[10:18]])
