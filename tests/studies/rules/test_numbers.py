"""Tables 5, 9 and 10 from outcomes that a person can count, and what follows for the paper's claims."""

from __future__ import annotations

import pytest

from stockade.core.statistics import mcnemar
from stockade.studies.rules.analysis import FINAL, RulesNumbers, analyse
from stockade.studies.rules.claims import check_claims
from stockade.studies.rules.outcomes import ALL, HELD_OUT, OUTCOMES, Outcomes, TargetOutcomes, outcomes_of
from stockade.studies.rules.published import BY_BUDGET, BY_SIZE, CHANGED, FAMILIES, SUCCESS
from tests.records import record
from tests.studies.made_studies import failure, skipped, success

IDS = ("a", "b", "c", "d")
TEN = (10, 10, 10, 10)


def target(name: str, **edits: tuple[int, ...]) -> TargetOutcomes:
    return TargetOutcomes(name, IDS, TEN, {key.replace("_", "-"): values for key, values in edits.items()})


def two_targets() -> Outcomes:
    return Outcomes(
        [
            target("LSTM-W-Random-1", uawr_1=(1, 2, 3, 0), pmi=(1, 0, 0, 0), random=(0, 0, 0, 0)),
            target("MiniLM-L6", uawr_1=(3, 0, -1, 0), pmi=(0, 0, -1, 0), random=(0, 1, -1, 0)),
        ],
        ["LSTM-W-Random-1"],
    )


def numbers_of(outcomes: Outcomes, main: str = "uawr-1") -> RulesNumbers:
    return analyse(
        outcomes,
        main=main,
        by_size={1: "uawr-1"},
        baselines=["pmi", "random"],
        rule_sets={"uawr-1": 5, "pmi": 3, "random": 0},
        budgets=(0.1, 0.2, 0.3),
    )


def test_success_is_the_mean_over_targets_of_what_they_get_right_and_are_fooled_on() -> None:
    numbers = numbers_of(two_targets())
    families = numbers.families["uawr-1"]
    assert families[ALL].success["value"] == pytest.approx((3 / 4 + 1 / 3) / 2, abs=1e-6)
    assert families["Word"].success["value"] == 0.75
    assert families["BERT"].success["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert families[HELD_OUT].targets == 1
    assert "ELMo" not in families
    assert numbers.targets["MiniLM-L6"].attacked == 3
    assert numbers.targets["MiniLM-L6"].held_out
    assert numbers.targets["LSTM-W-Random-1"].success["pmi"] == 0.25


def test_changed_words_are_those_of_successes() -> None:
    families = numbers_of(two_targets()).families["uawr-1"]
    assert families["Word"].changed == pytest.approx(20.0)
    assert families["BERT"].changed == pytest.approx(30.0)
    assert families[ALL].changed == pytest.approx(25.0)
    assert numbers_of(two_targets()).families["random"]["Word"].changed is None


def test_a_budget_counts_the_texts_that_are_fooled_within_it() -> None:
    budgets = numbers_of(two_targets()).budgets
    word = two_targets()
    assert [word.success("uawr-1", "Word", budget)["value"] for budget in (0.05, 0.1, 0.2, 0.3)] == [0, 0.25, 0.5, 0.75]
    assert budgets["0.3"]["uawr-1"]["value"] == pytest.approx((3 / 4 + 1 / 3) / 2, abs=1e-6)
    assert budgets["0.1"]["uawr-1"]["value"] == pytest.approx(1 / 8, abs=1e-6)


def test_rule_sets_are_compared_text_by_text_on_what_both_attacked() -> None:
    outcomes = two_targets()
    held_out = outcomes.compare("uawr-1", "pmi", HELD_OUT)
    assert held_out.only == (1, 0)
    assert held_out.texts == 3
    assert held_out.p == mcnemar(1, 0)
    every = outcomes.compare("uawr-1", "pmi", ALL)
    assert every.only == (3, 0)
    assert list(every.success) == pytest.approx([(3 / 4 + 1 / 3) / 2, 1 / 8], abs=1e-6)
    # By text the balance is 1 (a: one model of two), 1 (b), 1 (c), 0: three signs that could all be the other.
    assert every.p == 0.25
    # Text a is 1 ahead and text b 1 behind: nobody is.
    assert outcomes.compare("uawr-1", "random", HELD_OUT).p == 1.0


def test_a_text_is_universal_if_every_model_is_right_before_and_wrong_after_the_last_replacement() -> None:
    key = "uawr-1" + FINAL
    outcomes = Outcomes(
        [
            TargetOutcomes("x", IDS, TEN, {"uawr-1": (1, 1, 1, 1), key: (2, 2, 0, 2)}),
            TargetOutcomes("y", IDS, TEN, {"uawr-1": (1, 1, 1, 1), key: (2, -1, 2, 2)}),
        ],
        [],
    )
    assert numbers_of(outcomes).universal == ("a", "d")


def test_texts_that_not_all_targets_have_are_left_out() -> None:
    first = TargetOutcomes("x", ("a", "b"), (4, 6), {"pmi": (1, 1)})
    second = TargetOutcomes("y", ("b", "c"), (6, 8), {"pmi": (0, 1)})
    outcomes = Outcomes([first, second], [])
    assert outcomes.ids == ("b",)
    assert outcomes.rate("pmi", "y") == 0.0


def test_what_is_kept_of_records() -> None:
    records = [
        success(0, "pmi", ("one", "1"), ("two", "2")),
        failure(1, "pmi"),
        skipped(2, "pmi"),
        record(3, "error", "pmi"),
    ]
    kept = outcomes_of("toy", {"pmi": records})
    assert kept.edits == {"pmi": (2, 0, -1, -1)}
    assert kept.words[:2] == (10, 10)
    assert OUTCOMES.read(OUTCOMES.encode(kept)) == kept


def many(better: int, worse: int, both: int) -> RulesNumbers:
    """One held-out model on which mined rules and PMI rules differ on so many texts."""
    first = (1,) * better + (0,) * worse + (1,) * both
    second = (0,) * better + (1,) * worse + (1,) * both
    ids = tuple(map(str, range(len(first))))
    edits = {"uawr-1": first, "pmi": second, "random": (0,) * len(first)}
    return numbers_of(Outcomes([TargetOutcomes("CNN-W-GloVe-1", ids, (10,) * len(ids), edits)], []))


@pytest.mark.parametrize(
    ("better", "worse", "verdict"), [(20, 2, "held"), (2, 20, "not held"), (3, 2, "undecided"), (2, 2, "undecided")]
)
def test_claims_follow_from_the_test(better: int, worse: int, verdict: str) -> None:
    claims = {claim.claim: claim for claim in check_claims(many(better, worse, 10))}
    claim = claims["mined rules fool models that were not mined with more often than PMI rules do"]
    assert claim.verdict == verdict
    assert f"only the first fools {better}, only the second {worse}" in claim.numbers
    assert claims["models of the BERT family withstand the rules best"].verdict == "undecided"


def test_the_published_tables_fit_each_other() -> None:
    for corpus in ("AG-News", "MR"):
        assert SUCCESS[corpus]["uawr"] == BY_SIZE[corpus][6]
        assert BY_BUDGET[corpus][0.3] == BY_SIZE[corpus][7][0]
        assert all(len(row) == len(FAMILIES) for row in (*SUCCESS[corpus].values(), *CHANGED[corpus].values()))
        rates = list(BY_BUDGET[corpus].values())
        assert rates == sorted(rates)
