"""What the betting bound costs and how often it succeeds, next to the other schemes, on votes that are simulated.

    python benchmarks/betting.py [--texts 4000] [--group 3] [--most 5000] [--alpha 0.05] [--seed 0] [--json FILE]

Three tables. *Power*: texts of two classes whose class has a share p of the votes, where one change needs a share above
tau; how many of them are certified for one change, and the forward passes per text, those that choose the class
included; then the most that betting takes over the cheapest other scheme, whatever its power, and the power that it
loses against *fixed*. *Groups*: the same where the copies of a group vote independently, all alike, or as
evenly as whole votes can be, for bets on groups, on single copies, and for the choice that the pilot makes. *False*:
texts on the threshold, so that every certificate is wrong, and the 99.9 % lower limit of that rate.
"""

from __future__ import annotations

import argparse
import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.certificates import betting_sampler
from stockade.certificates.betting import Bets, BettingPlan, leads_of
from stockade.certificates.betting_evidence import by_round, radius_levels
from stockade.certificates.confidence import clopper_pearson_low
from stockade.certificates.evidence import Losses, SmoothingDistribution
from stockade.certificates.methods.ranmask import RanMaskGap
from stockade.certificates.sampling import RunningTotals
from stockade.certificates.sequential import Scheme, Tally, decide
from stockade.core.seeds import derive_seed

Kind = Literal["independent", "alike", "even"]
Bet = Literal["chosen", "groups", "single"]
Votes = NDArray[np.int64]
KINDS: tuple[Kind, ...] = ("independent", "alike", "even")
TAUS, EDGES = (0.6, 0.75, 0.9), (0.02, 0.04, 0.08)
SCHEMES: tuple[Scheme, ...] = ("fixed", "curtailed", "spending", "anytime")
FALSE = ((0.8, 0.2), (0.6, 0.2, 0.2), (0.65, 0.25, 0.1), (0.5, 0.1, 0.2, 0.2), (0.55, 0.15, 0.15, 0.15))
"""Shares of the classes; one change needs the lead that the first has over the strongest other."""


@dataclass(frozen=True)
class Copies:
    """Copies of a text that vote for each class with these chances, in groups that have something in common."""

    shares: tuple[float, ...]
    loss: Fraction
    group_size: int = 3
    kind: Kind = "independent"

    @property
    def distinct_copies(self) -> None:
        return None

    def losses(self) -> Losses:
        return (Fraction(0), self.loss)

    def insertion_leads(self) -> tuple[float, ...]:
        return ()

    def difference(self, recorded: SmoothingDistribution) -> str:
        return "other copies"

    def votes(self, rng: np.random.Generator, rounds: int, size: int, texts: int) -> Votes:
        """The class that each copy of each round votes for: an array of rounds, copies and texts."""
        chance = rng.random((rounds, size, texts))
        if size > 1 and self.kind == "alike":
            chance = np.repeat(chance[:, :1], size, axis=1)
        elif size > 1 and self.kind == "even":
            chance = (chance[:, :1] + np.arange(size)[None, :, None] / size) % 1
        return np.minimum(np.searchsorted(np.cumsum(self.shares), chance, side="right"), len(self.shares) - 1)


@dataclass(frozen=True)
class Measured:
    """The share of texts that are certified for one change, and the forward passes per text."""

    certified: float
    passes: float
    texts: int


def by_betting(copies: Copies, method: RanMaskGap, texts: int, rng: np.random.Generator, bet: Bet) -> Measured:
    """What `sample_by_betting` does, for many texts at once."""
    pilots = [run_pilot(copies, method, rng) for _ in range(texts)]
    groups, single = betting_sampler.betting_plans(method, copies)
    plans = {"groups": [groups] * texts, "single": [single] * texts}.get(bet) or [
        betting_sampler.choose_plan(method, copies, pilot, chosen) for pilot, chosen in pilots
    ]
    certified, passes = 0, sum(len(pilot) for pilot, _ in pilots)
    for plan in dict.fromkeys(plans):
        those = [pilot for pilot, other in zip(pilots, plans, strict=True) if other == plan]
        # Texts whose pilots have equal length are played together; a class that should not win proves nothing here.
        for length in {len(pilot) for pilot, _ in those}:
            batch = [pilot for pilot, chosen in those if len(pilot) == length and chosen == 0]
            won, copies_drawn = play(copies, method, plan, batch, rng) if batch else (0, 0)
            certified, passes = certified + won, passes + copies_drawn
    return Measured(certified / texts, passes / texts, texts)


