"""A victim that a person can compute, and sentences of our own, for the golden runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

WEIGHTS = {
    "good": 1.5, "great": 2.0, "fine": 1.0, "love": 1.5, "best": 2.0, "fun": 1.0, "warm": 0.5, "clever": 1.0,
    "bad": -1.5, "dull": -1.5, "poor": -1.0, "worst": -2.0, "hate": -1.5, "slow": -0.5, "cold": -0.5, "silly": -1.0,
}  # fmt: skip
LABELS = ("negative", "positive")
SENTENCES = (
    ("a good and clever film about a small town", 1),
    ("the worst picture of a dull year", 0),
    ("great fun for the whole family", 1),
    ("a slow and silly story that nobody will love", 0),
    ("fine acting and a warm heart", 1),
    ("poor writing , cold people , bad music", 0),
    ("the best thing about it is the ending", 1),
    ("i hate how slow this is", 0),
    ("a warm and funny evening with good friends", 1),
    ("dull from the first scene to the last", 0),
    ("clever , quick and great to look at", 1),
    ("a bad idea told in a poor way", 0),
    ("you will love every minute of it", 1),
    ("silly jokes and a cold ending", 0),
    ("good music , fine dancing , a great cast", 1),
    ("the story is poor and the actors look lost", 0),
)


def predict(texts: Sequence[str]) -> list[list[float]]:
    """Class probabilities from the weights of the words."""
    rows = []
    for text in texts:
        positive = 1 / (1 + math.exp(-sum(WEIGHTS.get(word, 0.0) for word in text.lower().split()) - 0.1))
        rows.append([1 - positive, positive])
    return rows
