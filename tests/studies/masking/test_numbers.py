"""The numbers of the study masking against counts by hand, and the published check against all sets there are."""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from stockade.certificates.bounds import masking_losses
from stockade.certificates.methods.ranmask import MaskedCopies
from stockade.core.errors import ModelError, OptionError
from stockade.core.masks import Keep, kept_words, masks_by_number
from stockade.defenses.chain import wrap
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import make_defense
from stockade.report.numbers import Interval
from stockade.studies.masking.analysis import (
    CertificateNumbers,
    MaskingNumbers,
    Medians,
    MethodNumbers,
    RateNumbers,
    VoteNumbers,
    _resampled_divergence,
    check_betas,
    entropy,
    measure_risk,
)
from stockade.studies.masking.beta import (
    SIZES,
    BetaEstimate,
    TextEstimate,
    choose_masks,
    estimate_beta,
    mean_beta,
    word_betas,
)
from stockade.studies.masking.claims import PUBLISHED, check_claims, robust_accuracy
from stockade.studies.masking.page import attack_table
from stockade.studies.masking.texts import RateTexts
from stockade.studies.masking.victims import check_rates, in_ensemble, masking_of
from stockade.studies.records import AttackNumbers
from tests.studies.masking.toys import masked, victim


def every_mask(words: int, kept: int) -> Keep:
    return masks_by_number(np.arange(math.comb(words, kept)), words, kept)


@settings(deadline=None)
@given(some.integers(2, 7), some.data())
def test_over_all_sets_the_mean_of_beta_is_p_whatever_the_classifier_says(words: int, data: some.DataObject) -> None:
    kept, size = data.draw(some.integers(1, words)), data.draw(some.integers(1, words))
    keep = every_mask(words, kept)
    hits = np.array(data.draw(some.lists(some.booleans(), min_size=len(keep), max_size=len(keep))))
    sets = every_mask(words, size)
    assert mean_beta(keep, hits, sets) == pytest.approx(float(hits.mean()))


def test_beta_of_each_word_by_hand() -> None:
    keep = every_mask(3, 2)  # shows words 0 and 1, 0 and 2, 1 and 2
    assert word_betas(keep, np.array([True, True, False])).tolist() == [1.0, 0.5, 0.5]
    nowhere = word_betas(np.array([[True, False]]), np.array([True]))
    assert nowhere[0] == 1.0
    assert math.isnan(nowhere[1])
    assert mean_beta(np.array([[True, False]]), np.array([True]), np.array([[False, True]])) is None


def test_a_claim_for_one_word_that_fails_with_the_word_that_an_attacker_chooses() -> None:
    """Ten words, four shown; the classifier errs on 26 of the 126 copies that hide the first word, and nowhere else."""
    keep = every_mask(10, 4)
    hits = np.ones(len(keep), dtype=np.bool_)
    hits[np.flatnonzero(~keep[:, 0])[:26]] = False
    estimate = estimate_beta(keep, hits, True, np.random.default_rng(0))
    assert estimate.share == estimate.share_beside == pytest.approx(184 / 210)
    assert (estimate.position, estimate.beta, estimate.touched) == (0, 1.0, 0.4)
    assert estimate.passes(estimate.share_beside)  # 0.876 - 0.876 * 0.4 = 0.526
    assert not estimate.passes(estimate.beta)  # 0.876 - 0.4 = 0.476
    assert estimate.mean_betas[-1] == pytest.approx(184 / 210)  # ten of ten words: every copy meets the set
    check = check_betas([TextEstimate(id="7", words=10, copies=210, complete=True, word="bad", estimate=estimate)])
    assert (check.claims, check.broken_claims) == (1, 1)
    assert check.largest is not None
    assert (check.largest.id, check.largest.word) == ("7", "bad")
    assert check.largest.excess == pytest.approx(26 / 210)
    assert check.divergence["1"] == 0.0  # one text: both lists are scaled to 1


def test_the_word_is_chosen_on_one_half_and_measured_on_the_other() -> None:
    keep = np.array([[True, False], [False, True], [True, False], [False, True], [True, False], [False, True]])
    hits = np.array([True, False, True, False, False, True])
    estimate = estimate_beta(keep, hits, False, np.random.default_rng(0))
    assert estimate.position == 0  # of the first three copies both that show it are hits
    assert estimate.beta == 0.0  # of the last three the one that shows it is not
    assert estimate.share_beside == pytest.approx(1 / 3)
    assert estimate_beta(keep, hits, True, np.random.default_rng(0)).beta == pytest.approx(2 / 3)


