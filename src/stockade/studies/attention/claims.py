"""What the paper claims about its attacks and models, held against the runs; and its numbers, to be read beside them.

The paper had other models, data and vocabularies: a claim that is not held here is a finding, not a fault. Claims are
those that the paper states in words (sections 4.1 and 5.1, the footnote on the last layer, Figure 2 and section 7), not
every order that its tables happen to show.

Attacks and models are compared text by text, by exact tests. "Almost identical" is an equivalence: it is held if the
whole interval of the difference is within a margin, and undecided while the interval reaches across it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from stockade.core.statistics import paired_difference
from stockade.report.document import Table
from stockade.report.numbers import NOT_AVAILABLE, Interval, p_value
from stockade.studies.attention.analysis import (
    AttentionNumbers,
    ComparedModels,
    ModelNumbers,
    OneWordNumbers,
    fooled_texts,
)
from stockade.studies.attention.inputs import ATTACKS, GREEDY, GREEDY_EC, LAST_LAYER, LIST, RANDOM
from stockade.studies.attention.inside import TextChange
from stockade.studies.attention.means import attention_moved
from stockade.studies.claims import Claim, PairedTest, at_least_as_strong, by_test, within
from stockade.studies.records import Results, attacked_by_all, succeeded, was_attacked

NEAR = 0.05
"""What counts as almost identical: on 100 texts the interval of no difference at all is 3.7 points wide."""
_FEW = 0.1
"""The success rate that the last layer is said to stay below."""
Changes = Mapping[str, Mapping[str, TextChange]]
"""What the successes of gs-ec change inside each model, by text."""
_MISSING = "the model does not allow one of them"
_PUBLISHED_COLUMNS = ("attack", "Yelp, LSTM", "Yelp, BERT", "Yelp, BERT not pre-trained", "MNLI, LSTM", "MNLI, BERT")
_PUBLISHED = {
    "random": (1.1, 0.8, 1, 17.8, 9.2),
    "list": (27, 6, 15, 63, 56),
    "asmin-gr": (16, 11, 32, 57, 53),
    "asmax-gr": (62, 17, 35, 78, 54),
    "asmin-ec": (16, 10, 32, 55, 52),
    "asmax-ec": (62, 17, 35, 78, 51),
    "A*": (62, 17, 35, 78, 54),
    "gs-gr": (79, 52, 53, 95, 75),
    "gs-ec": (78, 50, 53, 95, 75),
}
"""Percent of texts fooled; of `random` percent of draws."""
_PUBLISHED_CAPTION = (
    "Tables 1 and 5. R_e: LSTM 0.83, BERT 0.56. asmax-ec by the last layer of BERT: below 10 %. Human raters: gs-ec on "
    "LSTM 0.6 readability and 52.1 % accuracy, on BERT 1.0 and 68.8 % (Table 3); on BERT gs-gr 0.55 and 64.6 %, gs-ec "
    "1.0 and 68.8 % (Table 4). Other models, data and vocabularies: compare orders, not values."
)


def published_table() -> Table:
    """The paper's numbers."""
    rows = [(attack, *(f"{value} %" for value in values)) for attack, values in _PUBLISHED.items()]
    return Table(_PUBLISHED_COLUMNS, rows, caption=_PUBLISHED_CAPTION)


def check_claims(numbers: AttentionNumbers, results: Mapping[str, Results], changes: Changes) -> tuple[Claim, ...]:
    """Every claim: about the attacks on each model, then about the models under each attack.

    Parameters
    ----------
    numbers
        The numbers of the study.
    results
        What each attack did on each model.
    changes
        What successes change inside each model.
    """
    about_attacks = (_about_attacks(name, model, results[name]) for name, model in numbers.models.items())
    about_models = (_about_models(pair.models, pair.attacks, numbers, results, changes) for pair in numbers.pairs)
    return tuple(chain.from_iterable(chain(about_attacks, about_models)))


