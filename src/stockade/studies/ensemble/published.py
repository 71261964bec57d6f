"""The ensembles of the transfer paper's Table 8: a human expert's, and those of its genetic search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stockade.studies.ensemble.selection import EnsembleSearch

HUMAN = "human"


def _lists(*rows: str) -> dict[int, tuple[str, ...]]:
    return {len(row.split()): tuple(row.split()) for row in rows}


PUBLISHED: Mapping[str, Mapping[int, tuple[str, ...]]] = {
    HUMAN: {
        size: (
            "LSTM-W-Random-1",
            "CNN-C-Random-1",
            "LSTM-WC-ELMo-1",
            "BERT",
            "CNN-W-Random-1",
            "LSTM-C-Random-1",
            "CNN-WC-ELMo-1",
        )[:size]
        for size in range(2, 8)
    },
    "AG-PWWS": _lists(
        "LSTM-WC-ELMo-4 CNN-W-GloVe-6",
        "BiLSTM-W-GloVe-2 LSTM-WC-ELMo-4 CNN-W-fastText-4",
        "LSTM-WC-ELMo-1 BiLSTM-W-GloVe-2 CNN-W-fastText-4 RoBERTa",
        "LSTM-WC-ELMo-1 BiLSTM-W-GloVe-2 LSTM-W-Random-4 CNN-W-fastText-4 RoBERTa",
        "LSTM-WC-ELMo-2 BiLSTM-W-GloVe-2 LSTM-W-Random-4 CNN-W-fastText-4 CNN-WC-ELMo-4 RoBERTa",
        "LSTM-WC-ELMo-2 BiLSTM-W-GloVe-2 LSTM-W-Random-4 CNN-W-fastText-4 CNN-WC-ELMo-4 CNN-W-GloVe-6 RoBERTa",
    ),
    "AG-GA": _lists(
        "LSTM-WC-ELMo-1 CNN-WC-ELMo-1",
        "LSTM-WC-ELMo-1 CNN-C-Random-1 CNN-WC-ELMo-1",
        "BiLSTM-WC-ELMo-4 CNN-C-Random-1 CNN-WC-ELMo-1 CNN-WC-ELMo-6",
        "BiLSTM-WC-ELMo-4 CNN-C-Random-1 CNN-WC-ELMo-1 CNN-WC-ELMo-6 RoBERTa",
        "LSTM-WC-ELMo-4 BiLSTM-WC-ELMo-4 CNN-C-Random-1 CNN-WC-ELMo-1 CNN-WC-ELMo-6 RoBERTa",
        "LSTM-WC-ELMo-4 BiLSTM-WC-ELMo-4 CNN-C-Random-1 CNN-WC-ELMo-1 CNN-WC-ELMo-2 CNN-WC-ELMo-6 RoBERTa",
    ),
    "MR-PWWS": _lists(
        "LSTM-C-Random-4 CNN-WC-ELMo-6",
        "LSTM-C-Random-4 BiLSTM-W-GloVe-4 CNN-WC-ELMo-2",
        "LSTM-C-Random-4 BiLSTM-W-GloVe-4 CNN-W-fastText-2 CNN-WC-ELMo-2",
        "LSTM-W-W2vec-1 LSTM-C-Random-4 CNN-W-fastText-2 CNN-WC-ELMo-2 CNN-W-GloVe-6",
        "LSTM-W-W2vec-1 LSTM-C-Random-4 CNN-W-fastText-2 CNN-WC-ELMo-2 CNN-W-GloVe-6 RoBERTa",
        "LSTM-W-W2vec-1 LSTM-C-Random-4 BiLSTM-W-GloVe-4 CNN-WC-ELMo-2 CNN-W-GloVe-6 CNN-W-W2vec-6 RoBERTa",
    ),
    "MR-GA": _lists(
        "BiLSTM-W-GloVe-4 RoBERTa",
        "LSTM-C-Random-4 BiLSTM-W-GloVe-4 RoBERTa",
        "LSTM-W-Random-1 LSTM-C-Random-4 CNN-W-GloVe-1 RoBERTa",
        "LSTM-W-Random-1 LSTM-C-Random-4 BiLSTM-W-GloVe-4 CNN-W-GloVe-1 RoBERTa",
        "LSTM-W-Random-1 LSTM-C-Random-4 BiLSTM-W-GloVe-4 BiLSTM-C-Random-4 CNN-W-GloVe-1 RoBERTa",
        "LSTM-W-Random-1 LSTM-W-W2vec-1 LSTM-C-Random-4 BiLSTM-W-GloVe-4 BiLSTM-C-Random-4 CNN-W-GloVe-1 RoBERTa",
    ),
}
"""The paper's Table 8, by who chose and size: the human expert, and the genetic search by data and attack."""


@dataclass(frozen=True, slots=True)
class PublishedEnsemble:
    """One of the paper's ensembles on another matrix.

    Parameters
    ----------
    selector, size
        Who chose it, and how many members it has.
    members
        Its models, stand-ins in place of some.
    missing
        Those of them that the matrix does not have as sources.
    fitness
        On that matrix; None if some are missing, or two of the paper's have the same stand-in.
    """

    selector: str
    size: int
    members: tuple[str, ...]
    missing: tuple[str, ...]
    fitness: float | None


def score_published(
    search: EnsembleSearch, sizes: Sequence[int], stand_ins: Mapping[str, str]
) -> tuple[PublishedEnsemble, ...]:
    """The paper's ensembles of some sizes on a matrix.

    Parameters
    ----------
    search
        The sources of the matrix.
    sizes
        Which sizes.
    stand_ins
        The model in place of one of the paper's.
    """
    scored = []
    for selector, lists in PUBLISHED.items():
        for size in (size for size in sizes if size in lists):
            members = tuple(stand_ins.get(member, member) for member in lists[size])
            missing = tuple(member for member in members if member not in search.names)
            usable = not missing and len(set(members)) == size
            fitness = search.choice(members).fitness if usable else None
            scored.append(PublishedEnsemble(selector, size, members, missing, fitness))
    return tuple(scored)