def test_all_copies_where_there_are_few_and_a_sample_where_not() -> None:
    copies = MaskedCopies(words=tuple("abcde"), premise=None, kept=2, mask="[MASK]", seed=0)
    keep, complete = choose_masks(copies, 10)
    assert complete
    assert {tuple(np.flatnonzero(row).tolist()) for row in keep} == set(combinations(range(5), 2))
    keep, complete = choose_masks(copies, 9)
    assert not complete
    assert keep.shape == (9, 5)
    assert set(keep.sum(1)) == {2}


def test_what_the_divergence_cannot_see() -> None:
    """Two texts with p of 0.6 and 0.9: the check is blind to a β that is 0.05 too low everywhere."""
    texts = [
        TextEstimate(
            id=str(share),
            words=10,
            copies=100,
            word="x",
            estimate=BetaEstimate(
                share=share,
                mean_betas=(share,) * len(SIZES),
                position=0,
                beta=share + 0.05,
                share_beside=share,
                touched=0.3,
            ),
        )
        for share in (0.6, 0.9)
    ]
    check = check_betas(texts)
    assert set(check.divergence.values()) == {0.0}
    first, second = 0.65 / 1.6, 0.6 / 1.5
    by_hand = 0.0
    for beta, share in ((first, second), (1 - first, 1 - second)):
        middle = (beta + share) / 2
        by_hand += (beta * math.log(beta / middle) + share * math.log(share / middle)) / 2
    assert check.divergence_if_fatal == pytest.approx(by_hand, rel=1e-6)
    assert check.excess["value"] == pytest.approx(0.05)
    assert check.random_excess["value"] == 0.0


def test_texts_without_an_estimate_are_counted() -> None:
    check = check_betas([TextEstimate(id="0", words=0, reason="the text has 0 words")])
    assert (check.texts, check.left_out, check.largest) == (0, 1, None)
    assert set(check.divergence.values()) == {None}


def test_entropy_of_votes() -> None:
    assert entropy((5, 5)) == pytest.approx(math.log(2))
    assert entropy((0, 9)) == 0.0


def test_risk_over_lengths() -> None:
    """At 0.3 seven of ten words are shown, the attacked one with 7/10; of twenty 14, both of two with 14/20 · 13/19."""
    risk = measure_risk([10, 20, 20, 3], 0.3, 1)
    two = 14 / 20 * 13 / 19
    assert risk.mean == pytest.approx((0.7 + 2 * two) / 3, abs=1e-6)
    assert (risk.texts, risk.too_short) == (3, 1)
    assert risk.safe["value"] == pytest.approx(2 / 3)
    assert risk.median_words == 15  # two of them attacked, 15 - round(4.5) = 11 shown
    assert risk.at_median == pytest.approx(11 / 15 * 10 / 14)
    assert risk.lowest_rate == 0.35  # 15 - round(5.25) = 10 shown: 10/15 · 9/14 < 1/2
    nothing = measure_risk([], 0.3, 1)
    assert (nothing.mean, nothing.at_median, nothing.lowest_rate) == (None, None, None)


def test_published_medians_are_possible_once_one_is_taken_off() -> None:
    """Even if every copy votes alike, d words can only change while Δ_d < 1/2. With texts of mean length the printed
    medians break that at low rates; one less never does.
    """
    lengths = {"AG-News": 43, "SST-2": 19}
    impossible = []
    for row in PUBLISHED:
        words = lengths[row.data]
        losses = masking_losses(words, kept_words(words, row.rate))
        if row.median_radius is None:
            continue
        assert row.corrected is not None
        assert losses[row.corrected] < 0.5, row
        if losses[row.median_radius] >= 0.5:
            impossible.append((row.data, row.rate))
    assert {("AG-News", 0.4), ("AG-News", 0.6), ("AG-News", 0.7), ("SST-2", 0.2), ("SST-2", 0.7)} <= set(impossible)
    assert len(PUBLISHED) == 10 + 8