def run_pilot(copies: Copies, method: RanMaskGap, rng: np.random.Generator) -> tuple[NDArray[np.float64], int]:
    """The copies that choose the class of a text, and the class."""
    rows = np.zeros((0, len(copies.shares)))
    for look in method.selection_looks():
        groups = max(1, look // copies.group_size) - len(rows) // copies.group_size
        votes = copies.votes(rng, groups, copies.group_size, 1).reshape(-1)
        rows = np.concatenate([rows, np.eye(len(copies.shares))[votes]])
        totals = RunningTotals(len(copies.shares)).with_rows(rows)
        if totals.clear():
            break
    return rows, method.best(totals)


def play(
    copies: Copies, method: RanMaskGap, plan: BettingPlan, pilots: Sequence[Any], rng: np.random.Generator
) -> tuple[int, int]:
    """How many of these texts are certified for one change, and how many copies that takes in all."""
    texts, rivals, size = len(pilots), len(copies.shares) - 1, plan.copies_per_round
    levels = radius_levels(copies, method.rule)
    leads = np.concatenate([leads_of(by_round(pilot, size), method.rule, 0) / size for pilot in pilots], axis=1)
    bets = Bets(plan, method.rule, levels, leads)
    ended, ends = np.zeros(texts, dtype=np.bool_), np.full(texts, plan.rounds)
    wealth, peak = np.zeros((2, texts, rivals, len(levels)))
    for start, stop in betting_sampler.chunks(plan, method):
        votes = copies.votes(rng, stop - start, size, texts)
        counts = np.stack([(votes == label).sum(axis=1) for label in range(rivals + 1)], axis=2)
        bets.play(((counts[:, :, :1] - counts[:, :, 1:]) / size).reshape(stop - start, -1))
        won = bets.won().reshape(texts, rivals, -1).all(axis=1)
        sure = np.logical_and.accumulate(won, axis=1).sum(axis=1)
        power = np.stack([bets.power(level).reshape(texts, rivals).min(axis=1) for level in range(len(levels))])
        hopeless = power[np.minimum(sure, len(levels) - 1), np.arange(texts)] < method.least_power
        now = ~ended & ((sure == len(levels)) | hopeless | (stop >= plan.rounds))
        wealth[now], peak[now] = (values.reshape(texts, rivals, -1)[now] for values in (bets.log_wealth, bets.peak))
        ends[now], ended = stop, ended | now
        if ended.all():
            break
    enough = plan.log_threshold + np.log(1 - rng.random(texts))[:, None, None]
    proved = (peak >= plan.log_threshold) | (wealth >= enough)
    return int(proved.all(axis=(1, 2)).sum()), int(ends.sum()) * size


def by_looks(copies: Copies, method: RanMaskGap, texts: int, rng: np.random.Generator) -> Measured:
    """What `sample` does with the votes of two classes, for many texts at once."""
    pilots = [run_pilot(replace(copies, group_size=1), method, rng) for _ in range(texts)]
    plan, losses = method.plan(None), copies.losses()

    def first_at_least(state: int, looked: int) -> int:
        """The fewest votes with which a look ends without a radius of 1 (1) or with one (2)."""

        def state_of(votes: int) -> int:
            decision = decide(Tally((votes, looked - votes), looked), 0, plan, "gap", losses)
            return 2 if decision.radius == 1 else 1 - int(decision.done)

        return bisect_left(range(looked // 2, looked + 1), state, key=state_of) + looked // 2

    enough = np.array([first_at_least(2, looked) for looked in plan.looks])
    hopeless = np.array([first_at_least(1, looked) - 1 for looked in plan.looks])
    steps = np.diff([0, *plan.looks])
    votes = np.cumsum(rng.binomial(steps, copies.shares[0], (texts, len(steps))), axis=1)
    ends = (votes >= enough) | (votes <= hopeless)
    ends[:, -1] = True
    end = ends.argmax(axis=1)
    chosen = np.array([label == 0 for _, label in pilots])
    certified = chosen & (votes[np.arange(texts), end] >= enough[end])
    passes = np.array(plan.looks)[end] + [len(pilot) for pilot, _ in pilots]
    return Measured(float(certified.mean()), float(passes.mean()), texts)


def power_table(options: argparse.Namespace) -> dict[str, dict[str, Measured]]:
    """Every scheme at every point of the grid."""
    results = {}
    for tau in TAUS:
        for edge in EDGES:
            share = round(tau + edge, 6)
            copies = Copies((share, 1 - share), Fraction(str(tau)) - Fraction(1, 2), options.group)
            point = {
                "betting": by_betting(copies, method_of(options), options.texts, seeded(options, tau, edge), "chosen")
            }
            for scheme in SCHEMES:
                method = method_of(options, scheme=scheme)
                point[scheme] = by_looks(copies, method, options.texts, seeded(options, tau, edge, scheme))
            results[f"tau {tau}, p {share}"] = point
    return results


def groups_table(options: argparse.Namespace) -> dict[str, dict[str, Measured]]:
    """Bets on groups, on single copies, and what the pilot chooses, for copies that have something in common."""
    results: dict[str, dict[str, Measured]] = {}
    for kind in KINDS:
        for tau, share in ((0.6, 0.68), (0.75, 0.79), (0.9, 0.98)):
            copies = Copies((share, 1 - share), Fraction(str(tau)) - Fraction(1, 2), options.group, kind)
            bets: tuple[Bet, ...] = ("chosen", "groups", "single")
            results[f"{kind}, tau {tau}, p {share}"] = {
                bet: by_betting(copies, method_of(options), options.texts, seeded(options, kind, tau, bet), bet)
                for bet in bets
            }
    return results


def false_table(options: argparse.Namespace) -> dict[str, Measured]:
    """How often a certificate is wrong where the lead is just what one change needs."""
    results = {}
    for shares in FALSE:
        loss = (Fraction(str(shares[0])) - Fraction(str(max(shares[1:])))) / 2
        for kind in KINDS:
            copies = Copies(shares, loss, options.group, kind)
            name = f"{kind}, shares {' / '.join(map(str, shares))}"
            rng = seeded(options, "false", name)
            results[name] = by_betting(copies, method_of(options), options.texts, rng, "chosen")
    return results


def method_of(options: argparse.Namespace, **others: Any) -> RanMaskGap:
    return RanMaskGap(alpha=options.alpha, most=options.most, **others)


def seeded(options: argparse.Namespace, *names: object) -> np.random.Generator:
    return np.random.default_rng(derive_seed(options.seed, *map(str, names)))


def show_rows(results: dict[str, dict[str, Measured]]) -> None:
    for name, point in results.items():
        cells = [f"{measured.certified:.3f} / {measured.passes:,.0f}" for measured in point.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def show_header(*columns: str) -> None:
    print(f"\n| {' | '.join(columns)} |\n| {' | '.join(['---'] * len(columns))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=4000)
    parser.add_argument("--group", type=int, default=3)
    parser.add_argument("--most", type=int, default=5000)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    power = power_table(options)
    show_header("power / passes", "betting", *SCHEMES)
    show_rows(power)
    ratio = max(point["betting"].passes / min(point[scheme].passes for scheme in SCHEMES) for point in power.values())
    lost = max(point["fixed"].certified - point["betting"].certified for point in power.values())
    print(f"\nBetting takes at most {ratio:.2f} times the passes of the cheapest other scheme.")
    print(f"It loses at most {100 * lost:.1f} points of power against fixed.")
    groups = groups_table(options)
    show_header("power / passes", "chosen", "groups", "single")
    show_rows(groups)
    wrong = false_table(options)
    show_header("on the threshold", "certified", "99.9 % limit", "passes")
    for name, measured in wrong.items():
        low = clopper_pearson_low(round(measured.certified * measured.texts), measured.texts, 0.001)
        print(f"| {name} | {measured.certified:.4f} | {low:.4f} | {measured.passes:,.0f} |", flush=True)
    if options.json is not None:
        tables = {"power": power, "groups": groups, "false": {"wrong": wrong}}
        plain = {
            name: {row: {key: vars(value) for key, value in point.items()} for row, point in table.items()}
            for name, table in tables.items()
        }
        options.json.write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
