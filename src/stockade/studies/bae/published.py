"""What the BAE paper printed in its Tables 1 and 2, to stand beside other numbers.

Garg and Ramakrishnan, EMNLP 2020: test accuracy after the attack in percent, and in parentheses the mean similarity by
the Universal Sentence Encoder. Its victims are a word-LSTM, a word-CNN and BERT base. The accuracies before the attack,
Tables 4 and 5 and the points of Figure 2 are not at hand as numbers; where Figure 2 ends is the column TREC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stockade.core.errors import unknown_name

MODELS = ("wordLSTM", "wordCNN", "BERT")
DATA_SETS = ("amazon", "yelp", "imdb", "mr", "mpqa", "subj", "trec")
"""Those of Table 1, then those of Table 2."""
_SHORT = {"lstm": "wordLSTM", "cnn": "wordCNN", "bertbase": "BERT", "bertbaseuncased": "BERT"}
_ATTACKS = ("textfooler", "bae-r", "bae-i", "bae-r/i", "bae-r+i")


@dataclass(frozen=True, slots=True)
class PublishedAttack:
    """A cell of Table 1 or 2: accuracy after the attack in percent, and mean similarity."""

    accuracy: float
    similarity: float


def _cells(*rows: tuple[float, ...]) -> dict[str, dict[str, PublishedAttack]]:
    """The block of a model: a row for each data set, accuracy and similarity of each attack in turn."""
    return {
        data: {
            attack: PublishedAttack(accuracy, similarity)
            for attack, accuracy, similarity in zip(_ATTACKS, row[::2], row[1::2], strict=True)
        }
        for data, row in zip(DATA_SETS, rows, strict=True)
    }


PUBLISHED: Mapping[str, Mapping[str, Mapping[str, PublishedAttack]]] = {
    "wordLSTM": _cells(
        (31.0, 0.747, 21.0, 0.827, 17.0, 0.924, 16.0, 0.902, 4.0, 0.848),
        (28.0, 0.829, 20.0, 0.885, 22.0, 0.928, 19.0, 0.924, 9.0, 0.902),
        (20.0, 0.828, 22.0, 0.852, 23.0, 0.933, 8.0, 0.896, 5.0, 0.871),
        (25.49, 0.906, 24.17, 0.914, 19.11, 0.966, 15.08, 0.949, 7.50, 0.935),
        (48.49, 0.745, 45.66, 0.748, 40.94, 0.871, 31.60, 0.820, 25.57, 0.766),
        (58.5, 0.882, 50.2, 0.899, 49.8, 0.958, 43.1, 0.946, 29.0, 0.929),
        (42.4, 0.834, 32.4, 0.870, 18.0, 0.964, 20.4, 0.954, 11.8, 0.874),
    ),
    "wordCNN": _cells(
        (42.0, 0.776, 16.0, 0.821, 18.0, 0.934, 13.0, 0.904, 2.0, 0.859),
        (36.0, 0.827, 23.0, 0.846, 26.0, 0.941, 17.0, 0.916, 9.0, 0.891),
        (31.0, 0.854, 23.0, 0.856, 29.0, 0.924, 20.0, 0.892, 14.0, 0.861),
        (21.18, 0.910, 20.81, 0.920, 19.49, 0.971, 15.56, 0.956, 7.87, 0.938),
        (48.77, 0.733, 44.43, 0.735, 44.43, 0.876, 32.17, 0.818, 27.83, 0.764),
        (58.9, 0.889, 51.0, 0.899, 49.8, 0.958, 41.5, 0.940, 31.1, 0.922),
        (47.6, 0.812, 29.6, 0.843, 15.4, 0.953, 13.0, 0.936, 8.4, 0.858),
    ),
    "BERT": _cells(
        (30.0, 0.787, 36.0, 0.772, 20.0, 0.922, 11.0, 0.899, 14.0, 0.830),
        (27.0, 0.833, 31.0, 0.856, 25.0, 0.936, 16.0, 0.916, 12.0, 0.871),
        (32.0, 0.877, 46.0, 0.835, 31.0, 0.929, 22.0, 0.909, 16.0, 0.856),
        (30.74, 0.902, 44.05, 0.871, 32.05, 0.958, 20.34, 0.941, 19.21, 0.917),
        (36.23, 0.761, 43.87, 0.764, 33.49, 0.862, 24.53, 0.826, 24.34, 0.766),
        (69.5, 0.858, 77.2, 0.828, 74.6, 0.918, 64.0, 0.903, 58.5, 0.875),
        (42.8, 0.866, 37.2, 0.824, 32.2, 0.931, 23.6, 0.908, 20.2, 0.825),
    ),
}
"""By model, data set and attack."""


def published_model(name: str, stand_ins: Mapping[str, str]) -> str | None:
    """Which of the paper's models a model stands for: by its name, such as `word-cnn`, or as a stand-in.

    Parameters
    ----------
    name
        What the model is called in a study.
    stand_ins
        Models in place of the paper's, by the paper's names.
    """
    for model in MODELS:
        if stand_ins.get(model) == name:
            return model
    plain = _plain(name)
    return {**_SHORT, **{_plain(model): model for model in MODELS}}.get(plain)


def published_data(name: str) -> str | None:
    """Which of the paper's data sets this is, by its name."""
    plain = _plain(name)
    return plain if plain in DATA_SETS else None


def published_cell(reference: str) -> tuple[str, str]:
    """A model and a data set of the paper, from MODEL/DATA.

    Parameters
    ----------
    reference
        Such as `wordCNN/mr`; capitals and hyphens do not matter.
    """
    model, _, data = reference.partition("/")
    found, data_set = published_model(model, {}), published_data(data)
    if found is None or data_set is None:
        every = [f"{name}/{other}" for name in MODELS for other in DATA_SETS]
        raise unknown_name("published result of BAE", reference, every)
    return found, data_set


def published_count(first: str, second: str, *, similarity: bool = False) -> tuple[int, int]:
    """In how many of the paper's cells one attack is ahead of another, and of how many.

    Parameters
    ----------
    first, second
        The attacks.
    similarity
        Ahead in similarity; otherwise in strength, which is a lower accuracy.
    """
    cells = [cell for data_sets in PUBLISHED.values() for cell in data_sets.values()]
    ahead = [
        cell[first].similarity > cell[second].similarity if similarity else cell[first].accuracy < cell[second].accuracy
        for cell in cells
    ]
    return sum(ahead), len(ahead)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
