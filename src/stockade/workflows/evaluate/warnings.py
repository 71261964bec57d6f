"""What a reader must know before believing the numbers of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockade.report.numbers import count, p_value
from stockade.workflows.attack.summary import swapped_labels
from stockade.workflows.evaluate.analysis import Row
from stockade.workflows.evaluate.measures import PairedTest
from stockade.workflows.evaluate.views import DIRECT

SHARP = 0.5
"""From this share of texts on which all copies vote alike, a search that follows scores mostly sees nothing."""
MUCH = 0.1
"""So much more robust accuracy in the direct view than in another is called flattering."""
_SMALL = 0.05
_BY_CHANCE = 0.5
"""The p of two texts against none: from here on a difference of two views says nothing."""


def row_warnings(row: Row, texts: int, labels: Sequence[str]) -> tuple[str, ...]:
    """The warnings for one row.

    Parameters
    ----------
    row
        Its numbers.
    texts
        How many texts the evaluation has.
    labels
        The classes of the model.
    """
    sentences = (
        *_below_chance(row, texts, labels),
        *_sharp_votes(row),
        *_flattered(row),
        *_lucky(row, texts),
        *_unknown(row),
        *_untried(row),
    )
    return tuple(f"{row.model}, {row.defense}: {sentence}" for sentence in sentences)


def _below_chance(row: Row, texts: int, labels: Sequence[str]) -> Iterator[str]:
    accuracy = row.clean.accuracy.value
    swapped = None if accuracy is None else swapped_labels(round(accuracy * texts), texts, labels)
    if swapped:
        yield swapped


def _sharp_votes(row: Row) -> Iterator[str]:
    votes = row.votes
    if votes is None or max(votes.unanimous or 0.0, votes.same_answer or 0.0) < SHARP:
        return
    same = votes.same_answer
    probes = "" if same is None else f", and {same:.0%} of texts with one word less get the very same one-hot answer"
    yield (
        f"all copies vote alike on {votes.unanimous:.0%} of the clean texts (mean entropy {votes.entropy:.3f})"
        f"{probes}. Such votes starve a search that follows scores: robustness in the direct view is no evidence."
    )


def _flattered(row: Row) -> Iterator[str]:
    """Where the direct view leaves much more accuracy than another view."""
    for attack, shares in row.attacks.items():
        robust = {
            view: value for view, cell in shares.views.items() if (value := cell.robust_accuracy.value) is not None
        }
        if DIRECT not in robust:
            continue
        worst = min(robust, key=lambda view: robust[view])
        test = shares.views[worst].against_direct
        if robust[DIRECT] - robust[worst] >= MUCH and (test is None or test.p < _BY_CHANCE):
            sure = test is not None and test.p < _SMALL
            yield (
                f"{attack} leaves {robust[DIRECT]:.0%} robust in the direct view, but {robust[worst]:.0%} in the "
                f"{worst} view{_chance(test)}: the direct number "
                f"{'flatters the defense' if sure else 'may flatter the defense, more texts would show'}."
            )


def _lucky(row: Row, texts: int) -> Iterator[str]:
    """Where a randomised model is undecided about what was found: a search with more answers may find what holds."""
    for attack, shares in row.attacks.items():
        if shares.undecided >= MUCH * texts:
            yield (
                f"{attack}: {shares.undecided} of {texts} texts count as robust although what was found for them fools "
                "the model in some of its draws, only in less than half of them. Search again with more --eot-samples."
            )


def _unknown(row: Row) -> Iterator[str]:
    for attack, shares in row.attacks.items():
        if shares.unknown:
            verb = "is" if shares.unknown == 1 else "are"
            yield f"{attack}: {count(shares.unknown, 'text')} ended in an error and {verb} left out."


def _untried(row: Row) -> Iterator[str]:
    for attack, shares in row.attacks.items():
        texts = min(shares.n.values(), default=0)
        if shares.untried and shares.robust_accuracy.value is None:
            yield f"{attack}: not attacked, there was nothing to try on {count(shares.untried, 'text')}."
        elif shares.untried >= MUCH * texts > 0:
            yield f"{attack}: there was nothing to try on {count(shares.untried, 'text')}, which count as robust."


def _chance(test: PairedTest | None) -> str:
    return "" if test is None else f" ({p_value(test.p)})"
