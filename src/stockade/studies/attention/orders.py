"""What the paper says about its attacks and models, held against the runs: reported, never enforced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stockade.core.statistics import mcnemar
from stockade.studies.attention.rates import fooled_texts
from stockade.studies.attention.victims import ATTACKS, GREEDY, GREEDY_EC, LIST, RANDOM
from stockade.studies.orders import Order, at_least_as_strong
from stockade.studies.results import Results, attacked_by_all, was_attacked

_NEAR = 0.03


def check_orders(models: Mapping[str, Any], results: Mapping[str, Results]) -> list[Order]:
    """Every order: of the attacks on each model, then of the models under each attack."""
    within = [order for name in models for order in _of_attacks(name, models[name], results[name])]
    between = [order for one, other in pairs(models) for order in _of_models(one, other, models, results)]
    return within + between


def pairs(models: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every self-attentive model with every recurrent one."""
    for one, first in models.items():
        for other, second in models.items():
            if first["kind"] == "self-attentive" and second["kind"] == "recurrent":
                yield one, other


def compare_models(one: Results, other: Results, attack: str) -> dict[str, Any] | None:
    """On the texts both had attacked: how many each is fooled on, only one is, and McNemar's exact p."""
    if attack not in one or attack not in other:
        return None
    texts = [t for t, record in one[attack].items() if was_attacked(record) and was_attacked(other[attack].get(t))]
    first, second = fooled_texts(one, attack) & set(texts), fooled_texts(other, attack) & set(texts)
    only, only_other = len(first - second), len(second - first)
    return {
        "texts": len(texts),
        "fooled": [len(first), len(second)],
        "only": [only, only_other],
        "p": mcnemar(only, only_other),
    }


def _of_attacks(name: str, found: Mapping[str, Any], results: Results) -> Iterator[Order]:
    star = found["a_star"]
    best = None if star is None else star["attack"]
    yield _stronger(f"{name}: {GREEDY} at least as strong as attention (A*)", results, GREEDY, best)
    yield _stronger(f"{name}: attention (A*) at least as strong as {LIST}", results, best, LIST)
    yield _list_beats_random(name, found["attacks"])
    yield _constraint_is_free(name, results)


def _stronger(claim: str, results: Results, strong: str | None, weak: str | None) -> Order:
    if strong is None or weak is None or strong not in results or weak not in results:
        return Order(claim, None, "the model does not allow one of them")
    return at_least_as_strong(results, strong, weak, claim)


def _list_beats_random(name: str, attacks: Mapping[str, Any]) -> Order:
    claim = f"{name}: {LIST} at least as strong as {RANDOM}"
    rate, draws = attacks[LIST]["rate"]["value"], attacks[RANDOM]["rate"]["value"]
    if rate is None or draws is None:
        return Order(claim, None, "nothing was attacked")
    holds = rate >= draws if rate or draws else None
    return Order(claim, holds, f"{100 * rate:.1f} % of texts against {100 * draws:.1f} % of draws")


def _constraint_is_free(name: str, results: Results) -> Order:
    claim = f"{name}: {GREEDY_EC} within 3 points of {GREEDY}"
    if GREEDY not in results or GREEDY_EC not in results:
        return Order(claim, None, "the model does not allow one of them")
    texts = attacked_by_all(results, (GREEDY, GREEDY_EC))
    if not texts:
        return Order(claim, None, "no text was attacked by both")
    free, bound = (len(fooled_texts(results, attack) & set(texts)) for attack in (GREEDY, GREEDY_EC))
    gap = (bound - free) / len(texts)
    near = abs(gap) <= _NEAR + 1e-9 if bound or free else None
    return Order(claim, near, f"{bound} against {free} of {len(texts)} texts: {100 * gap:+.1f}")


def _of_models(one: str, other: str, models: Mapping[str, Any], results: Mapping[str, Results]) -> Iterator[Order]:
    for attack in ATTACKS:
        claim = f"{attack}: {one} is fooled less often than {other}"
        if attack == RANDOM:
            yield _fewer_draws(claim, models[one], models[other])
        else:
            yield _fewer_texts(claim, one, other, compare_models(results[one], results[other], attack))
    yield _moves_less(one, other, models)


def _fewer_draws(claim: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Order:
    first, second = (model["attacks"][RANDOM]["rate"]["value"] for model in (one, other))
    if first is None or second is None:
        return Order(claim, None, "nothing was attacked")
    numbers = f"{100 * first:.1f} % against {100 * second:.1f} % of draws"
    return Order(claim, None if first == second else first < second, numbers)


def _fewer_texts(claim: str, one: str, other: str, compared: Mapping[str, Any] | None) -> Order:
    if compared is None:
        return Order(claim, None, "one of the models does not allow it")
    if not compared["texts"]:
        return Order(claim, None, "no text was attacked on both")
    first, second = compared["fooled"]
    only, only_other = compared["only"]
    numbers = (
        f"{first} against {second} of {compared['texts']} texts; {only} fool only {one}, {only_other} only {other}; "
        f"McNemar p = {compared['p']:.3g}"
    )
    return Order(claim, None if first == second else first < second, numbers)


def _moves_less(one: str, other: str, models: Mapping[str, Any]) -> Order:
    claim = f"R_e is larger for {other} than for {one}"
    changes = {name: models[name]["relative_embedding_change"] for name in (one, other)}
    first, second = (changes[name]["mean"]["value"] for name in (one, other))
    told = ", ".join(_interval(name, found) for name, found in changes.items())
    return Order(claim, None if first is None or second is None else second > first, told)


def _interval(name: str, change: Mapping[str, Any]) -> str:
    mean = change["mean"]
    if mean["value"] is None:
        return f"{name} n/a"
    around = "" if mean["low"] is None else f" ({mean['low']:.3f}–{mean['high']:.3f})"
    return f"{name} {mean['value']:.3f}{around}"
