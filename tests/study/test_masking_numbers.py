"""The numbers of the study masking against counts by hand, and the published check against all sets there are."""

from __future__ import annotations

import math
from itertools import combinations

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
from stockade.jobs import ModelOptions
from stockade.studies.masking.changed_sets import SIZES, Look, look, mean_beta, word_betas
from stockade.studies.masking.looking import chosen_masks
from stockade.studies.masking.measures import check_numbers, entropy, risk_numbers
from stockade.studies.masking.orders import check_orders
from stockade.studies.masking.published import ROWS
from stockade.studies.masking.victims import check_rates, in_ensemble, masking_of, reference_of_masking
from tests.study.masking_toys import masked, victim


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
    seen = look(keep, hits, True, np.random.default_rng(0))
    assert (seen.share, seen.beside) == (pytest.approx(184 / 210), pytest.approx(184 / 210))
    assert (seen.word, seen.beta, seen.touched) == (0, 1.0, 0.4)
    assert seen.passes(seen.beside)  # 0.876 - 0.876 * 0.4 = 0.526
    assert not seen.passes(seen.beta)  # 0.876 - 0.4 = 0.476
    assert seen.betas[-1] == pytest.approx(184 / 210)  # ten of ten words: every copy meets the set
    found = check_numbers([{"id": "7", "complete": True, "written": "bad", **seen.described()}])
    assert (found["claims"], found["broken_claims"]) == (1, 1)
    assert found["largest"] == {"id": "7", "word": "bad", "excess": pytest.approx(26 / 210)}
    assert found["divergence"]["1"] == 0.0  # one text: both lists are scaled to 1


def test_the_word_is_chosen_on_one_half_and_measured_on_the_other() -> None:
    keep = np.array([[True, False], [False, True], [True, False], [False, True], [True, False], [False, True]])
    hits = np.array([True, False, True, False, False, True])
    seen = look(keep, hits, False, np.random.default_rng(0))
    assert seen.word == 0  # of the first three copies both that show it are hits
    assert seen.beta == 0.0  # of the last three the one that shows it is not
    assert seen.beside == pytest.approx(1 / 3)
    assert look(keep, hits, True, np.random.default_rng(0)).beta == pytest.approx(2 / 3)


def test_all_copies_where_there_are_few_and_a_sample_where_not() -> None:
    copies = MaskedCopies(words=tuple("abcde"), premise=None, kept=2, mask="[MASK]", seed=0)
    keep, complete = chosen_masks(copies, 10)
    assert complete
    assert {tuple(np.flatnonzero(row)) for row in keep} == set(combinations(range(5), 2))
    keep, complete = chosen_masks(copies, 9)
    assert not complete
    assert keep.shape == (9, 5)
    assert set(keep.sum(1)) == {2}


def test_what_the_divergence_cannot_see() -> None:
    """Two texts with p of 0.6 and 0.9: the check is blind to a β that is 0.05 too low everywhere."""
    seen = [Look(p, (p,) * len(SIZES), 0, p + 0.05, p, 0.3).described() for p in (0.6, 0.9)]
    found = check_numbers([{"id": str(at), "complete": True, "written": "x", **one} for at, one in enumerate(seen)])
    assert set(found["divergence"].values()) == {0.0}
    first, second = 0.65 / 1.6, 0.6 / 1.5
    by_hand = 0.0
    for beta, share in ((first, second), (1 - first, 1 - second)):
        middle = (beta + share) / 2
        by_hand += (beta * math.log(beta / middle) + share * math.log(share / middle)) / 2
    assert found["divergence_if_fatal"] == pytest.approx(by_hand, rel=1e-6)
    assert found["excess"]["value"] == pytest.approx(0.05)
    assert found["random_excess"]["value"] == 0.0


def test_texts_that_could_not_be_seen_are_counted() -> None:
    found = check_numbers([{"id": "0", "reason": "the text has 0 words"}])
    assert (found["texts"], found["left_out"], found["largest"]) == (0, 1, None)
    assert set(found["divergence"].values()) == {None}


def test_entropy_of_votes() -> None:
    assert entropy((5, 5)) == pytest.approx(math.log(2))
    assert entropy((0, 9)) == 0.0


