"""Calibrated thresholds: the right entry, on the scale that was asked for, and nothing where nothing was measured."""

from __future__ import annotations

import math

import pytest

from stockade.attacks.calibration import CALIBRATIONS, calibrated
from stockade.attacks.registry import make_attack
from stockade.attacks.similarity import to_cosine
from stockade.core.errors import OptionError
from stockade.models.language import DEFAULT_ENCODER


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
