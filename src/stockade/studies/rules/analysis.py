"""The numbers of the study of rules, from what each rule set did to each text of each target.

families       Table 5: success and changed words by what the targets read
sizes          Table 9: the same against the number of models that the rules were mined with
budgets        Table 10: success against the largest share of words that may change
comparisons    mined rules against their baselines on the same texts, on all targets and on held-out ones
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stockade.report.numbers import Interval
from stockade.studies.rules.outcomes import ALL, FAMILIES, HELD_OUT, Comparison, FamiliesCompared, Outcomes
from stockade.studies.transferability.matrix import OTHER

FINAL = "-final"
"""How the name of a rule set ends where only the last text counts."""


@dataclass(frozen=True, slots=True)
class Success:
    """How often texts fool some targets: the mean of their rates, over so many targets; changed words in percent, of
    the texts that do.
    """

    targets: int
    success: Interval
    changed: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetNumbers:
    """One target: what it reads, whether any rules were mined with it, and what each rule set does to it."""

    family: str
    held_out: bool
    attacked: int
    success: Mapping[str, float | None]
    changed: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesNumbers:
    """Every number of the study.

    Parameters
    ----------
    main
        The rule set that the paper's Table 5 is about.
    rule_sets
        How many rules of positive salience each rule set has.
    targets
        The targets by name.
    families
        By rule set and family, held-out targets among them.
    sizes
        By the number of models that the rules were mined with, and family.
    budgets
        By budget and rule set, over all targets.
    held_out_budgets
        The same over the held-out targets.
    comparisons
        Mined rules against the others.
    families_compared
        Families of targets against each other, under the main rule set.
    universal
        Texts whose last version fools every target, though every target is right on the original.
    """

    main: str
    rule_sets: Mapping[str, int]
    targets: Mapping[str, TargetNumbers]
    families: Mapping[str, Mapping[str, Success]]
    sizes: Mapping[int, Mapping[str, Success]]
    budgets: Mapping[str, Mapping[str, Interval]]
    held_out_budgets: Mapping[str, Mapping[str, Interval]]
    comparisons: tuple[Comparison, ...]
    families_compared: tuple[FamiliesCompared, ...]
    universal: tuple[str, ...]


def analyse(
    outcomes: Outcomes,
    *,
    main: str,
    by_size: Mapping[int, str],
    baselines: Sequence[str],
    rule_sets: Mapping[str, int],
    budgets: Sequence[float],
) -> RulesNumbers:
    """Every number of the study.

    Parameters
    ----------
    outcomes
        What the rule sets did.
    main
        The rule set of Table 5.
    by_size
        The rule sets mined with so many models.
    baselines
        What the main rule set is compared with.
    rule_sets
        How many rules each has.
    budgets
        Shares of words that may change.
    """
    groups = [group for group in (*FAMILIES, HELD_OUT) if outcomes.size(group)]
    if outcomes.size(OTHER) == outcomes.size(ALL):
        groups = [group for group in groups if group != OTHER]

    def by_group(rule_set: str) -> dict[str, Success]:
        return {
            group: Success(outcomes.size(group), outcomes.success(rule_set, group), outcomes.changed(rule_set, group))
            for group in groups
        }

    shown = [key for key in (main, *baselines) if key in outcomes.rule_sets]
    return RulesNumbers(
        main=main,
        rule_sets=dict(rule_sets),
        targets={target: _target(outcomes, target) for target in outcomes.targets},
        families={key: by_group(key) for key in outcomes.rule_sets},
        sizes={size: by_group(key) for size, key in by_size.items() if key in outcomes.rule_sets},
        budgets=_by_budget(outcomes, shown, budgets, ALL),
        held_out_budgets=_by_budget(outcomes, shown, budgets, HELD_OUT) if HELD_OUT in groups else {},
        comparisons=tuple(_comparisons(outcomes, main, baselines, by_size, groups)),
        families_compared=tuple(_families(outcomes, main, groups)),
        universal=outcomes.universal(main + FINAL),
    )


def _families(outcomes: Outcomes, main: str, groups: Sequence[str]) -> Iterable[FamiliesCompared]:
    """Every family with every other, but not the models that are of none."""
    families = [group for group in groups if group not in (ALL, HELD_OUT, OTHER)]
    for first in families if main in outcomes.rule_sets else ():
        for second in families:
            if first != second:
                yield outcomes.compare_families(main, first, second)


def _target(outcomes: Outcomes, target: str) -> TargetNumbers:
    return TargetNumbers(
        family=outcomes.family(target),
        held_out=outcomes.is_held_out(target),
        attacked=outcomes.attacked(target),
        success={key: outcomes.rate(key, target) for key in outcomes.rule_sets},
        changed={key: outcomes.changed_on(key, target) for key in outcomes.rule_sets},
    )


def _by_budget(
    outcomes: Outcomes, keys: Sequence[str], budgets: Sequence[float], group: str
) -> dict[str, dict[str, Interval]]:
    asked = [key for key in keys if not key.endswith(FINAL)]
    return {f"{budget:g}": {key: outcomes.success(key, group, budget) for key in asked} for budget in budgets}


def _comparisons(
    outcomes: Outcomes, main: str, baselines: Sequence[str], by_size: Mapping[int, str], groups: Sequence[str]
) -> Iterable[Comparison]:
    smallest = by_size[min(by_size)] if by_size else main
    pairs = [(main, other) for other in (*baselines, *((smallest,) if smallest != main else ()))]
    pairs += [(first + FINAL, second + FINAL) for first, second in pairs]
    for group in (ALL, HELD_OUT):
        for first, second in pairs:
            if group in groups and {first, second} <= set(outcomes.rule_sets):
                yield outcomes.compare(first, second, group)
