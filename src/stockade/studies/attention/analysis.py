"""The numbers of the study of Hsieh et al. (On the Robustness of Self-Attentive Models, ACL 2019).

    texts       how many texts all models get right
    models      for each model Tables 1 and 5 (how often each attack fools it), Figures 1, 2 and 4, Theorem 1
    pairs       each self-attentive model against each recurrent one, text by text
    ratings     Tables 3 and 4, if somebody has rated

RANDOM is the share of draws that fool the model, as in the paper; all others the share of texts. A* is the best of the
four attention attacks, as in the paper, and beside it the share of texts that any of the four fools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockade.core.statistics import mcnemar, wilson
from stockade.report.numbers import Interval
from stockade.studies.attention.choices import PieceShares, WordChoice, piece_shares
from stockade.studies.attention.inputs import ATTACKS, BY_ATTENTION, RANDOM, SHOWN, Victim
from stockade.studies.attention.inside import TextChange
from stockade.studies.attention.means import (
    AttentionShift,
    EmbeddingChange,
    RelativeChange,
    attention_shift,
    embedding_change,
    relative_embedding_change,
)
from stockade.studies.attention.ratings import RatingNumbers
from stockade.studies.attention.texts import Selection
from stockade.studies.attention.theorem import TheoremCheck
from stockade.studies.records import AttackNumbers, Results, bootstrap_mean, succeeded, successes, was_attacked

EXAMPLES = 3
"""How many successes of each model are shown word by word."""
_SHORTEST, _LONGEST = 4, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWordNumbers(AttackNumbers):
    """The numbers of one attack; `rate` is what Table 1 shows."""

    rate: Interval


@dataclass(frozen=True, slots=True)
class AnyOfFour:
    """The texts that at least one of the attention attacks fools."""

    fooled: int
    attacked: int
    rate: Interval


@dataclass(frozen=True, slots=True)
class BestAttention:
    """A*: the best of the four attention attacks, and all four together."""

    attack: str
    rate: Interval
    union: AnyOfFour


@dataclass(frozen=True, slots=True)
class LeastAndMost:
    """One text that both asmin-ec and asmax-ec fool a model on (Figure 1)."""

    least: TextChange
    most: TextChange


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNumbers:
    """Every number of one model.

    Parameters
    ----------
    reference, kind, missing
        See `Victim`.
    accuracy
        Over the texts that were classified to choose those of the study.
    attacks
        Tables 1 and 5, and the pilot study on the last layer.
    a_star
        None for a model without attention.
    choices
        How often attention points at words of several pieces.
    attention, embedding_change, theorem
        Figure 2, Figure 4, Theorem 1; where there is none, `without_…` says why.
    least_and_most
        A few texts for Figure 1.
    relative_embedding_change
        R_e.
    examples
        A few successes of gs-ec to look at.
    """

    reference: str
    kind: str
    accuracy: Interval
    missing: Mapping[str, str]
    attacks: Mapping[str, OneWordNumbers]
    a_star: BestAttention | None
    choices: PieceShares | None
    attention: AttentionShift | None
    without_attention: str | None
    embedding_change: EmbeddingChange | None
    without_layers: str | None
    relative_embedding_change: RelativeChange
    theorem: TheoremCheck | None
    without_theorem: str | None
    examples: tuple[TextChange, ...]
    least_and_most: tuple[LeastAndMost, ...]


@dataclass(frozen=True, slots=True)
class ComparedModels:
    """Two models under one attack, on the texts both had attacked.

    Parameters
    ----------
    texts
        How many there are.
    fooled
        On how many each model is fooled.
    only
        On how many only the one model, and only the other, is fooled.
    p
        McNemar's exact test.
    """

    texts: int
    fooled: tuple[int, int]
    only: tuple[int, int]
    p: float


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A self-attentive and a recurrent model; None for attacks that one of them does not allow."""

    models: tuple[str, str]
    attacks: Mapping[str, ComparedModels | None]


@dataclass(frozen=True, slots=True)
class TextCounts:
    """How many texts were chosen, classified to find them, and are in the data."""

    chosen: int
    classified: int
    total: int


@dataclass(frozen=True, slots=True)
class AttentionNumbers:
    """Every number of the study. `ratings` is None before anybody has rated."""

    texts: TextCounts
    models: Mapping[str, ModelNumbers]
    pairs: tuple[ModelPair, ...]
    ratings: RatingNumbers | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResults:
    """What is known of one model.

    Parameters
    ----------
    victim
        What it is.
    summaries
        The summary of each attack.
    results
        What each attack did to each text.
    changes
        What the successes of gs-ec change inside.
    theorem
        The check of Theorem 1; None for a model without self-attention.
    choices
        The words that attention points at.
    shown
        For asmin-ec and asmax-ec the attention of their successes, by text.
    """

    victim: Victim
    summaries: Mapping[str, Mapping[str, Any]]
    results: Results
    changes: Sequence[TextChange]
    theorem: TheoremCheck | None
    choices: Sequence[WordChoice] = ()
    shown: Mapping[str, Mapping[str, TextChange]] = field(default_factory=dict)


def analyse(selection: Selection, models: Sequence[ModelResults], ratings: RatingNumbers | None) -> AttentionNumbers:
    """Every number of the study.

    Parameters
    ----------
    selection
        The texts.
    models
        What is known of each model, in the order of the study.
    ratings
        What human raters say.
    """
    examples = examples_to_show({model.victim.name: model.changes for model in models})
    numbers = {model.victim.name: analyse_model(selection, model, examples[model.victim.name]) for model in models}
    return AttentionNumbers(
        TextCounts(len(selection.ids), selection.classified, selection.total),
        numbers,
        tuple(_compare(models)),
        ratings,
    )


