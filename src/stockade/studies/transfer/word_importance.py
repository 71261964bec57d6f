"""How much models need each word of a text, and what substitutes do to them (the transfer paper, appendix C).

An original word's importance is how far the log-likelihood of the true class falls when the word becomes the model's
unknown word; a substitute's, how far it falls when the substitute stands in the word's place. Numbers are in nats;
negative ones make the model surer.

The spread of a text's importances says whether a model looks at few words or at many: the entropy of the positive
importances as shares of their sum, divided by the logarithm of the number of words. 0 if a single word matters, 1 if
all matter alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stockade.core.errors import SearchStopped
from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.engine.services import innermost
from stockade.experiment.store import Codec, ResultStore
from stockade.lexicon.synonyms import same_pos_synonyms
from stockade.studies.transferability.cross_scoring import LabelledText, TextScorer, Verdict

UNKNOWN = "[UNK]"
"""The unknown word of models that do not name theirs."""
MOST_WORDS = 60
"""Longer texts are not measured: each word is a query."""
_LEAST_PROBABILITY = 1e-12
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Importances:
    """The importance of every word of a text to one model.

    Parameters
    ----------
    id
        The text, by name.
    right
        Whether the model is right on it.
    drops
        The fall of the true class's log-likelihood without each word; None where the model has no answer.
    """

    id: str
    right: bool
    drops: tuple[float | None, ...]

    @property
    def spread(self) -> float | None:
        """How evenly the positive importances are spread over the words; None if the text has fewer than two, or none
        is positive.
        """
        positive = [drop for drop in self.drops if drop is not None and drop > 0]
        if len(self.drops) < 2 or not positive:
            return None
        shares = [drop / sum(positive) for drop in positive]
        return max(0.0, -sum(share * math.log(share) for share in shares)) / math.log(len(self.drops))


@dataclass(frozen=True, slots=True)
class SubstituteDrops:
    """What substitutes for the words of a text do to one model.

    Parameters
    ----------
    id
        The text, by name.
    words
        For each word that has substitutes, by index, the fall of the true class's log-likelihood under each.
    """

    id: str
    words: Mapping[int, Mapping[str, float | None]]


def unknown_word(classifier: Classifier) -> str:
    """The word that a model reads as one it does not know."""
    tokenizer: Any = getattr(innermost(classifier), "tokenizer", None)
    return str(getattr(tokenizer, "unk_token", None) or UNKNOWN)


def can_be_measured(text: Text) -> bool:
    """Whether a text has words to compare, and not too many."""
    return 2 <= len(text) <= MOST_WORDS


def measure_importances(scorer: TextScorer, texts: Sequence[LabelledText], unknown: str) -> list[Importances]:
    """The importances of the words of texts; those that the model has no answer for are left out.

    Parameters
    ----------
    scorer
        The model.
    texts
        What to measure.
    unknown
        What stands for a word that is taken away.
    """
    groups = [[item.text, *(item.text.replace(i, unknown) for i in item.text.indices)] for item in texts]
    answers = _in_groups(scorer, texts, groups, "importance")
    measured = []
    for item, (clean, *without) in zip(texts, answers, strict=True):
        if isinstance(clean, Scores):
            drops = tuple(_drop(clean, answer, item.label) for answer in without)
            measured.append(Importances(item.id, clean.label == item.label, drops))
    return measured


def measure_substitutes(scorer: TextScorer, texts: Sequence[LabelledText]) -> list[SubstituteDrops]:
    """What WordNet synonyms of the same part of speech do in the place of every word that has some.

    Parameters
    ----------
    scorer
        The model.
    texts
        What to measure; those that the model has no answer for are left out.
    """
    candidates = [
        [(i, word) for i, words in same_pos_synonyms(item.text.words).items() for word in words] for item in texts
    ]
    groups = [
        [item.text, *(item.text.replace(i, word) for i, word in swaps)]
        for item, swaps in zip(texts, candidates, strict=True)
    ]
    answers = _in_groups(scorer, texts, groups, "substitutes")
    measured = []
    for item, swaps, (clean, *changed) in zip(texts, candidates, answers, strict=True):
        if not isinstance(clean, Scores):
            continue
        drops: dict[int, dict[str, float | None]] = {}
        for (index, word), answer in zip(swaps, changed, strict=True):
            drops.setdefault(index, {})[word] = _drop(clean, answer, item.label)
        measured.append(SubstituteDrops(item.id, drops))
    return measured


def _in_groups(
    scorer: TextScorer, texts: Sequence[LabelledText], groups: Sequence[Sequence[Text]], kind: str
) -> list[list[Verdict]]:
    """The answers to all texts of all groups, asked together."""
    names = [
        f"{kind}/{item.id}/{number}" for item, group in zip(texts, groups, strict=True) for number in range(len(group))
    ]
    answers = iter(scorer.score([text for group in groups for text in group], names))
    return [[next(answers) for _ in group] for group in groups]


def _drop(before: Scores, after: Verdict, label: int) -> float | None:
    if isinstance(after, SearchStopped):
        return None
    logs = [math.log(max(_LEAST_PROBABILITY, scores.probability(label))) for scores in (before, after)]
    return round(logs[0] - logs[1], _DIGITS)


IMPORTANCES: Codec[Importances] = Codec(
    asdict, lambda document: Importances(document["id"], document["right"], tuple(document["drops"]))
)
SUBSTITUTES: Codec[SubstituteDrops] = Codec(
    lambda drops: {"id": drops.id, "words": {str(index): dict(words) for index, words in drops.words.items()}},
    lambda document: SubstituteDrops(document["id"], {int(index): words for index, words in document["words"].items()}),
)
"""How both are stored."""


def importance_part(model: str) -> str:
    """The part of a store with the importances of words to a model, by text."""
    return f"importance/{model}"


def substitute_part(model: str) -> str:
    """The part of a store with what substitutes do to a model, by text."""
    return f"substitutes/{model}"


def read_importances(store: ResultStore, model: str) -> dict[str, Importances]:
    """The importances that are stored for a model, by text."""
    return {entry.id: entry for entry in map(IMPORTANCES.read, store.documents(importance_part(model)))}


def read_substitutes(store: ResultStore, model: str) -> dict[str, SubstituteDrops]:
    """What substitutes do to a model, by text."""
    return {entry.id: entry for entry in map(SUBSTITUTES.read, store.documents(substitute_part(model)))}