def test_the_model_is_put_into_each_ensemble() -> None:
    model = in_ensemble(masked(victim(), 0.4, ",kept=3"), "vote")
    assert model.defense == RanMask(rate=0.4, copies=10, combine="vote", kept=3)
    bare = victim()
    assert in_ensemble(bare, "none") is bare
    assert in_ensemble("models/m", "vote") == "models/m"


def test_other_defenses_are_refused() -> None:
    with pytest.raises(ModelError, match="The model m stands in deletion, and this study is about ranmask alone"):
        masking_of("m", wrap(victim(), [make_defense("deletion")]))
    nested = wrap(masked(victim(), 0.4), [make_defense("safer")])
    with pytest.raises(ModelError, match="The model m stands in safer, ranmask, and"):
        masking_of("m", nested)
    assert masking_of("m", victim()) is None


def test_rates_must_tell_models_apart() -> None:
    thirty, other = RanMask(rate=0.3), RanMask(rate=0.3, copies=50)
    with pytest.raises(OptionError, match=r"both trained at the mask rate 0\.3, but with other copies of ranmask"):
        check_rates({"a": thirty, "b": other}, True)
    check_rates({"a": thirty, "b": RanMask(rate=0.3)}, True)
    with pytest.raises(OptionError, match=r"a and b both have no ranmask in defense\.json"):
        check_rates({"a": None, "b": None}, True)
    with pytest.raises(OptionError, match=r"No model was trained with ranmask \(found: a, without it"):
        check_rates({"a": None}, True)
    with pytest.raises(OptionError, match="The model a has no ranmask and is only there to be attacked"):
        check_rates({"a": None, "b": thirty}, False)
    check_rates({"a": None, "b": thirty, "c": RanMask(rate=0.5)}, True)


def interval(value: float | None) -> Interval:
    return {"value": value, "low": None, "high": None}


def attacked(robust: float) -> AttackNumbers:
    unused: dict[str, Any] = dict.fromkeys([field.name for field in dataclasses.fields(AttackNumbers)])
    return AttackNumbers(**{**unused, "robust_accuracy": interval(robust), "clean_accuracy": interval(1.0)})


BELOW = {"value": 1e-5, "low": 0.5e-5, "high": 2e-5}
ACROSS = {"value": 1e-5, "low": 0.5e-5, "high": 3e-5}
ABOVE = {"value": 4e-5, "low": 3e-5, "high": 5e-5}


def rate_numbers(
    rate: float, accuracy: float, median: int | None, robust: dict[str, float], divergence: Interval = BELOW
) -> RateNumbers:
    method = MethodNumbers(
        n=1,
        errors=0,
        abstained=0,
        accuracy=interval(accuracy),
        wrong=0,
        curve=(),
        median_radius=median,
        median_rate=None,
        mean_radius=None,
        mean_copies=None,
    )
    check = dataclasses.replace(check_betas([]), largest_sets=divergence)
    certificates = CertificateNumbers(
        texts=1,
        errors=0,
        accuracy=interval(accuracy),
        sound=method,
        claimed=method,
        corrected=Medians(None, None),
        claimed_more=0,
        votes=VoteNumbers(None, None),
    )
    return RateNumbers(
        rate=rate,
        model="m",
        reference="m",
        certificates=certificates,
        check=check,
        risk=measure_risk([], rate, 1),
        attacks={ensemble: {"pwws": attacked(value)} for ensemble, value in robust.items()},
    )


def rate_texts(right: str, radii: str, **robust: str) -> RateTexts:
    """A digit per text."""

    def by_text(digits: str) -> dict[str, int]:
        return {str(text): int(digit) for text, digit in enumerate(digits)}

    return RateTexts(by_text(right), by_text(radii), {name: {"pwws": by_text(kept)} for name, kept in robust.items()})


