"""What the BAE paper claims about its attacks, held against a run: reported, never enforced.

The paper had other victims, data, masked LM and sentence encoder, and says "almost always" itself: a claim that is
not held here is a finding, not a fault. Attacks are compared on the texts that both have attacked, similarities on
those that both fool, by exact tests of the pairs.
"""

from __future__ import annotations

from stockade.report.numbers import count, number, p_value
from stockade.studies.bae.analysis import BASELINE, BOTH, EITHER, INSERT, MODES, REPLACE, BaeNumbers, Splits
from stockade.studies.bae.rating_sheet import METHODS
from stockade.studies.bae.ratings import Ratings, text_scores
from stockade.studies.claims import Claim, PairedTest, all_of, at_least_as_strong
from stockade.studies.records import Results, succeeded


def check_claims(results: Results, numbers: BaeNumbers, ratings: Ratings | None = None) -> tuple[Claim, ...]:
    """Every claim of the paper about the order of its numbers.

    Parameters
    ----------
    results
        What the attacks did.
    numbers
        What was measured of that.
    ratings
        What human raters said, if anybody has: without them there are no claims about Table 4.
    """
    similarities = {mode: numbers.attacks[mode].mean_similarity for mode in MODES}
    return (
        *(stronger_than_baseline(results, mode) for mode in MODES),
        at_least_as_strong(results, BOTH, EITHER),
        at_least_as_strong(results, EITHER, REPLACE),
        at_least_as_strong(results, EITHER, INSERT),
        _inserting_is_most_similar(results, similarities),
        _more_similar(results, BOTH, REPLACE),
        *(_more_similar(results, mode, BASELINE) for mode in MODES),
        _insertions_matter_more(numbers.splits),
        *([] if ratings is None else rating_claims(ratings)),
    )


def stronger_than_baseline(results: Results, mode: str) -> Claim:
    """The paper's main claim, for one mode: it succeeds more often than TextFooler on the texts both have attacked."""
    return at_least_as_strong(results, mode, BASELINE, f"{mode} is stronger than {BASELINE}")


def rating_claims(ratings: Ratings) -> list[Claim]:
    """What the paper says of its Table 4: both attacks of BAE look better to people than TextFooler, and R than R+I.

    Parameters
    ----------
    ratings
        What human raters said.
    """
    scores = {method: text_scores(ratings, method) for method in METHODS}
    claims = []
    for first, second in ((REPLACE, BASELINE), (BOTH, BASELINE), (REPLACE, BOTH)):
        shared = [(scores[first][text], scores[second][text]) for text in scores[first] if text in scores[second]]
        for what, pairs in (
            ("labelled right more often", [(a.accuracy, b.accuracy) for a, b in shared]),
            ("more natural", [(a.naturalness, b.naturalness) for a, b in shared]),
        ):
            claim = f"texts of {first} are {what} than those of {second}"
            test = PairedTest.of([mine - other for mine, other in pairs])
            if test.p is None:
                claims.append(Claim(claim, None, "no rated text is fooled by both"))
                continue
            means = " against ".join(f"{sum(values) / len(pairs):.2f}" for values in zip(*pairs, strict=True))
            claims.append(Claim(claim, test.positive, f"{means}, sign flips {test} both fool"))
    return claims


def similarity_pairs(results: Results, first: str, second: str) -> list[tuple[float, float]]:
    """The similarities of two attacks on the texts that both fool.

    Parameters
    ----------
    results
        What the attacks did.
    first, second
        The two attacks.
    """
    pairs = [(record, results[second].get(text)) for text, record in results[first].items()]
    return [
        (record.similarity, other.similarity)
        for record, other in pairs
        if succeeded(record) and other is not None and succeeded(other)
        if record.similarity is not None and other.similarity is not None
    ]


def _compare(results: Results, first: str, second: str) -> PairedTest:
    return PairedTest.of([mine - theirs for mine, theirs in similarity_pairs(results, first, second)])


def _inserting_is_most_similar(results: Results, similarities: dict[str, float | None]) -> Claim:
    claim = f"{INSERT} has the highest mean similarity of the four modes"
    means = ", ".join(f"{mode} {number(value, 3)}" for mode, value in similarities.items())
    tests = {mode: _compare(results, INSERT, mode) for mode in MODES if mode != INSERT}
    against = ", ".join(f"{mode} {test}" for mode, test in tests.items())
    return Claim(claim, all_of(test.positive for test in tests.values()), f"{means}; against {against} both fool")


def _more_similar(results: Results, mode: str, other: str) -> Claim:
    claim = f"{mode} has a higher mean similarity than {other} on the texts both fool"
    pairs, test = similarity_pairs(results, mode, other), _compare(results, mode, other)
    if test.difference is None or test.p is None:
        return Claim(claim, None, "no text is fooled by both")
    first, second = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    numbers = f"{first:.3f} against {second:.3f} on {count(test.texts, 'text')}, sign flips {p_value(test.p)}"
    return Claim(claim, test.positive, numbers)


def _insertions_matter_more(splits: Splits) -> Claim:
    claim = "split A is larger than split B: inserting adds more to replacing than the other way round"
    if not splits.attacked:
        return Claim(claim, None, "no text was attacked")
    a, b, both = (splits.splits[name].count for name in "ABC")
    test = PairedTest.of([1] * (a - both) + [-1] * (b - both) + [0] * (splits.attacked - a - b + 2 * both))
    assert test.p is not None
    numbers = f"A {a}, B {b} of {count(splits.attacked, 'text')}, {both} in both; McNemar {p_value(test.p)}"
    return Claim(claim, test.positive, numbers)
