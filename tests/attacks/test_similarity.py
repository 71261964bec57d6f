"""Scales, windows and references of sentence similarity, and thresholds calibrated for another encoder."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.attacks.constraints import Similarity
from stockade.attacks.registry import make_attack
from stockade.attacks.similarity import CALIBRATIONS, Scale, calibrated, from_cosine, to_cosine, window_bounds
from stockade.core.errors import OptionError
from stockade.core.text import Text
from stockade.engine.language import EmbeddingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.models.language import DEFAULT_ENCODER
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


def test_a_filter_is_the_same_on_every_scale_and_so_is_its_calibration() -> None:
    cosine = calibrated(DEFAULT_ENCODER, "cosine", math.cos(0.5))
    angular = calibrated(DEFAULT_ENCODER, "angular", 0.840845057)
    tf = calibrated(DEFAULT_ENCODER, "tf", 0.5)
    assert cosine == 0.8161
    assert angular == pytest.approx(1 - math.acos(0.8161) / math.pi)
    assert tf == pytest.approx(1 - math.acos(0.8161))


def test_bae_s_number_is_known_as_textattack_and_as_openattack_write_it() -> None:
    assert calibrated(DEFAULT_ENCODER, "cosine", 0.936338) == calibrated(DEFAULT_ENCODER, "cosine", 0.936) == 0.7882


@pytest.mark.parametrize("reference", ["textfooler", "textfooler@authors", "textfooler@textattack", "bae-r@textattack"])
def test_the_presets_that_use_a_measured_filter_find_it(reference: str) -> None:
    options = make_attack(reference).options
    found = calibrated(DEFAULT_ENCODER, options["scale"], options["threshold"], window=options["window"])
    assert found is not None
    assert found < options["threshold"]


@pytest.mark.parametrize(
    ("encoder", "threshold", "window"),
    [
        ("another-encoder", 0.936338, 15),
        (DEFAULT_ENCODER, 0.936338, None),  # the whole text
        (DEFAULT_ENCODER, 0.936338, 7),
        (DEFAULT_ENCODER, 0.8, 15),
        (DEFAULT_ENCODER, 0.94, 15),
    ],
)
def test_what_was_not_measured_is_not_guessed(encoder: str, threshold: float, window: int | None) -> None:
    assert calibrated(encoder, "cosine", threshold, window=window) is None


def test_a_larger_share_needs_a_lower_threshold() -> None:
    for one in CALIBRATIONS:
        assert one.cosines["99%"] < one.cosines["95%"] < one.cosines["90%"] < to_cosine(one.threshold, one.scale)
        found = [calibrated(one.encoder, one.scale, one.threshold, share=share) or 0 for share in one.cosines]
        assert [to_cosine(value, one.scale) for value in found] == pytest.approx(list(one.cosines.values()))
    with pytest.raises(OptionError, match='no share of published edits "80%"'):
        calibrated(DEFAULT_ENCODER, "cosine", 0.936338, share="80%")


def test_the_preset_of_textfooler_is_the_calibrated_threshold() -> None:
    attack = make_attack("textfooler@calibrated").options
    expected = calibrated(DEFAULT_ENCODER, attack["scale"], make_attack("textfooler").options["threshold"])
    assert attack["threshold"] == pytest.approx(expected, abs=5e-5)