def test_claims_are_decided_text_by_text() -> None:
    """Six texts that differ all in one direction decide (p = 2 / 2**6)."""
    low = rate_numbers(0.3, 0.9, 1, {"vote": 0.5, "logit": 0.4})
    high = rate_numbers(0.6, 0.8, 2, {"vote": 0.2, "logit": 0.3}, ABOVE)
    texts = [
        rate_texts("1111111", "1111111", vote="1111110", logit="0000000"),
        rate_texts("0000001", "2222221", vote="0000000", logit="1111110"),
    ]
    claims = check_claims([low, high], texts, ["pwws"])
    assert [claim.verdict for claim in claims] == ["held", "held", "not held", "held", "held", "not held"]
    assert claims[0].numbers == "0.3: 90.0 %, 0.6: 80.0 %; against the others by text 0.6: p = 0.031"
    assert claims[1].numbers == "MCB 0.3: 1, 0.6: 2; radii against the next lower rate by text 0.6: p = 0.031"
    assert claims[4].numbers == "50.0 % against 40.0 %; p = 0.031 on 7 texts"
    swapped = check_claims([low, high], texts[::-1], ["pwws"])
    assert [claim.verdict for claim in swapped] == ["not held", "not held", "not held", "not held", "not held", "held"]


def test_ties_and_intervals_across_the_line_decide_nothing() -> None:
    low = rate_numbers(0.3, 0.9, 1, {"vote": 0.5, "logit": 0.4}, ACROSS)
    alike = [dataclasses.replace(low, rate=rate) for rate in (0.2, 0.3)]
    texts = [rate_texts("1111110", "1111111", vote="1111000", logit="1111000")] * 2
    assert {claim.verdict for claim in check_claims(alike, texts, ["pwws"])} == {"undecided"}
    better = rate_texts("1111100", "1111122", vote="1111100", logit="1111000")
    one_text = check_claims(alike, [texts[0], better], ["pwws"])
    assert {claim.verdict for claim in one_text} == {"undecided"}, "larger by a text or two is no verdict"


def test_what_was_not_measured_is_undecided() -> None:
    low = rate_numbers(0.3, 0.9, 1, {"vote": 0.5, "logit": 0.4})
    assert check_claims([low], [RateTexts()], [])[0].verdict == "undecided"
    not_attacked = dataclasses.replace(low, attacks={})
    claims = check_claims([not_attacked, dataclasses.replace(low, rate=0.6)], [RateTexts(), RateTexts()], ["pwws"])
    assert [claim.holds for claim in claims][3:] == [None, None, None]


def test_the_interval_of_a_divergence_is_that_of_other_texts() -> None:
    interval = _resampled_divergence([0.5, 0.6, 0.7, 0.8, 0.9, 0.4], [0.51, 0.62, 0.68, 0.79, 0.93, 0.4])
    value, low, high = (interval[part] for part in ("value", "low", "high"))
    assert value is not None
    assert low is not None
    assert high is not None
    assert 0 <= low < value < high
    assert interval == _resampled_divergence([0.5, 0.6, 0.7, 0.8, 0.9, 0.4], [0.51, 0.62, 0.68, 0.79, 0.93, 0.4])
    assert _resampled_divergence([], []) == {"value": None, "low": None, "high": None}


def test_the_published_rule_decides_and_the_other_stands_beside() -> None:
    """The paper counts the first flip: by that, vote leaves 20 %, and 50 % by what repeats."""
    entry = rate_numbers(0.3, 0.9, 1, {"vote": 0.5, "logit": 0.4})
    flipped = {
        ensemble: {
            "pwws": dataclasses.replace(
                cells["pwws"], clean_accuracy=interval(0.9), first_flip_robust_accuracy=interval(0.2)
            )
        }
        for ensemble, cells in entry.attacks.items()
    }
    entry = dataclasses.replace(entry, attacks=flipped)
    assert robust_accuracy(entry, "vote", "pwws") == 0.2
    assert robust_accuracy(entry, "vote", "pwws", published=False) == 0.5
    texts = [rate_texts("1111111", "1111111", vote="1111110", logit="0000000")]
    claims = check_claims([entry], texts, ["pwws"])
    assert claims[-1].numbers.startswith("20.0 % against 20.0 % (repeatable 50.0 % against 40.0 %); ")
    assert claims[-2].numbers.startswith("0.3: 20.0 % (repeatable 0.3: 40.0 %)")
    table = attack_table(MaskingNumbers(rates=(entry,), undefended=None), ["pwws"])
    assert list(table.columns[3:5]) == ["robust, pwws, first flip", "robust, pwws, repeatable"]
    assert [getattr(cell, "text", cell) for cell in table.rows[0][3:5]] == ["20.0 %", "50.0 %"]