def _about_attacks(name: str, model: ModelNumbers, results: Results) -> Iterator[Claim]:
    best = None if model.a_star is None else model.a_star.attack
    yield _stronger(f"{name}: {GREEDY} at least as strong as attention (A*)", results, GREEDY, best)
    yield _stronger(f"{name}: {GREEDY} at least as strong as {LIST}", results, GREEDY, LIST)
    yield _beats_random(name, model, results)
    yield _almost_identical(name, results)
    for how in ("gr", "ec"):
        claim = f"{name}: asmax-{how} at least as strong as asmin-{how}"
        yield _stronger(claim, results, f"asmax-{how}", f"asmin-{how}")
    if LAST_LAYER in model.attacks:
        yield _last_layer_fails(name, model.attacks[LAST_LAYER])


def _last_layer_fails(name: str, pilot: OneWordNumbers) -> Claim:
    """The paper's footnote: chosen by the last layer's attention, hardly any word fools the model."""
    claim = f"{name}: asmax-ec by the last layer fools less than {100 * _FEW:.0f} % of the texts"
    rate = pilot.success_rate
    if rate["value"] is None or rate["low"] is None or rate["high"] is None:
        return Claim(claim, None, "nothing was attacked")
    holds = True if rate["high"] < _FEW else False if rate["low"] > _FEW else None
    low, high = (100 * (rate[end] or 0.0) for end in ("low", "high"))
    numbers = f"{pilot.succeeded} of {pilot.attacked} texts: {100 * rate['value']:.1f} % ({low:.1f} to {high:.1f})"
    return Claim(claim, holds, numbers)


def _stronger(claim: str, results: Results, strong: str | None, weak: str | None) -> Claim:
    if strong is None or weak is None or strong not in results or weak not in results:
        return Claim(claim, None, _MISSING)
    return at_least_as_strong(results, strong, weak, claim)


def _beats_random(name: str, model: ModelNumbers, results: Results) -> Claim:
    claim = f"{name}: {GREEDY} at least as strong as {RANDOM}"
    if GREEDY not in model.attacks:
        return Claim(claim, None, _MISSING)
    texts, draws = model.attacks[GREEDY].rate["value"], model.attacks[RANDOM].rate["value"]
    if texts is None or draws is None:
        return Claim(claim, None, "nothing was attacked")
    flips = _flip_shares(results)
    fooled = {text: float(succeeded(record)) for text, record in results[GREEDY].items() if was_attacked(record)}
    test = PairedTest.of([fooled[text] - flips[text] for text in fooled if text in flips])
    numbers = f"{100 * texts:.1f} % of texts against {100 * draws:.1f} % of draws; sign flips {test}"
    return Claim(claim, test.positive, numbers)


def _flip_shares(results: Results) -> dict[str, float]:
    """The share of random draws that fool the model, for each text."""
    return {
        text: record.flip_share
        for text, record in results[RANDOM].items()
        if was_attacked(record) and record.flip_share is not None
    }


def _almost_identical(name: str, results: Results) -> Claim:
    claim = f"{name}: {GREEDY_EC} almost identical to {GREEDY}, within {100 * NEAR:.0f} points"
    if GREEDY not in results or GREEDY_EC not in results:
        return Claim(claim, None, _MISSING)
    texts = attacked_by_all(results, (GREEDY, GREEDY_EC))
    if not texts:
        return Claim(claim, None, "no text was attacked by both")
    free, constrained = (len(fooled_texts(results, attack) & set(texts)) for attack in (GREEDY, GREEDY_EC))
    fooled = fooled_texts(results, GREEDY_EC) & set(texts), fooled_texts(results, GREEDY) & set(texts)
    gap = paired_difference(len(fooled[0] - fooled[1]), len(fooled[1] - fooled[0]), len(texts))
    value, low, high = (100 * (gap[part] or 0.0) for part in ("value", "low", "high"))
    numbers = f"{constrained} against {free} of {len(texts)} texts: {value:+.1f} points ({low:+.1f} to {high:+.1f})"
    return Claim(claim, within(gap, NEAR) if constrained or free else None, numbers)


