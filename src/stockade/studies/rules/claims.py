"""What the transfer paper says about replacement rules (section 4.2, Tables 5 and 9), held against a study.

A claim that one thing is larger than another is held if it is and p < 0.05, not held if the other is and p < 0.05, and
undecided otherwise. Rule sets are compared on the same texts and targets, families of targets on the same texts.
"""

from __future__ import annotations

from stockade.report.numbers import count, p_value, plain_percent
from stockade.studies.claims import Claim, all_of, by_test
from stockade.studies.rules.analysis import FINAL, RulesNumbers
from stockade.studies.rules.outcomes import ALL, HELD_OUT, Comparison

_AMONG = {ALL: "all models", HELD_OUT: "models that were not mined with"}
_RANDOM, _PMI, _SMOOTHED = "random", "pmi", "pmi-smoothed"
_BASELINES = {_PMI: "PMI rules", _SMOOTHED: "smoothed PMI rules", _RANDOM: "random synonyms"}


def check_claims(numbers: RulesNumbers) -> tuple[Claim, ...]:
    """Every claim about rules, and the same with what the paper has not: held-out models and random synonyms."""
    claims = [
        claim
        for group in (ALL, HELD_OUT)
        for baseline in _BASELINES
        if (claim := _beats(numbers, baseline, group)) is not None
    ]
    claims += [claim for group in (ALL, HELD_OUT) if (claim := _grows(numbers, group)) is not None]
    return (*claims, _transformers_withstand(numbers), _order_of_forms(numbers))


def compared(numbers: RulesNumbers, first: str, second: str, group: str) -> Comparison | None:
    """The comparison of two rule sets on a group of targets, if there is one.

    Parameters
    ----------
    numbers
        Of the study.
    first, second
        The rule sets.
    group
        `All` or `Held-out`.
    """
    return next(
        (entry for entry in numbers.comparisons if (entry.first, entry.second, entry.among) == (first, second, group)),
        None,
    )


def _beats(numbers: RulesNumbers, baseline: str, group: str) -> Claim | None:
    comparison = compared(numbers, numbers.main, baseline, group)
    if comparison is None:
        return None
    final = compared(numbers, numbers.main + FINAL, baseline + FINAL, group)
    claim = f"mined rules fool {_AMONG[group]} more often than {_BASELINES[baseline]} do"
    evidence = _numbers(comparison)
    if final is not None and final.p is not None:
        evidence += f"; judged by the last text alone {_rates(final)}, {p_value(final.p)}"
    return Claim(claim, _larger(comparison), evidence)


def _grows(numbers: RulesNumbers, group: str) -> Claim | None:
    """Table 9: size 7 is above size 2 for every family."""
    smallest = f"uawr-{min(numbers.sizes)}" if numbers.sizes else ""
    comparison = compared(numbers, numbers.main, smallest, group)
    if comparison is None:
        return None
    sizes = f"rules mined with {numbers.main.removeprefix('uawr-')} models"
    claim = f"{sizes} fool {_AMONG[group]} more often than rules mined with {smallest.removeprefix('uawr-')}"
    return Claim(claim, _larger(comparison), _numbers(comparison))


def _transformers_withstand(numbers: RulesNumbers) -> Claim:
    claim = "models of the BERT family withstand the rules best"
    rates = _family_rates(numbers)
    if "BERT" not in rates or len(rates) < 2:
        return Claim(claim, None, "there are no targets of that family, or no others")
    return _families_differ(claim, numbers, [(name, "BERT") for name in rates if name != "BERT"])


def _order_of_forms(numbers: RulesNumbers) -> Claim:
    claim = "word models are fooled more often than character models, ELMo models in between"
    rates = _family_rates(numbers)
    if not {"Word", "Character", "ELMo"} <= rates.keys():
        return Claim(claim, None, "not all of these families are among the targets")
    return _families_differ(claim, numbers, [("Word", "ELMo"), ("ELMo", "Character")])


def _families_differ(claim: str, numbers: RulesNumbers, pairs: list[tuple[str, str]]) -> Claim:
    """Whether the first family of each pair is fooled more often than the second."""
    tests = {(entry.first, entry.second): entry for entry in numbers.families_compared}
    chosen = [tests[pair] for pair in pairs]
    evidence = ", ".join(
        f"{entry.first} over {entry.second} {'no test' if entry.p is None else p_value(entry.p)}" for entry in chosen
    )
    verdict = all_of(by_test(entry.difference, entry.p) for entry in chosen)
    return Claim(claim, verdict, f"{_listed(_family_rates(numbers))}; by text {evidence}")


def _family_rates(numbers: RulesNumbers) -> dict[str, float]:
    families = numbers.families.get(numbers.main, {})
    named = {name: family.success["value"] for name, family in families.items() if name not in (ALL, HELD_OUT, "other")}
    return {name: value for name, value in named.items() if value is not None}


def _larger(comparison: Comparison) -> bool | None:
    return by_test(comparison.difference["value"], comparison.p)


def _numbers(comparison: Comparison) -> str:
    if comparison.p is None:
        return "no text was attacked with both"
    first, second = comparison.only
    return (
        f"{_rates(comparison)} on {count(comparison.targets, 'model')}; of pairs of text and model only the first "
        f"fools {first:,}, only the second {second:,}; {p_value(comparison.p)} by text"
    )


def _rates(comparison: Comparison) -> str:
    first, second = comparison.success
    return f"{plain_percent(first)} against {plain_percent(second)}"


def _listed(rates: dict[str, float]) -> str:
    return ", ".join(f"{name} {plain_percent(rate)}" for name, rate in rates.items())
