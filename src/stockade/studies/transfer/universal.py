"""Universal adversarial examples (the transfer paper, Table 1): texts that fool all models that get the original right.

The paper shows three that fool all of its 63 models. Here they are counted, together with those that fool all models
but a few. A text that few models get right says little, so only those count that at least half of the models do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stockade.studies.transfer.rates import Outcomes, Samples

ALL_BUT = (0, 1, 2, 3, 5)
"""How many models a text may leave right to be counted as almost universal, where that is less than half of them."""
_MOST_SHOWN = 12


@dataclass(frozen=True, slots=True)
class UniversalText:
    """An adversarial text of a source.

    Parameters
    ----------
    source, id
        Where it was made, and of which text.
    right, fooled
        How many models are right on the original, and how many of those it fools.
    edits
        How many words were changed.
    original, adversarial
        The text before and after.
    """

    source: str
    id: str
    right: int
    fooled: int
    edits: int
    original: str
    adversarial: str


@dataclass(frozen=True, slots=True)
class Universal:
    """Texts that fool every model that is right on the original, of those that at least half of the models get right.

    Parameters
    ----------
    texts
        How many different adversarial texts there are.
    all_but
        How many of them fool every such model but at most so many.
    examples
        Those that fool all, or all but one.
    """

    texts: int
    all_but: Mapping[int, int]
    examples: tuple[UniversalText, ...]


def find_universal(outcomes: Outcomes, samples: Samples) -> Universal:
    """The adversarial texts that fool every model that is right on the original, those that most models know first.

    Parameters
    ----------
    outcomes
        What every target said.
    samples
        The adversarial texts of each source.
    """
    count, place = len(outcomes.models), {id: number for number, id in enumerate(outcomes.ids)}
    texts: dict[str, UniversalText] = {}
    for row, source in enumerate(outcomes.models):
        asked = outcomes.knows & outcomes.scored[row]
        fooled = asked & outcomes.fooled[row]
        asked[row] = fooled[row] = outcomes.knows[row]  # the source is fooled: that is how the text was found
        right, hits = asked.sum(0), fooled.sum(0)
        for record in samples.get(source, ()):
            number, adversarial = place[record.id], record.adversarial or ""
            text = UniversalText(
                source=source,
                id=record.id,
                right=int(right[number]),
                fooled=int(hits[number]),
                edits=len(record.edits),
                original=record.original,
                adversarial=adversarial,
            )
            if 2 * text.right >= count and text.fooled > getattr(texts.get(adversarial), "fooled", -1):
                texts[adversarial] = text
    ranked = sorted(texts.values(), key=lambda text: (text.right - text.fooled, -text.right, text.edits))
    spared = [most for most in ALL_BUT if not most or 2 * most < count]
    return Universal(
        texts=len(texts),
        all_but={most: sum(text.right - text.fooled <= most for text in ranked) for most in spared},
        examples=tuple(text for text in ranked[:_MOST_SHOWN] if text.right - text.fooled <= 1),
    )