def _about_models(
    names: tuple[str, str],
    compared: Mapping[str, ComparedModels | None],
    numbers: AttentionNumbers,
    results: Mapping[str, Results],
    changes: Changes,
) -> Iterator[Claim]:
    attentive, recurrent = names
    models = numbers.models
    for attack in ATTACKS:
        claim = f"{attack}: {attentive} is fooled less often than {recurrent}"
        if attack == RANDOM:
            yield _fewer_draws(claim, (models[attentive], models[recurrent]), (results[attentive], results[recurrent]))
        else:
            yield _fewer_texts(claim, names, compared[attack])
    yield _attention_is_stable(attentive, recurrent, models, changes)
    yield _moves_less(attentive, recurrent, models, changes)


def _fewer_draws(claim: str, models: tuple[ModelNumbers, ModelNumbers], results: tuple[Results, Results]) -> Claim:
    first, second = (model.attacks[RANDOM].rate["value"] for model in models)
    if first is None or second is None:
        return Claim(claim, None, "nothing was attacked")
    mine, theirs = map(_flip_shares, results)
    test = PairedTest.of([theirs[text] - share for text, share in mine.items() if text in theirs])
    numbers = f"{100 * first:.1f} % against {100 * second:.1f} % of draws; sign flips {test}"
    return Claim(claim, test.positive, numbers)


def _fewer_texts(claim: str, names: tuple[str, str], compared: ComparedModels | None) -> Claim:
    if compared is None:
        return Claim(claim, None, "one of the models does not allow it")
    if not compared.texts:
        return Claim(claim, None, "no text was attacked on both")
    first, second = compared.fooled
    numbers = (
        f"{first} against {second} of {compared.texts} texts; {compared.only[0]} fool only {names[0]}, "
        f"{compared.only[1]} only {names[1]}; McNemar {p_value(compared.p)}"
    )
    return Claim(claim, by_test(second - first, compared.p), numbers)


def _attention_is_stable(attentive: str, recurrent: str, models: Mapping[str, ModelNumbers], changes: Changes) -> Claim:
    """Figure 2: under gs-ec the attention of the one shifts substantially, that of the other remains stable."""
    claim = f"{GREEDY_EC} moves less attention in {attentive} than in {recurrent}"
    shifts = [models[name].attention for name in (attentive, recurrent)]
    if None in shifts:
        return Claim(claim, None, "one of the models shows no attention")
    mine, theirs = (_attention_moved(changes.get(name, {})) for name in (attentive, recurrent))
    test = PairedTest.of([theirs[text] - value for text, value in mine.items() if text in theirs])
    intervals = ", ".join(
        _interval(name, shift.moved) for name, shift in zip((attentive, recurrent), shifts, strict=True) if shift
    )
    return Claim(claim, test.positive, f"{intervals}; {_on_both(test)}")


def _attention_moved(changes: Mapping[str, TextChange]) -> dict[str, float]:
    moves = {text: attention_moved(change) for text, change in changes.items()}
    return {text: moved for text, moved in moves.items() if moved is not None}


def _on_both(test: PairedTest) -> str:
    """Each model has successes of its own: only the texts that fool both can be compared text by text."""
    return f"sign flips {test} that {'fools' if test.texts == 1 else 'fool'} both"


def _moves_less(attentive: str, recurrent: str, models: Mapping[str, ModelNumbers], changes: Changes) -> Claim:
    claim = f"R_e is larger for {recurrent} than for {attentive}"
    mine, theirs = (_relative_changes(changes.get(name, {})) for name in (attentive, recurrent))
    test = PairedTest.of([theirs[text] - value for text, value in mine.items() if text in theirs])
    intervals = ", ".join(
        _interval(name, models[name].relative_embedding_change.mean) for name in (attentive, recurrent)
    )
    return Claim(claim, test.positive, f"{intervals}; {_on_both(test)}")


def _relative_changes(changes: Mapping[str, TextChange]) -> dict[str, float]:
    return {text: change.relative_change for text, change in changes.items() if change.relative_change is not None}


def _interval(name: str, mean: Interval) -> str:
    value, low, high = (mean[part] for part in ("value", "low", "high"))
    if value is None:
        return f"{name} {NOT_AVAILABLE}"
    return f"{name} {value:.3f}" + ("" if low is None or high is None else f" ({low:.3f}–{high:.3f})")