def analyse_model(selection: Selection, model: ModelResults, examples: Sequence[TextChange]) -> ModelNumbers:
    """Every number of one model."""
    victim, changes = model.victim, model.changes
    attacks = rate_attacks(model.summaries, model.results)
    return ModelNumbers(
        reference=victim.reference,
        kind=victim.kind,
        accuracy=wilson(selection.correct[victim.name], selection.classified),
        missing=dict(victim.missing),
        attacks=attacks,
        a_star=best_attention(attacks, model.results),
        choices=piece_shares(model.choices),
        attention=attention_shift(changes) if victim.without_attention is None else None,
        without_attention=victim.without_attention,
        embedding_change=embedding_change(changes),
        without_layers=victim.without_layers,
        relative_embedding_change=relative_embedding_change(changes),
        theorem=model.theorem,
        without_theorem=victim.without_self_attention,
        examples=tuple(examples),
        least_and_most=least_and_most(model.shown),
    )


def rate_attacks(summaries: Mapping[str, Mapping[str, Any]], results: Results) -> dict[str, OneWordNumbers]:
    """The numbers of each attack: the success rate, and for RANDOM the share of draws."""
    rates = {attack: summary["success_rate"] for attack, summary in summaries.items()}
    shares = [record.flip_share for record in results[RANDOM].values() if was_attacked(record)]
    rates[RANDOM] = bootstrap_mean([share for share in shares if share is not None])
    return {attack: OneWordNumbers.of({**summary, "rate": rates[attack]}) for attack, summary in summaries.items()}


def best_attention(attacks: Mapping[str, OneWordNumbers], results: Results) -> BestAttention | None:
    """A*; None for a model without attention."""
    allowed = [attack for attack in BY_ATTENTION if attack in attacks]
    if not allowed:
        return None
    best = max(allowed, key=lambda attack: attacks[attack].rate["value"] or 0.0)  # the first of several alike
    texts = {text for attack in allowed for text, record in results[attack].items() if was_attacked(record)}
    fooled = {record.id for attack in allowed for record in successes(results[attack])}
    union = AnyOfFour(len(fooled), len(texts), wilson(len(fooled), len(texts)))
    return BestAttention(best, attacks[best].rate, union)


def fooled_texts(results: Results, attack: str) -> set[str]:
    """The texts on which an attack fools the model."""
    return {text for text, record in results.get(attack, {}).items() if succeeded(record)}


def compare_models(first: Results, second: Results, attack: str) -> ComparedModels | None:
    """Two models under one attack; None if one of them does not allow it."""
    if attack not in first or attack not in second:
        return None
    others = second[attack]
    texts = {text for text, record in first[attack].items() if was_attacked(record) and was_attacked(others.get(text))}
    by_first, by_second = fooled_texts(first, attack) & texts, fooled_texts(second, attack) & texts
    only = len(by_first - by_second), len(by_second - by_first)
    return ComparedModels(len(texts), (len(by_first), len(by_second)), only, mcnemar(*only))


def _compare(models: Sequence[ModelResults]) -> Iterator[ModelPair]:
    """Every self-attentive model against every recurrent one; shares of draws are not of texts and left out."""
    for first in models:
        for second in models:
            if first.victim.kind == "self-attentive" and second.victim.kind == "recurrent":
                compared = {
                    attack: compare_models(first.results, second.results, attack)
                    for attack in ATTACKS
                    if attack != RANDOM
                }
                yield ModelPair((first.victim.name, second.victim.name), compared)


def examples_to_show(
    changes: Mapping[str, Sequence[TextChange]], most: int = EXAMPLES
) -> dict[str, Sequence[TextChange]]:
    """For each model a few successes to look at.

    Texts that fool most models come first, neither tiny nor long if there are others, those whose new word has as many
    pieces as the old one before others, in the order of the data among equals.

    Parameters
    ----------
    changes
        The successes of each model.
    most
        How many of each.
    """
    fooled: dict[str, int] = {}
    for change in (change for several in changes.values() for change in several):
        fooled[change.id] = fooled.get(change.id, 0) + 1

    def rank(change: TextChange) -> tuple[bool, int, bool]:
        return _is_odd(change), -fooled[change.id], not change.keeps_length

    return {name: sorted(several, key=rank)[:most] for name, several in changes.items()}


def _is_odd(change: TextChange) -> bool:
    """Whether a text is tiny, or too long to look at."""
    return not _SHORTEST <= len(change.words) <= _LONGEST


def least_and_most(shown: Mapping[str, Mapping[str, TextChange]], most: int = EXAMPLES) -> tuple[LeastAndMost, ...]:
    """A few texts that both attacks of Figure 1 fool the model on, neither tiny nor long if there are others.

    Parameters
    ----------
    shown
        The successes of each attack, by text.
    most
        How many.
    """
    least, highest = (shown.get(attack, {}) for attack in SHOWN)
    both = [LeastAndMost(change, highest[text]) for text, change in least.items() if text in highest]
    both = [pair for pair in both if pair.least.attention is not None and pair.most.attention is not None]
    return tuple(sorted(both, key=lambda pair: _is_odd(pair.least))[:most])
