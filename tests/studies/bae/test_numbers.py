"""Every number of the study on results that a person can count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stockade.core.statistics import wilson
from stockade.experiment.store import Effort, ResultStore
from stockade.lexicon.wordnet import load_wordnet
from stockade.studies.bae.analysis import (
    Share,
    analyse,
    are_antonyms,
    measure_antonyms,
    measure_fluency,
    measure_splits,
    pair_similarities,
    split_texts,
    texts_to_measure,
)
from stockade.studies.bae.claims import check_claims
from stockade.studies.bae.study import PERPLEXITIES, measure_perplexities
from stockade.studies.claims import Claim, claims_in_short
from stockade.studies.records import AttackNumbers, Results, bootstrap_mean
from stockade.workflows.attack.summary import summarise_attack
from tests.records import record
from tests.studies.made_studies import TEN_WORDS, failure, make_bae, skipped, success

CHANGE = ("one", "x")


def results_of(**outcomes: str) -> Results:
    """One letter per text: s succeeds, f fails, k is skipped, e is an error."""
    names = {"r": "bae-r", "i": "bae-i", "either": "bae-r/i", "both": "bae-r+i", "tf": "textfooler"}
    makers: dict[str, Any] = {
        "s": lambda at, name: success(at, name, CHANGE),
        "f": failure,
        "k": skipped,
        "e": lambda at, name: record(at, "error", name),
    }
    return {
        names[short]: {str(at): makers[letter](at, names[short]) for at, letter in enumerate(letters)}
        for short, letters in outcomes.items()
    }


def claims_of(results: Results) -> Sequence[Claim]:
    numbers = {
        name: AttackNumbers.of(summarise_attack(records.values(), Effort())) for name, records in results.items()
    }
    return check_claims(results, analyse(results, numbers, "toy", None))


def test_the_splits_of_table_5() -> None:
    #                    0 none, 1 all, 2 A, 3 B, 4 A+B+C, 5 R/I fails alone, 6 skipped, 7 error in one
    results = results_of(r="fsfsffks", i="fssffske", either="fssssfks")
    assert split_texts(results) == {"A": ["2", "4"], "B": ["3", "4"], "C": ["4"]}
    table = measure_splits(results)
    assert table.attacked == 6
    assert table.splits["A"] == Share(2, wilson(2, 6))
    assert table.splits["C"] == Share(1, wilson(1, 6))
    assert table.tested == 7, "the skipped text is a test instance, the one that ended in an error is not"
    assert table.of_tested["A"] == Share(2, wilson(2, 7))
    assert list(table.of_tested) == ["A", "B", "C"]


def test_attacks_are_compared_by_an_exact_test_of_the_texts_that_only_one_fools() -> None:
    """Six texts that only one attack fools decide (p = 2 / 2**6); five do not (p = 2 / 2**5), nor do ties."""
    claims = claims_of(results_of(r="ssssssff", i="ffffffff", either="sssssfff", both="ssssssff", tf="ffffffff"))
    strength = {claim.claim: (claim.verdict, claim.numbers) for claim in claims[:7]}
    assert strength["bae-r is stronger than textfooler"] == (
        "held",
        "6 against 0 of 8 texts; 6 fooled only by bae-r, 0 only by textfooler; McNemar p = 0.031",
    )
    assert strength["bae-r/i is stronger than textfooler"][0] == "undecided"
    assert strength["bae-r+i succeeds at least as often as bae-r/i"] == (
        "undecided",
        "6 against 5 of 8 texts; 1 fooled only by bae-r+i, 0 only by bae-r/i; McNemar p = 1.000",
    )
    assert strength["bae-r/i succeeds at least as often as bae-i"] == (
        "undecided",
        "5 against 0 of 8 texts; 5 fooled only by bae-r/i, 0 only by bae-i; McNemar p = 0.062",
    )
    decided = claims_of(results_of(r="ffffffff", i="ssssssff", either="ffffffff", both="ssssssff", tf="ffffffff"))
    assert [claim.verdict for claim in decided][:4] == ["undecided", "held", "undecided", "held"], "against TextFooler"
    assert [claim.verdict for claim in decided][4:] == ["held", "undecided", "not held", *["undecided"] * 7]
    assert claims_in_short(decided) == "Of the paper's 14 claims, 3 held, 1 not held, 10 undecided here."


def test_a_tie_is_undecided_whatever_is_compared() -> None:
    alike = claims_of(results_of(**dict.fromkeys(("r", "i", "either", "both", "tf"), "ssssssssff")))
    assert {claim.verdict for claim in alike} == {"undecided"}


def test_similarities_decide_by_flipping_the_signs_of_their_differences() -> None:
    def claim(texts: int) -> Claim:
        results = results_of(**dict.fromkeys(("r", "i", "either", "both", "tf"), "s" * texts))
        higher = {text: replace(record, similarity=0.95) for text, record in results["bae-i"].items()}
        return claims_of({**results, "bae-i": higher})[7]

    assert claim(5).verdict == "undecided"
    assert claim(6).verdict == "held"
    assert "bae-i 0.950" in claim(6).numbers
    assert "against bae-r p = 0.031 on 6 texts" in claim(6).numbers


def test_splits_are_compared_by_the_texts_that_are_in_one_of_them() -> None:
    claims = claims_of(results_of(r="ffffffs", i="sssssss", either="sssssss", both="sssssss", tf="sssssss"))
    assert claims[-1].verdict == "held"
    assert claims[-1].numbers == "A 6, B 0 of 7 texts, 0 in both; McNemar p = 0.031"
    both = claims_of(results_of(r="fffffff", i="fffffff", either="sssssss", both="sssssss", tf="sssssss"))
    assert both[-1].verdict == "undecided"


def test_similarities_are_compared_on_the_texts_that_both_fool() -> None:
    results: Results = {
        "bae-r": {str(at): success(at, "bae-r", CHANGE, similarity=value) for at, value in enumerate((0.9, 0.8, 0.1))},
        "textfooler": {
            "0": success(0, "textfooler", CHANGE, similarity=0.7),
            "1": success(1, "textfooler", CHANGE, similarity=0.8),
            "2": failure(2, "textfooler"),
        },
    }
    paired = pair_similarities(results, "bae-r")
    assert paired.texts == 2
    assert paired.mean_similarity == pytest.approx(0.85)
    assert paired.baseline_mean_similarity == pytest.approx(0.75)
    assert paired.difference["value"] == pytest.approx(0.1)
    assert (paired.difference["low"], paired.difference["high"]) == pytest.approx((0.0, 0.2))


def test_a_bootstrap_interval_is_the_same_every_time_and_one_value_has_none() -> None:
    values = [0.1 * n for n in range(40)]
    interval = bootstrap_mean(values)
    assert interval == bootstrap_mean(values)
    assert interval["value"] == pytest.approx(1.95)
    assert interval["low"] is not None
    assert interval["high"] is not None
    # the standard error of the mean of 0.0 … 3.9 is 1.154 / sqrt(40) = 0.1825
    assert (interval["low"], interval["high"]) == pytest.approx((1.95 - 0.36, 1.95 + 0.36), abs=0.05)
    assert bootstrap_mean([2.0]) == {"value": 2.0, "low": None, "high": None}
    assert bootstrap_mean([]) == {"value": None, "low": None, "high": None}


@pytest.mark.parametrize(
    ("word", "other", "direct", "indirect"),
    [
        ("good", "bad", True, True),
        ("Loved", "hated", True, True),
        ("rises", "fell", True, True),
        ("parched", "wet", False, True),
        ("wet", "parched", False, True),
        ("film", "movie", False, False),
        ("xyzzy", "bad", False, False),
    ],
)
def test_antonyms_in_any_form_and_direction(word: str, other: str, direct: bool, indirect: bool) -> None:
    assert are_antonyms(word, other, load_wordnet()) == direct
    assert are_antonyms(word, other, load_wordnet(), indirect=True) == indirect


def test_the_share_of_successes_with_an_antonym_counts_texts_and_not_insertions() -> None:
    records = [
        success(0, "bae-r", ("good", "bad"), ("love", "hate")),
        success(1, "bae-r", ("parched", "wet")),
        success(2, "bae-r", ("film", "movie"), ("", "bad")),
    ]
    antonyms = measure_antonyms(records)
    assert antonyms.direct == Share(1, wilson(1, 3))
    assert antonyms.with_indirect == Share(2, wilson(2, 3))


def test_fluency_is_the_ratio_of_each_text_to_its_original() -> None:
    records = [success(at, "bae-r", ("one", after)) for at, after in enumerate(("x", "y", "z"))]
    values = {TEN_WORDS: 10.0, f"{TEN_WORDS} x": 20.0, f"{TEN_WORDS} y": 10.0, f"{TEN_WORDS} z": None}
    fluency = measure_fluency(records, values)
    assert fluency.measured == 2
    assert fluency.median_ratio == pytest.approx(1.5)
    assert fluency.mean_ratio["value"] == pytest.approx(1.5)
    assert (fluency.median_original, fluency.median_adversarial) == (10.0, 15.0)
    assert measure_fluency([], {}).median_ratio is None


def test_a_text_is_measured_once_whoever_found_it_and_never_again(tmp_path: Path) -> None:
    measured: list[str] = []

    def lengths(texts: Sequence[str]) -> list[float]:
        measured.extend(texts)
        return [float(len(text)) for text in texts]

    store = ResultStore(tmp_path, writable=True)
    measure_perplexities(store, ["aa", "b", "aa"], lengths)
    measure_perplexities(store, ["b", "cccc", "\ud800"], lengths)
    assert measured == ["b", "aa", "\ud800", "cccc"]
    assert sorted(document["value"] for document in store.documents(PERPLEXITIES)) == [1.0, 1.0, 2.0, 4.0]
    results = results_of(r="ss", i="sf", either="kk", both="ff", tf="ff")
    assert texts_to_measure(results) == [TEN_WORDS, f"{TEN_WORDS} x"]


def test_a_whole_study_follows_from_its_rows(tmp_path: Path) -> None:
    records = {
        "bae-r": [success(0, "bae-r", ("good", "bad"), similarity=0.8), failure(1, "bae-r"), skipped(2, "bae-r")],
        "bae-i": [success(0, "bae-i", ("", "x"), similarity=0.95), failure(1, "bae-i"), skipped(2, "bae-i")],
        "bae-r/i": [
            success(0, "bae-r/i", ("", "x"), similarity=0.9),
            success(1, "bae-r/i", CHANGE, ("", "y"), similarity=0.9),
            skipped(2, "bae-r/i"),
        ],
        "bae-r+i": [
            success(0, "bae-r+i", CHANGE, similarity=0.85),
            success(1, "bae-r+i", CHANGE, ("", "y"), similarity=0.85),
            skipped(2, "bae-r+i"),
        ],
        "textfooler": [
            success(0, "textfooler", CHANGE, ("two", "y"), ("three", "z"), similarity=0.5),
            failure(1, "textfooler"),
            skipped(2, "textfooler"),
        ],
    }
    result = make_bae(
        tmp_path / "a", records, measure=lambda texts: [10.0 if text == TEN_WORDS else 15.0 for text in texts]
    )
    numbers = result.numbers
    main = numbers.attacks["bae-r/i"]
    assert (main.n, main.attacked, main.succeeded) == (3, 2, 2)
    assert main.clean_accuracy["value"] == pytest.approx(2 / 3)
    assert main.robust_accuracy["value"] == 0.0
    assert (main.mean_similarity, main.mean_perturbed_percent, main.mean_queries) == (0.9, 15.0, 10.0)
    assert numbers.splits.splits["C"].count == 1
    caps = numbers.curve.caps
    curve = [point["value"] for point in numbers.curve.attacks["bae-r/i"]]
    assert [curve[caps.index(cap)] for cap in (0.0, 0.1, 0.2, 1.0)] == pytest.approx([2 / 3, 1 / 3, 0.0, 0.0])
    assert numbers.antonyms["bae-r"].direct.count == 1
    assert numbers.fluency is not None
    assert numbers.fluency.attacks["bae-r"].median_ratio == 1.5
    assert (result.summary["encoder"], result.summary["similarity_scale"]) == ("toy", "cosine, toy")
    # A and B are both the one text that needed both, so A is not larger
    assert {claim.verdict for claim in result.claims} == {"undecided"}, "two texts decide nothing"
    assert result.complete