def test_risk_over_lengths() -> None:
    """At 0.3 seven of ten words are shown, the attacked one with 7/10; of twenty 14, both of two with 14/20 · 13/19."""
    found = risk_numbers([10, 20, 20, 3], 0.3, 1)
    two = 14 / 20 * 13 / 19
    assert found["mean"] == pytest.approx((0.7 + 2 * two) / 3, abs=1e-6)
    assert (found["texts"], found["too_short"]) == (3, 1)
    assert found["safe"]["value"] == pytest.approx(2 / 3)
    assert found["at_median"] is not None
    assert found["median_words"] == 15
    nothing = risk_numbers([], 0.3, 1)
    assert (nothing["mean"], nothing["at_median"], nothing["lowest_rate"]) == (None, None, None)


def test_published_medians_are_possible_once_one_is_taken_off() -> None:
    """Even if every copy votes alike, d words can only change while Δ_d < 1/2. With texts of mean length the printed
    medians break that at low rates; one less never does.
    """
    lengths = {"AG-News": 43, "SST-2": 19}
    impossible = []
    for row in ROWS:
        words = lengths[row.data]
        losses = masking_losses(words, kept_words(words, row.rate))
        if row.median_radius is None:
            continue
        assert row.corrected is not None
        assert losses[row.corrected] < 0.5, row
        if losses[row.median_radius] >= 0.5:
            impossible.append((row.data, row.rate))
    assert {("AG-News", 0.4), ("AG-News", 0.6), ("AG-News", 0.7), ("SST-2", 0.2), ("SST-2", 0.7)} <= set(impossible)
    assert len(ROWS) == 10 + 8


@pytest.mark.parametrize("written", ["rate=0.4", "rate=0.25,kept=2,copies=7", "rate=0.9,draws=fixed,mask=<mask>"])
def test_a_masking_is_written_as_it_is_read(written: str) -> None:
    masking = make_defense(f"ranmask:{written}").defense
    assert make_defense(reference_of_masking(masking)).defense == masking


def test_the_model_is_put_into_each_ensemble() -> None:
    given_model = masked(victim(), 0.4, ",kept=3")
    model, options = in_ensemble("m", given_model, "vote", ModelOptions())
    assert model.defense == RanMask(rate=0.4, copies=10, combine="vote", kept=3)  # type: ignore[attr-defined]
    assert options.defenses == ()
    bare = victim()
    assert in_ensemble("m", bare, "none", ModelOptions())[0] is bare


def test_other_defenses_are_refused() -> None:
    with pytest.raises(ModelError, match="The model m stands in deletion, and this study is about ranmask alone"):
        masking_of("m", wrap(victim(), [make_defense("deletion")]))
    nested = wrap(masked(victim(), 0.4), [make_defense("safer")])
    with pytest.raises(ModelError, match="The model m stands in safer, ranmask, and"):
        masking_of("m", nested)
    assert masking_of("m", victim()) is None


def test_rates_must_tell_models_apart() -> None:
    one, other = RanMask(rate=0.3), RanMask(rate=0.3, copies=50)
    with pytest.raises(OptionError, match=r"a and b were both trained at the mask rate 0\.3: give one model for each"):
        check_rates({"a": one, "b": other}, True)
    with pytest.raises(OptionError, match=r"a and b both have no ranmask in defense\.json"):
        check_rates({"a": None, "b": None}, True)
    with pytest.raises(OptionError, match=r"No model was trained with ranmask \(found: a, without it"):
        check_rates({"a": None}, True)
    with pytest.raises(OptionError, match="The model a has no ranmask and is only there to be attacked"):
        check_rates({"a": None, "b": one}, False)
    check_rates({"a": None, "b": one, "c": RanMask(rate=0.5)}, True)


def _rate(rate: float, accuracy: float | None, median: int | None, robust: dict[str, float]) -> dict[str, object]:
    return {
        "rate": rate,
        "certificates": {"accuracy": {"value": accuracy}, "sound": {"median_radius": median}},
        "check": {"divergence": {"10": 1e-5 if rate < 0.5 else 3e-5}},
        "attacks": {name: {"pwws": {"robust_accuracy": {"value": value}}} for name, value in robust.items()},
    }


def test_orders_of_the_paper() -> None:
    low, high = (
        _rate(0.3, 0.9, 1, {"vote": 0.5, "logit": 0.4}),
        _rate(0.6, 0.8, None, {"vote": 0.2, "logit": 0.3}),
    )
    undefended = {"rate": 0.0, "certificates": None, "check": None, "attacks": {"none": {}}}
    found = {order.claim: order.holds for order in check_orders([undefended, low, high], ["pwws"])}
    assert list(found.values()) == [True, False, False, False, True, False]
    assert check_orders([low], [])[0].holds is None
    turned = check_orders([{**low, "rate": 0.2}, {**low, "rate": 0.3}], ["pwws"])
    assert [order.holds for order in turned] == [True, True, True, True, True, True]
